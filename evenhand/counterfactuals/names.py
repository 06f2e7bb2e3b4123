"""Whose name it is: which of the given names in a text is that of the person the text is about."""

from __future__ import annotations

import re
from collections import Counter

from evenhand.counterfactuals.antecedents import FEMALE, MALE
from evenhand.counterfactuals.given_names import vague_name
from evenhand.counterfactuals.nouns import gendered_nouns
from evenhand.counterfactuals.people import names_people
from evenhand.counterfactuals.places import ENDED, STARTS, TITLE, part_of_a_place, role_before, surname_follows
from evenhand.counterfactuals.texts import words_of

__all__ = ["namesake", "other_word", "says_person", "second_name", "subject_name"]

_OPENING = re.compile(  # "Born in Florence, Laura moved"; what stands before the comma is nobody who acts
    r"(?:^\s*|[.!?]\s+|\n\s*)(?:Born|Raised|Educated|Trained|After|Before|Since|As|In|At|During|Originally|Now|Today|Until|While|"
    r"When|Although|Previously|Formerly|Currently|Based|Known|Dubbed|Nicknamed|Widely|Considered|Hailing)\b"
    r"(?:(?!\b(?:he|she|they|who)\b)[^.,;:!?\n]){0,80},\s+((?:[a-z-]+\s+){0,3})"
    rf"{TITLE}{{0,2}}$"
)
_BEING = re.compile(
    rf"{ENDED}(?:An?|One\s+of)\s((?:(?!\b(?:he|she|who|is|was)\b)[^.,;:!?\n]){{2,60}}),\s+$"
)  # A rower, Anna
_ACTS = re.compile(r"(?:['’]s)?,?\s+(?:(?:[A-Z]\.\s+)?[A-ZÀ-Þ]\w|(?:is|was|has|had)\b|[a-z]{2,}(?:s|ed)\b)")
_NO_NAME = re.compile(  # "Mark your calendar", "Grace period", "Jack of all trades", "Will you come"
    r"\s+(?:your?|my|our|their|his|her|the|an?|of|it|this|that|me|us|him|them|she|he|they|we|I|period|talk|and\s+see)\b"
)
_A_TOWN = re.compile(  # "Charlotte is the second-largest banking center in"
    r"\s+(?:is|was|became|remains)\s+(?:home\s+to\b|(?:an?|the|in|one\s+of\s+the)\s+"
    r"(?:(?!(?:of|for|at|in|to|and|with|on)\b)[\w’'-]+\s+){0,5}(?:states?|cit(?:y|ies)|towns?|countr(?:y|ies)|province|county|"
    r"capitals?|republic|region|suburbs?|cent(?:er|re)s?|hubs?|metropolis|ports?|markets?)\s?"
    r"(?=[.,;]|$|\b(?:in|of|with|on|that|which|and|for|where|by|outside|near)\b))"
)
_LETTERS = r"(?:[A-Z]{2,}|[A-Z][a-z]?\.(?:[A-Z]\.?)*[A-Z]?\.?|Ph\.?D|MSc|BSc|Esq|Jr|Sr)\.?(?=[\s,.])"  # MD, Ph.D.
_SURNAMED = (
    r"(?P<full>(?:\s+(?:[A-Z]\.|[\"“(][^\"”)]{2,25}[\"”)]|"
    r"(?:van|von|de|der|del|da|la|le|al|el|bin|ibn)\b|[A-ZÀ-Þ][\w’'-]+))*)"
)
_SOMEBODY = re.compile(  # "Priya Raman, 91, of", ", who", ", MD,", " (born 1950)"
    rf"{_SURNAMED}(?:\s?,\s+(?:aged?\s+)?\d{{1,3}}\b(?=\s?,)|\s?,?\s+who(?:se)?\b|\s?,\s+{_LETTERS}|\s\((?:born|née|b\.|he/|she/|\d{{4}}))"
)
_BEING_ONE = re.compile(  # ", a retired nurse,", " works as a nurse", " is one of the best cooks"
    rf"{_SURNAMED}(?:\s?\([^)]*\))?(?:\s?,|(?:\s?,[^,]{{1,30}},)?\s+(?:is|was|became|has\s+been|had\s+been|(?:works?|worked|serves?|served|"
    r"began|started|joined)(?:\s+[\w’'-]+){0,5}\s+as))\s+(?:(?:also|now|still)\s+)?(?:an?|the|our|my|one\s+of)\s+([^.,;:!?]{3,90})"
)
_COUPLE = re.compile(
    r"(?:\s+[A-ZÀ-Þ][\w’'-]+)?(?:\s?,\s+[A-ZÀ-Þ][\w’'-]+(?:\s+[A-ZÀ-Þ][\w’'-]+)?)*\s?,?\s+(?:and|&)\s+[A-ZÀ-Þ]"
)
_NOT_ACTING = re.compile(r"\s+([a-z]+)(?![\w’'])")
_INTRODUCED = (re.compile(r"\b(?:[Mm]y name is|I am|I['’]m)\s+$"), re.compile(r"['’]s\b"))  # not: I'm Beth's boss
_SEVERAL = re.compile(r"(?:\s?,\s+[A-ZÀ-Þ][a-zà-ÿ]+)+\s?,?\s+and\s+[A-ZÀ-Þ][a-zà-ÿ]")  # Tom, Jo and Ann Lee
_BESIDE = re.compile(  # "a work by the young painter "
    r"\b(?:by|with|from|against|for|to\s+(?:the|an?)|of|than|like|between|including)\s+(?:[\w\[\]’'-]+\s+){1,5}(?:,\s+)?$"
)
_DONE_TO = re.compile(  # "praised Hughes after "
    r"\b(?:ask|prais|select|assist|sign|thank|hir|replac|defeat|interview|accus|succeed|appoint|nam|criticiz|criticis|prais|"
    r"persuad|advis|invit|recruit|promot|tell|told|beat|met|gave|taught|chose)(?:e?d)?\s+[A-ZÀ-Þ][\w’'-]+\s+(?!['’]s)"
)
_CALLED_SO = re.compile(  # somebody else of the same name: "his uncle ", "an average "
    r"(?:(?:\b(?:my|his|her|their|our|the)|[\w.]\s?['’]\s?s|s\s?['’])\s+(?:(?:late|older|younger|elder|eldest|great|only|twin|half)"
    r"[\s-]+)*(?:uncle|aunt|father|mother|brother|sister|son|daughter|cousin|nephew|niece|grandfather|grandmother|grandson|granddaughter|husband|wife|"
    r"widow|girlfriend|boyfriend|fiancée?|stepfather|stepmother|stepson|stepdaughter|half-brother|half-sister|dog|"
    r"cat)\s?,?\s+|\ban?\s+(?:average|regular|ordinary|plain)\s+|\b(?:every|each|any|another|no|former)\s+|"
    r"\b(?-i:first|second|third|fourth|fifth|sixth|next|last|only|other|\d+(?:st|nd|rd|th))\s+)$",
    re.IGNORECASE,
)
_TOGETHER = re.compile(
    r"\b(?:with|by|alongside|against|under|for|from)\s+(?:(?:the|an?|fellow|former)\s+)*(?:[\w\[\]-]+\s+){1,2}$"
)
_MOST_LOOKS = 5  # at a name, until it is taken for no person's
_NEAR = 2000  # characters after a name that may say that it is a person's; a long text is not read for each name


