"""Gendered nouns: which of them speak of the person a text is about, and which of somebody or something else.

English rules and short lists, no parser. A rule says why a word is left, so that a preview can show it.
"""

from __future__ import annotations

import re
from functools import cache

from evenhand.counterfactuals.names import known_names
from evenhand.counterfactuals.texts import word_list

__all__ = ["describes_subject", "gendered_nouns", "left_noun", "other_people"]

_PARTNERS = frozenset(["husband", "wife", "boyfriend", "girlfriend", "fiancé", "fiancée"])
_RELATIVES = frozenset(
    ["father", "mother", "dad", "mum", "mom", "grandfather", "grandmother", "stepfather", "stepmother", "uncle", "aunt"]
    + ["son", "daughter", "brother", "sister", "nephew", "niece", "grandson", "granddaughter", "godfather", "godmother"]
    + ["stepson", "stepdaughter", "stepbrother", "stepsister", "grandpa", "grandma"]
)
_OWNED = re.compile(
    r"(?:\b(?:my|your|his|her|its|our|their)|\w\s?['’]\s?s|s\s?['’])\s+(?:[\w\[\]-]+\s+){0,5}$", re.IGNORECASE
)
_KIN = re.compile(  # "his father is a ", "her brother, a "
    rf"\b(?:{'|'.join(sorted(_RELATIVES | _PARTNERS))})(?:-in-law)?"
    r"(?:\s+(?:\w+\s+){0,4}|\s?,\s+(?:an?|the)\s+(?:\w+\s+)?)$",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\s*[,(]?\s*(?:[A-Z]\.\s*)*[A-ZÀ-Þ][a-zà-ÿ]")  # a name follows
_CALLED = re.compile(  # a name before it: "Louise Brooks was the daughter"
    r"([A-ZÀ-Þ][\w’'-]+)\s+[A-ZÀ-Þ][\w’'-]+\s*(?:,|is|was|\([^)]*\))?\s*(?:the|an?)?\s*(?:[\w-]+\s+){0,3}$"
)
_SOMEBODYS = re.compile(r"\b(?:of|by|with|to|from|for|met|than|like)\s+an?\s+(?:[\w-]+\s+)?$", re.IGNORECASE)
_SAID = (
    r"(?:is|was|became|am|remains|has\s+been|had\s+been|(?:serve[sd]?|work(?:s|ed)?|act(?:s|ed)?)\s+as)\s+"
    r"(?:(?:also|now|still|already|both)\s+)?"
)
_BETWEEN = r"(?:(?!\b(?:his|her|my|whose|who|that|which|he|she|with|met)\b)[^.;!?])"
_PHRASE = (
    rf"(?:(?:an?|the)\s+(?:[\w'’-]+\s+){{0,3}}|{_BETWEEN}{{1,90}}(?:,|\band)\s+(?:an?|the)\s+(?:[\w-]+\s+){{0,2}})"
)
_IDIOMS = {  # nouns: (what stands before, what stands after) where they are not for a person of that gender
    ("man", "woman"): (r"\b(?:best|iron|isle of|no|every|hit|con|straw|of|ice|ladies['’]?)\s+$", None),
    ("mother", "father", "sister", "brother", "daughter"): (
        None,
        r"\s+(?:tongue|nature|earth|land|ship|board|lode|company|figure|christmas|time|in arms|city|page|project)\b",
    ),
    ("lady",): (r"\bfirst\s+$", None),
    ("gentleman",): (None, r"['’]s\b|\s+farmer\b"),
    ("actor", "man"): (None, r"\s+(?:model|network|hours?|power|made|up|cave|caves|bun|of god|of the match)\b"),
    ("girl", "boy"): (r"\bgirly\s+$", r"\s+(?:scout|scouts|band|group|friday|guide)\b"),
}
_ANY_IDIOM = re.compile(r"['’]?s?\s+(?:bug|bird|of the match|overboard|day)\b", re.IGNORECASE)


@cache
def gendered_nouns() -> dict[str, str]:
    """Each noun and its counterpart. A line "host < hostess" goes one way: a host may be anybody."""
    swap: dict[str, str] = {}
    for line in word_list("gendered_nouns"):
        male, *way, female = line.split()
        swap |= {female: male} if way else {female: male, male: female}
    return swap | {"mom": "dad"}


@cache
def _men() -> frozenset[str]:
    return frozenset(line.split()[0] for line in word_list("gendered_nouns"))


def other_people(text: str, subject: str | None) -> frozenset[str]:
    """The given names in the text that are not the subject's, places left aside ("in Charlotte")."""
    male, female = known_names()
    said = re.finditer(r"(?<!\w)(?:(in|at|near)\s+)?([A-ZÀ-Þ][\w’]*)", text)
    return frozenset(m[2] for m in said if m[1] is None and m[2] in male | female and m[2] != subject)


def describes_subject(word: str, before: str, subject: str | None, male: bool | None = None) -> bool:
    """Whether the noun is said of the person the text is about: "She is the first ", "Daniel was the ", "I am a ".

    >>> describes_subject("woman", "Susan leads it; she is the first ", None), describes_subject("son", "a ", None)
    (True, False)
    """
    who = r"\b(he|she|i)" if subject is None else rf"\b(he|she|i|{re.escape(subject)}(?:\s+[A-ZÀ-Þ][\w’'-]+){{0,2}})"
    said = re.search(rf"{who}(?:\s+{_SAID}|['’](?:s|m)\s+){_PHRASE}$", before, re.IGNORECASE)
    if said is None:
        return False
    return said[1].lower() not in ("he", "she") or (said[1].lower() == "he") == (word in _men() or male is True)


def left_noun(
    word: str, match: re.Match[str], before: str, after: str, subject: str | None, others: frozenset[str]
) -> str:
    """Why a gendered noun stays as it is; "" where it is said of the person the text is about."""
    if re.search(r"[\w]\s?[-‐‑/]\s?$", before) or re.match(r"\s?[-‐‑/]\s?\w", after):
        return "compound"
    first = re.search(r"(?:^|[.!?:;]\s+|\n\s*)(?:(?:a|an|the)\s+)?$", before, re.IGNORECASE) is not None
    if match.group()[:1].isupper() and not match.group().isupper() and not first:
        return "name"
    if re.match(r" [A-ZÀ-Þ][a-zà-ÿ]", after):
        return "name"
    if _idiom(word, before, after):
        return "idiom"
    if describes_subject(word, before, subject):
        return ""
    owned = _OWNED.search(before) is not None
    if (owned and word in _RELATIVES) or (word in _PARTNERS | _RELATIVES and _NAMED.match(after)):
        return "somebody else"
    if owned and word in _PARTNERS:
        return ""
    male, _ = known_names()
    if _SOMEBODYS.search(before) or any((name in male) == (word in _men()) for name in others):
        return "somebody else"  # it may describe a person whose name stays
    called = _CALLED.search(before)
    if (called is not None and called[1] != subject) or _KIN.search(before) is not None:
        return "somebody else"
    return ""


def _idiom(word: str, before: str, after: str) -> bool:
    """Where a noun is not for a person of that gender."""
    for words, (leading, following) in _IDIOMS.items():
        if word in words and (
            (leading is not None and re.search(leading, before, re.IGNORECASE))
            or (following is not None and re.match(following, after, re.IGNORECASE))
        ):
            return True
    return _ANY_IDIOM.match(after) is not None
