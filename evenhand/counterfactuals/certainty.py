"""Whether the rules can tell of whom a text speaks. Where they cannot, it has no other version.

A person who is a woman in one word of a text and a man in the next is nobody's counterfactual. Rules without a parser
know the plain cases; this file knows the others: two people by their pronouns, a name that may be the subject's and
cannot be swapped, a noun of which nothing says whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from evenhand.counterfactuals.antecedents import FEMALE, MALE
from evenhand.counterfactuals.given_names import all_known_names, known_names
from evenhand.counterfactuals.nouns import gendered_nouns, men_nouns
from evenhand.counterfactuals.people import names_people
from evenhand.counterfactuals.places import ENDED, ROLES, TITLE, part_of_a_place, role_before
from evenhand.counterfactuals.preview import Site
from evenhand.counterfactuals.texts import words_of

__all__ = ["OF_ONE_GENDER", "ONE_OF_SEVERAL", "TWO_PEOPLE", "WHOSE_NAME", "doubt"]

TWO_PEOPLE = "unsure: two people"
WHOSE_NAME = "unsure: whose name"
ONE_OF_SEVERAL = "unsure: one of several"
OF_ONE_GENDER = "unsure: said of one gender only"

_CAPITAL = r"[A-ZÀ-Þ][\w’'-]*[\wà-ÿ]"
_FULL = (
    rf"{_CAPITAL}\s+(?:[A-ZÀ-Þ]\.\s+|[\"“(][^\"”)]{{2,25}}[\"”)]\s+|"
    rf"(?:van|von|de|der|del|da|la|le|al|el|bin|ibn|ben|Ó|Ní)\s+)*{_CAPITAL}"
)
_OPENS = re.compile(  # a sentence begins with a full name: "Angus McCrimmon, farmer, has", "Monsignor Bede Lee was"
    rf"{ENDED}(?:The\s+)?(?:(?:late|{ROLES})\.?\s+){{0,3}}({_FULL})(?=,|\s+\(|\s+[\"“]|['’]s\s|\s+[a-z])"
)
_ANY_FULL = re.compile(rf"(?<![\w’'-])(?=({_FULL}))")  # also those within longer ones: Economist Ngaire Te Whata
_BESIDE = re.compile(  # "with ", "the band ": nobody whom the text is about
    r"\b(?:with|under|of|to|from|for|in|at|the|near|against|between|than|like|into|about|on|over|after|before|via|per)\s+"
    r"(?:the\s+|his\s+|her\s+|an?\s+|former\s+|late\s+)*$"
)
_RANK = re.compile(  # what stands before the subject's name says a gender, and stays: Princess Ludovica studied law
    rf"(?:{ENDED}(?:The\s+)?|\b(?:as|called)\s+)(?:Princess|Prince|Queen|King|Duchess|Duke|Countess|Count|Baroness|Baron|"
    r"Empress|Emperor|Fr\.|Madame|Mademoiselle|Frau|Herr|Señora|Señor|Signora|Signor|Monsieur|Tsar|Tsarina|Sultan|Sheikha|Uncle|"
    r"Auntie|Aunt|Grandpa|Grandma)\s+[A-ZÀ-Þ][a-zà-ÿ]"
)
_SEX_OF_ONE = re.compile(r"\s+(?:[a-z-]+\s+)?([a-z\[\]-]+)")
_LONE = re.compile(rf"^\s*({_CAPITAL})\s+(?:is|was|has|had|[a-z]{{3,}}(?:s|ed))\b")  # Ayelet has worked
_TITLED_ACTS = re.compile(r"\b(?:Mr|Mrs|Ms|Miss)\.?\s+[A-ZÀ-Þ][\w’'-]+\s+(?:[a-z]{3,}(?:s|ed)|is|was|has|had)\b")
_SENTENCE = re.compile(
    r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\bSt)(?<!\bJr)(?<!\b[A-Z])\s?[.!?][\"”]?\s+(?=[A-ZÀ-Þ\"“\[])|\n"
)
_SPOKE = re.compile(
    r"\b(?:said|says|spoke|wrote|writes|commented|remarked|thought|complained|joked)\s+(?:of|on|about)\s+$"
)
_TOLD_OF = re.compile(
    r"\b(?:describ|prais|critici[sz]|call|compar|consider|review|hail|not|cit|commend|laud|mention|succeed|replac|follow|"
    r"interview|defend|support|welcom|admir|question)(?:e?s|e?d|ing)\s+$"
)
_LINK = re.compile(  # said of the same person: "is a ", ", a ", "is a nurse and a "
    r"\b(?:is|was|be|been|being|became|remains|as)\s+(?:also\s+|then\s+|now\s+)?$|,\s+(?:then\s+)?$|"
    r"\b(?:is|was|became|as)\s+(?:an?|the)\s[^.;]{0,60}(?:,|\band)\s+$"
)
_PEOPLE = re.compile(
    r"\b(?:[Tt]he|[Aa]n?|[Oo]ne|[Aa]nother|this|that|each|every|any)\s+(?:[\w’'-]+\s+){0,3}?(\[?[a-z-]+\]?)(?![\w-])"
)
_SEVERAL = frozenset(
    ["family", "team", "group", "class", "staff", "public", "couple", "crew", "crowd", "audience", "band"]
)
_ACTING = r"\s+(?:(?:[a-z]{3,}(?:s|ed)|lost|won|left|took|made|had|was|is|has)\b|(?:as|for|in|by|from|with)\s+$)"
_SOMEBODY = re.compile(  # Benzema's struggle, and Brough lost; not in the Guardian
    r"(?<![.!?]\s)(?<!^)(?<!\bof )(?<!\bin )(?<!\bat )(?<!\bthe )(?<!\bfrom )(?<!\bfor )(?<!\bon )(?<!\bto )"
    rf"(?<!\ba )(?<!\ban )(?<![\w’'-])({_CAPITAL})(?=\s?['’]\s?s\b|{_ACTING})"
)
_ACTS_AFTER = re.compile(  # where somebody who is in no list acts: "but Erasmus Gray turned"
    rf"(?:{ENDED}|[,:]\s+|\b(?:but|and|that|when|while|where|because|as|was|is|named|called)\s+)(?:The\s+)?(?:(?:[Ll]ate|{ROLES})\.?\s+){{0,3}}$"
)
_SURNAME_ACTS = re.compile(  # Hollis was; Meghana's portrayal
    rf"{ENDED}({_CAPITAL})(?:\s+(?:is|was|has|had|[a-z]{{2,}}(?:s|ed))\b|\s?['’]\s?s\s)"
)
_OF_ONE_GENDER = re.compile(  # a doctor of either gender may care for pregnant women
    r"\b(?:(?:is|was|be|became|become|been|being|while|when|months|heavily)\s+(?:[a-z]+ly\s+)?pregnant|"
    r"(?:gave|gives?|giving|given)\s+birth|(?:his|her)\s+(?:\w+\s+)?pregnancy|pregnant\s+(?:woman|girl|wife|mother)|"
    r"(?:mater|pater)nity\s+leave|(?:mother|father)-to-be|maiden\s+name|née|"
    r"(?:an?|openly|out)\s+lesbian)\b",
    re.IGNORECASE,
)
_OTHER_NAME = re.compile(
    r"\b(?:(?:stage|pen|real|birth|maiden|full)\s+name(?:\s+(?:of|is|was|being))?|born|née|né|alias|a\.k\.a\.|aka|formerly|"
    r"calling\s+(?:him|her)self(?:\s+as)?|known\s+as|under\s+the\s+name(?:\s+of)?|credited\s+as)"
    rf"\s+({_CAPITAL})"
)
_WITH_PARTNER = re.compile(  # Abdus Salam and his wife
    rf"({_CAPITAL})\s+and\s+(?:his|her)\s+(?:[a-z-]+\s+)?(?:wife|husband|girlfriend|boyfriend|fiancée?)\b(?!\s*,?\s+[A-ZÀ-Þ])"
)
_A_TITLE = re.compile(rf"{TITLE}|{ROLES}\s")
_TITLES_ONLY = re.compile(rf"(?:The\s+)?(?:late\s+)?{TITLE}{{0,3}}")
_BEGINS = re.compile(rf"{ENDED}(?:The\s+)?(?:late\s+)?{TITLE}{{0,3}}$")
_PATRONYMIC = re.compile(r"\s+[A-Z]\w+(?:[oe]vna|[oe]vich|ichna)\b")
_NO_MAN = frozenset(["human", "superhuman", "shaman", "talisman", "ottoman", "caiman", "roman", "german", "norman"])
_NICKNAME = r"\s+(?:[A-ZÀ-Þ]\.\s+)?[\"“‘(]\s?([A-ZÀ-Þ][a-zà-ÿ]+)\s?[\"”’)]"
_PARTNERS = ("wife", "husband", "girlfriend", "boyfriend", "fiancé", "fiancée")
_NOT_FIRST = frozenset(
    ["the", "a", "an", "he", "she", "it", "they", "we", "i", "this", "that", "these", "those", "there", "here", "who"]
    + ["his", "her", "their", "its", "my", "our", "your", "in", "on", "at", "after", "before", "since", "when", "while"]
    + ["as", "for", "from", "with", "by", "to", "of", "and", "but", "or", "if", "although", "though", "because", "both"]
    + ["now", "then", "today", "one", "two", "three", "some", "many", "most", "all", "each", "every", "no", "not", "so"]
    + ["what", "where", "which", "how", "why", "yes", "once", "originally", "currently", "previously", "formerly"]
)


def doubt(text: str, sites: Sequence[Site], subject: str | None, called: frozenset[str], named: bool) -> str:
    """Why a text has no other version; "" where it is told apart of whom its words are said.

    sites: what would be swapped. subject: the given name of the person the text is about; called: what else the text
    calls that person. named: whether names are swapped at all.
    """
    swapped = [site for site in sites if not site.left]
    if not swapped:
        return ""
    if MALE.search(text) and FEMALE.search(text):
        return TWO_PEOPLE
    if _one_of_several().search(text):
        return ONE_OF_SEVERAL
    if _OF_ONE_GENDER.search(text):
        return OF_ONE_GENDER
    if _partner_again(sites):
        return TWO_PEOPLE
    if _said_of_one(text, sites):
        return OF_ONE_GENDER
    if not named:
        return ""
    if _RANK.search(text):
        return WHOSE_NAME
    man = _of_a_man(text, swapped)
    own = called if subject is None else called | {subject}
    if any(m[1] not in own and _other_name(m, man) for m in _OTHER_NAME.finditer(text)):
        return WHOSE_NAME  # the stage name of Norman Tuttle
    if _of_another_couple(text, subject or ""):
        return WHOSE_NAME
    if subject is None:
        return _nobody_named(text, sites, man)
    if _kept_nickname(text, subject, own) or _PATRONYMIC.match(text, text.find(subject) + len(subject)):
        return WHOSE_NAME  # Guillermo "Memo" Lee ... Memo teaches; Svetlana Arkadyevna
    if _another_acts(text, subject, own) or _surname_first(text, subject) or _perhaps_surname(text, subject):
        return WHOSE_NAME
    return "" if man is None or _its_pronouns(text, subject, man) else WHOSE_NAME


def _partner_again(sites: Sequence[Site]) -> bool:
    """A partner who changes is spoken of once more by a noun that stays: "a cook and his wife; the woman fell ill"."""
    changed = {_for_a_man(site.kind[1]) for site in sites if not site.left and site.kind[1] in _PARTNERS}
    again = {
        _for_a_man(site.kind[1])
        for site in sites
        if site.left and site.kind[1] in ("man", "woman", "mother", "father", "lady", "gentleman", "widow", "widower")
    }
    return not changed.isdisjoint(again)


def _of_a_man(text: str, swapped: Sequence[Site]) -> bool | None:
    """The gender that the text says by its pronouns, else by the first noun or title."""
    he, she = MALE.search(text) is not None, FEMALE.search(text) is not None
    if he != she:
        return he
    men = {"mr", "sir", "lord", "male", "brother"}
    for site in swapped:
        word = site.kind[1].lower()
        if word in gendered_nouns() or word in men or word in ("ms", "mrs", "miss", "dame", "lady", "female", "sister"):
            return word in men or (word in gendered_nouns() and _for_a_man(word))
    return None


def _for_a_man(noun: str) -> bool:
    return noun in men_nouns()


def _other_name(match: re.Match[str], man: bool | None) -> bool:
    """Whether what follows "born" or "stage name of" is another given name; after "known as" only a known one."""
    sure = match[1] in all_known_names() or not match[0].startswith(("known", "called"))
    return sure and _A_TITLE.fullmatch(f"{match[1]} ") is None and _may_be_given(match[1], man)


def _may_be_given(word: str, man: bool | None) -> bool:
    """Whether a word may be a given name of that gender: a known one of it, or one that is in no list."""
    male, female = known_names()
    if word not in all_known_names():
        return word.lower() not in _NOT_FIRST and not names_people(word)
    return man is None or word in (male if man else female)


def _said_of_one(text: str, sites: Sequence[Site]) -> bool:
    """Whether a word stays that says the gender of one person: a ballerina, a male nurse."""
    for match in re.finditer(r"(?<![\w’'-])[a-z]+(?:-[a-z]+)?(?![\w-])", text):
        word = match[0]
        if word in words_of("gendered_words") or re.fullmatch(r"one-(?:wo)?man", word):
            return True
        if re.search(r"[a-z]{2}(?:wo)?man$", word) and word not in gendered_nouns() and word not in _NO_MAN:
            return True  # a draughtsman
    for site in sites:
        if site.left and site.kind[1] in ("male", "female"):
            noun = _SEX_OF_ONE.match(text, site.end)
            if noun is not None and not noun[1].endswith("s") and (noun[1].startswith("[") or names_people(noun[1])):
                return True
    return False


def _nobody_named(text: str, sites: Sequence[Site], man: bool | None) -> str:
    """Why a text without a name that is surely the subject's may be about somebody who has one."""
    told = any(not site.left and site.kind[1] in gendered_nouns() for site in sites)  # a noun, which a name may go with
    for match in _ANY_FULL.finditer(text):
        full, start = match[1].split(), match.start(1)
        given, more = full[0], {word.lower().rstrip("’'.") for word in full[1:]}
        titles = [word for word in full[:2] if names_people(word) or _A_TITLE.fullmatch(f"{word} ")]
        if given.lower() in _NOT_FIRST or titles:
            continue  # Economist Ngaire, Mr Lee
        if more & (words_of("after_places") | words_of("things")) or part_of_a_place(text, start, start + len(given)):
            continue
        known = given in all_known_names()
        opens = _BEGINS.search(text[max(0, start - 40) : start])
        if known and not _may_be_given(given, man):
            if opens:
                return TWO_PEOPLE  # Jamal Lee rescued a grandmother and her cats
            continue
        before, after = text[max(0, start - 60) : start], text[match.end(1) :]
        role = re.search(r"([\w\]]+)(?:\s?,)?\s+$", before)
        by_role = role is not None and (role[1].endswith("]") or names_people(role[1]))
        acts = by_role or (_ACTS_AFTER.search(before) is not None and re.match(r",|\s+[a-z(]|['’]s\s", after))
        if opens or acts or (known and (told or not _BESIDE.search(before))):
            return WHOSE_NAME
    lone = _LONE.match(text)
    if lone is not None and _SENTENCE.search(text) and lone[1].lower() not in _NOT_FIRST and not names_people(lone[1]):
        return WHOSE_NAME  # Ayelet has worked there. She
    left = [site for site in sites if site.left and site.kind[1] in ("mr", "mrs", "ms", "miss")]
    if any(_TITLED_ACTS.match(text, site.start) and (site.kind[1] == "mr") == man for site in left):
        return WHOSE_NAME  # After the death of her husband, Mrs. Lee managed it
    return ""


