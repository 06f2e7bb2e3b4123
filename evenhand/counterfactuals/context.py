"""Whether a word is about a person where it stands: idioms, compounds, names, ages and insults are not.

English rules and short lists, no parser. A rule says why a word is left, so that a preview can show it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from evenhand.counterfactuals.identities import identity_categories
from evenhand.counterfactuals.texts import word_list, words_of

__all__ = ["left_because", "names_people"]

# Words of many meanings: they count only where something says that they describe somebody.
_VAGUE = frozenset(
    ["black", "white", "straight", "old", "older", "young", "younger", "blind", "deaf", "teenage"] + ["paralyzed"]
)
_JOINED_AFTER = frozenset(["friendly", "owned", "born", "led", "only", "hating", "bashing", "looking"])
_JOINED_BEFORE = frozenset(["non", "anti", "pro", "ex", "openly", "so"])
_WHOLE = frozenset(["south", "north", "east", "west", "central", "latin", "native", "new", "saint", "st"])
_BE = r"(?:am|is|are|was|were|be|been|being|'m|’m|'s|’s|'re|’re|im|ur|r)"
_WHO = r"(?:i|he|she|they|we|you|u|who|someone|somebody|everyone|people|person|man|woman|men|women|guy|girl|boy)"
_HEDGE = r"(?:(?:a|an|not|so|too|very|really|also|both|all|just|only|openly|born|still|now|being|either|totally)\s+)*"
_PREDICATE = re.compile(rf"(?:\b{_WHO}\s*{_BE}|\bim|\bur)\s+{_HEDGE}$", re.IGNORECASE)
_PERSONAL = re.compile(r"\b(?:you|us|u)\s+(?:all\s+)?$", re.IGNORECASE)
_ENDS = re.compile(
    r"\s*(?:$|[.,;:!?)\"”’\n]|(?:and|or|but|because|who|that|when|while|if|in|on|as|like|too|yet|now|so)\b)", re.I
)
_INSULTED = re.compile(
    rf"(?:\b(?:you|u|ya|ur|it|this|that|wikipedia|site|page|article|everyone here)\s*{_BE}?\s+"
    r"(?:(?:all|so|a|such|fucking|fuckin|really|just|very|too|big|fat|stupid|totally)\s+)*)$|"
    r"\b(?:fucking|fuckin|motherfucking|damn|goddamn|stupid|flaming|fat|ugly|dumb|little|lil|so)\s+$",
    re.IGNORECASE,
)
_INSULT_FOLLOWS = re.compile(
    r"\s*(?:-\s*)?(?:ass|arse|fag|fags|faggot|faggots|homo|homos|lord|wad|tard|prick|cunt|shit)\b", re.I
)
_SLURRED = frozenset(["gay", "gays", "queer", "queers", "homosexual", "lesbian", "retarded"])
_WORD = re.compile(r"\s{0,2}[\"“'‘(]?([^\W\d_][\w’']*)")


class _Idioms(NamedTuple):
    after: tuple[str, ...]
    before: tuple[str, ...]


@cache
def _idioms() -> dict[str, _Idioms]:
    after: dict[str, tuple[str, ...]] = {}
    before: dict[str, tuple[str, ...]] = {}
    for line in word_list("not_identity"):
        where = after if ":" in line else before
        token, words = re.split("[:<]", line, maxsplit=1)
        where[token.strip()] = tuple(word.replace("_", " ") for word in words.split())
    return {token: _Idioms(after.get(token, ()), before.get(token, ())) for token in {*after, *before}}


def left_because(text: str, start: int, end: int, token: str, *, plural: bool, insults: bool) -> str:
    """Why text[start:end], a form of `token`, is left as it is; "" where it is about people.

    >>> left_because("He wore a black tie.", 10, 15, "black", plural=False, insults=False)
    'idiom'
    >>> left_because("a black man", 2, 7, "black", plural=False, insults=False)
    ''
    """
    said = text[start:end]
    before, after = text[max(0, start - 60) : start], text[end : end + 80]
    if _joined(before, after):
        return "compound"
    if re.search(r"[/_@=#\\.:][\w-]*$", before.rsplit(" ", 1)[-1]) and not re.search(r"[.:=]$", before):
        return "address"
    if re.match(r"[/_@=\\]\w|\.\w", after):
        return "address"
    if token in ("old", "older", "younger") and re.search(
        r"(?:\b(?:years?|months?|weeks?|days?|yrs?|yr|y)[\s-]*|\d\s*)$", before, re.IGNORECASE
    ):
        return "age"
    if _idiom(before, after, token):
        return "idiom"
    if _names_thing(after, token):
        return "thing"
    if not insults and said.lower() in _SLURRED and _insult(before, after, plural):
        return "insult"
    if not plural and _part_of_a_name(before, said, after):
        return "name"
    if token in _VAGUE and not (plural and token in ("black", "white")) and not _about_somebody(before, after):
        return "no person"
    return ""


def names_people(word: str) -> bool:
    """Whether the word is a noun for people, by a list, its plural, or how it ends.

    >>> [word for word in ("teachers", "drummer", "paper", "pianist", "song") if names_people(word)]
    ['teachers', 'drummer', 'pianist']
    """
    lowered = re.sub(r"['’]s?$", "", word.lower())
    people, things = words_of("people"), words_of("not_people")
    singular = lowered[:-1] if lowered.endswith("s") else lowered
    if lowered in people or singular in people or (lowered.endswith("ies") and f"{lowered[:-3]}y" in people):
        return True
    if lowered in things or singular in things or len(singular) < 5:
        return False
    return re.search(r"(?:[bcdfghklmnprstvwz]er|[ct]or|ist|ician|rian|woman|man|men|women)$", singular) is not None


def _joined(before: str, after: str) -> bool:
    """Part of a hyphenated word: 97-year-old, old-fashioned, Indo-European; gay-friendly is about people."""
    following, leading = re.match(r"[-‐‑–](\w+)", after), re.search(r"(\w+)[-‐‑]$", before)
    if after.startswith("+"):  # LGBTQ+
        return True
    if following is not None and following[1].lower() not in _JOINED_AFTER:
        return True
    return leading is not None and leading[1].lower() not in _JOINED_BEFORE


def _idiom(before: str, after: str, token: str) -> bool:
    known = _idioms().get(token)
    if known is None:
        return False
    following = re.sub(r"[\s-]+", " ", after.lower()).lstrip(" ,'\"“”’")
    leading = re.sub(r"[\s-]+", " ", before.lower()).rstrip()
    if any(re.match(rf"{re.escape(w)}(?!\w)", following) for w in known.after):
        return True
    described = _WORD.match(after)
    if described is not None and names_people(described[1]):  # "I think straight people"
        return False
    return any(re.search(rf"(?<!\w){re.escape(w)}$", leading) for w in known.before)


@cache
def _of_origin() -> frozenset[str]:
    categories = identity_categories()
    colours = {"black", "white"}  # vague ones are judged by what they describe
    return frozenset({*categories["origin"], *categories["religion"]} - colours)


def _names_thing(after: str, token: str) -> bool:
    """Indian restaurant, Buddhist temples, Japanese cars: where something is from, not who somebody is."""
    follows = re.match(r"\s+([^\W\d_]+)(?![\w’'-])", after)
    if follows is None or token not in _of_origin():
        return False
    word = follows[1].lower()
    return not {word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word)}.isdisjoint(
        words_of("things")
    )


def _insult(before: str, after: str, plural: bool) -> bool:
    """The word is the insult itself: "you are so gay", "gay ass"; not "you are gay people"."""
    if _INSULT_FOLLOWS.match(after):
        return True
    follows = _WORD.match(after)
    described = follows is not None and names_people(follows[1])
    return not plural and not described and _INSULTED.search(before) is not None


def _part_of_a_name(before: str, said: str, after: str) -> bool:
    """Black Sabbath, White House, Claudia Black, South African, Irish American."""
    if not said[:1].isupper() or (len(said) > 1 and said.isupper()):
        return False
    following = re.match(r" ([A-ZÀ-Þ][\w’']*)", after)
    if following is not None and not names_people(following[1]) and not _another_identity(following[1]):
        return not following[1].isupper() or len(following[1]) < 2
    leading = re.search(r"([.!?:\n]|^)?\s?([A-ZÀ-Þ][\w’'.]*) $", before)
    if leading is None or leading[1] is not None:
        return False
    first = leading[2].lower().rstrip(".")
    return first in _WHOLE or re.search(r"(?:ish|ian|ese|ean|an)$", first) is not None or not _common(leading[2])


def _another_identity(word: str) -> bool:
    """American Jews, Black Muslims, White Christian."""
    lowered = word.lower()
    return re.search(r"(?:ans?|ims?|ews?|ists?|ics?|kids?|ese|gays?|lesbians?)$", lowered) is not None


def _common(word: str) -> bool:
    """A word that begins sentences or titles rather than names."""
    return word.lower() in words_of("not_after_possessive") or word.lower() in (
        *("many", "most", "some", "all", "no", "every", "dear", "stupid", "fucking", "hey", "well", "yes", "our"),
        *("young", "old", "openly", "proud", "good", "bad", "few", "other", "gay", "straight", "black", "white"),
    )


def _about_somebody(before: str, after: str) -> bool:
    """Something says that the word describes a person: what follows, what it is said of, or who is addressed."""
    words: list[str] = []
    rest = after
    while len(words) < 3 and (found := _WORD.match(rest)) is not None:
        words.append(found[1])
        rest = rest[found.end() :]
        if re.match(r"[.;:!?\n]", rest) or (rest.startswith(",") and len(words) > 1):
            break
    for i, word in enumerate(words):
        if names_people(word) or (i == 0 and _identity_word(word)):
            return True
        if i == 0 and word.lower() in words_of("not_after_possessive") and word.lower() not in ("and", "or"):
            break
    if re.match(r"\s*,\s*(?:\w+\s+){0,2}", after) and any(map(_identity_word, re.findall(r"\w+", after)[:2])):
        return True
    if re.search(r"\bthe\s+$", before, re.I) and re.match(r"\s+(?:are|were|have|who|and the)\b", after, re.I):
        return True  # the deaf are ...
    return (_PREDICATE.search(before) is not None and _ENDS.match(after) is not None) or (
        _PERSONAL.search(before) is not None
    )


@cache
def _identities() -> frozenset[str]:
    return frozenset(word for token in word_list("identity_tokens") for word in token.split())


def _identity_word(word: str) -> bool:
    lowered = word.lower()
    return lowered in _identities() or lowered.removesuffix("s") in _identities()
