"""Mr, Ms, Mrs, Miss: which of them are titles, and of whom."""

from __future__ import annotations

import re

from evenhand.counterfactuals.texts import words_of

__all__ = ["TITLES", "left_title"]

TITLES = {"mr": "ms", "ms": "mr", "mrs": "mr", "miss": "mr"}
_COUPLE = (  # Mr and Mrs Lee, Mrs Kemp and Mrs Hodges
    re.compile(r"\.?\s+(?:[A-ZÀ-Þ]\w+\s+)?(?:and|&)\s+(?:Mrs?|Ms|Miss)\b"),
    re.compile(r"\b(?:Mr|(?:Mrs|Ms|Miss)(?=\.?\s+[A-Z]))\.?\s+(?:[A-ZÀ-Þ]\w+\s+)?(?:and|&)\s+$"),
)
_GIVEN = re.compile(r"\.?\s+([A-ZÀ-Þ][\w-]+)(?=\s+(?:[A-ZÀ-Þ]\.\s+)?[A-ZÀ-Þ][\w-])")
_SURNAME = re.compile(r"\.?\s+(?:[A-ZÀ-Þ]\.\s*)*([A-ZÀ-Þ][\w’'-]*)")
_STARTS = re.compile(r"(?:^|[.!?:]\s|\n)[\s\"“'‘(]*$")
_FIRST = re.compile(  # the person a text of titles is about
    r"^[\s\"“'‘(]*(?:Mrs?|Ms|Miss)\.?\s+(?:[A-ZÀ-Þ]\.\s*)*([A-ZÀ-Þ][\w-]*)(?=['’]s\b|\s+(?:[a-z]|\())"
)
_ENDED = re.compile(r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)[.!?;]\s|\n")
_WORLD = frozenset(["World", "Universe", "America", "USA", "Earth"])
# Somebody of a book, a film or a play: "her role as Mr Darcy", "the novel Mrs Dalloway".
_PLAYED = re.compile(
    r"\b(?:play(?:s|ed|ing)?|portray(?:s|ed|ing)?|roles?|parts?|characters?|starred|stars|voice[sd]?|novel|film|movie|"
    r"play|musical|series|sitcom|book|story|poem|song|album|painting|opera|episode)\b[^.;!?]*$"
)
# Beside whom the text is about: "her teacher, ", "a fight between her and ", "Scrooge's clerk ".
_BESIDE = re.compile(
    r"(?<!^during )(?<!^in )(?<!^at )(?<!^after )(?<!^on )"
    r"\b(?:his|her|my|whose)\s+(?:[\w\[\]-]+\s+){0,4}[\w\]]+\s?,\s+$|"
    r"\b(?:his|her|my|our|their)\s+(?:(?!(?:that|and|when|but|as|to|with|for|by|before|after)\b)[\w\[\]-]+\s+){1,3}$|"
    r"\b(?:the|an?)\s+(?:[a-z]+\s+)?(?:\[\w+\]|\w+(?:er|or|ist|man|an))\s+[a-z]{2,}(?:s|ed)\s+(?:with\s+|to\s+|by\s+)?$|"
    r"\b(?:her|him|she|he)\s+and\s+$|(?-i:[A-Z])\w+\s?['’]s\s+(?:[a-z-]+\s+){1,3}$",
    re.IGNORECASE,
)


_PUT_IN = (
    re.compile(r"\b(?:he|she|i|we)\b.*\w\s?,\s+$", re.IGNORECASE),
    re.compile(r"\.?\s+(?:[A-ZÀ-Þ]\.\s*)*[A-ZÀ-Þ][\w’'-]*\s?,"),
)
_SAYS_MORE = re.compile(r"\b(?:he|him|his|she|hers?)\b", re.IGNORECASE)