def _its_pronouns(text: str, subject: str, man: bool) -> bool:
    """Whether the first pronoun that is in one sentence with the name can only be that person's: nobody else comes
    between the two."""
    own = MALE if man else FEMALE
    stops = [0, *(m.end() for m in _SENTENCE.finditer(text)), len(text)]
    first = re.search(rf"(?<!\w){re.escape(subject)}(?!\w)", text)
    if first is None:
        return True
    for begin, end in pairwise(stops):
        if not begin <= first.start() < end:
            continue
        if begin == 0 and end < len(text) and re.match(r"[\"“]?(?:He|She|His|Her)\b", text[end:]):
            return True  # "Susan Lee is a nurse in Rome. She": the text goes on about whom it opened with
        said = own.search(text, first.end(), end)
        if said is None:
            return True
        if not _opens_with(text[begin : first.start()]):
            return False  # the oldest driver since Giovanni Lavaggi
        more = r"(?:[A-ZÀ-Þ][\w’'.-]*|van|von|de|der|del|da|la|le|al|el|bin|[\"“(][^\"”)]{2,25}[\"”)])(?=\W)"
        name = re.compile(rf"{re.escape(subject)}(?:\s+{more})*")
        full = name.match(text, first.start())
        between = text[full.end() if full is not None else first.end() : said.start()]
        between = re.sub(r"\([^)]*\)", "", between)
        return not _somebody_between(between, said[0].lower(), subject, man)
    return True


