"""Gendered nouns: which of them speak of the person a text is about, and which of somebody or something else.

English rules and short lists, no parser. A rule says why a word is left, so that a preview can show it.
"""

from __future__ import annotations

import re
from functools import cache

from evenhand.counterfactuals.antecedents import FEMALE, MALE, another, same
from evenhand.counterfactuals.given_names import all_known_names, known_names
from evenhand.counterfactuals.idioms import idiom
from evenhand.counterfactuals.people import names_people
from evenhand.counterfactuals.texts import word_list

__all__ = [
    "PARTNERS",
    "PERHAPS_ANOTHER",
    "PREFIX",
    "RELATIVES",
    "UNSURE",
    "describes_subject",
    "gendered_nouns",
    "left_noun",
    "men_nouns",
    "other_people",
    "surname_of",
]

UNSURE = "unsure: of whom it is said"
PERHAPS_ANOTHER = "unsure: perhaps somebody else"
PARTNERS = frozenset(["husband", "wife", "boyfriend", "girlfriend", "fiancé", "fiancée", "hubby", "wifey"])
_TITLED = ("congress", "council", "assembly", "alder", "chair")  # Councilwoman Lee
RELATIVES = frozenset(
    ["father", "mother", "dad", "mum", "mom", "grandfather", "grandmother", "stepfather", "stepmother", "uncle", "aunt"]
    + ["son", "daughter", "brother", "sister", "nephew", "niece", "grandson", "granddaughter", "godfather", "godmother"]
    + ["stepson", "stepdaughter", "stepbrother", "stepsister", "grandpa", "grandma", "papa", "mama", "daddy", "mommy"]
    + ["godson", "goddaughter", "stepdad", "stepmum"]
)
_FAMILY = "|".join(sorted(RELATIVES | PARTNERS))
_OWNED = re.compile(
    r"(?:\b(?:my|your|his|her|its|our|their|whose)|[\w\]]\s?['’]\s?s|s\s?['’])\s+"
    r"(?:(?!(?:is|was|were|are|has|had|became|who)\b)[\w\[\]()-]+\s*,?\s+){0,7}$",
    re.IGNORECASE,
)
_PARTNERED = re.compile(  # not "his tailing of the "
    r"(?:\b(?:my|your|his|her|its|our|their|whose)|[\w\]]\s?['’]\s?s|s\s?['’])\s+"
    r"(?:(?!(?:the|an?|of|in|by|with|about)\b)[\w\[\]()-]+\s*,?\s+){0,7}$",
    re.IGNORECASE,
)
_THEIRS = re.compile(  # "his press ", "her wealthy "; not "her time as an "
    r"\b(?:his|her)\s+(?:(?!(?:an?|the|as|of|in|on|at|by|to|for|from|with|and|or|is|was|who|that|own)\b)[\w\[\]-]+\s+){0,2}$",
    re.IGNORECASE,
)
_KIN = re.compile(  # "his father is a ", "her brother, a ", "her mother, Ann Lee, was also a "
    r"(?:\b(?:my|your|his|her|its|our|their|whose|the)|[\w\]]\s?['’]\s?s|s\s?['’])\s+(?:[\w-]+\s+)?"
    rf"(?:{_FAMILY})(?:-in-law)?"
    r"(?:\s+(?:\w+\s+){0,4}|\s?,\s+(?:an?|the)\s+(?:\w+\s+)?|"
    r"(?:(?!\b(?:he|she|i|who)\b)[^.;!?]){1,40}\s(?:is|was|became|(?:serve[sd]|work(?:s|ed)|acted)\s+as|,)\s+(?:(?:also|once|now)\s+)?(?:an?|the)\s+(?:[\w-]+\s+){0,2}|"
    r"\s+(?:is|was)\s+(?:an?|the)\s+(?:[\w\[\]-]+\s+){0,3}and\s+(?:[\w-]+\s+){0,2})$",
    re.IGNORECASE,
)
_NAMED = re.compile(  # a name follows: "his wife Ann", "her husband, the Swiss painter Max Egli"
    r"(?:\s+of\s+[\w-]+\s+years)?\s*(?:[,()]|is\b|was\b)?\s*(?:[A-Z]\.\s*)*[A-ZÀ-Þ][a-zà-ÿ]|"
    r"\s*(?:,|and(?=\s+[\w\s\[\]-]+,))\s*(?:(?!(?:who|whom|whose|which|where|when|and|but|or|he|she|they|in|on|for|as|is|was)\b)"
    r"[a-zà-ÿ\[][\w\]’'-]*(?:\s?[,/-])?\s+(?:[A-ZÀ-Þ]\w+\s+)?(?:and\s+)?){1,8}[A-ZÀ-Þ][a-zà-ÿ]|"
    r"\s+(?:is|was)\s+(?:also\s+)?the\s+(?:(?!(?:of|in|from|at|for|with|to|by|and|who)\b)[\w\[\]-]+\s+){1,4}[A-ZÀ-Þ][a-zà-ÿ]|"
    r"\s+and\s+(?:(?!\w+ed\b|(?:in|to|at|of|from|for|on|his|her|their|two|with|by)\b)[a-z-]+\s+){1,3}[A-ZÀ-Þ][a-zà-ÿ]"
)
_NAME_BEFORE = re.compile(  # "Max Egli, her former ", "Max Egli, a banker and her future "
    r"[A-ZÀ-Þ][\w’'-]+\s+[A-ZÀ-Þ][\w’'-]+\s?,\s+(?:an?\s+[^.;,]{1,40}\band\s+)?(?:his|her)\s+(?:[\w-]+\s+)?$|"
    r"[A-ZÀ-Þ][\w’'-]+\s?\(\s?[A-ZÀ-Þ][\w’'-]*\s?['’]\s?s?\s+(?:[\w-]+\s+)?$"  # Quinn (Max's former
)
_NAMES_HIM = re.compile(
    r"\s+(?:called|named|known\s+as|by\s+the\s+name\s+of)\s+([A-ZÀ-Þ]\w+)|"
    r",\s+([A-ZÀ-Þ][a-zà-ÿ’'-]+)(?:\s+[A-ZÀ-Þ][\w’'-]+)?(?=,|\s+\(|\s+(?:who|is|was|has)\b)|"
    r"\s+(?:is|was)\s+([A-ZÀ-Þ]\w+)\s+[A-ZÀ-Þ]\w"
)
_CALLED = re.compile(  # a name before it: "Louise Brooks was the daughter"
    r"([A-ZÀ-Þ][\w’'-]+)\s+([A-ZÀ-Þ][\w’'-]+)\s*,?\s*(?:is|was|\([^)]*\))?\s*(?:the|an?)?\s*(?:[\w-]+\s+){0,3}$"
)
_TITLED_SO = re.compile(  # "Her sleuth, Mrs. Tuttle, is a "
    r",\s+(?:Mr|Mrs|Ms|Miss|Dr|Sir|Lady|Lord)\.?\s+(?:[A-ZÀ-Þ][\w’'-]+\s+)?([A-ZÀ-Þ][\w’'-]+)\s*,\s+(?:who\s+)?(?:is\s+|was\s+)?"
    r"(?:also\s+)?(?:an?|the)\s+(?:[\w-]+\s+){0,3}$"
)
_SOMEBODYS = re.compile(  # "with a ", "has two sons and a "
    r"\babout\s+(?:an?|the)\s+(?:[\w-]+\s+){0,2}$|\b(?:of|by|with|to|from|for|met|than|like|has|have|had|having|raised|raising|adopted|tells?|told|asks|asked)\s+an?\s+"
    r"(?:[\w-]+\s+){0,2}$|\b(?:(?:an)?other|a\s+second|a\s+third)\s+(?:[\w-]+\s+)?$|"
    r"\b(?:sons|daughters|brothers|sisters|nephews|nieces|uncles|aunts|grandsons|granddaughters|monks|nuns|men|women|boys|girls)"
    r"\s*(?:,|,?\s+and|\s+or)\s+(?:an?|one|the)\s+(?:[\w-]+\s+)?$|"
    r"\b(?:has|have|had|with|by)\s+(?:an?|one)\s+(?:[\w-]+\s+){1,3}(?:and|or)\s+(?:(?:an?|one)\s+)?$|"
    r"\b(?:father|mother|parents?|guardian|owner|killer|murder|death|body|care)\s+of\s+(?:the|this|that)\s+(?:[\w-]+\s+){0,6}$|"
    r"\b(?:idea|notion|concept|image|figure|myth|archetype|trope|stereotype|portrayal|depiction|cult)s?\s+of\s+the\s+(?:[\w-]+\s+){0,2}$",
    re.IGNORECASE,
)
_CHILD_OF = re.compile(  # "the daughter of a judge and a "
    r"\b(?:son|daughter|child|children)\s+(?:of|to)\s+an?\s+[^.;,!?]{1,40}\band\s+an?\s+(?:[\w-]+\s+){0,2}$",
    re.IGNORECASE,
)
_QUOTED = (re.compile(r"[\"“]\s?(?:[\w-]+\s+){0,2}$"), re.compile(r"\s?[\"”]"))  # the word itself: the "angry man" card
_ANYBODY = re.compile(  # "every ", "any young "; not "all the "
    r"\b(?:every|each|any|no|all)\s+(?:(?!(?:an?|the|this|that|his|her|my|your|our|their|its|of)\b)[\w-]+\s+)?$",
    re.IGNORECASE,
)
_ONE_NAME = (  # "Opal, my late ", "Goneril, the eldest "
    re.compile(r"(?<!\w)([A-ZÀ-Þ][\w’'-]+)\s?,\s+(?:my|our)\s+(?:[\w-]+\s+)?$"),
    re.compile(r"(?:^|[.!?]\s+)([A-ZÀ-Þ][\w’'-]+)\s?,\s+(?:the|an?)\s+(?:[\w-]+\s+)?$"),
)
_LISTED = re.compile(r"\bwere\s+(?:[^.;!?]*(?:,|\band)\s+)?an?\s+(?:[\w-]+\s+)?$")
_SAID = (
    r"(?:is|was|became|am|remains|has\s+been|had\s+been|(?:serve[sd]?|work(?:s|ed)?|act(?:s|ed)?)\s+as)(?:,[^,.;]{1,30},)?\s+"
    r"(?:(?:also|now|still|already|both|himself|herself|[a-z]+ly)\s+)?"
)
_BETWEEN = r"(?:(?!\b(?:his|her|my|whose|who|that|which|he|she|with|met|has|have|had|leaving)\b)[^.;!?])"
_PHRASE = (
    r"(?:(?:an?|the|your|our)\s+(?:(?:kind|sort|type)\s+of\s+)?(?:(?!(?:his|her|of|has|have|had|leaving)\b)[\w'’-]+,?\s+(?:and\s+)?){0,4}|"
    rf"{_BETWEEN}{{1,90}}(?:,|\band)\s+(?:an?|the)\s+(?:[\w'’-]+\s+){{0,2}})"
)
_AND_IS = (  # she "holds a degree and is a "
    r"(?:(?!\b(?:he|she|who|that|which|whom|whose|said|says|told|claim\w*)\b)[^.;!?]){1,150}\s+and\s+(?:is|was|became|remains|has\s+been)\s+"
    r"(?:(?:also|now|still)\s+)?(?:(?:an?|the)\s+(?:[\w'’-]+\s+){0,4})?"
)
_IS_HE = re.compile(rf"\b(?:is|was)\s+(he|she)\s+{_PHRASE}$", re.IGNORECASE)  # not only is she the
_STOP = re.compile(r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bMrs)(?<!\bSt)(?<!\b[A-Z])[.!?;]\s|\n")
_OPENS_SENTENCE = re.compile(  # "A former ", "Born the only ", "As a "
    r"^[\s\"“‘(]*(?:(?:Born|As|Once|Formerly|Originally|Being)\s+)?(?:(?:An?|The|Our|My)\s+)?"
    r"(?:(?!(?:an?|the|is|was|were|has|had|his|her|with|to)\b)[\w’'-]+\s+){0,4}(?:ex-)?$",
    re.IGNORECASE,
)
_NOBODY_NAMED = re.compile(
    r"^\W*(?:The|This|Our|My)\s+[a-z-]+(?:\s+(?:is|was)|,)\s+(?:an?|the)\s+(?:[\w-]+,?\s+){0,3}$"
)
_KNOWN_AS = re.compile(  # "worked as a ", "was elected ", "became the first female ", "being the "
    r"\b(?:as|(?:himself|herself),?|be|became|becoming|become|being|elected|appointed|named|made|crowned|voted|remain(?:s|ed)?)\s+(?:(?:its|their|an?|the)\s+)?"
    r"(?:(?!(?:of|in|by|with|for|to|and|or|from|his|her)\b)[\w’'-]+\s+){0,4}$",
    re.IGNORECASE,
)
_SEEN_AS = re.compile(
    r"(?:\b(?:description|portrayal|depiction|image|view|vision|account|memor(?:y|ies)|caricature|characteri[sz]ation)s?\s+of\s+"
    r"(?:[\w’'-]+\s+){1,4}|[\"”]\s+)as\s+an?\s+(?:[\w’'-]+\s+){0,6}(?:-\s+\w+\s+)?$",
    re.IGNORECASE,
)
_CALLED_POOR = (  # poor man
    re.compile(r",\s+(?:poor|lucky|dear|brave|silly|clever|wise)\s+$"),
    re.compile(r"\s?(?:[.!,;]|$)"),
)
_PRIZE = re.compile(r"\b(?:for|as)\s+best\s+(?:supporting\s+|lead\s+)?$", re.IGNORECASE)


