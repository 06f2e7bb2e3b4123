"""What stays in a text and still says the gender that its person had: "Ann Lee was named Businesswoman of the Year".

Such a text has no other version. A word that is plainly somebody else's says nothing: kin, partners, other names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evenhand.counterfactuals.given_names import known_names
from evenhand.counterfactuals.nouns import PARTNERS, RELATIVES, describes_subject, gendered_nouns, men_nouns, surname_of
from evenhand.counterfactuals.places import ENDED
from evenhand.counterfactuals.preview import Site
from evenhand.counterfactuals.texts import words_of

__all__ = ["keeps_gender"]

_NO_PERSON = ("idiom", "compound", "name", "quoted")  # why a noun stays that is not of somebody else
_RANKS = (
    r"(?:Duke|King|Prince|Earl|Count|Baron|Emperor|Marquess|Viscount|Sultan|Tsar)",
    r"(?:Duchess|Queen|Princess|Countess|Baroness|Empress|Marchioness|Viscountess|Sultana|Tsarina)",
)
_SAYS = r"(?:is|was|has|had|said|says|will|[a-z]{2,}ed|opened|gave|made|took|told|spoke|wore|came|left)"
_MEN, _WOMEN = (
    r"(?:(?!\w*wom[ae]n)\w*man|men|boy|gentleman|(?:grand)?father|dad|lad|guy|king|prince|lord|hero|god|monk|brother|son|uncle)",
    r"(?:\w*woman|women|\w*girl|lady|(?:grand)?mother|mum|mom|lass|queen|princess|duchess|heroine|goddess|nun|sister|daughter|aunt|"
    r"actress|shepherdess|huntress|enchantress|sorceress|priestess|temptress|seamstress|mistress|widow|maid|diva|witch|"
    r"countess|baroness|empress|hostess|heiress|waitress|poetess|songstress)",
)
_AWARD = r"\s+of\s+the\s+(?:Year|Month|Week|Decade|Century|Day|Match|Tournament|Season|Series|House)\b"
_PRIZE = r"\bBest\s+(?:Supporting\s+|Lead(?:ing)?\s+|New\s+|Young\s+)?"  # Best Actress
_CALLS = (
    r"\b(?:known(?:\s+[a-z]+ly)?\s+as|(?:is|was|be|been|often|him|himself|her|herself)\s+called|dubbed|nicknamed|titled|(?:proclaim|declar|crown|styl)(?:s|es|ed|ing)\s+(?:him|her)self(?:\s+as)?|(?:blog|writ|wrestl|perform|record|tweet|post|sing)(?:e?s|ing|ed)?\s+as|"
    r"wrote\s+as|sang\s+as|nickname(?:\s+(?:is|was|of))?)\s+[\"“‘']?\s?(?:[Tt]he\s+|an?\s+)?(?:[A-ZÀ-Þ][\w’'-]*\s+){0,4}"
)
_PLAYS = (  # plays for the men's team, a graduate of a women's college
    r"\b(?:play|compet|swim|swam|ran|row|captain|member|graduat|stud|attend|debut|enrol|educated|golfer|tennis|champion|race|"
    r"medal|goalkeeper|striker|forward|winger|defender|midfielder)[a-z]*\b[^.;!?]{0,60}\b"
)
_OF_ONE = (r"(?:men|boys)", r"(?:women|girls|ladies)")
_COACH = re.compile(
    r"\b(?:coach|manag|train|direct|promot|advocat|referee|umpire|cover|watch|report|sponsor|teach|taught)"
)
_SPORT = (  # the women's final, the women's national record; her record for women
    r"(?:championships?|finals?|semi-?finals?|titles?|races?|marathon|relay|doubles|singles|tournament|cup|league|record|"
    r"division|event|open|medal|tour|team|side|squad|national)\b"
)
_ON_A_LIST = (
    r"\b(?:record|title|best|champion|medal|fastest|winner|prize|ranked)\b[^.;!?]{0,40}\b(?:for|among|in)\s+(?:the\s+)?"
)
_OFFICE = (r"Lord\s+(?:Chief\s+)?Justice|King\s+Consort", r"Lady\s+(?:Chief\s+)?Justice|First\s+Lady|Queen\s+Consort")
_SON_OF = (r"(?:bin|ibn|ben)", r"(?:binti|bint|binte|bat)")  # Siti binti Ahmad
_HAN = "\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_OTHER_SCRIPT = f"\u0370-\u03ff\u0400-\u052f\u0590-\u06ff\u0900-\u0dff{_HAN}"
_NAME_ENDS = (r"(?!)", r"(?:Begum|Khatun|Bibi|Devi|Kaur)")
_AT_BIRTH = r"\b(?:born|raised)\s+(?:\w+\s+)?(?:the\s+|an?\s+)?(?:[\w-]+\s+)?\w+['’]s\s+(?:[a-z]+\s+)?"
_KNOWN_FOR = (
    r"Head\s+Boy|leading\s+man",
    r"Head\s+Girl|leading\s+lady|(?:dinner|lollipop|tea|cleaning)\s+lady|Mother\s+Superior|Dame\s+of\s+the\s+Order",
)
_POSES = re.compile(
    r"\b(?:disguis|dress|pos|masquerad|pass)(?:es|ed|ing)?\s+(?:(?:him|her)self\s+)?(?:off\s+)?as\s+an?\s+(?:wo)?man\b"
)
_KIN = re.compile(rf"\b(?:{'|'.join(sorted(RELATIVES | PARTNERS))})s?\b", re.IGNORECASE)
_IS_A = re.compile(  # "is a ", "'s a heck of a ", "d'Este is a "; "joined us as "
    r"(?:\b(?:is|was|became|remained|be|been|as|being)|['’]s)\s+(?:also\s+|still\s+)?(?:an?|the|our|one)\s+"
    r"(?:(?!(?:by|to|with|for|from|who|that|his|her|whose)\b)[\w’'-]+\s+){0,5}$"
)
_IN_OFFICE = re.compile(
    r"\b(?:as|named|appointed|elected|made|became|is|was)\s+(?:(?:the|our|its|their|new|first|interim|acting|deputy)\s+)*$"
)
_ORIGIN = (
    r"\b(?:an?|proud)\s+(?:\w+\s+)?(?:Latino|Chicano|Filipino)\b(?!\s+[a-z])",
    r"\b(?:Latina|Chicana|Filipina)\b",
)
_PAGEANT = re.compile(
    r"\b(?:w[oi]n|winn(?:er|ing)|crowned|named|former|reigning|is|was|became|as|title\s+of|represented)\s+(?:of\s+)?(?:the\s+)?"
    r"(?:\d{4}\s+)?(?:Miss|Mrs)\s+(?:[A-Z]\w+\s+)?([A-Z]\w+)"
)
_WEDDED = (r"(?:best\s+man|groomsman)", r"(?:maid|matron)\s+of\s+hono(?:u)?r")
_LIKE_ONE = r"\b(?:appearance|voice|body|face|figure|looks?|strength)\s+of\s+an?\s+(?:[a-z-]+\s+)?"
_OF_A_LINE = (
    r"(?:\s+[A-ZÀ-Þ][\w.’'-]*){0,3}?\s?,?\s+"
    r"(?:I{2,3}|IV|VI{0,3}|Jr|Sr|Junior|Senior(?!\s+[A-ZÀ-Þ]))(?![\w’'-])"
)


def keeps_gender(text: str, sites: Sequence[Site], subject: str | None, man: bool | None) -> bool:
    """Whether a word that stays says the gender of the person who changes.

    man: the gender that changes. subject: that person's given name.

    >>> keeps_gender("She was named Woman of the Year.", [], None, False)
    True
    >>> keeps_gender("She married the Man of the Year.", [], None, False)
    False
    """
    if man is None:
        return False
    own = _MEN if man else _WOMEN
    changed = [site for site in sites if not site.left]
    awarded = re.finditer(rf"(?<!\w){own}(?:{_AWARD})", text, re.IGNORECASE)
    prizes = re.finditer(rf"{_PRIZE}{'Actor' if man else 'Actress'}\b", text)
    named = re.finditer(rf"{_CALLS}(?:(?i:{own}))(?![\w])", text)
    like = re.finditer(rf"{_LIKE_ONE}{own}\b", text)
    if re.search(rf"{_PLAYS}{_OF_ONE[not man]}['’]s?\s", text, re.IGNORECASE) or _competes(text, man):
        return True
    if re.search(rf"\b(?:be|is|was|been|as|being)\s+(?:(?:the|his|her|their|a)\s+)?{_WEDDED[not man]}\b", text):
        return True
    if not man and any(m[1] in words_of("pageants") for m in _PAGEANT.finditer(text)):
        return True
    if not man and re.search(r"\bcrowned\s+(?:as\s+)?(?:the\s+)?(?:Miss|Mrs|Queen)\s+[A-Z]", text):
        return True
    if (
        _of_somebodys_kin(text, subject, man)
        or _POSES.search(text)
        or re.search(rf"\b(?:{_KNOWN_FOR[not man]})\b", text)
    ):
        return True
    if re.search(rf"{_AT_BIRTH}{('daughter', 'son')[man]}\b|\bbeing\s+an?\s+{('woman', 'man')[man]}\b", text):
        return True
    child = ("daughter", "son")[man]
    if re.search(
        rf"\b{('she', 'he')[man]}\b[^.;!?]*,\s+(?:the\s+)?(?:[a-z]+\s+)?{child}\s+of\s+(?:an?|the)\s",
        text,
        re.IGNORECASE,
    ):
        return True  # She grew up in York, the daughter of a keeper
    if re.search(_ORIGIN[not man], text) or any(_perhaps_said(text, site, man) for site in sites):
        return True
    if any(_opens_sentence(text, site, man) for site in sites if site.left in ("both genders", "somebody else")):
        return True
    for match in [*awarded, *prizes, *named, *like]:
        if not any(site.start == match.start() or site.end == match.end() for site in changed):
            return True
    return (
        _ranked(text, subject, man)
        or (subject is not None and _named_so(text, changed, subject, man))
        or any(_is_said(text, site, subject, man) for site in sites if site.left in _NO_PERSON)
        or any(_spoken_of_again(text, site, man) for site in sites if site.left == "somebody else")
        or _compatriot(text, subject, man)
    )


def _competes(text: str, man: bool) -> bool:
    """She won the women's final; holds the record for women. Who coaches the women's team may be anybody."""
    own = _OF_ONE[not man]
    if re.search(
        rf"\b(?:gold|silver|bronze|medal|w[oi]n|champion)\b[^.;!?]{{0,40}}\b{own}['’]s?\s", text, re.IGNORECASE
    ):
        return True
    listed = re.search(rf"{_ON_A_LIST}{own}\b(?!['’])", text, re.IGNORECASE)
    won = re.finditer(rf"\b{own}['’]s?\s+(?:[\w-]+\s+){{0,3}}?{_SPORT}", text, re.IGNORECASE)
    return listed is not None or any(_COACH.search(re.split(r"[.;!?]", text[: m.start()])[-1]) is None for m in won)


def _ranked(text: str, subject: str | None, man: bool) -> bool:
    """The Duchess of Kendal said; Ann Lee, Duchess of Kendal."""
    rank = _RANKS[not man]
    if re.search(rf"\b(?:an?|the|former|as|was|is|became)\s+(?:former\s+)?(?:{_OFFICE[not man]})\b", text):
        return True
    if re.search(
        rf"\b(?:as|is|was|became|made|created|titled?)\s+(?:the\s+)?(?:[\w-]+\s+)?{rank}\s+(?:of\s+)?[A-ZÀ-Þ]", text
    ):
        return True  # as the fourth Baron Kilbride
    if (
        re.search(
            rf"{ENDED}(?:[Tt]he\s+)?(?:\d+(?:st|nd|rd|th)\s+)?{rank}(?:\s+of\s+[A-ZÀ-Þ][\w’'-]+)?\s+{_SAYS}\b", text
        )
        is not None
    ):
        return True
    beside = rf"(?<!\w){re.escape(subject or '')}(?:\s+[A-ZÀ-Þ][\w’'.-]*)*\s?,\s+(?:\w+\s+)?(?:the\s+)?{rank}\b"
    return subject is not None and re.search(beside, text) is not None


def _named_so(text: str, changed: Sequence[Site], subject: str, man: bool) -> bool:
    """Thomas Lee III; Housewife Ann Lee."""
    name = re.escape(subject)
    if man and re.search(rf"(?<!\w){name}{_OF_A_LINE}", text) is not None:
        return True
    middle = re.search(rf"(?<!\w){name}\s+([A-ZÀ-Þ][\w’-]+)\s+(?:\([^)]*\)\s+)?[A-ZÀ-Þ]\w", text)
    own = known_names()[not man]
    if middle is not None and middle[1] in own and not any(site.start == middle.start(1) for site in changed):
        return True  # John Augustus Lee
    if re.search(rf"(?<!\w){name}(?:\s+[A-ZÀ-Þ][\w’'-]*)*\s+{_SON_OF[not man]}\s+[A-ZÀ-Þ]", text):
        return True
    if re.search(rf"(?<!\w){name}(?:\s+[A-ZÀ-Þ][\w’'-]*)*\s+{_NAME_ENDS[not man]}\b", text):
        return True
    if re.search(rf"(?<!\w){name}(?:\s+[A-ZÀ-Þ][\w’'-]*)*\s?\([^)]*[{_OTHER_SCRIPT}]", text):
        return True  # Cui Daiyuan (崔岱远): whose surname may come first, and who is written once more
    again = re.search(rf"(?<!\w){name}(?:\s+[A-ZÀ-Þ][\w’'-]*)*\s?\(([^)]*)\)", text)
    if again is not None and re.search(rf"\b{name}\b", again[1]) and re.search(r"[^\x00-\u024f]", again[1]):
        return True  # written once more in another script
    roles = [re.search(r"([\w-]+)\s+$", text[: site.start]) for site in changed if site.said == subject]
    return any(role is not None and role[1].lower() in words_of("gendered_words") for role in roles)


def _is_said(text: str, site: Site, subject: str | None, man: bool) -> bool:
    """Whether a noun that stays as it is no person's is said of the subject all the same: "is a gentleman farmer"."""
    word = site.kind[1]
    if word not in gendered_nouns() or (word in men_nouns()) != man or word == "bachelor":
        return False
    if re.match(r"['’]s", text[site.end : site.end + 2]):
        return False  # a woman's-rights lawyer
    before = text[max(0, site.start - 120) : site.start]
    beside = rf"(?<!\w){re.escape(subject or '')}(?:\s+[A-ZÀ-Þ][\w’'.-]*){{0,3}}(?:\s?\([^)]*\))?\s?,\s[^.;]{{0,60}}$"
    if subject is not None and site.said[0].isupper() and re.search(beside, before):
        return (
            re.match(r"\s+[A-ZÀ-Þ]|['’]", text[site.end : site.end + 4]) is None
        )  # Ann Lee, a nurse and Chairwoman of
    return describes_subject(word, before, subject, man, surname_of(text, subject))