def subject_name(text: str, pattern: re.Pattern[str], male: frozenset[str]) -> str | None:
    """The given name of the person a text is about: the first known one that opens a sentence, perhaps after a title,
    or that somebody says of themselves, and is of the gender that the pronouns of the text say; else the only name in
    the text, where pronouns of its gender alone follow it. None where there is no such name. Without a pronoun of its
    gender something else must say that it is a person's (`says_person`).

    >>> names = re.compile(r"\\b(?:John|Anna)\\b")
    >>> subject_name("Anna Lee is a nurse. She met John.", names, frozenset(["John"]))
    'Anna'
    >>> subject_name("In San Anna he met people.", names, frozenset(["John"])) is None
    True
    """
    he, she = len(MALE.findall(text)), len(FEMALE.findall(text))
    unsaid: Counter[str] = Counter()  # names that nothing has said to be a person's
    for match in pattern.finditer(text):
        name = match.group()
        if unsaid[name] >= _MOST_LOOKS:
            continue
        before = text[max(0, match.start() - 90) : match.start()]
        if _INTRODUCED[0].search(before) and _INTRODUCED[1].match(text, match.end()) is None:
            return name
        opens = STARTS.search(before) or _opened(before)
        described = not opens and role_before(before)
        if not (opens or described) or part_of_a_place(text, match.start(), match.end()):
            continue
        own, other = (he, she) if name in male else (she, he)
        if vague_name(name) and (own == 0 or not _ACTS.match(text, match.end())):
            continue  # "May she rest", "Frank talk"
        if described and not _speaks_of(text, match, MALE if name in male else FEMALE):
            continue
        if other_word(text, match.start(), match.end()) or _is_surname(text, name, pattern):
            continue  # "Georgia is a state"; "Gordon was the son of David Gordon"
        if own == 0 and not says_person(text, match):
            unsaid[name] += 1
            continue  # Mary Kettles was on again
        if own == 0 and _NOT_ACTING.match(text, match.end()) and not _may_act(text, match.end()):
            continue  # Jenny wren nests
        if ((own == 0 or other > 0) and _COUPLE.match(text, match.end())) or _SEVERAL.match(text, match.end()):
            return None  # "Kate and Tom share a flat" is about two
        if own < other:
            return None  # the text is about somebody else
        return _later(text, match, pattern, male) or name
    return _only_name(text, pattern, male)