PREFIX = re.compile(r"\b(?:(?:great|step|foster|vice|co)[-‐‑])+$", re.IGNORECASE)  # a great-uncle is an uncle


@cache
def gendered_nouns() -> dict[str, str]:
    """Each noun and its counterpart. A line "host < hostess" goes one way: a host may be anybody."""
    swap: dict[str, str] = {}
    for line in word_list("gendered_nouns"):
        male, *way, female = line.split()
        swap |= {female: male} if way else {female: male, male: female}
    return swap | {"mom": "dad"}


@cache
def men_nouns() -> frozenset[str]:
    """The nouns for a man."""
    return frozenset(line.split()[0] for line in word_list("gendered_nouns"))


@cache
def _in_a_row() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(gendered_nouns()))})(?:\s?,\s+(?:and\s+)?|\s+and\s+)$")


def _in_a_row_with(match: re.Match[str]) -> re.Match[str] | None:
    """The noun before it that is said of the same person: "the son and grandson of champions"."""
    begin = max(0, match.start() - 60)
    row = _in_a_row().search(match.string[begin : match.start()])
    return None if row is None else re.compile(r"\w+").match(match.string, begin + row.start())


def other_people(text: str, subject: str | None) -> frozenset[str]:
    """The given names in the text that are not the subject's; without places, saints and names at birth."""
    names = all_known_names()
    placed = r"(?:in|at|near)(?:\s+(?:St\.?|Saint))?|St\.?|Saint|\((?:born|née|formerly)"
    said = re.finditer(rf"(?<!\w)(?:({placed})\s+)?([A-ZÀ-Þ][\w’]*)", text)
    return frozenset(m[2] for m in said if m[1] is None and m[2] in names and m[2] != subject)


