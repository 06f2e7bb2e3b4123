"""Nouns for people, and what says that an adjective is said of somebody. English rules and short lists, no parser."""

from __future__ import annotations

import re
from functools import cache

from evenhand.counterfactuals.texts import word_list, words_of

__all__ = ["BE", "DETERMINERS", "described", "identity_word", "identity_words", "listed_people", "names_people"]

BE = r"(?:am|is|are|was|were|be|been|being|'m|’m|'s|’s|'re|’re|im|ur|r)"
DETERMINERS = frozenset(
    ["the", "a", "an", "his", "her", "my", "your", "our", "their", "its", "this", "that", "these", "those", "it", "him"]
    + ["them", "me", "us", "you", "many", "some", "few", "most", "several", "all"]
)
_HEDGES = (
    r"(?:(?:an?|not|so+|too|very|really|also|both|all|just|only|still|now|being|either|totally|super|quite|pretty|half|part|"
    r"more|most|never|always|even|non|as|fucking|such|[a-z]+ly)\s+)*"
)
_LINKS = (  # he is, she became, they call him, was raised
    rf"(?:{BE}|whos|bec[ao]m(?:e|es|ing)|turn(?:s|ed|ing)?|born|raised|gr(?:ew|ow|own|owing)\s+up|sounds?|look(?:s|ed|ing)?|feels?|felt|"
    r"act(?:s|ing|ed)?|smells?|(?:is|was|are|were|do|does)n['’]?t|ain['’]?t|hes|shes|theyre|youre|your|ur|"
    r"(?:identif|describ|categori|label|brand|considered|out|treat)\w*(?:\s+\w+)?\s+as|"
    r"(?:call|mak|think|believ|consider)(?:s|e|es|ed|ing)?(?:\s+[\w'’]+){1,2}|made\s+\w+|called)"
)
_AND = r"(?:[\w'’-]+(?:\s*[,/]\s*|\s+(?:and|or|but|nor)\s+(?:(?:an?|not|also|is|was|are|very)\s+)*))*"
_AUXILIARY = (
    r"(?:(?:has|have|had|will|would|can|could|may|might|must|should|did|do|does|not|never|is|was|are|were)\s+)*"
)
_SAID_OF = re.compile(
    rf"(?:\b(?P<the>the|this|these|those|your|ur|my|our|his|her|their|an?)\s+(?:\w+\s+)?)?"
    rf"(?:\b(?P<who>\w+)[\"”'’)]*\s*\b{_AUXILIARY})?"
    rf"(?:(?<!\w){_LINKS}|(?<=\w)['’](?:s|m|re)|(?<=['’])(?:s|m|re))\s+[\"“'‘(]*{_HEDGES}{_AND}{_HEDGES}[\"“'‘(]*$",
    re.IGNORECASE,
)
_NOBODY = frozenset(
    ["it", "its", "this", "that", "which", "there", "what", "everything", "nothing", "something", "things", "stuff"]
)
_ABOUT_THINGS = re.compile(
    r"\b(?:(?:every|any|no|some)?things?\b(?! but)|stuff\s+$|call(?:s|ed|ing)?\s+(?:it|this|that)\s+$)", re.IGNORECASE
)
_ADDRESSED = re.compile(r"\b(?:you|u|ya|yall|y'all)\s+(?:[\w'’-]+\s+){0,2}$", re.IGNORECASE)
_ANYBODY = re.compile(r"\b(?:any|some|every|no)(?:one|body)\s+(?:\w+\s+){0,3}$", re.IGNORECASE)
_ASKED = re.compile(r"\b(?:is|are|was|were)\s+(?:[\w'’.-]+\s+){1,3}$(?<!it )(?<!this )(?<!that )", re.IGNORECASE)
_LISTED = re.compile(r"([\w'’-]+)(?:\s*[,/]\s*|\s+(?:and|or)\s+)$")
_NEXT = re.compile(r"(?:\s*,?\s+(?:and|or)\s+|\s*[-,/&]\s*|\s+)[\"“'‘(]*([^\W\d_][\w’'-]*)")
_ENGLISH = re.compile(r"[a-z]{2}", re.IGNORECASE)
MOST_WORDS = 4  # of a phrase, to its noun


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


def listed_people(word: str) -> bool:
    """A noun for people by the list: with a capital letter an ending says nothing (Christian Slater)."""
    lowered = re.sub(r"['’]s?$", "", word.lower())
    return not {lowered, lowered.removesuffix("s"), re.sub("ies$", "y", lowered)}.isdisjoint(words_of("people"))


@cache
def identity_words() -> frozenset[str]:
    return frozenset(token for token in word_list("identity_tokens") if " " not in token)


def identity_word(word: str) -> bool:
    lowered = word.lower()
    return lowered in identity_words() or lowered.removesuffix("s") in identity_words()


def described(before: str, after: str) -> bool:
    """Whether an adjective between the two is said of somebody: a noun for people follows, or a subject has it.

    >>> described("a ", " piano teacher"), described("Kim is ", "."), described("it is ", ".")
    (True, True, False)
    """
    if _ENGLISH.search(before + after) is None:  # the word alone, or another script: nothing to go by
        return True
    people = words_of("of_people")
    phrase = _phrase(after)
    for word, following in zip(phrase, [*phrase[1:], ""]):
        owned = re.search(r"['’]s?$", word) is not None  # people's songs are theirs; gay bar songs are nobody's
        of_a_thing = not owned and following.lower().removesuffix("s") in words_of("things")
        if word.lower() in people or identity_word(word) or (names_people(word) and not of_a_thing):
            return True
    if re.match(r"\s+(?:who\w*|owned)\b|-(?:owned|friendly|led)", after, re.I) or _ADDRESSED.search(before):
        return True
    if _ANYBODY.search(before) and re.match(r"\s*(?:[.,!?]|$|or\b|and\b)", after):
        return True
    subject = _SAID_OF.search(before)
    if phrase and re.search(r"\b(?:your|ur)\s+(?:\w+\s+)?$", before, re.IGNORECASE):
        subject = None  # your gay crap: somebody's thing, not "you're"
    if subject is not None and _ABOUT_THINGS.search(before[-40:]) is None:
        who = subject["who"] or ""
        thing = subject["the"] is not None and who.islower() and not names_people(who)
        if who.lower() not in _NOBODY and not (thing and who not in words_of("not_after_possessive")):
            return True
    if re.match(r"\s*(?:\?|or\b)", after) and _ASKED.search(before):  # Is the pope Catholic?
        return re.search(r"\b(?:it|this|that)\s+$", before) is None
    listed = _LISTED.search(before)
    return listed is not None and (identity_word(listed[1]) or names_people(listed[1]))


def _phrase(after: str) -> list[str]:
    """The words that follow, up to the end of what they name together."""
    words: list[str] = []
    rest = re.sub("^[\"”’')]*", "", after)
    while len(words) < MOST_WORDS and (found := _NEXT.match(rest)) is not None:
        word = found[1].lower()
        if word in words_of("not_after_possessive") or word in DETERMINERS:
            break
        words.append(found[1])
        rest = rest[found.end() :]
    return words
