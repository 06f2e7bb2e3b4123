"""Given names: which are known, and which of them is the name of the person a text is about."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

from evenhand.counterfactuals.antecedents import FEMALE, MALE
from evenhand.counterfactuals.capitals import as_usual
from evenhand.counterfactuals.people import names_people
from evenhand.counterfactuals.texts import as_texts, word_list, words_of

__all__ = [
    "known_names",
    "names_in",
    "namesake",
    "other_names",
    "other_word",
    "part_of_a_place",
    "second_name",
    "subject_name",
]

_SEXES = ("male", "female")
_ROLES = (
    r"(?:Dr|Prof|Professor|Doctor|Rev|Reverend|Pastor|Rabbi|Imam|Bishop|Nurse|Coach|Chef|Officer|Detective|Sergeant|Captain|Judge|"
    r"Justice|Senator|Sen|Governor|Gov|Mayor|Councillor|Congressman|Congresswoman|Representative|Rep|President|Principal|Dean|"
    r"Ambassador|Minister|Chancellor|Colonel|Major|Lieutenant|Corporal|Admiral)"
)
_LEARNED = "|Dr|Prof|Professor|Judge|Justice|Senator|Congressman|Lieutenant|Sergeant|Colonel"  # a surname: Dr. Roy
_TITLE = rf"(?:(?:{_ROLES}|Mr|Mrs|Ms|Miss|Sir|Dame|Lord|Lady|Sister|Brother)\.?\s+)"
_WHEN = r"(?:(?:When|While|After|Before|Since|Because|If|Although|Though|Once|As|Today|Yesterday|Then|But|And|So)\s+)?"
_ENDED = r"(?:^\s*|[\w\])”\"’'%]{2}\s?[.!?]\s+|\n\s*)"  # where a sentence begins; not after an initial
_START = re.compile(
    rf"{_ENDED}(?<!\bDr\. )(?<!\bMr\. )(?<!\bMs\. )(?<!\bRev\. )(?<!\bMrs\. )(?<!\bProf\. )[\"“‘(]?"
    rf"{_WHEN}{_TITLE}{{0,2}}$"
)
_OPENING = re.compile(  # "Born in Florence, Laura moved"; what stands before the comma is nobody who acts
    r"(?:^\s*|[.!?]\s+|\n\s*)(?:Born|Raised|Educated|Trained|After|Before|Since|As|In|At|During|Originally|Now|Today|Until|While|"
    r"When|Although|Previously|Formerly|Currently|Based)\b(?:(?!\b(?:he|she|they|who)\b)[^.,;:!?\n]){0,80},\s+$"
)
_ACTS = re.compile(r"(?:['’]s)?,?\s+(?:(?:[A-Z]\.\s+)?[A-ZÀ-Þ]\w|(?:is|was|has|had)\b|[a-z]{2,}(?:s|ed)\b)")
_NO_NAME = re.compile(  # "Mark your calendar", "Grace period", "Jack of all trades", "Will you come"
    r"\s+(?:your?|my|our|their|his|her|the|an?|of|it|this|that|me|us|him|them|she|he|they|we|I|period|talk|and\s+see)\b|"
    r"\s+(?:is|was)\s+(?:an?|the|in)\s+(?:\w+\s+){0,2}(?:state|city|town|country|province|county|capital|republic|region)\b"
)
_COUPLE = re.compile(
    r"(?:\s+[A-ZÀ-Þ][\w’'-]+)?(?:\s?,\s+[A-ZÀ-Þ][\w’'-]+(?:\s+[A-ZÀ-Þ][\w’'-]+)?)*\s?,?\s+(?:and|&)\s+[A-ZÀ-Þ]"
)
_REGION = re.compile(r",\s+(?:[A-Z]{2}\b|(?:New|North|South|West)\s+[A-Z]|([A-Z][\w.]*\w))")
_SURNAMES = frozenset(
    ["park", "hall", "church", "temple", "lane", "house", "lake", "banks", "day", "press", "post", "bridge"]
)
_BESIDE = re.compile(  # "a work by the young painter "
    r"\b(?:by|with|from|against|for|to\s+(?:the|an?)|of|than|like|between|including)\s+(?:[\w\[\]’'-]+\s+){1,5}(?:,\s+)?$"
)
_CALLED_SO = re.compile(  # somebody else of the same name: "his uncle ", "an average "
    r"(?:(?:\b(?:my|his|her|their|our|the)|[\w.]\s?['’]\s?s|s\s?['’])\s+(?:(?:late|older|younger|elder|eldest|great|only|twin|half)"
    r"[\s-]+)*(?:uncle|aunt|father|mother|brother|sister|son|daughter|cousin|nephew|niece|grandfather|grandmother|husband|wife|dog|"
    r"cat)\s?,?\s+|\ban?\s+(?:average|regular|ordinary|plain)\s+)$",
    re.IGNORECASE,
)


def names_in(
    texts: Iterable[str], genders: Iterable[str] | None = None, *, min_count: int = 3, purity: float = 0.95
) -> tuple[list[str], list[str]]:
    """(male names, female names) found in the texts, for `GenderSwap(names=...)`.

    Without `genders`, those of about 650 common given names (`words/given_names.txt`) that the texts contain. With
    the gender of the person each text is about ("male" or "female"), any capitalised word followed by another one (a
    surname) which at least `min_count` texts contain, at least `purity` of them of one gender, too many to be chance
    at how common the genders are (1 %).

    >>> names_in(["Anna met John Lee", "as Anna knew"])
    (['John'], ['Anna'])
    """
    listed = as_texts(texts)
    if genders is None:
        male, female = (sure | vague for sure, vague in zip(known_names(), _vague_names()))
        read = (as_usual(text, male | female) for text in listed)
        words = {word for text in read for word in re.findall(r"[^\W\d_]+", text)}
        return sorted(words & male), sorted(words & female)
    sexes = list(genders)
    if len(listed) != len(sexes):
        raise ValueError(f"got {len(listed)} texts but {len(sexes)} genders; give one for each text")
    unknown = sorted({repr(g) for g in sexes if g not in _SEXES})
    if unknown:
        raise ValueError(f"genders must be 'male' or 'female', got {', '.join(unknown[:5])}")
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    pattern = re.compile(r"(?<![^\s(\"“])([A-ZÀ-Þ][a-zà-ÿ]+)(?=\s+(?:[A-Z]\.?\s+)?[A-ZÀ-Þ][a-zà-ÿ]+)")
    for text, sex in zip(listed, sexes):
        for name in set(pattern.findall(text)):
            counts[name][sex] += 1
    everybody = Counter(sexes)
    found: dict[str, list[str]] = {sex: [] for sex in _SEXES}
    for name, by in counts.items():
        sex, most = by.most_common(1)[0]
        n = sum(by.values())
        if n >= min_count and most >= purity * n and everybody[sex] / len(listed) < 0.01 ** (1 / n):
            found[sex].append(name)
    return sorted(found["male"]), sorted(found["female"])


def known_names() -> tuple[frozenset[str], frozenset[str]]:
    """The common given names of the list that are no other words, male and female."""
    return _by_sex("given_names")


def _vague_names() -> tuple[frozenset[str], frozenset[str]]:
    """Mark, Grace: names that are other words too."""
    return _by_sex("names_and_words")


@cache
def _by_sex(name: str) -> tuple[frozenset[str], frozenset[str]]:
    sexes: dict[str, set[str]] = {sex: set() for sex in _SEXES}
    for sex, *names in map(str.split, word_list(name)):
        sexes[sex] |= set(names)
    return frozenset(sexes["male"]), frozenset(sexes["female"])


def other_names(male: Sequence[str], female: Sequence[str]) -> dict[str, list[str]]:
    """For each name the list to draw from; a name of both genders stays as it is."""
    for names in (male, female):
        if isinstance(names, str) or len(names) == 0:
            raise ValueError(f"names must be two lists (male names, female names), neither empty; got {names!r}")
        for name in names:
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"a name must be a word, got {name!r}")
    only_male = [n for n in dict.fromkeys(male) if n not in set(female)]
    only_female = [n for n in dict.fromkeys(female) if n not in set(male)]
    if not only_male or not only_female:
        raise ValueError("every name of one list is in the other one too: there is nothing to draw from")
    return dict.fromkeys(only_male, only_female) | dict.fromkeys(only_female, only_male)


def subject_name(text: str, pattern: re.Pattern[str], male: frozenset[str]) -> str | None:
    """The given name of the person a text is about: the first known one that opens a sentence, perhaps after a title,
    or that somebody says of themselves, and is of the gender that the pronouns of the text say; else the only name in
    the text, where pronouns of its gender alone follow it. None where there is no such name.

    >>> names = re.compile(r"\\b(?:John|Anna)\\b")
    >>> subject_name("Anna Lee is a nurse. She met John.", names, frozenset(["John"]))
    'Anna'
    >>> subject_name("In San Anna he met people.", names, frozenset(["John"])) is None
    True
    """
    he, she = len(MALE.findall(text)), len(FEMALE.findall(text))
    for match in pattern.finditer(text):
        name = match.group()
        before = text[max(0, match.start() - 90) : match.start()]
        opens = _START.search(before) or _OPENING.search(before)
        if opens is None or part_of_a_place(text, match.start(), match.end()):
            continue
        own, other = (he, she) if name in male else (she, he)
        if any(name in some for some in _vague_names()) and (own == 0 or not _ACTS.match(text, match.end())):
            continue  # "May she rest", "Frank talk"
        if other_word(text, match.start(), match.end()) or _is_surname(text, name, pattern):
            continue  # "Georgia is a state"; "Gordon was the son of David Gordon"
        if own == 0 and _COUPLE.match(text, match.end()):
            return None  # "Kate and Tom share a flat" is about two
        if own < other:
            return None  # the text is about somebody else
        return _later(text, match, pattern, male) or name
    return _only_name(text, pattern, male)


def _is_surname(text: str, name: str, pattern: re.Pattern[str]) -> bool:
    """Whether the name stands after another given name and before no third one: David Gordon."""
    for match in re.finditer(rf"([A-ZÀ-Þ][\w’'-]+)\s+(?:[A-Z]\.\s+)?{re.escape(name)}\b", text):
        if match[1] != name and pattern.fullmatch(match[1]) and not _surname(text[match.end() : match.end() + 60]):
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
    if not any(text[start:end] in some for some in _vague_names()):
        return False
    begins = re.search(r"(?:^|[.!?:;]\s+|\n)[\s\"“'‘(]*$", text[max(0, start - 6) : start])
    return begins is not None and _NO_NAME.match(text, end) is not None


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
    if re.match(r"\s+(?:and|&)\s+[A-ZÀ-Þ]", text[people[0].end() :]):
        return None  # David and Margaret Leeming
    if re.search(
        r"\b(?:son|daughter|brother|sister|wife|husband|widow|father|mother|friend|student|pupil|fan)\s+of\s+$", before
    ):
        return None
    if any(name in some for some in _vague_names()) and not _ACTS.match(text, people[0].end()):
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
    ... his", "... Max Ernst, though the critic hid his", "... Max Ernst, Napoleon and his"."""
    if _BESIDE.search(before) and len(between) > 30:
        return True
    if re.search(r"[,;]\s+[A-ZÀ-Þ]\w+\s+and\s+$", between):
        return True
    said = re.findall(r"(?<!\bis )(?<!\bwas )(?<!\bas )(?<!, )\bthe\s+([\w\[\]-]+)(?:\s+([\w\[\]]+))?", between)
    return any(word.startswith("[") or names_people(word) for words in said for word in words)  # [occupation]: masked


