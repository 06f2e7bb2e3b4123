"""Sentences said of many kinds of people: what one list of tokens leaves out lies mostly near what another holds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from evenhand.counterfactuals.identities import Forms, forms_of
from evenhand.counterfactuals.texts import word_list
from evenhand.datasets.mentions import ABUSIVE, HARMLESS, filled
from evenhand.variations import Variations

__all__ = ["about_people"]

SENTENCES = [*HARMLESS[::3], *ABUSIVE[::3]]  # a third of them: the others say little more


def about_people(tokens: Iterable[str] = ()) -> Variations:
    """The same short sentences about each token and about some 80 other kinds of people: (sentences, kinds) strings.

    For `TextClassifier(about=...)`: the versions of a text say how the listed tokens differ, these say how people
    differ. Of the others none is one of the 50 `identity_tokens()`.

    >>> said = about_people(["deaf"])
    >>> said.values[0, :3].tolist()
    ['I am a deaf person.', 'I am a French person.', 'I am a German.']
    """
    own = [forms_of(token) for token in dict.fromkeys(tokens)]
    mine = {forms.adjective.lower() for forms in own}
    kinds = own + [forms for forms in _others() if forms.adjective.lower() not in mine]
    said = np.array([[filled(sentence, forms) for forms in kinds] for sentence in SENTENCES], dtype=object)
    return Variations(said, np.arange(len(said)))


@cache
def _others() -> tuple[Forms, ...]:
    lines = ([part.strip() for part in line.split("|")] for line in word_list("other_people"))
    every = [line if len(line) == 3 else [line[0], f"{line[0]} person", f"{line[0]} people"] for line in lines]
    return tuple(Forms(adjective, one, several, False) for adjective, one, several in every)