def describes_subject(word: str, before: str, subject: str | None, male: bool | None = None, surname: str = "") -> bool:
    """Whether the noun is said of the person the text is about: "She is the first ", "Daniel was the ", "I am a ".

    >>> describes_subject("woman", "Susan leads it; she is the first ", None), describes_subject("son", "a ", None)
    (True, False)
    """
    before = PREFIX.sub("", before)
    listed = _in_a_row().search(before)
    if listed is not None:  # a husband, father and
        return describes_subject(word, before[: listed.start()], subject, male, surname)
    said = _said_of(word in men_nouns(), subject is not None).search(_marked(before, subject, surname))
    said = said or _IS_HE.search(before)
    if said is None:
        return False
    return said[1].lower() not in ("he", "she") or (said[1].lower() == "he") == (word in men_nouns() or male is True)


_GIVEN, _SURNAME = "ǀ", "ǁ"  # letters that stand for the subject's names, so that no pattern is built for each of them
_WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*")


def _marked(before: str, subject: str | None, surname: str) -> str:
    """The text with a sign for the given name and one for the surname of the person it is about."""
    if subject is None:
        return before
    signs = {surname or subject: _SURNAME, subject: _GIVEN}
    return _WORD.sub(lambda match: signs.get(match[0], match[0]), before)