def says_person(text: str, match: re.Match[str]) -> bool:
    """Whether something beside the pronouns says that the name is a person's: a title, an age, what the person is, or
    the name alone at the beginning of a later sentence; of a town's name a surname is asked for too."""
    before, name = text[max(0, match.start() - 40) : match.start()], re.escape(match.group())
    near = text[match.end() : match.end() + _NEAR]
    if re.search(rf"\b{TITLE}$", before):
        return True
    full = re.compile(_SURNAMED).match(text, match.end())
    surname = "" if full is None or not full["full"].strip() else re.escape(full["full"].split()[-1])
    if not surname and match.group() in words_of("names_and_towns"):
        return False
    if re.search(rf"\b{TITLE}(?:{name}{'|' + surname if surname else ''})\b", near):
        return True  # Ms. Kettles
    if _SOMEBODY.match(text, match.end()) is not None:
        return True
    said = _BEING_ONE.match(text, match.end())
    words = [] if said is None else re.findall(r"[\w\[’'-]+", said[2])
    if any(word.startswith("[") or names_people(word) or word in gendered_nouns() for word in words):
        return True  # [occupation]: masked
    alone = rf"[.!?]\s+{name}(?:['’]s)?\s+(?:and\b|is\b|was\b|has\b|had\b|also\b|[a-z]{{2,}}(?:s|ed)\b)"
    return bool(surname) and re.search(alone, near) is not None


def _may_act(text: str, end: int) -> bool:
    """Whether the small word after a name may be what somebody does."""
    follows = _NOT_ACTING.match(text, end)
    word = "" if follows is None else follows[1]
    known = word in words_of("verbs") or word in words_of("not_after_possessive")
    return (
        known
        or re.search(r"(?:s|ed|ly)$|^(?:put|cut|let|set|read|hit|cost|swam|drew|flew|fell|rose|slept|shook)$", word)
        is not None
    )