def _opens_with(before: str) -> bool:
    """Whether a sentence has said nothing of anybody before a name: nothing, a title, a role, or an opening clause."""
    before = before.strip().strip('"“‘(')
    if not before or _TITLES_ONLY.fullmatch(f"{before} ") or role_before(f"{before} "):
        return True
    clause, _, rest = before.rpartition(",")
    acted = re.search(r"\b(?:he|she|they|who|is|was|were|has|had)\b|\b[A-ZÀ-Þ]\w+\s+[a-z]+(?:ed|s)\b", clause)
    rest = rest.strip()
    role = not rest or names_people(rest.split()[-1]) or rest.endswith("]") or _A_TITLE.fullmatch(f"{rest} ")
    return bool(clause or rest) and acted is None and bool(role)


def _somebody_between(between: str, pronoun: str, subject: str, man: bool) -> bool:
    """Whether the pronoun after these words may be somebody else's than that of whose name they follow."""
    if re.fullmatch(r"\W*(?:is|was|were|became)\s+(?:also\s+|once\s+)?", between) or re.search(r"\bwere\b", between):
        return True  # James Lee was his uncle
    if re.search(r"[\"“]|\b(?:is|was|became)\b[^,;]*\b(?:of|as)\s+$", between) or _TOLD_OF.search(between):
        return True  # was another of his students; described his voice; what he says of somebody
    if (pronoun == "him" and not re.search(r"^\s?['’]|[,;:]", between)) or _SPOKE.search(between):
        return True  # spotted him; said of his debut
    for match in _PEOPLE.finditer(between):
        noun = match[1]
        one = noun.startswith("[") or (names_people(noun) and noun not in _SEVERAL and not re.search(r"[^s]s$", noun))
        if one and not _LINK.search(between[: match.start()]):
            return True  # the judge had made an error in his
    for match in _SOMEBODY.finditer(between):
        before = re.search(r"([\w’'-]+)\s+$", between[: match.start(1)])
        of_the_other = before is not None and before[1] in known_names()[man]  # met Anna Ray for his
        somebody = match[1] != subject and match[1] not in words_of("regions") and _may_be_given(match[1], man)
        if somebody and not of_the_other:
            return True
    return False


