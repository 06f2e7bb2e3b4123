"""Whether the rules can tell of whom a text speaks. Where they cannot, it has no other version.

A person who is a woman in one word of a text and a man in the next is nobody's counterfactual. Rules without a parser
know the plain cases; this file knows the others: two people by their pronouns, a name that may be the subject's and
cannot be swapped, a noun of which nothing says whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from evenhand.counterfactuals.antecedents import FEMALE, MALE
from evenhand.counterfactuals.given_names import all_known_names, known_names
from evenhand.counterfactuals.nouns import gendered_nouns, men_nouns
from evenhand.counterfactuals.people import names_people
from evenhand.counterfactuals.places import ENDED, ROLES, TITLE, part_of_a_place
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
_AFTER_ROLE = re.compile(
    rf"\b([a-z][a-z-]+)(?:,|\s+named)?\s+({_FULL})"
)  # the editor, Zora Kemp; the sprinter Zora Kemp
_AFTER_CLAUSE = re.compile(rf"{ENDED}[A-ZÀ-Þ][^.;!?\n]{{3,90}}?,\s+(?:{TITLE})?({_FULL})\s+(?:[a-z]+\s+)?[a-z]+")
_SURNAME_ACTS = re.compile(  # Hollis was; Meghana's portrayal
    rf"{ENDED}({_CAPITAL})(?:\s+(?:is|was|has|had|[a-z]{{2,}}(?:s|ed))\b|\s?['’]\s?s\s)"
)
_OF_ONE_GENDER = re.compile(  # a doctor of either gender may care for pregnant women
    r"\b(?:(?:is|was|be|became|become|been|being|while|when|months|heavily)\s+(?:[a-z]+ly\s+)?pregnant|"
    r"(?:gave|gives?|giving|given)\s+birth|(?:mater|pater)nity\s+leave|(?:mother|father)-to-be|maiden\s+name|née|"
    r"(?:an?|openly|out)\s+lesbian)\b",
    re.IGNORECASE,
)
_OTHER_NAME = re.compile(
    r"\b(?:(?:stage|pen|real|birth|maiden|full)\s+name(?:\s+(?:of|is|was|being))?|born|née|né|alias|a\.k\.a\.|aka|formerly)"
    rf"\s+({_CAPITAL})"
)
_WITH_PARTNER = re.compile(  # Abdus Salam and his wife
    rf"({_CAPITAL})\s+and\s+(?:his|her)\s+(?:[a-z-]+\s+)?(?:wife|husband|girlfriend|boyfriend|fiancée?)\b(?!\s*,?\s+[A-ZÀ-Þ])"
)
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
    if not named:
        return ""
    man = _of_a_man(text, swapped)
    if subject is None:
        return WHOSE_NAME if _may_be_named(text, man) or _of_another_couple(text, "") else ""
    own = {subject, *called}
    if _of_another_couple(text, subject):
        return WHOSE_NAME
    if any(m[1] not in own and _may_be_given(m[1], man) for m in _OTHER_NAME.finditer(text)):
        return WHOSE_NAME  # the stage name of Norman Tuttle
    said = [site.end for site in sites if site.left and site.kind[1] in ("male", "female")]
    if any(0 < text.find(subject) - end < 60 for end in said):
        return ONE_OF_SEVERAL  # the first female surgeon, Suzanne Lee
    return WHOSE_NAME if _another_acts(text, subject, own) or _surname_first(text, subject) else ""


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


def _may_be_given(word: str, man: bool | None) -> bool:
    """Whether a word may be a given name of that gender: a known one of it, or one that is in no list."""
    male, female = known_names()
    if word not in all_known_names():
        return word.lower() not in _NOT_FIRST and not names_people(word)
    return man is None or word in (male if man else female)


def _may_be_named(text: str, man: bool | None) -> bool:
    """Whether somebody who may be the person the text is about has a name that nothing shows to be that person's."""
    found = [(m[1], m.start(1)) for m in _OPENS.finditer(text)]
    found += [(m[1], m.start(1)) for m in _AFTER_CLAUSE.finditer(text)]
    found += [(m[2], m.start(2)) for m in _AFTER_ROLE.finditer(text) if names_people(m[1])]
    titled = re.finditer(rf"\b(?:Mr|Mrs|Ms|Miss|Dr|Prof|Professor)\.?\s+({_CAPITAL})\s+{_CAPITAL}", text)
    found += [(m[1], m.start(1)) for m in titled]
    for full, start in found:
        given = full.split()[0]
        words = {word.lower().rstrip("’'.") for word in full.split()[1:]}
        if given.lower() in _NOT_FIRST or words & (words_of("after_places") | words_of("things")):
            continue
        if _may_be_given(given, man) and not part_of_a_place(text, start, start + len(given)):
            return True
    return False


def _of_another_couple(text: str, subject: str) -> bool:
    """Whether somebody else by name, and not the subject, is there with a partner: Abdus Salam and his wife."""
    for match in _WITH_PARTNER.finditer(text):
        own = rf"(?<!\w){re.escape(subject)}\b(?:[^.!?]{{0,40}}\b{re.escape(match[1])})?$" if subject else "(?!)"
        if match[1].lower() not in _NOT_FIRST and re.search(own, text[: match.end(1)]) is None:
            return True
    return False


def _surname_first(text: str, subject: str) -> bool:
    """Zhang Wenjing; not Wei Chen, nor Chen alone."""
    second = re.search(rf"(?<!\w){re.escape(subject)}\s+([A-ZÀ-Þ][\w’'-]*)", text)
    names = words_of("surnames_first")
    return subject in names and second is not None and re.sub("['’]s$", "", second[1]) not in names


def _another_acts(text: str, subject: str, own: set[str]) -> bool:
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
    return re.compile(rf"\bone\s+of\s+(?:[\w’'-]+\s+){{0,5}}(?:{'|'.join(sorted(plurals))})\b", re.IGNORECASE)