def _opened(before: str) -> bool:
    """Whether a clause of nobody who acts stands before: "Born in Rome, ", "Known as a wit, singer ", "A rower, "."""
    opening = _OPENING.search(before)
    if opening is not None:
        role = opening[1].split()
        return not role or names_people(role[-1])
    being = _BEING.search(before)
    return being is not None and any(map(names_people, re.findall(r"[\w-]+", being[1])))


def _speaks_of(text: str, match: re.Match[str], own: re.Pattern[str]) -> bool:
    """Whether a surname follows, and then a pronoun that nobody else has come before."""
    said = own.search(text, match.end())
    if said is None or not surname_follows(text[match.end() : match.end() + 60]):
        return False
    between = text[match.end() : said.start()]
    return re.search(r"[a-z][.!?][\"”’']?\s", between) is not None or not _beside("", between)


def _is_surname(text: str, name: str, pattern: re.Pattern[str]) -> bool:
    """Whether the name stands after another given name and before no third one: David Gordon."""
    for match in re.finditer(rf"([A-ZÀ-Þ][\w’'-]+)\s+(?:[A-Z]\.\s+)?{re.escape(name)}\b", text):
        if (
            match[1] != name
            and pattern.fullmatch(match[1])
            and not surname_follows(text[match.end() : match.end() + 60])
        ):
            return True
    return False


def _later(text: str, match: re.Match[str], pattern: re.Pattern[str], male: frozenset[str]) -> str | None:
    """The name of a second clause that has the first pronoun of its gender: "Jack Lee left, while Jim Ray lost his"."""
    own = MALE if match.group() in male else FEMALE
    said = own.search(text, match.end())
    clause = re.search(
        r"(?:,\s+and|\bwhile|\bbut|\bwhereas)\s+(?:[a-z\[][^\s,;.]*\s+|[A-ZÀ-Þ]\w+\s+(?=[a-z\[])){0,5}([A-ZÀ-Þ][\w’'-]+)\s+[A-ZÀ-Þ]\w+\s+(?!and\b)[a-z]",
        text[match.end() : said.start()] if said is not None else "",
    )
    if clause is None or pattern.fullmatch(clause[1]) is None or clause[1] == match.group():
        return None
    return clause[1] if (clause[1] in male) == (match.group() in male) else None


def other_word(text: str, start: int, end: int) -> bool:
    """Whether a name that is another word too stands where it is that word: at the beginning of a sentence, before what
    no name stands before.

    >>> other_word("Mark your calendar: Mark is here", 0, 4), other_word("Mark is here", 0, 4)
    (True, False)
    """
    town = text[start:end] in words_of("names_and_towns")
    if not (town or vague_name(text[start:end])):
        return False
    begins = re.search(r"(?:^|[.!?:;]\s+|\n)[\s\"“'‘(]*$", text[max(0, start - 6) : start])
    if begins is None:
        return False
    return _A_TOWN.match(text, end) is not None or (not town and _NO_NAME.match(text, end) is not None)


