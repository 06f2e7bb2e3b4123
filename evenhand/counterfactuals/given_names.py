"""Given names: which are known, which are in the texts, and which to draw from."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

from evenhand.counterfactuals.capitals import as_usual
from evenhand.counterfactuals.texts import as_texts, word_list

__all__ = ["all_known_names", "known_names", "names_in", "other_names", "vague_name", "vague_names"]

_SEXES = ("male", "female")


def names_in(
    texts: Iterable[str], genders: Iterable[str] | None = None, *, min_count: int = 3, purity: float = 0.95
) -> tuple[list[str], list[str]]:
    """(male names, female names) found in the texts, for `GenderSwap(names=...)`.

    Without `genders`, those of some 5,000 given names (`words/given_names.txt`) that the texts contain. With
    the gender of the person each text is about ("male" or "female"), any capitalised word followed by another one (a
    surname) which at least `min_count` texts contain, at least `purity` of them of one gender, too many to be chance
    at how common the genders are (1 %).

    >>> names_in(["Anna met John Lee", "as Anna knew"])
    (['John'], ['Anna'])
    """
    listed = as_texts(texts)
    if genders is None:
        male, female = (sure | vague for sure, vague in zip(known_names(), vague_names()))
        every = male | female
        read = (as_usual(text, every) for text in listed)
        words = {word for text in read for word in re.findall(r"[^\W\d_]+", text)}
        plain = {word: word if word in every else _without_accents(word) for word in words}  # Leïla is Leila
        return tuple(sorted(word for word in words if plain[word] in some) for some in (male, female))  # type: ignore[return-value]
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


def _without_accents(word: str) -> str:
    if word.isascii() or len(word) < 5:
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def known_names() -> tuple[frozenset[str], frozenset[str]]:
    """The common given names of the list that are no other words, male and female."""
    return _by_sex("given_names")


@cache
def all_known_names() -> frozenset[str]:
    """Those of both genders."""
    male, female = known_names()
    return male | female


def vague_names() -> tuple[frozenset[str], frozenset[str]]:
    """Mark, Grace: names that are other words too."""
    return _by_sex("names_and_words")


@cache
def _by_sex(name: str) -> tuple[frozenset[str], frozenset[str]]:
    sexes: dict[str, set[str]] = {sex: set() for sex in _SEXES}
    for sex, *names in map(str.split, word_list(name)):
        sexes[sex] |= set(names)
    return frozenset(sexes["male"]), frozenset(sexes["female"])


def vague_name(name: str) -> bool:
    """Whether the name is another word too, or a place.

    >>> vague_name("Mark"), vague_name("Susan")
    (True, False)
    """
    return any(name in some for some in vague_names())


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
