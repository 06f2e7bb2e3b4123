"""Whether "her" and "his" own what follows: "her book" is his book, "saw her" is him, "a friend of his" is hers."""

from __future__ import annotations

import re

from evenhand.counterfactuals.texts import words_of

__all__ = ["owned_follows"]

_NEXT = re.compile(
    r"\s*(?:\s[\"“'‘(\[]\s?)?[\"“'‘(\[]?(\w[\w'’-]*)"
)  # also in texts cut into pieces: his " Blue " album
_MADE = re.compile(r"\b(?:makes?|made|making|keeps?|kept|keeping|leaves?|left|drives?|drove)\s+$", re.IGNORECASE)
_CHOSEN = re.compile(
    r"\b(?:elect|appoint|name|nominat|crown|declar|vot|mak|made|call)(?:e?s|e?d|ing)?\s+$", re.IGNORECASE
)
_TAUGHT = re.compile(r"\b(?:taught|teach(?:es|ing)?)\s+$", re.IGNORECASE)
_TAUGHT_ONES = re.compile(
    r"(?:class|course|student|pupil|child|daughter|son|kid|team|method|craft|art|own|first|young)"
)
_WATCHED = re.compile(
    r"\b(?:watch|see|saw|seeing|hear|heard|hearing|help|feel|felt)(?:s|e?d|ing)?\s+$|\b(?:make|made|makes|have|had)\s+$",
    re.IGNORECASE,
)
_HAS_IT = re.compile(r"\b(?:shar|sold|sell|built|build|bought|buy|open|own|lost|los|renovat)(?:e|es|ed|ing|s)?\s+$")
_ADVERB = re.compile(r"\s+[a-z]+ly\s+(?:as|and|in|for|to|on|at|with|from|by|before|after|that|when|because|but)\b")
_NOUNS_IN_LY = frozenset(
    [
        "family",
        "assembly",
        "ally",
        "reply",
        "supply",
        "monopoly",
        "anomaly",
        "belly",
        "bully",
        "butterfly",
        "lily",
        "fly",
    ]
    + [
        "rally",
        "tally",
        "folly",
        "jelly",
        "doily",
        "homily",
        "daily",
        "weekly",
        "monthly",
        "quarterly",
        "early",
        "only",
    ]
)
_DONE = re.compile(r"\s+(?:work|move|walk|talk|dance|run|win|cry)\s+(?:of|was|on|as|in)\b")  # her work on display
_SHARED = re.compile(r"\s+(?:and|or)\s+(?:my|your|his|our|their|\w+['’]s)\b")  # Her and my views
_FOUND = re.compile(  # found her surfing
    r"\b(?:find|found|see|saw|seen|watch|watche|hear|heard|keep|kept|catch|catche|caught|have|has|had|leave|left|spot|notice|get|got)"
    r"(?:s|e?d|t?ing)?\s+$",
    re.IGNORECASE,
)
_DOING = re.compile(r"\s+[a-z]+ing(?=\s?(?:[,.;:!?]|$)|\s+([a-z]+))")
_NOUNS_IN_ING = re.compile(
    r"(?:paint|wedd|cloth|draw|writ|record|build|earr|open|end|beginn|train|read|hear|see|feel|mean|sett|dwell|lodg|say|bless|"
    r"call|bear|hous|find|th|morn|even|ceil|stock|duckl|upbring|understand|follow|rank|rat|r|k|str|w|spr|sibl|darl|offspr|be|"
    r"handwrit|engrav|carv|fund|surround|belong|show|land)ings?$"
)
# They end a clause, or describe what is owned: "saw her later", "her later years".
_EITHER = frozenset(
    ["later", "then", "now", "once", "only", "home", "back", "inside", "outside", "past", "ever", "near"]
)