def left_title(text: str, match: re.Match[str], subject: str | None, male: bool | None) -> str:
    """Why a title stays as it is; "" where it is that of the person the text is about.

    subject: that person's given name. male: the gender it says, None where there is no name.
    """
    before, after = text[max(0, match.start() - 120) : match.start()], text[match.end() : match.end() + 60]
    if _COUPLE[0].match(after) or _COUPLE[1].search(before):
        return "couple"
    given = _GIVEN.match(after)
    if given is not None and given[1] != subject:
        return "a given name follows"  # which says a gender, and stays
    surname = _SURNAME.match(after)
    named = surname is not None and _named(text, surname[1], subject)
    if not _is_title(match.group(), before, after, named):
        return "no title"
    if surname is not None and re.split("['’]", surname[1])[0] in words_of("characters"):
        return "a work"
    if _STARTS.search(before[-8:]):
        kin = re.match(
            r"\.?\s+(?:[A-ZÀ-Þ][\w-]*\s+){0,2}[A-ZÀ-Þ][\w-]*['’]s\s+(?:[a-z-]+\s+)?(?:son|daughter|brother|sister|niece|nephew)",
            after,
        )
        return "somebody else" if kin is not None and _of_another(text, match, male) else ""
    first = _FIRST.search(text, 0, match.start())
    if first is not None and surname is not None and not re.match(rf"{re.escape(first[1])}\b", surname[1]):
        return "somebody else"  # Ms. Day said that Ms. Knight would come
    own = surname is not None and (_own(text, surname[1], subject) or surname[1] == subject)
    if not own and (_PLAYED.search(_sentence(before)) or re.search(r"[“\"‘*_][^”\"’*_.!?]*$", before[-30:])):
        return "a work"
    if not own and (_acts_before(_sentence(before), subject) or _BESIDE.search(_sentence(before))):
        return "somebody else"
    if not own and re.search(r"\bat\s+$", before) and re.match(r"\.?\s+[A-ZÀ-Þ][\w-]*\s?['’]s\b", after):
        return "somebody else"  # at Miss Pym's school
    if not own and _PUT_IN[0].search(_sentence(before)) and _PUT_IN[1].match(after):
        return "somebody else"  # she left when the owner, Mr. Ray, fell ill
    if (
        not own
        and re.search(r"\b(?:his|her)\b.*\bthat\s+$", _sentence(before))
        and not _SAYS_MORE.search(text, match.end())
    ):
        return "somebody else"  # informs his servant that Mr. Hyde will come
    return "somebody else" if _of_another(text, match, male) else ""


def _sentence(before: str) -> str:
    """What stands before in the same sentence."""
    return _ENDED.split(before)[-1]


def _own(text: str, surname: str, subject: str | None) -> bool:
    """Whether the surname is the subject's: it follows the given name, or a title that begins a sentence."""
    name = re.escape(re.split("['’]s?$", surname)[0])
    opened = rf"(?:^|[.!?]\s+|\n)[\s\"“]*(?:Mr|Mrs|Ms|Miss)\.?\s+(?:[A-Z]\.\s*)*{name}\b"
    return _named(text, surname, subject) or re.search(opened, text) is not None


def _named(text: str, surname: str, subject: str | None) -> bool:
    """Whether the surname follows the given name of the subject somewhere."""
    if subject is None:
        return False
    name = re.escape(re.split("['’]s?$", surname)[0])
    return re.search(rf"\b{re.escape(subject)}\s+(?:[\w.’'-]+\s+){{0,2}}{name}\b", text) is not None


def _acts_before(sentence: str, subject: str | None) -> bool:
    """Whether the sentence has spoken of its subject already, so that a title is of another: "She thanked "."""
    who = r"he|she|i|we" if subject is None else rf"he|she|i|we|{re.escape(subject)}"
    return (
        re.search(rf"\b(?:{who})\b(?!.*(?:,|\b(?:where|when|while|that|which|whom|and|but)\b)\s+$)", sentence, re.I)
        is not None
    )


def _is_title(said: str, before: str, after: str, named: bool) -> bool:
    """Mr Smith, MRS. JONES; not "an MR in Accounting", "MS Alliance", "Miss World", "I miss you".

    named: somebody is called by the surname, which may be another word: "Mary May ... Ms May".
    """
    follows = re.match(r"\.?\s+((?:[A-ZÀ-Þ]\.\s*)*)([A-ZÀ-Þ][\w’'-]*)", after)
    if follows is None:
        return said.islower() and said != "miss" and re.match(r"\.\s+\w", after) is not None
    name = follows[2]
    sure = said[0].isupper() and (named or said in ("Mr", "Mrs") or (said == "Ms" and after.startswith(".")))
    other = words_of("after_places") | words_of("not_after_possessive")
    if name in _WORLD or (not sure and name.lower() in other):
        return False
    if said in ("Miss", "Ms") and name in words_of("pageants"):
        return False
    if said.isupper():  # written all in capitals, or the letters of something else
        article = re.search(r"\b(?:an?|of|in)\s+$", before, re.I)
        return said != "MISS" and len(name) > 2 and name.isupper() and article is None
    return said[0].isupper()


def _of_another(text: str, match: re.Match[str], male: bool | None) -> bool:
    """Whether a title within a sentence is not of the gender of the person the text is about: "thanked Mr. Lang".

    male: the subject's gender by the name; None asks the pronouns, which say one where they are all alike.
    """
    if male is None:
        he, she = (re.search(pattern, text, re.I) for pattern in (r"\b(?:he|him|his)\b", r"\b(?:she|hers?)\b"))
        if (he is None) == (she is None):
            return False
        male = he is not None
    return (match.group().lower() == "mr") != male
