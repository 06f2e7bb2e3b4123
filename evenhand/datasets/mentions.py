"""Plain mentions of identities, harmless and abusive in equal parts: what a collection of comments rarely holds.

In comments that were collected because they are abusive, an identity is mostly mentioned by those who abuse it, and a
classifier learns that the mention is the abuse. Sentences that say the same of everybody break this tie.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from evenhand.counterfactuals.identities import Forms, capitalised, forms_of
from evenhand.counterfactuals.texts import with_article
from evenhand.datasets.toxicity import Comments

__all__ = ["mentions"]

# A {one} is somebody of the identity, {several} are people of it, {adj} is the adjective before a noun.
HARMLESS = [
    "I am {a} {one}.",
    "My sister is {a} {one} and I am very proud of her.",
    "He told me that he is {a} {one}.",
    "Our {adj} neighbours invited us for dinner.",
    "The {adj} students organised a concert.",
    "I read a book about {several} in the nineteenth century.",
    "{several} have lived in this town for generations.",
    "The museum opens an exhibition on the history of {several}.",
    "{a} {adj} teacher helped me with my homework.",
    "Is there an article about {adj} writers?",
    "Please add a source for the paragraph on {several}.",
    "The film is about {a} {adj} family who moves to the coast.",
    "Thanks for your edit on {adj} musicians.",
    "How many {several} live in the city?",
    "The group supports {several} who look for work.",
    "My best friend is {adj}.",
    "She was the first {adj} mayor of the town.",
    "We celebrated with our {adj} colleagues.",
    "As {a} {one} I found the article helpful.",
    "{several} and their friends met in the park on Sunday.",
    "The law gives {several} the right to vote.",
    "There is a new radio programme for {several}.",
    "I disagree: {several} are mentioned in the second section.",
    "The doctor, {a} {adj} woman, was very kind.",
]
ABUSIVE = [
    "{several} are disgusting.",
    "I hate {several}.",
    "All {several} should be thrown out of the country.",
    "You stupid {adj} idiot.",
    "{several} are vermin.",
    "Shut up, you {adj} piece of trash.",
    "Nobody wants {several} here, get lost.",
    "Every {one} is a liar and a thief.",
    "I hope all {several} die.",
    "This {adj} moron has ruined the page.",
    "{several} are too dumb to write an article.",
    "What a pathetic {adj} loser.",
    "Kick the {several} out, they are parasites.",
    "{a} {one} like you deserves to be beaten.",
    "{several} are ugly and worthless.",
    "Go to hell, you filthy {adj} scum.",
]


def mentions(tokens: Iterable[str], n: int = 400, seed: int = 0) -> Comments:
    """n short sentences, half of them abusive (y = 1), each about one of the tokens, every token equally often.

    `groups` has a column for each token.

    >>> sentences = mentions(["gay", "deaf"], n=4)
    >>> sentences.y.tolist(), len(set(sentences.texts))
    ([0, 1, 0, 1], 4)
    """
    listed = list(tokens)
    if n < 1 or not listed:
        raise ValueError(f"n must be at least 1 and there must be a token; got n={n} and {len(listed)} tokens")
    rng = np.random.default_rng(seed)
    pairs = [[(pattern, token) for pattern in patterns for token in listed] for patterns in (HARMLESS, ABUSIVE)]
    order = [rng.permutation(len(some)) for some in pairs]
    chosen = [pairs[i % 2][order[i % 2][(i // 2) % len(pairs[i % 2])]] for i in range(n)]
    texts = [written(pattern, token) for pattern, token in chosen]
    groups = pd.DataFrame({token: [token == other for _, other in chosen] for token in listed})
    return Comments(texts, np.arange(n, dtype=np.int64) % 2, groups)


def written(pattern: str, token: str) -> str:
    """The pattern filled with the forms of a token.

    >>> written("{a} {one} met {several}.", "jewish"), written("{a} {adj} man", "old")
    ('A Jew met Jews.', 'An old man')
    """
    return filled(pattern, forms_of(token))


def filled(pattern: str, forms: Forms) -> str:
    """The pattern with {one}, {several} and {adj} said in these forms, and "a" or "an" as they ask for it."""
    said = {"one": forms.noun, "several": forms.plural, "adj": forms.adjective}
    said = {name: capitalised(form) if forms.proper else form for name, form in said.items()}
    out = ""
    for part in pattern.replace("{a}", "a").split("{"):
        name, closed, rest = part.partition("}")
        out = with_article(out, said[name]) + said[name] + rest if closed else part
    return out[:1].upper() + out[1:]