def second_name(text: str, match: re.Match[str], subject: str, male: frozenset[str]) -> bool:
    """Whether the name is the subject's second one: Maria in Anna Maria Lindqvist."""
    leading = re.search(rf"(?<!\w){re.escape(subject)} $", text[max(0, match.start() - 40) : match.start()])
    same = (match.group() in male) == (subject in male)
    return leading is not None and same and _surname(text[match.end() : match.end() + 60])


def namesake(text: str, match: re.Match[str]) -> bool:
    """Whether it is somebody else of the same name: "his uncle Philip", and within a sentence that has it already with
    another surname or of a place, "Nancy reads Nancy Drew", "Helen wrote about Helen of Troy"."""
    before, name = text[max(0, match.start() - 200) : match.start()], re.escape(match.group())
    if _CALLED_SO.search(before):
        return True
    first = re.search(rf"(?<!\w){name}(?:\s+([A-ZÀ-Þ][\w’'-]+))?(?=\W)[^.!?\n]*$", before)
    follows = re.match(r"\s+(of\s+[A-ZÀ-Þ]|the\s+[A-ZÀ-Þ]|[A-ZÀ-Þ][\w’'-]+)", text[match.end() : match.end() + 40])
    return first is not None and follows is not None and follows[1] != first[1]


def part_of_a_place(text: str, start: int, end: int) -> bool:
    """Whether the name is part of the name of a place, an organisation, a saint or another name: San Diego, Johns
    Hopkins, Elton John, Mr Thomas, Anna-Maria."""
    before, after = text[max(0, start - 40) : start], text[end : end + 60]
    if re.search(r"[\w’'][-‐‑]$|\b[A-ZÀ-Þ]\w*\s[-‐‑]\s$|\b[A-ZÀ-Þ]['’]$", before) or re.match(
        r"[-‐‑]\w|\s[-‐‑]\s[A-ZÀ-Þ]", after
    ):
        return True
    if re.search(r"[\"“]\s?$", before) and not _START.search(before):
        return True  # a work, or what somebody says: the song "Natalie"
    if re.search(r"\b[A-ZÀ-Þ][\w’'-]+\s+(?:[A-Z]\.\s+)+$", before) and not _surname(after):
        return True  # Jerome K. Jerome
    leading = re.search(r"([\w’'.]+)\s+$", before)
    if leading is not None:
        word = leading[1]
        of_a_town = word not in ("to", "of", "from") or text[start:end] in words_of("names_and_towns")
        if (word.lower() in words_of("before_places") and of_a_town) or (
            re.fullmatch(rf"(?:Mr|Mrs|Ms|Miss{_LEARNED if text[start:end] in known_names()[0] else ''})\.?", word)
            and not _surname(after)
        ):
            return True
        titled = re.fullmatch(rf"(?:{_ROLES}|Mr|Mrs|Ms|Miss)\.?", word)
        begins = re.search(r"(?:^|[.!?:;]\s+|\n)[\w’'.]+\s+$", before)
        if word[:1].isupper() and titled is None and begins is None and not word.endswith((".", "!", "?", ":")):
            return True  # a surname, or a second name
    region = _REGION.match(after)
    if region is not None and (region[1] is None or region[1] in words_of("regions")):
        return True  # Elizabeth, New Jersey
    following = re.split(r"[,;:!?\n(]|\.\s", re.sub(r"^\s?['’]\s?s?(?=\s)", "", after), maxsplit=1)[
        0
    ]  # Martha's Vineyard
    words = re.findall(r"[\w&’'.-]+", following)[:5]
    capital = []
    for word in words:
        if not (word[:1].isupper() or word == "&"):
            break
        capital.append(word.lower().rstrip("’'."))
    if len(capital) == 1 and capital[0] in _SURNAMES and _START.search(before):
        return False  # Susan Park is a nurse
    return any(word in words_of("after_places") for word in capital)


def _surname(after: str) -> bool:
    return re.match(r"\s+(?:[A-Z]\.\s+)?[A-ZÀ-Þ][\w’'-]+", after) is not None