def _only_name(text: str, pattern: re.Pattern[str], male: frozenset[str]) -> str | None:
    """ "They hired Susan; she is", "A widow, Martha opened her salon"; not "inspired by Anna, she"."""
    people = [
        m
        for m in pattern.finditer(text)
        if not part_of_a_place(text, m.start(), m.end()) and not other_word(text, m.start(), m.end())
    ]
    if len({m.group() for m in people}) != 1:
        return None
    name, start = people[0].group(), people[0].start()
    before = text[max(0, start - 60) : start]
    if re.search(r"[A-ZÀ-Þ][\w’'-]*\s+(?:\(\s*)?$|\b[A-Z]\.\s+$", before):
        return None  # a surname: Elton John; who plays somebody: Nick Culver (George Peppard); F. Henry Edwards
    if _CALLED_SO.search(before) or (re.search(r",\s+$", before) and _COUPLE.match(text, people[0].end())):
        return None  # her brother Leon; a list of children
    if re.search(r"\b(?:[Mm]y name is|I am|I['’]m)\s+$", text[max(0, start - 20) : start]):
        return name
    if re.search(r"\b(?:by|with|to|for|from|like|after|and|or|than|as|called|named|born|née)\s+$", before):
        return None
    if _TOGETHER.search(before):
        return None  # formed a band with fellow drummer Paul Gray
    if re.match(r"\s+(?:and|&)\s+[A-ZÀ-Þ]", text[people[0].end() :]):
        return None  # David and Margaret Leeming
    if re.search(
        r"\b(?:son|daughter|brother|sister|wife|husband|widow|father|mother|friend|student|pupil|fan)\s+of\s+$", before
    ):
        return None
    if vague_name(name) and not _ACTS.match(text, people[0].end()):
        return None  # Grace and poise
    if re.search(r"\b(?:is|was|became)\s+$", before) and re.match(
        r"(?:\s+[A-ZÀ-Þ]\w+)*\s?['’]s?\s", text[people[0].end() :]
    ):
        return None  # Bornstein was Donald Trump's doctor
    own, other = (MALE, FEMALE) if name in male else (FEMALE, MALE)
    said = own.search(text)
    if said is None or said.start() < start or other.search(text) is not None:
        return None
    return None if _beside(before, text[people[0].end() : said.start()]) else name


def _beside(before: str, between: str) -> bool:
    """Whether the pronoun after `between` may be somebody else's than the name's: "a work by the painter Max Ernst, and
    ... his", "... praised Hughes after his", "Max Ernst, though the critic hid his", "Max Ernst, Napoleon and his"."""
    if _BESIDE.search(before) and len(between) > 30:
        return True
    if _DONE_TO.search(between) and re.search(r"[.!?]\s", between) is None:
        return True
    if re.search(r"[,;]\s+[A-ZÀ-Þ]\w+\s+and\s+$", between):
        return True
    said = re.findall(r"(?<!\bis )(?<!\bwas )(?<!\bas )(?<!, )\bthe\s+([\w\[\]-]+)(?:\s+([\w\[\]]+))?", between)
    return any(word.startswith("[") or names_people(word) for words in said for word in words)  # [occupation]: masked


def second_name(text: str, match: re.Match[str], subject: str, of_a_man: bool, male: frozenset[str]) -> bool:
    """Whether the name is the subject's second one: Maria in Anna Maria Lindqvist."""
    leading = re.search(rf"(?<!\w){re.escape(subject)} $", text[max(0, match.start() - 40) : match.start()])
    same = (match.group() in male) == of_a_man
    return leading is not None and same and surname_follows(text[match.end() : match.end() + 60])


def namesake(text: str, match: re.Match[str]) -> bool:
    """Whether it is somebody else of the same name: "his uncle Philip", and within a sentence that has it already with
    another surname or of a place, "Nancy reads Nancy Drew", "Helen wrote about Helen of Troy"."""
    before, name = text[max(0, match.start() - 200) : match.start()], re.escape(match.group())
    so = _CALLED_SO.search(before)
    if so is not None and not (so[0].lower().startswith("the ") and name not in text[: match.start()]):
        return True  # not: the widow Anne Lee, who has not been spoken of
    first = re.search(rf"(?<!\w){name}(?:\s+([A-ZÀ-Þ][\w’'-]+))?(?=\W)[^.!?\n]*$", before)
    follows = re.match(r"\s+(of\s+[A-ZÀ-Þ]|the\s+[A-ZÀ-Þ]|[A-ZÀ-Þ][\w’'-]+)", text[match.end() : match.end() + 40])
    return first is not None and follows is not None and follows[1] != first[1]
