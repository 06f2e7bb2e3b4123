"""Texts written in capitals, or without any: read as they would be written otherwise, letter for letter.

The rules that look for names ask which words begin with a capital letter. "JOHN SMITH IS A NURSE" and "john smith is a
nurse" do not say; the words around a known name and short lists do, well enough for these rules.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from evenhand.counterfactuals.texts import word_list, words_of

__all__ = ["as_usual", "one_case"]

_WORD = re.compile(r"[^\W\d_][\w’']*")
_TITLES = frozenset(["mr", "mrs", "ms", "dr", "prof"])  # not "miss": I MISS YOU
_COMMON = frozenset(["the", "a", "an", "of", "at", "in", "to", "from", "near", "new", "point", "state", "day", "co"])
# Names that are words when they are written small.
_SMALL = frozenset(
    [
        "amber",
        "angela",
        "bob",
        "crystal",
        "hazel",
        "jenny",
        "jerry",
        "max",
        "nick",
        "norma",
        "sally",
        "victor",
        "warren",
    ]
)
_SENTENCE = re.compile(r"(?:^|[.!?]\s+|\n)[\s\"“'‘(]*$")
_FULL_NAME = re.compile(r"(?<![\w-])([A-ZÀ-Þ]{3,})(?=\s+(?:[A-Z]\.\s+)?[A-ZÀ-Þ]{2}[A-ZÀ-Þ’'-]*(?!\w))")
_ACTING = re.compile(r"(?:s|ed|ing|ly)$")


def one_case(text: str) -> bool:
    """Whether the text is written in capitals throughout, a few letters aside, or has none.

    >>> one_case("JOHN SMITH IS A NURSE."), one_case("john is a nurse"), one_case("John is an MBA.")
    (True, True, False)
    """
    letters = sum(c.isalpha() for c in text)
    capitals = sum(c.isupper() for c in text)
    return letters > 7 and (capitals == 0 or capitals > 0.8 * letters)


def as_usual(text: str, names: Collection[str]) -> str:
    """The text with capitals where they are usual; every letter stays in its place.

    names: given names as they are usually written. Within other texts only full names in capitals are rewritten.

    >>> as_usual("MARY LEE LIVES IN ST. JOHN. SHE KNOWS IT.", {"Mary", "John"})
    'Mary Lee lives in St. John. She knows it.'
    >>> as_usual("MARY LEE lives in the USA.", {"Mary", "John"})
    'Mary Lee lives in the USA.'
    """
    read = _whole(text, names) if one_case(text) else _full_names(text, names)
    return read if len(read) == len(text) else text  # a letter that is two in the other case: leave the text


def _whole(text: str, names: Collection[str]) -> str:
    lowered = text.lower()
    known = _lowered(frozenset(names))
    regions = {word.lower() for word in words_of("regions")}
    pieces: list[str] = []
    end, name_before, capital_before = 0, False, False
    for match in _WORD.finditer(lowered):
        gap, word = lowered[end : match.start()], re.split("['’]", match.group())[0]
        close = re.fullmatch(r"\.?\s+(?:[a-z]\.\s+)?", gap) is not None
        given = word in known
        surname = name_before and close and not _speaks(word)
        place = word in words_of("after_places") and capital_before and close and word not in _COMMON
        before = word in words_of("before_places") and word not in _COMMON
        starts = _SENTENCE.search(lowered[max(0, match.start() - 8) : match.start()]) is not None
        capital = given or surname or place or before or starts or word in _TITLES or word in regions or word == "i"
        said = match.group()
        pieces += [gap, said[:1].upper() + said[1:] if capital else said]
        name_before = (given or word in _TITLES) and match.group() == word
        capital_before = given or surname
        end = match.end()
    return "".join([*pieces, lowered[end:]])


@lru_cache(maxsize=8)
def _lowered(names: frozenset[str]) -> frozenset[str]:
    """The names in small letters, without those that are words then."""
    vague = {name.lower() for line in word_list("names_and_words") for name in line.split()[1:]}
    return frozenset(name.lower() for name in names) - vague - _SMALL


def _speaks(word: str) -> bool:
    """A word that goes on about somebody rather than being the surname."""
    known = words_of("verbs") | words_of("not_after_possessive") | words_of("people") | words_of("of_people")
    return word in known or _ACTING.search(word) is not None


def _full_names(text: str, names: Collection[str]) -> str:
    """JOHN SMITH is a nurse: capitals for the weight, not the letters of something."""

    def usual(match: re.Match[str]) -> str:
        return match[1].capitalize() if match[1].capitalize() in names else match[1]

    found = _FULL_NAME.sub(usual, text)
    if found == text:
        return text
    return re.sub(
        r"(?<![\w-])([A-ZÀ-Þ][a-zà-ÿ]{2,}\s+(?:[A-Z]\.\s+)?)([A-ZÀ-Þ]{2}[A-ZÀ-Þ’'-]*)(?!\w)",
        lambda m: m[1] + m[2].capitalize() if m[1].split()[0] in names else m[0],
        found,
    )
