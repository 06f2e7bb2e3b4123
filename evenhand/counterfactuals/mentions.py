"""Who is mentioned in a text, and whether a pronoun may be theirs: names, and nouns for one person.

English rules and short lists, no parser. A name is said to be a person's rather too often than too seldom, as a text in
which the rules cannot tell whose a pronoun is has no version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from evenhand.counterfactuals.given_names import known_names, vague_name, vague_names
from evenhand.counterfactuals.nouns import gendered_nouns, men_nouns
from evenhand.counterfactuals.people import identity_word, listed_people, names_people
from evenhand.counterfactuals.places import ROLES, part_of_a_place
from evenhand.counterfactuals.texts import words_of

__all__ = ["Mention", "mentions", "says_what", "sentences"]

_CAPITAL = r"[A-ZÀ-Þ](?:[\w’'-]*[\wà-ÿ])"
_PARTICLE = r"(?:van|von|de|der|den|del|della|di|da|dos|la|le|al|el|bin|ibn|ben|ter|ten|zu|af|Ó|Ní)"
_RUN = re.compile(
    rf"(?<![\w’'])(?<![\w’'][-/]){_CAPITAL}"
    rf"(?:\s+(?:[A-ZÀ-Þ]\.\s*|{_PARTICLE}\s+|[\"“‘(]\s?[^\"”)’]{{2,20}}\s?[\"”’)]\s+(?=[A-ZÀ-Þ]))*{_CAPITAL})*"
)
_TITLE = re.compile(
    r"\b(?:(?P<man>Mr|Sir|Lord|Father|Brother|Prince|King|Uncle|Dad|Papa|Grandpa)|(?P<woman>Mrs|Ms|Miss|Dame|Lady|Sister|Mother|Princess|Queen|Aunt|Mum|Mom|Mama|Grandma))"
    r"\.?\s+$"
)
_ROLE = re.compile(rf"{ROLES}\.?")
_SENTENCE = re.compile(
    r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\bSt)(?<!\bJr)(?<!\b[A-Z])\s?[.!?][\"”]?\s+(?=[A-ZÀ-Þ\"“\[])|\n"
)
_DETERMINER = r"(?:the|an?|one|another|this|that|each|every|any|his|her|their|its|my|our|\w+\s?['’]\s?s)"
_NOUN = re.compile(r"\[\w+\]|(?<![\w’'-])[a-z]{3,}(?:-in-law)?(?![\w’'-])")
_ONE = re.compile(rf"\b{_DETERMINER}\s+(?:(?!{_DETERMINER}\s)[\w’'-]+\s+){{0,4}}$", re.IGNORECASE)
_COMPATRIOT = re.compile(
    r"\b(?:[Tt]he|[Aa]n?|[Ff]ellow)\s+([A-Z][a-z]+(?:wo)?man)\b(?!\s+(?:[A-Z]|\[))"
)  # the Frenchman
_SEVERAL = frozenset(
    ["family", "team", "group", "class", "staff", "public", "couple", "crew", "crowd", "audience", "band", "youth"]
)
_NO_NAME = frozenset(
    ["the", "a", "an", "he", "she", "it", "they", "we", "i", "this", "that", "these", "those", "there", "here", "who"]
    + ["his", "her", "their", "its", "my", "our", "your", "in", "on", "at", "after", "before", "since", "when", "while"]
    + ["as", "for", "from", "with", "by", "to", "of", "and", "but", "or", "if", "although", "though", "because", "both"]
    + ["now", "then", "today", "one", "two", "three", "some", "many", "most", "all", "each", "every", "no", "not", "so"]
    + ["what", "where", "which", "how", "why", "yes", "once", "originally", "currently", "previously", "formerly"]
    + [
        "however",
        "during",
        "until",
        "despite",
        "through",
        "following",
        "under",
        "upon",
        "during",
        "also",
        "even",
        "only",
    ]
    + ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "god", "christmas"]
    + ["mr", "mrs", "ms", "miss", "sir", "dame", "lord", "lady", "dr", "st", "saint", "jr", "sr", "ii", "iii", "iv"]
    + ["section", "university", "world", "north", "south", "east", "west", "new", "television", "him", "himself"]
    + ["herself", "hers", "united", "war", "games", "national", "international", "research", "ceo"]
    + ["state", "states", "cup", "series", "city", "part", "like", "according", "police"]
    + ["bsc", "msc", "phd", "dphil", "mphil", "bphil", "bed", "med", "llb", "llm", "edd", "bba", "mba", "bfa", "mfa"]
    + ["beng", "meng", "btech", "dsc", "psyd", "pharmd", "thd", "jd", "md"]
)
_BODIES = frozenset(
    [
        "regiment",
        "assembly",
        "honours",
        "order",
        "museums",
        "exhibition",
        "force",
        "forces",
        "wars",
        "treaty",
        "network",
    ]
    + [
        "forum",
        "army",
        "navy",
        "corps",
        "prix",
        "parliament",
        "ministry",
        "brigade",
        "division",
        "battalion",
        "squadron",
    ]
    + ["opposition", "government", "revolution", "empire", "kingdom", "republic", "season", "age", "siege"]
    + ["chambers", "bench"]
)
_MONTHS = frozenset(
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"]
    + ["december"]
)
_ORIGINS = frozenset(
    ["dutch", "greek", "czech", "irish", "swiss", "welsh", "thai", "iraqi", "finn", "dane", "turk", "arab", "jew"]
)
_ORIGIN = re.compile(r"(?:ish|ese|ian|ean|[a-z]yan|rican|istani|aeli|ench|reek|elsh|wiss|zech)$")
_ACTS_SURELY = re.compile(
    r"\s?['’]\s?s?\b|['’]\s|\s+(?:(?:[a-z]+ly|also|then|never|later|now|once|soon|still)\s+)?"
    r"(?:[a-z]{2,}(?:s|ed)|[a-z]{3,}ing|lost|won|left|took|made|had|has|is|was|said|wrote|went|came|gave|met|began|became|told|"
    r"got|saw|knew|thought|felt|held|kept|led|ran|sang|spoke|taught|built|fell|found|put|set|sent|who|whose|whom)\b"
)
_ACTS = re.compile(rf"{_ACTS_SURELY.pattern}|\s+and\b|\s+\(|\s?,")
_IN = re.compile(
    r"\b(?:[Ii]n|[Aa]t|[Nn]ear|to|[Ff]rom|of|[Tt]he|into|across|around|[Oo]n|over|via|per|an?|(?:play|work|rid|driv)(?:e?s|e?d|ing)?\s+for)"
    r"\s+(?:[a-z]+\s+)?$"
)
_LISTED = re.compile(  # "from Iraq, Syria and ", "at St John's College, "; what stands there is a place, too
    r"\b(?:in|at|near|from|across|around)\s+(?:[A-ZÀ-Þ][\w’'.-]*(?:\s+(?=[A-ZÀ-Þ]))?)+"
    r"(?:(?:\s?,\s+|\s+and\s+)(?:[A-ZÀ-Þ][\w’'-]*(?:\s+(?=[A-ZÀ-Þ]))?)+)*\s?(?:,\s+|\s+and\s+|,\s+and\s+)$"
)
_ONE_FROM = re.compile(r"\b(?:an?|and|proud)\s+(?:[a-z]+\s+)?$")
_WITHIN = re.compile(r"\b(?:in|near|into|across)\s+$")
_SOMEBODY = re.compile(  # "Ann Lee (1859-1927)", "Ann Lee, a singer", "Ann Lee was the singer"
    r"\s?\(\s?(?:born|b\.|c\.|d\.|\d{1,2}\s[A-Z]|[A-Z][a-z]+\s\d{1,2}|\d{4}\s?[-–])|"
    r"\s?(?:,|is|was|became)\s+(?:an?|the)\s+(?:[\w-]+\s+){0,5}(?:\[|\w+er\b|\w+[oi]st\b|\w+ian\b)|\s?,\s+who\b"
)


@dataclass(frozen=True)
class Mention:
    """Somebody in a text: text[start:end] is a name or a noun. man: the gender that it says, None if none. given: it is
    or has a given name. acts: something is said of what they do or have; a name alone may otherwise be a place's."""

    start: int
    end: int
    said: str
    man: bool | None
    noun: bool = False
    given: bool = False
    acts: bool = True