def _perhaps_said(text: str, site: Site, man: bool) -> bool:
    """She joined us as Headmistress; he is a heck of a guy; whose kin that is says the sentence."""
    word = site.kind[1]
    if word not in gendered_nouns() or (word in men_nouns()) != man or word in RELATIVES | PARTNERS:
        return False
    before = re.split(r"[.;!?]\s", text[max(0, site.start - 120) : site.start])[-1]
    if site.left == "name":
        return _IN_OFFICE.search(before) is not None and re.match(r"\s+[A-ZÀ-Þ]", text[site.end :]) is None
    return site.left == "somebody else" and _IS_A.search(before) is not None and _KIN.search(before) is None


def _of_somebodys_kin(text: str, subject: str | None, man: bool) -> bool:
    """Mrs. Patel's son has passed his test."""
    kin = "son|brother|nephew|grandson|father|uncle" if man else "daughter|sister|niece|granddaughter|mother|aunt"
    said = r"\b(?:he|his|him)\b" if man else r"\b(?:she|her)\b"
    theirs = re.finditer(rf"(\w+)['’]s\s+(?:[a-z-]+\s+)?(?:{kin})\s+[a-z]+(?:s|ed)\b[^.;!?]*{said}", text)
    return any(match[1] != subject for match in theirs)