@cache
def _said_of(man: bool, named: bool) -> re.Pattern[str]:
    """ "She is the first ", "Ms. Lee worked as a ", "Daniel (born 1950) became the ", with signs for names."""
    titled = rf"(?-i:{'Mr' if man else 'Mrs|Ms|Miss'})\.?\s+(?:(?-i:[A-ZÀ-Þ])[\w’'-]+|{_SURNAME})"
    full = rf"{_GIVEN}(?:\s+[\"“(][^\"”)]{{2,25}}[\"”)])?(?:\s+(?:(?-i:[A-ZÀ-Þ])[\w’'-]+|{_SURNAME})){{0,2}}|{_SURNAME}"
    who = rf"\b(he|she|i|{titled}|{full})(?:\s?\([^)]*\)|,[^,;.]{{1,30}},)?" if named else rf"\b(he|she|i|{titled})"
    bare = r"(?:(?:former|acting|current|deputy)\s+)?"  # is mum to, was headmistress of
    return re.compile(
        rf"{who}(?:(?:\s+{_SAID}|['’](?:s|m)\s+){_PHRASE}|\s+{_SAID}{bare}|{_AND_IS})$",
        re.IGNORECASE,
    )


def left_noun(
    word: str, match: re.Match[str], before: str, after: str, subject: str | None, others: frozenset[str]
) -> str:
    """Why a gendered noun stays as it is; "" where it is said of the person the text is about."""
    before = PREFIX.sub("", before)
    if re.search(r"(?<!\b[Ee]x-)(?<=\w[-‐‑/])$|\w\s?[-‐‑/]\s$|\w\s[-‐‑/]$", before) or re.match(
        r"(?:['’]s)?\s?[-‐‑/]\s?[\w\[]", after
    ):
        return "compound"
    if word in PARTNERS:
        before = re.sub(r"(\b[Ee]x)[-‐‑]$", r"\1 ", before)  # his ex-wife
    surname = surname_of(match.string, subject)
    if surname and word.startswith(_TITLED) and re.match(rf" {re.escape(surname)}\b", after):
        return ""  # Councilwoman Lee
    first = re.search(r"(?:^|[.!?:;]\s+|\n\s*)(?:(?:a|an|the)\s+)?$", before, re.IGNORECASE) is not None
    if match.group()[:1].isupper() and not match.group().isupper() and not first:
        return "name"
    if _QUOTED[0].search(before) and _QUOTED[1].match(after):
        return "quoted"
    own = subject is not None and re.match(rf" {re.escape(subject)}\b", after) is not None  # actress Laura Lee
    if subject is not None and re.match(
        rf"(?:\s?,\s+[a-z-]+)*\s+and\s+(?:[a-z\[\]-]+\s+){{1,4}}{re.escape(subject)}\b", after
    ):
        return ""  # actress and former model Laura Lee
    if re.match(r" [A-ZÀ-Þ][a-zà-ÿ]", after):
        return "" if own and word not in PARTNERS | RELATIVES else "name"
    if idiom(word, before, after):
        return "idiom"
    if word == "sister" and re.search(r"\b(?:ward|nursing|theatre|charge)\s+$", before, re.IGNORECASE):
        return UNSURE  # an office that men do not bear
    if (
        word in RELATIVES
        and match.group()[:1].isupper()
        and not re.search(r"\w\s+$", before)
        and re.match(r"\s+(?!(?:is|was|has|does|says)\b)[a-z]+s\b", after)
    ):
        return "name"  # Brother printers, Sister cities
    if _CALLED_POOR[0].search(before) and _CALLED_POOR[1].match(after):
        return ""
    if word in ("actor", "actress") and _PRIZE.search(before):
        return ""  # of whose prize it is said
    earlier = _in_a_row_with(match)
    if earlier is not None and (earlier[0].lower() in men_nouns()) == (word in men_nouns()):
        start, end = earlier.span()
        leading, following = match.string[max(0, start - 120) : start], match.string[end : end + 40]
        return left_noun(earlier[0].lower(), earlier, leading, following, subject, others)
    if _ANYBODY.search(before) and not _says_more(match, word in men_nouns()):
        return "anybody"
    other = gendered_nouns()[word]
    with_article = r"(?:an?\s+(?:[\w-]+\s+){0,2})?"  # a French father and a Swiss mother
    if re.match(rf"\s+(?:and|or)\s+{with_article}{other}\b", after) or re.search(
        rf"\b{other}\s+(?:and|or)\s+{with_article}$", before
    ):
        return "both genders"
    called = _NAMES_HIM.match(after)
    if called is not None and (called[1] or called[2] or called[3]) not in (subject, surname):
        return "somebody else"  # a son called Harrison; our waitress, Brandi, was; the man is Prem Arya
    if _CHILD_OF.search(before) or re.match(rf"(?:['’]s)?\s+(?:{_FAMILY})\b", after):
        return "somebody else"  # a fisherman's son, her landlord father
    titled = _TITLED_SO.search(before)
    if titled is not None and titled[1] != surname:
        return "somebody else"
    if describes_subject(word, before, subject, surname=surname):
        return ""
    if other not in gendered_nouns() and re.search(rf"\bthe\s+(?:\w+\s+)?{other}\b", match.string, re.IGNORECASE):
        return "both genders"  # the bride and the groom, who stays
    if (
        word in RELATIVES
        and re.match(r"\s+of\s+[A-ZÀ-Þ]", after)
        and not re.search(r"\b(?:an?|the)\s+(?:\w+\s+)?$", before, re.IGNORECASE)
    ):
        return "somebody else"  # Grizell, sister of Jonathan
    if word in RELATIVES and re.match(r"\s+of\b", after) and _LISTED.search(before):
        return "somebody else"  # among them were a teacher, a brother of the sheriff
    owned = _OWNED.search(before) is not None
    of_another = re.search(r"([A-ZÀ-Þ][\w-]+)\s?['’]\s?s\s+(?:[a-z-]+\s+)?$", before)
    if word in PARTNERS and of_another is not None and of_another[1] not in (subject, surname):
        return "somebody else"  # Balian's wife
    if (owned and word in RELATIVES) or (word in PARTNERS | RELATIVES and _NAMED.match(after)):
        return "somebody else"
    if word in PARTNERS and _NAME_BEFORE.search(before):
        return "somebody else"
    named = _ONE_NAME[0].search(before) if word in PARTNERS else None
    if word in RELATIVES and re.match(r"\s+of\s+[A-ZÀ-Þ]", after):
        named = _ONE_NAME[1].search(before)
    if named is not None and named[1] not in (subject, surname):
        return "somebody else"  # whose name stays
    if word in PARTNERS and re.search(
        rf"\byour\s+(?:\w+\s+)?$|\b(?:{_FAMILY})['’]?\s?['’]?s\s+(?:\w+\s+)?$", before, re.I
    ):
        return "somebody else"  # of whoever is addressed, of a relative: her sister's husband
    if re.search(r"\b(?:trans|transgender)\s+$", before, re.IGNORECASE):
        return "somebody else"  # unless it has been said of the subject
    if (
        word in PARTNERS
        and re.search(r"\b(?:my|our)\s+(?:\w+\s+)?$", before, re.IGNORECASE)
        and re.match(r"['’]s\b", after)
        and another(match.string, match.start(), match.end(), word in men_nouns())
    ):
        return "somebody else"  # my girlfriend's dad says he
    if word in PARTNERS and _PARTNERED.search(before):
        return "somebody else" if _described(after) else ""
    wanted = re.match(r"\s+(?:(?:that|whom)\s+)?(?:he|she)\s+\w", after)
    if (wanted and not re.search(r"\b[Aa]s\s+an?\s+(?:\w+\s+)?$", before)) or re.search(
        r"\b(?:de|du|le|la)\s+$", before
    ):
        return "somebody else"  # the cameraman he wanted; a poupée de son
    if _THEIRS.search(before):
        return "somebody else"  # his press spokesman
    male, _ = known_names()
    if _SOMEBODYS.search(before):
        return "somebody else"
    theirs, not_theirs = (MALE, FEMALE) if word in men_nouns() else (FEMALE, MALE)
    if theirs.search(match.string) is None and not_theirs.search(match.string) is not None:
        return "somebody else"  # all pronouns are of the other gender
    if any((name in male) == (word in men_nouns()) for name in others):
        return PERHAPS_ANOTHER  # whose name stays
    called = _CALLED.search(before)
    if (called is not None and called[1] != subject and called[2] != surname) or _KIN.search(_plain(match)) is not None:
        return "somebody else"
    if _known_as(word, match, subject, surname):
        return ""
    if another(match.string, match.start(), match.end(), word in men_nouns()):
        return "somebody else"
    return "" if _surely_said(word, match, subject, surname) else UNSURE


