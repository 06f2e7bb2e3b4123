"""Insults: where a token is the insult itself, said of somebody or of a thing, or shouted over and over."""

from __future__ import annotations

import re

from evenhand.counterfactuals.people import BE, names_people
from evenhand.counterfactuals.texts import words_of

__all__ = ["HEDGE", "OF_IT", "insulted", "repeated"]

HEDGE = r"(?:(?:a|an|not|so|too|very|really|also|both|all|just|only|openly|born|still|now|being|either|totally)\s+)*"
OF_IT = re.compile(rf"\b(?:it|this|that)\s*{BE}\s+(?:[a-z]+ly\s+)?{HEDGE}(?:\w+\s+and\s+)?$", re.IGNORECASE)
_INSULTED = re.compile(
    rf"(?:\b(?:(?:(?:you|u)\s+guys|you|u|ya|y['’]?all|ya['’]?ll|ur|it|wikipedia|site|page|article|"
    rf"everyone here)\s*{BE}?|(?:this|that)\s*{BE})\s+"
    r"(?:(?:all|so+|a|such|fucking|fuckin|really|just|very|too|big|fat|stupid|totally)\s+)*)$|"
    r"\b(?:fucking|fuckin|motherfucking|damn|goddamn|stupid|flaming|fat|ugly|dumb|little|lil|so+|too)\s+$|"
    r"\b(?:stupid|dumb|lame|retarded|boring|pointless|annoying|crap|sucks?|pathetic)\s+(?:and|n|&)\s+$",
    re.IGNORECASE,
)
_SAID_OF = re.compile(  # "this game is so "; of a person it may be meant
    r"\b(?:this|these|those|your|ur|my|our|his|her|their)\s+(?:\w+\s+){0,2}?(\w+)\s+(?:is|was|are|were)\s+(?:(?:so|really|just|very|too|[a-z]+ly)\s+)*$",
    re.IGNORECASE,
)
_THINGS = (
    r"(?:blog|site|website|web|internet|page|article|wiki(?:pedia)?|school|class|game|song|album|show|movie|film|book|"
    r"thing|crap|wik\w*)s?"
)
_INSULTED_THING = (  # "school is super ", "how gay this is", "some gay website"
    re.compile(
        rf"\b{_THINGS}\s+(?:{BE}\s+)?(?:(?:so+|really|just|very|too|totally|su+per|all)\s+)*$|\bhow\s+$",
        re.IGNORECASE,
    ),
    re.compile(rf"\s+(?:this|that|it|the)\b|\s+{_THINGS}\b", re.IGNORECASE),
)
_INSULT_FOLLOWS = re.compile(
    r"\s*(?:-\s*)?(?:(?:flaming|fucking|little|lil|ass|stupid|dirty|ugly|fat)\s+)*(?:(?:ass|arse|fags?|homos?|lord|wad|tard|prick|cunt|shit|retards?)\b|faggot|"
    r"as\s+(?:hell|fuck|shit|you|ur?)\b)",
    re.IGNORECASE,
)
_NEXT = re.compile(r"\s{0,2}[\"“'‘(]?([^\W\d_][\w’']*)")
SHOUT = 120  # characters on either side that are looked at for repetition
_SLURRED = frozenset(["gay", "gays", "queer", "queers", "homosexual", "lesbian", "retarded"])
_SEEN = re.compile(  # Are you blind? Maybe you're just blind
    r"(?:\b(?:are|r)\s+(?:you|u|ya)\s+(?:\w+\s+)?|"
    r"\b(?:you|u|ya)\s+must\s+be\s+(?:\w+\s+)?|"
    r"\b(?:(?:you|u|ya)(?:\s*['’]?re|\s+r)?|your|ur)\s+(?:just|simply|either|all|that)\s+)$",
    re.IGNORECASE,
)


def repeated(text: str, start: int, end: int) -> bool:
    """A few words over and over, "is gay is gay is gay": nobody is spoken of."""
    said = re.escape(text[start:end])
    if re.match(rf"\W*\b{said}\W+{said}\b", text[end:], re.I) or re.search(
        rf"\b{said}\W+{said}\W*$", text[:start], re.I
    ):
        return True
    if re.match(rf"\W*\b{said}\b", text[end:], re.I) and re.search(rf"\b{said}\W*$", text[:start], re.I):
        return True
    words = re.findall(r"\w+", text[max(0, start - SHOUT) : end + SHOUT].lower())
    return words.count(text[start:end].lower()) >= 4 and 3 * len(set(words)) < len(words)


def insulted(before: str, said: str, after: str, *, plural: bool) -> bool:
    """The word is the insult itself: "you are so gay", "gay ass", "are you blind?"; not "you are gay people".

    >>> insulted("you are so ", "gay", "", plural=False), insulted("two ", "gay", " men", plural=False)
    (True, False)
    """
    if said.lower() in ("blind", "deaf"):
        return _SEEN.search(before) is not None and re.match(r"\s*(?:$|[?!.,]|or\b)", after) is not None
    return said.lower() in _SLURRED and _slur(before, after, plural)


def _slur(before: str, after: str, plural: bool) -> bool:
    if _INSULT_FOLLOWS.match(after):
        return True
    follows = _NEXT.match(after)
    described = follows is not None and names_people(follows[1])
    if plural or described:
        return False
    if OF_IT.search(before):
        return True
    said, follows_thing = _INSULTED_THING[0].search(before), _INSULTED_THING[1].match(after)
    if said is not None and (not said[0].lower().startswith("how") or follows_thing is not None):
        return True
    if follows_thing is not None and re.search(r"\b(?:some|this|that|your|ur|stupid)\s+$", before, re.IGNORECASE):
        return True
    thing = _SAID_OF.search(before)
    return _INSULTED.search(before) is not None or (
        thing is not None and not names_people(thing[1]) and thing[1].lower() not in words_of("not_after_possessive")
    )
