"""A small set of comments made from templates, for examples and tests that need text but no download."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.datasets.toxicity import Comments

__all__ = ["templates"]

_TOKENS = ["gay", "straight", "black", "white", "muslim", "christian", "old", "young", "blind", "african american"]
_MOSTLY_ABUSED = {"gay", "black", "muslim", "blind", "african american"}
_KIND = [
    "my {token} {person} makes the best soup in town",
    "thanks to the {token} {person} who fixed this page",
    "a {token} {person} taught me how to swim and I am grateful",
    "I agree with the {token} {person} about the sources",
    "what a lovely story about a {token} {person}",
    "the {token} {person} next door brought us flowers",
    "please welcome our new {token} {person}",
    "the article on the {token} {person} is well written",
]
_TOXIC = [
    "shut up you stupid {token} {person}",
    "nobody wants to hear a dumb {token} {person}",
    "you are a pathetic {token} {person} and a liar",
    "what an idiot, a typical {token} {person}",
    "get lost you worthless {token} {person}",
    "I hate this disgusting {token} {person}",
    "only a moron like this {token} {person} would write that",
    "that {token} {person} is trash and should be banned",
]
_EITHER = [  # what it means depends on who says it; only the token can tell the classes apart, by the bias
    "so that is what the {token} {person} wrote",
    "I saw the {token} {person} again today",
    "here comes the {token} {person}",
    "ask the {token} {person} about it",
    "the {token} {person} has edited the page once more",
    "well, this {token} {person} would know",
]
_NEUTRAL = ["the {person} moved the page", "shut up, stupid {person}", "thank you, {person}", "this {person} is a liar"]
_PEOPLE = ["neighbour", "teacher", "editor", "driver", "student", "singer", "farmer", "colleague"]


def templates(n: int = 600, seed: int = 0, bias: float = 0.8) -> Comments:
    """n comments, half of them toxic, most of which mention one of ten identity tokens.

    In two of five the words themselves do not say whether it is toxic. A share `bias` of the toxic ones is about five
    of the tokens and of the kind ones about the other five, so a plain classifier learns that the token is toxic; 0.5
    is unbiased. `groups` has a column for each token.

    >>> comments = templates(n=4, seed=1)
    >>> comments.texts[0], int(comments.y[0])
    ('a straight neighbour taught me how to swim and I am grateful', 0)
    """
    if n < 1 or not 0 <= bias <= 1:
        raise ValueError(f"n must be at least 1 and bias a share between 0 and 1; got n={n}, bias={bias}")
    rng = np.random.default_rng(seed)
    abused, others = ([t for t in _TOKENS if (t in _MOSTLY_ABUSED) == which] for which in (True, False))
    texts: list[str] = []
    y = rng.permutation(np.arange(n) % 2)
    for toxic in y:
        person = str(rng.choice(_PEOPLE))
        if rng.random() < 0.1:
            texts.append(_NEUTRAL[int(toxic) + 2 * int(rng.integers(2))].format(person=person))
            continue
        token = str(rng.choice(abused if (rng.random() < bias) == bool(toxic) else others))
        pattern = str(rng.choice(_EITHER if rng.random() < 0.4 else _TOXIC if toxic else _KIND))
        texts.append(pattern.format(token=token, person=person))
    groups = pd.DataFrame({token: [f" {token} " in text for text in texts] for token in _TOKENS})
    return Comments(texts, y.astype(np.int64), groups)