_FELT = frozenset(["blush", "busy", "cry", "feel", "laugh", "smile", "want", "wonder", "aware", "known", "different"])
_SHOWS = re.compile(
    r"\b(?:statue|bust|portrait|picture|photo|photograph|image|painting|mural|drawing|film|documentary|biography|record|fear|memory)s?"
    r"\s+of\s+$",
    re.IGNORECASE,
)
_IS_SHOWN = frozenset(
    ["hang", "hangs", "hung", "appear", "appears", "appeared", "adorn", "adorns", "surfaced", "surface"]
    + [
        "show",
        "shows",
        "stood",
        "showed",
        "remain",
        "remains",
        "remained",
        "exist",
        "exists",
        "survive",
        "survives",
        "circulated",
    ]
    + ["stands", "sits", "sat"]
)


def owned_follows(text: str, start: int, end: int) -> bool:
    """Whether something owned follows text[start:end], his or her: what can begin a noun phrase without article.

    >>> [owned_follows(text, 4, 7) for text in ("for her book", "saw her leave")]
    [True, False]
    """
    before, after = text[max(0, start - 20) : start], text[end : end + 60]
    follows = _NEXT.match(after)
    if follows is None:
        return False
    word, leading = follows[1].lower(), re.search(r"(\w+)\s*$", before)
    if re.match(r"(?:in|on|off|over|under|out|all|then)\s?[-‐‑]\s?\w", after[follows.start(1) :], re.IGNORECASE):
        return True  # her in-house lawyer
    verb = "" if leading is None else leading[1].lower()
    if re.match(r"\s*[\"“]\s?[A-ZÀ-Þ0-9]", after) and verb in (
        "in",
        "of",
        "with",
        "for",
        "on",
        "from",
        "and",
        "by",
        "as",
    ):
        return True  # in his "The Top Ten"
    if verb in ("let", "lets", "letting"):
        return False
    if verb in ("is", "was", "in", "at", "from", "of", "to", "into", "near", "for") and word == "home":
        return True  # Ohio is her home, died in her home; not: drove her home
    if word == "home" and _HAS_IT.search(before):
        return True  # shares her home with
    if word == "well" or (_ADVERB.match(after) is not None and word not in _NOUNS_IN_LY):
        return False  # served her well, knew her simply as
    if _TAUGHT.search(before) and text[start:end].lower() == "her" and not _TAUGHT_ONES.match(word):
        return False  # taught her patience; taught her classes
    if _CHOSEN.search(before) and follows[1][0].isupper():
        return False  # named her Teacher of the Year
    if _MADE.search(before) and word in words_of("states") and (word in _FELT or _clause_ends(after[follows.end() :])):
        return False  # keeps her sane; made her famous soup
    if _SHOWS.search(before) and word in _IS_SHOWN:
        return False  # a statue of her stands in the square
    if _CHOSEN.search(before) and word in words_of("offices"):
        return False
    if _WATCHED.search(before) and word in words_of("actions"):
        return _DONE.match(after) is not None
    doing = _DOING.match(after) if text[start:end].lower() == "her" and _FOUND.search(before) else None
    if doing is not None and not _NOUNS_IN_ING.fullmatch(word):
        return doing[1] is not None and doing[1] not in words_of("not_after_possessive") | {"down", "him", "it"}
    if _SHARED.match(after):
        return re.search(r"(?:^|[.!?]\s+)$", before) is not None
    if word in _EITHER and text[start:end].lower() == "his" and verb != "of":
        return True  # leaves his home: "his" is nobody who is left
    if word in _EITHER:
        further = re.match(r"\s+([a-z][\w'’-]*)", after[follows.end() :])
        if further is not None and not further[1].endswith("ly"):
            return further[1] not in words_of("not_after_possessive") | words_of("verbs")
    return word not in words_of("not_after_possessive")


def _clause_ends(after: str) -> bool:
    """Whether what follows an adjective describes nothing: "kept her sane.", "made her proud of", not "famous soup"."""
    further = re.match(r"\s+([^\W\d_]+)", after)
    return further is None or further[1].endswith(("ing", "ly")) or further[1] in words_of("not_after_possessive")
