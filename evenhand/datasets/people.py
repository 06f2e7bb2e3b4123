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

LONGER = [
    "I have lived here for ten years and most of my neighbours are {several}; we get along very well.",
    "Could you please stop removing the part about {several} from the article? It has three sources.",
    "This page is a joke. Every time somebody writes about {several} you come along and delete it, you moron.",
    "The section on {adj} people should be shortened, it takes up half of the article and repeats the introduction.",
    "What do you know about {several}? Nothing, so keep your stupid mouth shut and leave.",
    "He was born to {a} {adj} mother in 1923 and moved to the city after the war, where he worked as a teacher.",
    "It is not your job to decide whether {several} are notable. See the policy before you revert me again.",
    "You are a fucking disgrace, and so are all the other {several} on this site.",
    "I am {a} {one} myself and I do not find the word offensive at all, but others might.",
    "Why the hell should anybody care what some {adj} guy thinks about this film?",
]
SENTENCES = [*HARMLESS, *ABUSIVE, *LONGER]


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