@cache
def _sexes() -> tuple[frozenset[str], frozenset[str]]:
    """The given names of men and of women, also those that are other words too."""
    (men, women), (more_men, more_women) = known_names(), vague_names()
    return men | more_men, women | more_women


def sentences(text: str) -> list[tuple[int, int]]:
    """Where each sentence begins and ends.

    >>> sentences("Mr. Lee left. She won.")
    [(0, 14), (14, 22)]
    """
    stops = [0, *(match.end() for match in _SENTENCE.finditer(text)), len(text)]
    return [(start, end) for start, end in pairwise(stops) if start < end]


def mentions(text: str) -> list[Mention]:
    """Everybody a text mentions, by a name or a noun for one person, in their order.

    >>> [(who.said, who.man) for who in mentions("The nurse Ann Lee met Roy in Rome.")]
    [('nurse', None), ('Ann Lee', False), ('Roy', True)]
    """
    return sorted([*_names(text), *_nouns(text)], key=lambda who: who.start)


def _nouns(text: str) -> Iterator[Mention]:
    for match in _COMPATRIOT.finditer(text):
        yield Mention(match.start(), match.end(), match[1], not match[1].endswith("woman"), noun=True)
    for match in _NOUN.finditer(text):
        noun = match[0].removesuffix("-in-law")
        masked = noun.startswith("[")
        if not (masked or noun in gendered_nouns() or names_people(noun)) or noun in _SEVERAL:
            continue
        begin = max(0, match.start() - 60)
        one = _ONE.search(text[begin : match.start()])
        if not masked and (one is None or re.search(r"[^s]s$", noun)):
            continue
        head = re.match(r"\s+(\[?[a-z]+)", text[match.end() : match.end() + 30])
        if head is not None and (head[1].startswith("[") or names_people(head[1])):
            continue  # a senior judge
        start = match.start() if one is None else begin + one.start()
        man = noun in men_nouns() if noun in gendered_nouns() else None
        yield Mention(start, match.end(), noun, man, noun=True)