def _sentence_of(match: re.Match[str]) -> int:
    """Where the sentence of a word begins; a very long one is not read to its beginning."""
    least = max(0, match.start() - 600)
    return max((m.end() for m in _STOP.finditer(match.string, least, match.start())), default=least)


def _known_as(word: str, match: re.Match[str], subject: str | None, surname: str) -> bool:
    """Whether the sentence has spoken of the subject and says as what: "she was elected ", "Daniel worked as a "."""
    begins = _sentence_of(match)
    before = PREFIX.sub("", match.string[begins : match.start()])
    names = "|".join(re.escape(name) for name in (subject, surname) if name) or "(?!)"
    if _SEEN_AS.search(before):
        return False  # his portrayal of Ann Lee as a
    acted = rf"\b(?:{'he|He|Mr' if word in men_nouns() else 'she|She|Mrs|Ms|Miss'}|I|{names})\b"
    return _KNOWN_AS.search(before) is not None and re.search(acted, before) is not None


def _surely_said(word: str, match: re.Match[str], subject: str | None, surname: str) -> bool:
    """Whether something says that the noun is the subject's, where nothing says that it is somebody else's: it stands
    beside the name, opens the sentence of a pronoun or of nobody else, or says as what the subject is known."""
    text = match.string
    begins = _sentence_of(match)
    before = PREFIX.sub("", text[begins : match.start()])
    stop = _STOP.search(text, match.end())
    rest = text[match.end() : len(text) if stop is None else stop.start()]
    names = "|".join(re.escape(name) for name in (subject, surname) if name) or "(?!)"
    nickname = r"(?:\s+[\"“(][^\"”)]{2,25}[\"”)])?"
    who = rf"(?:{names}){nickname}(?:\s+(?-i:[A-ZÀ-Þ])[\w’'.-]+){{0,2}}"
    beside = (
        rf"(?<!\w){who}(?:\s?\([^)]*\)|\s?,\s+\d+)?\s?,\s+(?:(?:an?|the|once|now|formerly)\s+)?"
        r"(?:[\w’'\[\]-]+,?\s+(?:and\s+)?(?:an?\s+|the\s+)?){0,6}$"
    )
    if re.search(beside, before):
        return True  # Susan Lee, 54, a nurse and a mother
    own = MALE if word in men_nouns() else FEMALE
    if _OPENS_SENTENCE.search(before):
        alone = begins == 0 and stop is None and not re.search(r"(?<!^)(?<=\s)[A-ZÀ-Þ][a-zà-ÿ]", text)
        if own.search(rest) is not None or re.search(rf"(?<!\w)(?:{names})\b", rest) is not None or alone:
            return True
    if _NOBODY_NAMED.search(before) and own.search(rest + text[match.end() : match.end() + 200]):
        return True  # The patient is a 45-year-old man. He
    of_another = re.search(r"(\w+)\s+as\s+an?\s+(?:[\w-]+\s+){0,3}$", before)  # seeing her patient as a
    return (
        own.search(before) is not None
        and same(before)
        and not _SEEN_AS.search(before)
        and not (of_another is not None and names_people(of_another[1]))
    )


