"""Identity tokens: the published list, their categories, and what one or several people of an identity are called."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from evenhand.counterfactuals.texts import word_list

__all__ = ["Forms", "capitalised", "forms_of", "identity_categories", "identity_tokens", "known"] + ["tokens_of"]

# Written with a capital letter in English wherever they stand.
_PROPER = re.compile(
    r"african|american|european|hispanic|latin[oax]|mexican|canadian|asian|indian|eastern|chinese|japanese|christian|"
    r"muslim|jew|buddhist|catholic|protestant|sikh|taoist|hindu"
)


def identity_tokens() -> list[str]:
    """The 50 identity tokens of Dixon et al. 2018 (Apache-2.0), spelt as published ("millenial"); three have two words.

    >>> len(identity_tokens()), identity_tokens()[:3]
    (50, ['lesbian', 'gay', 'bisexual'])
    """
    return word_list("identity_tokens").copy()


def identity_categories() -> dict[str, list[str]]:
    """The same 50 tokens by what they are about, for swaps within a category: religion with religion.

    >>> {category: len(tokens) for category, tokens in identity_categories().items()}
    {'orientation': 9, 'gender': 5, 'origin': 17, 'religion': 8, 'age': 8, 'disability': 3}
    """
    lines = (line.split(":") for line in word_list("identity_categories"))
    return {name.strip(): [token.strip() for token in tokens.split(",")] for name, tokens in lines}


def tokens_of(lines: str, name: str) -> list[str] | dict[str, list[str]]:
    """The tokens of a list that somebody wrote, for `TokenSwap`: one or several in a line, with commas between them; or
    categories, "faith: muslim, christian" in every line. What follows a # is a comment. name: of the list, in errors.

    >>> tokens_of("gay, lesbian  # a comment", "mine.txt"), tokens_of("faith: muslim, christian", "mine.txt")
    (['gay', 'lesbian'], {'faith': ['muslim', 'christian']})
    """
    said = [(i, line.split("#")[0].strip()) for i, line in enumerate(lines.splitlines(), start=1)]
    said = [(i, line) for i, line in said if line]
    plain = [i for i, line in said if ":" not in line]
    if not plain and said:
        found: dict[str, list[str]] = {}
        for i, line in said:
            kind, _, some = line.partition(":")
            if not kind.strip() or ":" in some:
                raise ValueError(
                    f"line {i} of {name} should be a category and its tokens, as in faith: muslim, christian"
                )
            found.setdefault(kind.strip(), []).extend(_between_commas(some))
        return found
    if len(plain) < len(said):
        raise ValueError(
            f"{name} mixes lines with a category (faith: muslim, christian) and lines without one, such as line "
            f"{plain[0]}; give every line a category, or none"
        )
    tokens = [token for _, line in said for token in _between_commas(line)]
    if len(tokens) < 2:
        count = f"{len(tokens)} token{'' if len(tokens) == 1 else 's'}"
        raise ValueError(f"{name} holds {count}; a swap needs two or more: add others, one in a line")
    return tokens


def _between_commas(line: str) -> list[str]:
    return [token.strip() for token in line.split(",") if token.strip()]


class Forms(NamedTuple):
    """A token as an adjective ("a jewish friend"), as the noun for one ("a jew") and for several ("jews")."""

    adjective: str
    noun: str
    plural: str
    proper: bool  # written with a capital letter


@cache
def _listed() -> dict[str, tuple[str, str]]:
    rows = ([part.strip() for part in line.split("|")] for line in word_list("identity_forms"))
    return {token: (noun, plural) for token, noun, plural in rows}


def forms_of(token: str) -> Forms:
    """The forms of a token: those of the list for the 50 tokens, regular English plurals for any other.

    >>> forms_of("jewish").plural, forms_of("deaf").noun, forms_of("fox").plural
    ('jews', 'deaf person', 'foxes')
    """
    key = token.lower()
    noun, plural = _listed().get(key, ("-", "-"))
    noun, plural = (token if noun == "-" else noun), (_plural(token) if plural == "-" else plural)
    proper = key in _listed() and (_PROPER.search(key) is not None or key.startswith("lgbt"))
    return Forms(token, noun, plural, proper)


def known(token: str) -> bool:
    """Whether the token is one of the 50, for which there are forms and rules."""
    return token in _listed()


def capitalised(form: str) -> str:
    """A proper form as it is written within a sentence: African American, Jew, Chinese people, LGBT."""
    words = form.split(" ")
    shown = [
        word.upper()
        if word.lower().startswith("lgbt")
        else word
        if word in ("person", "people")
        else word[:1].upper() + word[1:]
        for word in words
    ]
    return " ".join(shown)


def _plural(token: str) -> str:
    if re.search(r"ese$", token, re.IGNORECASE):  # the Chinese, the Japanese
        return token
    if re.search(r"(?:s|x|z|ch|sh)$", token, re.IGNORECASE):
        return f"{token}es"
    if re.search(r"[^aeiou\W]y$", token, re.IGNORECASE):
        return f"{token[:-1]}ies"
    return f"{token}s"