def _names(text: str) -> Iterator[Mention]:
    opens = {start for start, _ in sentences(text)}
    quoted = [m.span() for m in re.finditer(r"[\"“][^\"“”]*[\"”]", text) if len(m[0]) < 100]  # works
    for match in _RUN.finditer(text):
        start, end = match.start(), match.start() + len(re.sub(r"['’]s?$", "", match[0]))
        words = [(m.start() + start, re.sub(r"['’]s?$", "", m[0])) for m in re.finditer(r"[^\W\d_][\w’'.-]*", match[0])]
        owned = re.match(r"[\w-]+['’]s\s", match[0]) is not None  # King's Bench Chambers
        title = _TITLE.search(text[max(0, start - 14) : start])
        while words and says_what(words[0][1], last=len(words) == 1):
            title = title or (None if owned else _TITLE.search(f"{words[0][1]} "))
            words = words[1:]
        known = next((i for i, (_, word) in enumerate(words[:-1]) if word in _given()), 0)
        if known > 0 and words[known - 1][1].lower() in ("san", "santa", "st", "saint", "são"):
            continue  # San Jose State
        second = known > 0 and words[0][1] not in words_of("regions")  # Sukrita Paul Lee; not Wisconsin James Lee
        words = words[known:]
        if not words or any(begin < start and end < stop for begin, stop in quoted):
            continue
        start, names = words[0][0], [word for _, word in words]
        man = title["man"] is not None if title is not None else None if second else _gender(names[0])
        before, after = text[max(0, start - 30) : start], text[end : end + 60]
        alone = len(names) == 1
        stripped = match.start() < start
        acts = (_ACTS_SURELY if alone else _ACTS).match(after) is not None
        role = re.search(r"([\w\]]+)\s?,?\s+$", before)
        of_a_role = role is not None and (role[1].endswith("]") or (role[1].islower() and names_people(role[1])))
        is_somebody = of_a_role or title is not None or _SOMEBODY.match(after) is not None
        if owned and not is_somebody and not any(word in _given() or names_people(word) for word in names[1:]):
            continue  # Charlotte's Web
        if man is None and role is not None and role[1] in gendered_nouns():
            man = role[1] in men_nouns()  # her husband, Ole
        if names[0] in _given():
            if alone and vague_name(names[0]) and not acts and not is_somebody:
                continue
            if known or is_somebody or not part_of_a_place(text, start, start + len(names[0])):
                yield Mention(start, end, " ".join(names), man, given=True, acts=acts)
                continue
        if alone and not acts and title is None and (stripped or names[0].isupper()):
            continue  # the Marine Corps, CPA
        if alone and names[0].isupper() and len(names[0]) < 6:
            continue
        if alone and not is_somebody and re.search(r"\bthe\s+$", before):
            continue  # the Guardian
        things = words_of("after_places") | words_of("things") | _BODIES
        if not is_somebody and (
            {name.lower().rstrip(".") for name in names} & things or names[0] in words_of("regions")
        ):
            continue
        if not (is_somebody or acts) and (_IN.search(before) or start in opens):
            continue
        of_a_thing = re.match(r"\s+[a-z0-9\[]|-| - ", after) is not None and not _stops(after)
        if alone and not acts and title is None and of_a_thing and not re.search(r"[a-z](?:ed|s)\s+$", before):
            continue  # his Nissan car
        if not is_somebody and _IN.search(before) and not (_ACTS_SURELY.match(after) or (alone and acts)):
            continue
        if alone and not is_somebody and _placed(text, start, end):
            continue  # The airport in Sucre was renamed
        if alone and not acts and _ORIGIN.search(names[0].lower()) and _ONE_FROM.search(before):
            continue  # a proud Kenyan
        apart = (
            re.search(r",\s+$", before) is not None and re.match(r"\s+[a-z]", after) is not None
        )  # In May, Zorro Lee
        given = not alone and (is_somebody or apart or (acts and not _IN.search(before)))
        yield Mention(start, end, " ".join(names), man, given=given, acts=acts)


