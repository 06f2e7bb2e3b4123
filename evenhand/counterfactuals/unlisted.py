"""The given name of the person a text is about where no list has it: "Oluwadamilare Rhodes is a nurse. She ..."."""

from __future__ import annotations

import re

from evenhand.counterfactuals.antecedents import FEMALE, MALE
from evenhand.counterfactuals.given_names import all_known_names, vague_name
from evenhand.counterfactuals.nouns import gendered_nouns, men_nouns
from evenhand.counterfactuals.people import identity_word, listed_people, names_people
from evenhand.counterfactuals.places import ROLES, TITLE, part_of_a_place, role_before
from evenhand.counterfactuals.texts import words_of

__all__ = ["unlisted_subject"]

_SMALL = r"(?:(?:van|von|de|der|den|del|della|di|da|dos|la|le|al|el|bin|ibn|ben|ter|ten|zu|af)\s+)"
_FULL = re.compile(
    rf"\s*[\"“]?(?:The\s+late\s+)?(?P<title>{TITLE}{{0,2}})(?P<given>[A-ZÀ-Þ][a-zà-ÿ’'-]*[a-zà-ÿ](?:-[A-ZÀ-Þ][a-zà-ÿ]+)?)\s+"
    rf"(?:[A-ZÀ-Þ]\.\s+|[\"“][^\"”]{{2,20}}[\"”]\s+|[A-ZÀ-Þ][a-zà-ÿ]+\s+(?={_SMALL}*[A-ZÀ-Þ]))?{_SMALL}*"
    r"(?P<surname>[A-ZÀ-Þ][\w’'-]+)(?P<more>(?:\s+[A-ZÀ-Þ][\w’'-]+)?)(?P<after>[^\n]{0,120})"
)
_ROLE = re.compile(
    r"\s*[A-ZÀ-Þ][\w’'-]*\s+(?:[a-z][\w’'-]*,?\s+){0,5}(?=[A-ZÀ-Þ][a-zà-ÿ]+\s+[A-ZÀ-Þ])"
)  # Poet and critic
_IS = re.compile(  # "(born 1950), MD, is one of the youngest "
    r"(?:\s*\([^)]*\))?(?:\s?,[^,]{1,30},)?\s+(?:is|was|became|has\s+been|works?\s+as|worked\s+as|serves?\s+as|served\s+as)\s+"
    r"(?:an?|the|our|one\s+of)\s+([^.;:!?]{3,90})"
)
_ACTS = r"(?:['’]s\s|\s+(?:and|is|was|has|had|also|now|[a-z]{2,}(?:s|ed))\b)"
_NO_NAMES = frozenset(
    [
        "miss",
        "first",
        "second",
        "class",
        "warrant",
        "emeritus",
        "emerita",
        "viscount",
        "viscountess",
        "earl",
        "lance",
        "staff",
        "madame",
        "madam",
        "monsieur",
        "mademoiselle",
        "señor",
        "señora",
        "signor",
        "signora",
        "herr",
        "frau",
        "master",
        "saint",
        "uncle",
        "aunt",
        "duke",
        "duchess",
        "count",
        "countess",
        "baron",
        "baroness",
        "emperor",
        "empress",
        "sultan",
        "pope",
        "agent",
        "private",
        "super",
        "big",
        "little",
        "young",
        "old",
        "team",
        "project",
        "operation",
        "hurricane",
        "planet",
    ]
)
_CALENDAR = frozenset(
    ["january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december"]
    + ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
)


def unlisted_subject(text: str) -> tuple[str, bool] | None:
    """(given name, whether it is a man's) where the text opens with a full name that is in no list, all its pronouns
    are of one gender, and something says that it is a person's: a role before it, what the person is, or the given
    name or the surname alone at the beginning of another sentence.

    >>> unlisted_subject("Zorabel Rhodes is a nurse. She sings."), unlisted_subject("Acme Tools is a firm. She left.")
    (('Zorabel', False), None)
    """
    he, she = MALE.search(text), FEMALE.search(text)
    if (he is None) == (she is None):
        return None
    role = _ROLE.match(text)
    for start in (0, role.end() if role is not None and role_before(role[0]) else 0):
        full = _FULL.match(text, start)
        if full is not None and _may_be_given(full["given"]) and _may_be_surname(full["surname"], full["more"]):
            sure = not part_of_a_place(text, *full.span("given"))
            sure = sure and (_somebody(text, full) if start == 0 else not _of_another(text, full, he is not None))
            sure = sure and not _surname_first(text, full)
            return (full["given"], he is not None) if sure else None
    return None


def _may_be_given(word: str) -> bool:
    if word in all_known_names() or vague_name(word) or len(word) < 3:
        return False
    lowered = word.lower()
    other = words_of("not_after_possessive") | words_of("verbs") | words_of("before_places") | words_of("after_places")
    return not (
        lowered in other
        or lowered in _CALENDAR | _NO_NAMES
        or word in words_of("regions")
        or ("-" not in word and names_people(word))
        or identity_word(word)
        or re.search(r"[aeiouyà-ÿ]", lowered) is None  # Lt Cdr
        or re.search(r"^(?!.*-).*(?:ish|ese|ian|ing|tion|ment|ers|ists)$", lowered) is not None
    )


def _may_be_surname(word: str, more: str) -> bool:
    if re.search(r"\d", word):
        return False
    things = words_of("after_places") | words_of("things")
    return not any(each.lower() in things for each in (word, *more.split())) and not listed_people(word)


def _somebody(text: str, full: re.Match[str]) -> bool:
    """Something says that the name is a person's."""
    if re.search(rf"\b{ROLES}\b", full["title"]):
        return True
    said = _IS.match(full["more"] + full["after"]) or _IS.match(full["after"])
    words = [] if said is None else re.findall(r"[\w\[’'-]+", said[1])
    if any(word.startswith("[") or names_people(word) for word in words):  # [occupation]: masked
        return True
    names = f"{re.escape(full['given'])}|{re.escape(full['surname'])}"
    alone = rf"[.!?]\s+(?:(?:Dr|Prof|Rev|Mr|Mrs|Ms)\.?\s+)?(?:{names}){_ACTS}"
    return re.search(alone, text[full.end("surname") :]) is not None


def _of_another(text: str, full: re.Match[str], male: bool) -> bool:
    """Whether the pronoun after a role and a name is somebody else's: "The actress Quilla Ashby gave him a job"."""
    said = (MALE if male else FEMALE).search(text, full.end("surname"))
    role = [word for word in re.findall(r"[a-z]+", text[: full.start()].lower()) if word in gendered_nouns()]
    return (said is not None and said[0].lower() == "him") or any((word in men_nouns()) != male for word in role)


def _surname_first(text: str, full: re.Match[str]) -> bool:
    """Gao Weiming ... Professor Gao: what stands alone behind a title is a surname."""
    alone = rf"(?:Dr|Prof|Professor|Mr|Mrs|Ms|Judge|Senator)\.?\s+{re.escape(full['given'])}\b(?!\s+[A-ZÀ-Þ])"
    return re.search(alone, text[full.end("surname") :]) is not None
