"""Identity tokens: the same text, said of somebody else."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import numpy as np

from evenhand.counterfactuals.texts import WORD_END, WORD_START, as_texts, like_case, word_list
from evenhand.variations import Variations

__all__ = ["TokenSwap", "identity_tokens"]


def identity_tokens() -> list[str]:
    """The 50 identity tokens of Dixon et al. 2018 (Apache-2.0), spelt as published ("millenial"); three have two words.

    >>> len(identity_tokens()), identity_tokens()[:3]
    (50, ['lesbian', 'gay', 'bisexual'])
    """
    return word_list("identity_tokens")


class TokenSwap:
    """Versions of texts in which the tokens they mention are replaced by each other token.

    tokens: words, or several words ("african american", which also matches "African-American"). Only whole words
        match, in any case, the longest token first; a replacement is written in the case of what it replaces.
    plurals: also match "lesbians" and write "blacks"; by regular English rules.
    sample: None for every other token (m = len(tokens) versions); a number for that many random ones
        (m = 1 + sample), as counterfactual logit pairing draws them. The draw depends on
        `random_state` and on the text itself only.

    Version 0 is the original, then one version for each other token in the order of the list. A text with several
    tokens has all of them replaced by the one token of the version, and its first token is the one which is not
    "other". Texts without any token have no versions and are not in `rows`.

    A lexical swap is not a causal counterfactual: it changes the word and nothing of what would follow from it.

    >>> found = TokenSwap(["gay", "straight", "middle aged"])(["Gay people cook.", "No token.", "a straight, gay man"])
    >>> found.rows, found.values[0].tolist()
    (array([0, 2]), ['Gay people cook.', 'Straight people cook.', 'Middle aged people cook.'])
    >>> found.values[1].tolist()
    ['a straight, gay man', 'a gay, gay man', 'a middle aged, middle aged man']
    """

    def __init__(
        self, tokens: Iterable[str], *, plurals: bool = False, sample: int | None = None, random_state: int = 0
    ) -> None:
        self.tokens = _checked(tokens)
        self.plurals = plurals
        self.sample = sample
        self.random_state = random_state
        others = len(self.tokens) - 1
        if sample is not None and not 1 <= sample <= others:
            raise ValueError(
                f"sample must be between 1 and {others}, the number of other tokens, or None; got {sample!r}"
            )
        self._forms = [self.tokens, [_plural(token) for token in self.tokens]] if plurals else [self.tokens]
        # One group for each form, longest first: the group which matched says which token it was, whatever the case.
        spelt = [(form, (i, kind)) for kind, forms in enumerate(self._forms) for i, form in enumerate(forms)]
        spelt.sort(key=lambda pair: len(pair[0]), reverse=True)
        self._which = [token for _, token in spelt]
        alternatives = "|".join(f"({_any_gap(form)})" for form, _ in spelt)
        self._pattern = re.compile(f"{WORD_START}(?:{alternatives}){WORD_END}", re.IGNORECASE)

    def __repr__(self) -> str:
        return f"TokenSwap({len(self.tokens)} tokens, plurals={self.plurals}, sample={self.sample})"

    def __call__(self, texts: Iterable[str]) -> Variations:
        """The versions of the texts that mention a token: values (g, m) of strings, rows (g,)."""
        values: list[list[str]] = []
        rows: list[int] = []
        for row, text in enumerate(as_texts(texts)):
            pieces, found = self._split(text)
            if not found:
                continue
            others = [i for i in range(len(self.tokens)) if i != found[0][1][0]]
            if self.sample is not None:
                drawn = random.Random(f"{self.random_state}:{text}").sample(others, self.sample)
                others = sorted(drawn)
            values.append([text, *(self._join(pieces, found, other) for other in others)])
            rows.append(row)
        m = len(self.tokens) if self.sample is None else 1 + self.sample
        table = np.empty((len(values), m), dtype=object)
        for i, versions in enumerate(values):
            table[i] = versions
        return Variations(table, np.array(rows, dtype=np.intp))

    def mentioned(self, texts: Iterable[str]) -> list[set[str]]:
        """Which of the tokens each text mentions, for example to form groups of texts."""
        return [{self.tokens[i] for _, (i, _) in self._split(text)[1]} for text in as_texts(texts)]

    def _split(self, text: str) -> tuple[list[str], list[tuple[str, tuple[int, int]]]]:
        """The pieces between the matches, and for each match its text and (token number, 0 singular or 1 plural)."""
        pieces, found, end = [], [], 0
        for match in self._pattern.finditer(text):
            pieces.append(text[end : match.start()])
            assert match.lastindex is not None  # the pattern is an alternative of groups: one of them matched
            found.append((match.group(), self._which[match.lastindex - 1]))
            end = match.end()
        return [*pieces, text[end:]], found

    def _join(self, pieces: list[str], found: list[tuple[str, tuple[int, int]]], other: int) -> str:
        swapped = [like_case(self._forms[kind][other], said) for said, (_, kind) in found]
        return "".join(part for pair in zip(pieces, [*swapped, ""]) for part in pair)


def _checked(tokens: Iterable[str]) -> list[str]:
    if isinstance(tokens, str):
        raise TypeError("expected a list of tokens, got a single string")
    listed: list[str] = []
    for token in tokens:
        if not isinstance(token, str) or not token.strip():
            raise ValueError(f"token {len(listed)} is {token!r}, expected a word; remove it from the list")
        listed.append(" ".join(token.split()))
    seen: set[str] = set()
    for token in listed:
        if token.casefold() in seen:
            raise ValueError(f"token {token!r} comes more than once (case does not count); list each token once")
        seen.add(token.casefold())
    if len(listed) < 2:
        raise ValueError(f"a swap needs at least two tokens, got {listed}")
    return listed


def _any_gap(token: str) -> str:
    """A pattern for the token as it stands, with any white space or a hyphen between its words."""
    return r"(?:\s+|-)".join(re.escape(word) for word in token.split(" "))


def _plural(token: str) -> str:
    if re.search(r"ese$", token, re.IGNORECASE):  # the Chinese, the Japanese
        return token
    if re.search(r"(?:s|x|z|ch|sh)$", token, re.IGNORECASE):
        return f"{token}es"
    if re.search(r"[^aeiou\W]y$", token, re.IGNORECASE):
        return f"{token[:-1]}ies"
    return f"{token}s"
