"""Gender: the same text about a person of the other gender."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from evenhand.counterfactuals.texts import WORD_END, WORD_START, as_texts, like_case, word_list
from evenhand.variations import Variations

__all__ = ["GenderSwap", "names_in"]

_PRONOUNS = {"he": "she", "she": "he", "himself": "herself", "herself": "himself", "him": "her", "hers": "his"}
_SEXES = ("male", "female")
_TITLES = {"mr": "ms", "ms": "mr", "mrs": "mr"}


class GenderSwap:
    """Two versions of each text that says a gender: the original, and he for she, his for her, Mr for Ms, and so on.

    nouns: also swap common gendered nouns (mother, actress, businessman ...; `words/gendered_nouns.txt`).
    names: (male names, female names), each replaced by a random name of the other list, the same name alike within a
        text; `names_in(texts)` finds them in the data. The draw depends on `random_state` and on the text itself only.

    "her" is "his" before what somebody owns ("her book") and "him" otherwise ("saw her in Rome"); "his" is "hers"
    where nothing that is owned follows ("a friend of his."). Swapping twice gives the text back, except where
    English does not: "Mrs" comes back as "Ms", an object pronoun before a noun ("gave him money") as "his",
    and names are drawn anew.

    A lexical swap is not a causal counterfactual: it changes the word and nothing of what would follow from it.

    >>> GenderSwap()(["She took her book with her.", "It rained."])
    Variations of 1 individuals x 2 versions
    >>> GenderSwap()(["She took her book with her."]).values[0, 1]
    'He took his book with him.'
    """

    def __init__(
        self,
        *,
        nouns: bool = False,
        names: tuple[Sequence[str], Sequence[str]] | None = None,
        random_state: int = 0,
    ) -> None:
        self.nouns = nouns
        self.names = names
        self.random_state = random_state
        self._swap = dict(_PRONOUNS) | dict(_TITLES)
        if nouns:
            for line in word_list("gendered_nouns"):
                male, female = line.split()
                self._swap |= {male: female, female: male}
        self._others = {} if names is None else _other_names(*names)
        self._unowned = {word for line in word_list("not_after_possessive") for word in line.split()}
        words = "|".join(re.escape(word) for word in sorted([*self._swap, "his", "her"], key=len, reverse=True))
        patterns = [f"(?P<word>(?i:{words}))"]
        if self._others:  # names count only as they are written, so that "will" and "mark" stay
            patterns.append(f"(?P<name>{'|'.join(re.escape(n) for n in sorted(self._others, key=len, reverse=True))})")
        self._pattern = re.compile(f"{WORD_START}(?:{'|'.join(patterns)}){WORD_END}")

    def __repr__(self) -> str:
        return f"GenderSwap(nouns={self.nouns}, names={'none' if self.names is None else len(self._others)})"

    def __call__(self, texts: Iterable[str]) -> Variations:
        """The two versions of the texts that say a gender: values (g, 2) of strings, rows (g,)."""
        values: list[tuple[str, str]] = []
        rows: list[int] = []
        for row, text in enumerate(as_texts(texts)):
            swapped = self.swap(text)
            if swapped is not None:
                values.append((text, swapped))
                rows.append(row)
        table = np.empty((len(values), 2), dtype=object)
        for i, pair in enumerate(values):
            table[i] = pair
        return Variations(table, np.array(rows, dtype=np.intp))

    def swap(self, text: str) -> str | None:
        """The text with the other gender, or None if it says none."""
        draw = random.Random(f"{self.random_state}:{text}") if self._others else None
        drawn: dict[str, str] = {}

        def other(match: re.Match[str]) -> str:
            said = match.group()
            if draw is not None and match.group("name") is not None:
                if said not in drawn:
                    drawn[said] = draw.choice(self._others[said])
                return drawn[said]
            word = said.lower()
            if word in ("his", "her"):
                owns = self._owns(text, match)
                return like_case(("her" if owns else "hers") if word == "his" else ("his" if owns else "him"), said)
            return like_case(self._swap[word], said)

        swapped, count = self._pattern.subn(other, text)
        return swapped if count else None

    def _owns(self, text: str, match: re.Match[str]) -> bool:
        """Whether something owned follows the his or her: a word that can begin a noun phrase without article."""
        follows = re.match(r"\s*[\"“'‘(\[]?(\w[\w'’-]*)", text[match.end() : match.end() + 60])
        if follows is None:
            return False
        before = re.search(r"(\w+)\s*$", text[max(0, match.start() - 20) : match.start()])
        if before is not None and before.group(1).lower() in ("let", "lets", "letting"):
            return False
        return follows.group(1).lower() not in self._unowned


def names_in(
    texts: Iterable[str], genders: Iterable[str] | None = None, *, min_count: int = 3, purity: float = 0.95
) -> tuple[list[str], list[str]]:
    """(male names, female names) found in the texts, for `GenderSwap(names=...)`.

    Without `genders`, those of about 400 common given names (`words/given_names.txt`) that the texts contain. With
    the gender of the person each text is about ("male" or "female"), any capitalised word followed by another one (a
    surname) which at least `min_count` texts contain, at least `purity` of them of one gender, too many to be chance
    at how common the genders are (1 %).

    >>> names_in(["Anna met John Lee", "as Anna knew"])
    (['John'], ['Anna'])
    """
    listed = as_texts(texts)
    if genders is None:
        words = {word for text in listed for word in re.findall(r"[^\W\d_]+", text)}
        known: dict[str, set[str]] = {sex: set() for sex in _SEXES}
        for sex, *names in map(str.split, word_list("given_names")):
            known[sex] |= set(names)
        return sorted(words & known["male"]), sorted(words & known["female"])
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


def _other_names(male: Sequence[str], female: Sequence[str]) -> dict[str, list[str]]:
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