def _kept_nickname(text: str, subject: str, own: frozenset[str]) -> bool:
    """Whether a nickname that stays stands for the subject elsewhere: Guillermo "Memo" Lee sings. Memo teaches."""
    found = re.search(rf"(?<!\w){re.escape(subject)}{_NICKNAME}", text)
    return found is not None and found[1] not in own and re.search(rf"\b{found[1]}\b", text[found.end() :]) is not None


def _perhaps_surname(text: str, subject: str) -> bool:
    """Whether the name stands alone throughout and may be a surname: "President Howard suffered", "Martin was born"."""
    if subject not in words_of("names_and_surnames"):
        return False
    return (
        re.search(
            rf"(?<!\w){re.escape(subject)}\s+(?:[A-Z]\.\s+|[\"“(][^\"”)]*[\"”)]\s+)?(?:[a-z]{{2,3}}\s+)?[A-ZÀ-Þ]", text
        )
        is None
    )


def _of_another_couple(text: str, subject: str) -> bool:
    """Whether somebody else by name, and not the subject, is there with a partner: Abdus Salam and his wife."""
    for match in _WITH_PARTNER.finditer(text):
        own = rf"(?<!\w){re.escape(subject)}\b(?:[^.!?]{{0,40}}\b{re.escape(match[1])})?$" if subject else "(?!)"
        before = text[max(0, match.start(1) - 100) : match.end(1)]
        if match[1].lower() not in _NOT_FIRST and re.search(own, before) is None:
            return True
    return False


