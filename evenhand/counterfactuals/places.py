"""Names that are no person's where they stand: places, organisations, saints, rulers, shops, works, surnames."""

from __future__ import annotations

import re

from evenhand.counterfactuals.given_names import known_names
from evenhand.counterfactuals.texts import words_of

__all__ = ["STARTS", "part_of_a_place", "surname_follows"]

_ROLES = (
    r"(?:Dr|Prof|Professor|Doctor|Rev|Reverend|Pastor|Rabbi|Imam|Bishop|Nurse|Coach|Chef|Officer|Detective|Sergeant|Captain|Judge|"
    r"Justice|Senator|Sen|Governor|Gov|Mayor|Councillor|Congressman|Congresswoman|Representative|Rep|President|Principal|Dean|"
    r"Ambassador|Minister|Chancellor|Colonel|Major|Lieutenant|Corporal|Admiral)"
)
_LEARNED = "|Dr|Prof|Professor|Judge|Justice|Senator|Congressman|Lieutenant|Sergeant|Colonel"  # a surname: Dr. Roy
_TITLE = rf"(?:(?:{_ROLES}|Mr|Mrs|Ms|Miss|Sir|Dame|Lord|Lady|Sister|Brother)\.?\s+)"
_WHEN = r"(?:(?:When|While|After|Before|Since|Because|If|Although|Though|Once|As|Today|Yesterday|Then|But|And|So)\s+)?"
_ENDED = r"(?:^\s*|[\w\])”\"’'%]{2}\s?[.!?]\s+|\n\s*)"  # where a sentence begins; not after an initial
STARTS = re.compile(
    rf"{_ENDED}(?<!\bDr\. )(?<!\bMr\. )(?<!\bMs\. )(?<!\bRev\. )(?<!\bMrs\. )(?<!\bProf\. )[\"“‘(]?"
    rf"{_WHEN}{_TITLE}{{0,2}}$"
)
_REGION = re.compile(r",\s+(?:[A-Z]{2}\b|(?:New|North|South|West)\s+[A-Z]|([A-Z][\w.]*\w))")
_SURNAMES = frozenset(
    ["park", "hall", "church", "temple", "lane", "house", "lake", "banks", "day", "press", "post", "bridge"]
)


def part_of_a_place(text: str, start: int, end: int) -> bool:
    """Whether the name is part of the name of a place, an organisation, a saint or another name: San Diego, Johns
    Hopkins, Elton John, Mr Thomas, Anna-Maria."""
    before, after = text[max(0, start - 40) : start], text[end : end + 60]
    if re.search(r"[\w’'][-‐‑]$|\b[A-ZÀ-Þ]\w*\s[-‐‑]\s$|\b[A-ZÀ-Þ]['’]$", before) or re.match(
        r"[-‐‑]\w|\s[-‐‑]\s[A-ZÀ-Þ]", after
    ):
        return True
    if re.search(r"[\"“]\s?$", before) and not STARTS.search(before):
        return True  # a work, or what somebody says: the song "Natalie"
    if re.search(r"\b[A-ZÀ-Þ][\w’'-]+\s+(?:[A-Z]\.\s+)+$", before) and not surname_follows(after):
        return True  # Jerome K. Jerome
    leading = re.search(r"([\w’'.]+)\s+$", before)
    if leading is not None:
        word = leading[1]
        of_a_town = word not in ("to", "of", "from") or text[start:end] in words_of("names_and_towns")
        if (word.lower() in words_of("before_places") and of_a_town) or (
            re.fullmatch(rf"(?:Mr|Mrs|Ms|Miss{_LEARNED if text[start:end] in known_names()[0] else ''})\.?", word)
            and not surname_follows(after)
        ):
            return True
        titled = re.fullmatch(rf"(?:{_ROLES}|Mr|Mrs|Ms|Miss)\.?", word)
        begins = re.search(r"(?:^|[.!?:;]\s+|\n)[\w’'.]+\s+$", before)
        if word[:1].isupper() and titled is None and begins is None and not word.endswith((".", "!", "?", ":")):
            return True  # a surname, or a second name
    region = _REGION.match(after)
    if region is not None and (region[1] is None or region[1] in words_of("regions")):
        return True  # Elizabeth, New Jersey
    following = re.split(r"[,;:!?\n(]|\.\s", re.sub(r"^\s?['’]\s?s?(?=\s)", "", after), maxsplit=1)[
        0
    ]  # Martha's Vineyard
    words = re.findall(r"[\w&’'.-]+", following)[:5]
    capital = []
    for word in words:
        if not (word[:1].isupper() or word == "&"):
            break
        capital.append(word.lower().rstrip("’'."))
    if len(capital) == 1 and capital[0] in _SURNAMES and STARTS.search(before):
        return False  # Susan Park is a nurse
    return any(word in words_of("after_places") for word in capital)


def surname_follows(after: str) -> bool:
    return re.match(r"\s+(?:[A-Z]\.\s+)?[A-ZÀ-Þ][\w’'-]+", after) is not None
