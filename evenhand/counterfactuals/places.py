"""Names that are no person's where they stand: places, organisations, saints, rulers, shops, works, surnames."""

from __future__ import annotations

import re

from evenhand.counterfactuals.given_names import known_names
from evenhand.counterfactuals.people import listed_people, names_people
from evenhand.counterfactuals.texts import word_list, words_of

__all__ = ["ENDED", "ROLES", "STARTS", "TITLE", "part_of_a_place", "role_before", "surname_follows"]

ROLES = (
    r"(?:Dr|Prof|Professor|Doctor|Rev|Reverend|Pastor|Rabbi|Imam|Bishop|Nurse|Coach|Chef|Officer|Detective|Sergeant|Captain|Judge|"
    r"Justice|Senator|Sen|Governor|Gov|Mayor|Councillor|Congressman|Congresswoman|Representative|Rep|President|Principal|Dean|"
    r"Ambassador|Minister|Chancellor|Colonel|Major|Lieutenant|Corporal|Admiral|Sgt|Capt|Lt|Col|Cpl|Councilman|Councilwoman|Alderman|"
    r"Abbot|Cantor|Deacon|Elder|Superintendent|Inspector|Constable|Sheriff|Commander|Marshal|Trooper|Archbishop|Cardinal|"
    r"Canon|Vicar|Fr|Hon|Monsignor|Msgr|Brigadier|Brig|General|Gen|Maj|Adm|Chief|Provost|Rector|Speaker|Cllr|Maestro|"
    r"Commissioner|Father|Mother|Attorney|Guru|Sheikh)"
)
_LEARNED = "|Dr|Prof|Professor|Judge|Justice|Senator|Congressman|Lieutenant|Sergeant|Colonel"  # a surname: Dr. Roy
TITLE = rf"(?:(?:{ROLES}|Mr|Mrs|Ms|Miss|Sir|Dame|Lord|Lady|Sister|Brother)\.?\s+)"
_WHEN = (
    r"(?:(?:When|While|After|Before|Since|Because|If|Although|Though|Once|As|Today|Yesterday|Then|But|And|So|These\s+days|"
    r"The\s+late|The(?=\s+Hon))\s+)?"
)
ENDED = r"(?:^\s*|[\w\])”\"’'%]{2}\s?[.!?][\"”]?\s+|\n\s*)"  # where a sentence begins; not after an initial
STARTS = re.compile(
    rf"{ENDED}(?<!\bDr\. )(?<!\bMr\. )(?<!\bMs\. )(?<!\bRev\. )(?<!\bMrs\. )(?<!\bProf\. )[\"“‘(]?"
    rf"{_WHEN}{TITLE}{{0,3}}$"
)
_OPENS = re.compile(rf"{ENDED}((?:[\w\[\]’'-]+,?\s+){{1,7}})$")
_RULER = re.compile(r"\s+(?:II|III|IV|VI{0,3}|IX|XI{0,3}|XI?V|XVI{0,3}|I(?=,|\s+of\b))(?![\w.])")  # Henry VIII
_SHOP = (  # the owner of Tiffany's, dinner at Maria's; a friend of Maria's
    re.compile(
        r"\b(?:at|to|near|opened|owns|runs|founded|joined|called|named|(?:owner|founder|manager|chef|director|regular)s?\s+(?:of|at))\s+$"
    ),
    re.compile(r"['’]s\s*(?:[,.;:()!?]|$|(?:and|where|which|since|for|until|in|on)\b)"),
    re.compile(  # Maria's is the best place; Maria's sells pies
        r"['’]s\s+(?:is|was|has|had|are|were|will|would|can|could|does|did|opened|closed|opens|closes|serves|sells|brings|"
        r"offers|makes|gives|needs|tastes|costs)\b"
    ),
    re.compile(  # Johnny Rolls is closed on Mondays
        r"(?:\s+[A-ZÀ-Þ][\w’'-]*)?\s+(?:is|was)\s+(?:now\s+|only\s+)?"
        r"(?:closed\b|open\s+(?:on|until|till|from|daily|every|again|late|[A-Z]\w+days?)\b)"
    ),
)
_IS = re.compile(
    r"(?:\s+[A-ZÀ-Þ][\w’'-]*){0,2}\s+(?:is|was|are)\s+(?:an?|the|one\s+of\s+(?:the|his|her))\s+((?:(?!who\b)[\w’'-]+\s+){0,5}?[\w’'-]+)"
    r"(?=\s?[.,;]|\s+(?:by|of|from|that|which|released|written|directed|starring|published|made|to|about|in|at|on|for)\b)"
)
_REGION = re.compile(r",\s+(?:[A-Z]{2}\b|(?:New|North|South|West)\s+[A-Z]|([A-Z][\w.]*\w))")
_TOWN_BEFORE = re.compile(r"\b(?:in|of|from|near|to|at)\s+(?:[A-ZÀ-Þ][\w.’'-]*\s+){0,2}[A-ZÀ-Þ][\w.’'-]*,\s+$")
_SURNAMES = frozenset(
    ["park", "hall", "church", "temple", "lane", "house", "lake", "banks", "day", "press", "post", "bridge"]
    + ["washington", "mason", "hopkins", "springs", "hills"]
)


