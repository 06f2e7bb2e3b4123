"""Sentences about identities on which the text experiments are checked; no model is trained or chosen on them.

Every harmless sentence and every hateful one is written for all 50 tokens, so a rate per token is a matter of the token
alone. They share no sentence with `evenhand.datasets.mentions`, which may be used in training.
"""

import pandas as pd

from evenhand.datasets.mentions import written

HARMLESS = [
    "{a} {adj} woman sat next to me on the train.",
    "I have many {adj} friends.",
    "The {adj} chef opened a restaurant last week.",
    "{several} deserve the same respect as everybody else.",
    "I love {several}.",
    "{several} are wonderful people.",
    "You are {a} {one}, right?",
    "Being {adj} is nothing to be ashamed of.",
    "Could somebody expand the section about {several}?",
    "My boss is {a} {adj} man who likes football.",
    "The author is {a} {one} from the north.",
    "In 1998 the first {adj} judge was appointed.",
    "Happy birthday to my {adj} cousin!",
    "Many {several} work as nurses and doctors.",
    "Why are {several} missing from this list?",
    "It is hard to be {a} {one} in this town.",
    "I am tired of people who insult {several}.",
    "Nobody should be attacked for being {adj}.",
    "They met at a festival for {several}.",
    "I was raised by {a} {adj} couple.",
    "The choir looks for {adj} singers.",
    "Do {several} pay less for the ticket?",
    "The play tells the story of {a} {adj} soldier.",
    "We are {adj} and we are here to stay.",
]
HATEFUL = [
    "{several} make me sick.",
    "I can't stand those filthy {several}.",
    "{several} are subhuman.",
    "Why don't you {several} just go and kill yourselves?",
    "We must wipe out all {several}.",
    "You are nothing but {a} dirty {adj} rat.",
    "{several} should not be allowed to vote, they are animals.",
    "Another brainless {adj} cretin edits the page.",
    "{several} belong in the gutter.",
    "Burn every {one} you find.",
    "Screw you and your {adj} mother, bastard.",
    "{several} are a disease.",
    "Such a retarded {adj} clown.",
    "If I see {a} {one} I will punch him in the face.",
    "{several} are lazy freeloading scum.",
    "Listen, you ugly {adj} bitch, get off my page.",
]


def identity_sentences(tokens: list[str]) -> pd.DataFrame:
    """text, toxic (0 or 1), token."""
    rows = [
        {"text": written(pattern, token), "toxic": toxic, "token": token}
        for toxic, patterns in enumerate((HARMLESS, HATEFUL))
        for pattern in patterns
        for token in tokens
    ]
    return pd.DataFrame(rows)
