"""Gendered nouns in phrases that say no gender of anybody: mother tongue, gentleman farmer, dad joke."""

from __future__ import annotations

import re

__all__ = ["idiom"]

_IDIOMS = {  # nouns: (what stands before, what stands after) where they are not for a person of that gender
    ("man", "woman"): (
        r"\b(?:best|iron|isle of|no|every|hit|con|straw|(?<!kind )(?<!sort )(?<!type )of|ice|ladies['’]?|bogey|snow|"
        r"gingerbread|stick)\s+$",
        None,
    ),
    ("mum", "dad", "mom"): (
        r"\b(?:keep|keeping|kept|stay)\s+$",
        r"['’]s the word\b|\s+(?:jokes?|bods?|jeans|rock|dancing|jumpers?|puns?|humou?r|bloggers?|guilt|tax)\b",
    ),
    ("mother", "father", "sister", "brother", "daughter"): (
        None,
        r"\s+(?:tongue|nature|earth|land|ship|board|lode|company|figure|christmas|time|in arms|city|page|project|"
        r"ships?|hens?|goose|superior|boxes|plants?|trees?|sauce|daughter|son|lodge|church|house|cells?|country|confessor)\b",
    ),
    ("lady",): (
        r"\b(?:first|bag|old|cat|dinner|leading|lunch|tea|pink)\s+$",
        r"['’]s\b|\s+(?:love|luck|friends?|dancers|doctors?|bug|apples?|fingers?|ferns?|killer|boss|parts|chapel)\b",
    ),
    ("gentleman",): (None, r"['’]s\b|\s+(?:farmer|caller)\b"),
    ("widow",): (r"\b(?:black|grass|football)\s+$", r"['’]s\s+(?:peak|walk|weeds|mite)\b|\s+(?:spiders?|maker)\b"),
    ("guy", "lad"): (
        r"\b(?:bad|good|wise|fall|tough|family|wise)\s+$",
        r"\s+(?:ropes?|lines?|wires?|fawkes|code|thing)\b",
    ),
    ("actor", "man"): (None, r"\s+(?:model|network|hours?|power|made|up|cave|caves|bun|servant|of god|of the match)\b"),
    ("grandfather", "grandmother"): (None, r"\s+(?:clauses?|clocks?|rights?|rules?|provisions?|status)\b"),
    ("handyman",): (None, r"\s+specials?\b"),
    ("bachelor",): (
        None,
        r"(?:['’]s)?\s+(?:of|degrees?|from|at|part(?:y|ies)|pads?|flats?|buttons?|nights?|weekends?|in(?!\s+(?:his|the)\b))\b|['’]s\b",
    ),
    ("cowboy", "cowgirl"): (None, r"\s+(?:boots?|hats?|films?|movies?|songs?|music|code|culture)\b"),
    ("girl", "boy"): (r"\bgirly\s+$", r"\s+(?:scout|scouts|band|group|friday|guide)\b"),
}
_ANY_IDIOM = re.compile(
    r"['’]?s?\s+(?:bug|bird|of the match|overboard|day|mantle|slippers?|club|room)\b", re.IGNORECASE
)


def idiom(word: str, before: str, after: str) -> bool:
    """Whether a noun is not for a person of that gender where it stands.

    >>> idiom("mother", "her ", " tongue"), idiom("mother", "her ", " sings")
    (True, False)
    """
    for words, (leading, following) in _IDIOMS.items():
        if word in words and (
            (leading is not None and re.search(leading, before, re.IGNORECASE))
            or (following is not None and re.match(following, after, re.IGNORECASE))
        ):
            return True
    if (
        word in ("man", "boy", "brother", "lady")
        and re.search(r"(?:^|[.!?]\s+|\b[Oo]h,?\s+)$", before)
        and re.match(r"\s*[,!]", after)
    ):
        return True  # Man, he is slow
    return _ANY_IDIOM.match(after) is not None