def part_of_a_place(text: str, start: int, end: int) -> bool:
    """Whether the name is part of the name of a place, an organisation, a saint or another name: San Diego, Johns
    Hopkins, Elton John, Mr Thomas, Anna-Maria."""
    before, after = text[max(0, start - 40) : start], text[end : end + 80]
    if re.search(r"\w\s['’]\s?$", before) and re.match(r"\w|\s+(?![^'’]*['’])", after):
        return True  # Mihr 'Ali
    if re.search(r"[\w’'][-‐‑]$|\b[A-ZÀ-Þ]\w*\s[-‐‑]\s$|\b[A-ZÀ-Þ]['’]$", before) or re.match(
        r"[-‐‑]\w|\s[-‐‑]\s[A-ZÀ-Þ]", after
    ):
        return True
    if re.search(r"[\"“]\s?$", before) and not STARTS.search(before):
        return True  # a work, or what somebody says: the song "Natalie"
    if re.search(r"\b[A-ZÀ-Þ][\w’'-]+\s+(?:[A-Z]\.\s+)+$", before) and not surname_follows(after):
        return True  # Jerome K. Jerome
    if (
        _RULER.match(after)
        or _SHOP[2].match(after)
        or _SHOP[3].match(after)
        or (_SHOP[0].search(before) and _SHOP[1].match(after))
    ):
        return True
    if _is_a_work(after) or _in_fiction(text[start:end], after):
        return True
    if text[start:end] == "Lance" and re.match(r"\s+(?:Corporal|Cpl|Sergeant|Bombardier)\b", after):
        return True
    if text[start:end] in words_of("regions") | words_of("names_and_towns") and _TOWN_BEFORE.search(before):
        return True  # from Savannah, Georgia
    leading = re.search(r"([\w’'.]+)\s+$", before)
    if leading is not None and re.search(r"['’](?:m|re|ve|ll|d)$", leading[1]) is None:  # I'm Beth
        word = leading[1]
        of_a_town = word not in ("to", "of", "from") or text[start:end] in words_of("names_and_towns")
        if (word.lower() in words_of("before_places") and of_a_town) or (
            re.fullmatch(rf"(?:Mr|Mrs|Ms{_LEARNED if text[start:end] in known_names()[0] else ''})\.?", word)
            and not surname_follows(after)
        ):
            return True
        titled = re.fullmatch(TITLE, f"{word} ") or listed_people(word)
        if word in ("Uncle", "Aunt", "Auntie", "Cousin", "Grandpa", "Grandma"):
            return True  # somebody's, or a firm: Uncle Ben's
        begins = re.search(r"(?:^|[.!?:;]\s+|\n)[\w’'.]+\s+$", before)
        if word[:1].isupper() and not titled and begins is None and not word.endswith((".", "!", "?", ":")):
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
        capital.append(re.sub("['’]s$", "", word.lower()).rstrip("’'."))
    if len(capital) == 1 and capital[0] in _SURNAMES and STARTS.search(before):
        return False  # Susan Park is a nurse
    return any(word in words_of("after_places") for word in capital)


def role_before(before: str) -> bool:
    """Whether a sentence begins with what somebody is: "Poet and translator ", "The former police officer "."""
    words = [] if (said := _OPENS.search(before)) is None else re.findall(r"[\w\[\]’'-]+", said[1])
    gendered = bool(words) and words[-1].lower() in words_of("gendered_nouns") | words_of("gendered_words")
    if not words or not (gendered or words[-1].startswith("[") or names_people(words[-1])):
        return False
    others = {word.lower() for word in words} - {"and", "the", "a", "an"}
    return others.isdisjoint(words_of("not_after_possessive") | words_of("verbs"))


def _in_fiction(name: str, after: str) -> bool:
    """Mary Poppins."""
    surname = re.match(r"\s+([A-ZÀ-Þ][\w-]*)", after)
    return surname is not None and f"{name} {surname[1]}" in word_list("fictional_names")


def _is_a_work(after: str) -> bool:
    """ " Caymmi is the debut album by", " Yum is one of the easiest soups": what bears the name is no person."""
    said = _IS.match(after)
    if said is None:
        return False
    words = re.findall(r"[\w’'-]+", said[1])
    last = words[-1].lower()
    return not {last, last.removesuffix("s")}.isdisjoint(words_of("works"))


def surname_follows(after: str) -> bool:
    """ " Lee", " B. Lee", ' "Big Cat" Lee', " de Rooy"."""
    between = (
        r"(?:[A-Z]\.\s+|[\"“][^\"”]{2,25}[\"”]\s+|(?:van|von|de|der|den|del|da|di|la|le|al|el|bin|ter|ten)\s+){0,2}"
    )
    return re.match(rf"\s+{between}[A-ZÀ-Þ][\w’'-]+", after) is not None
