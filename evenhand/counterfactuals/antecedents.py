"""Of whom the pronouns of a text speak: whether a gendered noun can be the person they stand for."""

from __future__ import annotations

import re

__all__ = ["FEMALE", "MALE", "another", "same"]

MALE = re.compile(r"\b(?:he|him|his|himself)\b", re.IGNORECASE)
FEMALE = re.compile(r"\b(?:she|her(?!\s+(?:Majesty|Royal|Highness|Excellency)\b)|hers|herself)\b", re.IGNORECASE)
_ENDED = re.compile(r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\b[A-Z])[.!?]\s|\n")
# "described him as a tall ", "as a workman and the ", "a singer, then an "; "In his address, the "
_SAME = re.compile(
    r"\b(?:as|being|then|later|herself|himself)\s+(?:an?|the|one)\s+(?:[^.;!?]{0,40}(?:,|\band)\s+(?:an?|the)\s+)?(?:[\w,’'-]+\s+){0,3}$"
)
_OPENING = re.compile(
    r"^\W*(?:In|On|At|After|Before|During|For|With|From|Since|Until|Despite|Through|As|By|When|While|Although|"
    r"Though|Because|If)\b[^.;!?]*,\s+(?:the|an?)\s+(?:[\w-]+\s+){0,2}$"
)
# He or she has acted, and "the man" after that is somebody else: "he saw the "
_ACTED = {
    who == "he": re.compile(rf"(?<!\bis )(?<!\bwas )\b{who}\b[^.;!?]*\bthe\s+(?:[\w-]+\s+)?$", re.IGNORECASE)
    for who in ("he", "she")
}


def another(text: str, start: int, end: int, male: bool) -> bool:
    """Whether the noun text[start:end], for a man or a woman, is not the person the pronouns speak of: all of them are
    of the other gender, or they have spoken of somebody before it in its sentence and say nothing after it, or somebody
    has acted before "the man": no name follows its pronoun within a sentence, but after an opening clause.

    >>> text = "The vet took his bag and left the girl."
    >>> another(text, 34, 38, male=False), another("The girl took her bag.", 4, 8, male=False)
    (True, False)
    """
    own, other = (MALE, FEMALE) if male else (FEMALE, MALE)
    if own.search(text) is None:
        return other.search(text) is not None
    begins = max([m.end() for m in _ENDED.finditer(text, 0, start)], default=0)
    before = text[begins:start]
    if own.search(before) is None:
        return False
    if own.search(text, end) is not None and not _ACTED[male].search(before):
        return False
    return not same(before)


def same(before: str) -> bool:
    """Whether what follows is said of the person spoken of already: "described him as a ", "In his address, the "."""
    return _SAME.search(before) is not None or _OPENING.search(before) is not None