def _opens_sentence(text: str, site: Site, man: bool) -> bool:
    """The bride wore her veil, and the groom wore a kilt."""
    word = site.kind[1]
    if word not in gendered_nouns() or (word in men_nouns()) != man or word in RELATIVES | PARTNERS:
        return False
    begins = rf"{ENDED}(?:(?:The|An?)|[A-ZÀ-Þ][\w’'-]+\s?,\s+(?:the|an?))\s+(?:[a-z-]+\s+){{0,2}}$"
    return re.search(begins, text[: site.start]) is not None


def _spoken_of_again(text: str, site: Site, man: bool) -> bool:
    """A sailor cut his hand; they take the injured man's place."""
    word = site.kind[1]
    if word not in ("man", "woman", "boy", "girl", "gentleman", "lady") or (word in men_nouns()) != man:
        return False
    before, after = text[max(0, site.start - 40) : site.start], text[site.end : site.end + 20]
    return (
        re.search(r"\b(?:the|that|this)\s+(?:[a-z-]+(?:ed|en|ing|less|old|young|poor)\s+)?$", before) is not None
        and re.match(r"\s+(?:who|whom|that|in|of|with|from|behind|on|at|he|she|next|[A-ZÀ-Þ\[])", after) is None
    )


def _compatriot(text: str, subject: str | None, man: bool) -> bool:
    """A proud Yorkshirewoman."""
    noun = "man" if man else "woman"
    for match in re.finditer(rf"(?<![\w’'-])[A-Z][a-z]{{2,}}{noun}(?!\w|\s+[A-ZÀ-Þ])", text):
        before = text[max(0, match.start() - 120) : match.start()]
        if describes_subject(noun, before, subject, man, surname_of(text, subject)):
            return True
    return False