def _placed(text: str, start: int, end: int) -> bool:
    """Whether a name is that of a place: in it, or one of those after at or from."""
    before = text[max(0, start - 120) : start]
    return _LISTED.search(before) is not None or (
        _WITHIN.search(before) is not None and text[end : end + 1] not in ("'", "’")
    )


def _stops(after: str) -> bool:
    """Whether a small word follows that is no noun: "Lloyd as his", "Carmody on"."""
    word = re.match(r"\s+([a-z]+)", after)
    return word is not None and word[1] in words_of("not_after_possessive")


def says_what(word: str, *, last: bool) -> bool:
    """Whether a word with a capital is no name: a common one, a month, a role or an origin; last: no name follows."""
    lowered = word.lower().rstrip(".")
    if word in _given() and not (lowered in _MONTHS and last):
        return False
    return (
        lowered in _NO_NAME
        or (lowered in _MONTHS and last)
        or lowered in words_of("not_after_possessive")
        or _ROLE.fullmatch(word) is not None
        or listed_people(word)
        or identity_word(word)
        or lowered in _ORIGINS
        or (not last and len(word) > 5 and _ORIGIN.search(lowered) is not None)
        or len(word) < 2
    )


@cache
def _given() -> frozenset[str]:
    """The given names of all lists, also those of both genders."""
    men, women = _sexes()
    return men | women | (words_of("short_names") - {"May"}) | {"Christ"}


def _gender(name: str) -> bool | None:
    men, women = _sexes()
    return name in men if name in men | women else None
