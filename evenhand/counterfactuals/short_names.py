"""Short forms and nicknames: what the person a text is about is called besides the given name."""

from __future__ import annotations

import re
from functools import cache

from evenhand.counterfactuals.given_names import all_known_names, known_names
from evenhand.counterfactuals.texts import word_list

__all__ = ["called_too", "short_form"]

_NICKNAME = r"\s+(?:[A-ZÀ-Þ](?:\.|[a-zà-ÿ]+)\s+)?[\"“‘'(]\s?([A-ZÀ-Þ][a-zà-ÿ]+)\s?[\"”’')]"

_CALLS = re.compile(r"\b(?:calls?|called)\s+(?:him|her|me)\s+[\"“]?([A-ZÀ-Þ][a-zà-ÿ]+)")


def called_too(text: str, subject: str, names: frozenset[str]) -> frozenset[str]:
    """What else the text calls the subject: a short form of the given name, a nickname after it that is a name or is
    made of the given name, or what others call him or her.

    names: the given names of the subject's gender.

    >>> sorted(called_too('Edward "Teddy" Lee met Ned. Ed left.', "Edward", frozenset(["Teddy"])))
    ['Ed', 'Ned', 'Teddy']
    """
    short = _short_forms().get(subject, frozenset())
    found = {word for word in re.findall(r"(?<![\w-])[A-ZÀ-Þ][a-zà-ÿ]+(?![\w-])", text) if word in short}
    if re.search(rf"(?<!\w){re.escape(subject)}\s+[A-ZÀ-Þ]", text) is None:  # Robert Lee opened it; Bob is kind
        found |= {formal for formal in _formal().get(subject, ()) if re.search(rf"(?<!\w){formal}\s+[A-ZÀ-Þ]", text)}
    nickname = re.search(rf"(?<!\w){re.escape(subject)}{_NICKNAME}", text)
    known = nickname is not None and (nickname[1] in names or nickname[1] in short or nickname[1] in all_known_names())
    if nickname is not None and (known or _made_of(nickname[1].lower(), subject.lower())):
        found.add(nickname[1])
    found |= {name for name in _CALLS.findall(text) if name in names}
    return frozenset(found - {subject})


def _made_of(nickname: str, name: str) -> bool:
    """Whether the nickname begins as the name does, or has three letters in a row of it: Iggy of Ignatius, Quim of
    Joaquim; not Doc."""
    return nickname[:2] == name[:2] or any(nickname[i : i + 3] in name for i in range(len(nickname) - 2))


@cache
def short_form(name: str) -> str:
    """A short form that is of the gender of the name alone; "" if none is known.

    >>> short_form("Robert"), short_form("Zoltan")
    ('Bob', '')
    """
    men, women = known_names()
    own, others = (men, women) if name in men else (women, men)
    forms = [
        short
        for short in _listed_forms().get(name, ())
        if short not in others and all((formal in men) == (name in men) for formal in _formal()[short])
    ]
    return next((short for short in forms if short in own), forms[0] if forms else "")


@cache
def _listed_forms() -> dict[str, list[str]]:
    lines = map(str.split, word_list("short_names"))
    return {name: short for name, *short in lines}


@cache
def _short_forms() -> dict[str, frozenset[str]]:
    return {name: frozenset(short) for name, short in _listed_forms().items()}


@cache
def _formal() -> dict[str, list[str]]:
    of: dict[str, list[str]] = {}
    for name, short in _short_forms().items():
        for each in short:
            of.setdefault(each, []).append(name)
    return of