def _surname_first(text: str, subject: str) -> bool:
    """Zhang Wenjing; not Wei Chen, nor Chen alone."""
    second = re.search(rf"(?<!\w){re.escape(subject)}\s+([A-ZÀ-Þ][\w’'-]*)", text)
    names = words_of("surnames_first")
    return subject in names and second is not None and re.sub("['’]s$", "", second[1]) not in names


def _another_acts(text: str, subject: str, own: frozenset[str]) -> bool:
    """Whether the sentence that first has the subject's name begins with somebody else: "Hollis was a stuntman when the
    producer Irving Katz spotted him"."""
    first = text.find(subject)
    for match in _SURNAME_ACTS.finditer(text, 0, max(first, 0)):
        word = match[1]
        sentence = text[match.start(1) : first]
        if word.lower() in _NOT_FIRST or names_people(word) or word in own or re.search(r"[.!?]\s", sentence):
            continue
        if re.search(rf"{re.escape(subject)}\s+(?:[\w.]+\s+)?{re.escape(word)}\b", text) is None:
            return True
    return False


@cache
def _one_of_several() -> re.Pattern[str]:
    """ "one of the richest businesswomen": the subject is said to be of the gender that stays."""
    plurals = {re.sub("man$", "men", noun) if noun.endswith("man") else f"{noun}s" for noun in gendered_nouns()}
    plurals |= {"wives", "ladies"}
    one = r"(?:one\s+of|among(?:st)?|other|fellow|the\s+(?:first|few|only|last))"
    return re.compile(rf"\b{one}\s+(?:[\w’'-]+\s+){{0,5}}(?:{'|'.join(sorted(plurals))})\b", re.IGNORECASE)