def _says_more(match: re.Match[str], male: bool) -> bool:
    """Whether a pronoun of that gender follows in the sentence: "every man loves his dog"."""
    sentence = re.split(r"[.!?]\s", match.string[match.end() : match.end() + 200], maxsplit=1)[0]
    return (MALE if male else FEMALE).search(sentence) is not None


def _plain(match: re.Match[str]) -> str:
    """What stands before the noun, without brackets: "his mother, Eve Ray (1915-1999), was a "."""
    return re.sub(r"\s?\([^()]*\)(?:\s?,)?", "", match.string[max(0, match.start() - 240) : match.start()])


def surname_of(text: str, subject: str | None) -> str:
    """What follows the given name of the subject: Lee in Susan B. Lee, "" if there is none."""
    if subject is None:
        return ""
    found = re.search(
        rf"(?<!\w){re.escape(subject)}\s+(?:[A-ZÀ-Þ]\.\s+|[A-ZÀ-Þ][\w’'-]+\s+(?=[A-ZÀ-Þ]))?([A-ZÀ-Þ][\w’'-]*\w)", text
    )
    return "" if found is None else re.sub(r"['’]s$", "", found[1])


def _described(after: str) -> bool:
    """Whether what follows a partner says the gender once more: "his wife, the youngest niece", "... and mother of"."""
    if re.match(r"\s+and\s+(?:the\s+)?(?:father|mother|grandfather|grandmother)\s+(?:of|to)\b", after):
        return True
    said = re.match(r"\s*,\s*(?:the|an?)\s+(?:[\w-]+\s+){0,3}([a-z]+)\b", after)
    words = re.findall(r"[a-z]+", said[0]) if said is not None else []
    return any(word in gendered_nouns() for word in words)
