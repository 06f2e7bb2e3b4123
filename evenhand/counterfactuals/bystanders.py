"""Whether a pronoun that changes can only be that of the person who changes: nobody else who stays may be meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from evenhand.counterfactuals.antecedents import FEMALE, MALE
from evenhand.counterfactuals.given_names import all_known_names, known_names
from evenhand.counterfactuals.mentions import Mention, mentions, says_what, sentences
from evenhand.counterfactuals.nouns import PARTNERS, gendered_nouns, men_nouns
from evenhand.counterfactuals.people import names_people
from evenhand.counterfactuals.places import TITLE
from evenhand.counterfactuals.possessives import owned_follows
from evenhand.counterfactuals.preview import Site
from evenhand.counterfactuals.texts import words_of

__all__ = ["only_person", "somebody_else"]

_TITLE_OF = re.compile(r"\s+of\b|['’]s\b|\s[A-Z]")  # Bachelor of Science, a Bachelor's degree, a Girl Scout
_PRONOUNS = frozenset(["he", "she", "him", "her", "his", "hers", "himself", "herself"])
_STAYS = ("compound", "name", "somebody else")  # why a noun stays that may be said of anybody
_KIN = re.compile(
    r"(?:(?:his|her|their)|\w+\s?['’]\s?s)\s+.*(?:father|mother|brother|sister|son|daughter|uncle|aunt|nephew|niece)(?:-in-law)?",
    re.IGNORECASE,
)
_LINK = re.compile(  # said of the same person: "is a ", ", a ", "is a nurse and a "
    r"\b(?:is|was|be|been|being|became|become|remains|as)\s+(?:also\s+|then\s+|now\s+)?$|,\s+(?:then\s+)?$|"
    r"(?:\b(?:is|was|became|as)|,)\s+(?:an?|the)\s[^.;]{0,60}(?:,|\band)\s+$"
)
_IS_ONE = re.compile(  # "she is ", "Ann Lee (born 1950) was "
    r"(?:\b(?:[Hh]e|[Ss]he)|^[\s\"“]*[A-ZÀ-Þ][\w’'-]+(?:\s+[A-ZÀ-Þ][\w’'.-]*)*(?:\s+\([^)]*\))?)\s+(?:is|was|became)\s+$"
)
_KIN_OF = re.compile(
    r"\b(?:son|daughter|child|children|brother|sister|wife|husband|widow|widower|nephew|niece)\s+of\s+$"
)
_IS_OF = re.compile(r"\b(?:is|was|became)\s+(?:an?|the|one)\s+(?:[\w-]+\s+){1,3}of\s+(?:his|her)\s+(?:[\w-]+\s+)?$")
_ROLE_OF = re.compile(  # the singer Ann; the singer of the band, Ann; singer-songwriter Ann; actor and director Ann
    r"\s?,?\s+|\s?,?\s+(?:of|at|for|in|from)\s[^.;:!?]{2,60},\s+|\s?[-/]\s?([\w\]]+),?\s+|"
    r"\s?,?\s+(?:(?:and|or|,)\s+)+(?:[a-z]+\s+){0,2}([\w\]\[]+)\s?,?\s+"
)
_FAR = 200  # characters: more than lies between a noun and the name it is said of
_OPENING = re.compile(  # "In his book, the critic "; "But like his heroes, "; "For his courage "
    r"[\s\"“]*(?!(?:He|She)\b).*[,\"”]\s+"
    r"(?:(?!(?:his|her|with|by|to|than)\b)[\w\[\]’'.-]+,?\s+){0,9}|"
    r".*\b(?:his|her)\s+\w+\s+as\s+(?:[\w\[\]-]+\s+){0,6}|"
    r"[\s\"“]*(?:For|In|On|At|After|Before|During|Despite)\s+(?:his|her)\s+\w+\s+(?:the\s+)?(?:[\w\[\]]+\s+){1,2}"
)
_BEGINS = re.compile(  # "Her boss, "; "In 2010 the singer "; "Big "
    r"[\s\"“]*(?:[^,]{1,60},\s+)?(?:(?:The|An?|His|Her|Their|But|And|Then|Later)\s+)?(?:[a-z\[\]-]+,?\s+){0,3}(?:[A-Z][a-z]+\s+)?"
)
_OWNED = re.compile(  # "her boss ", "Ann's boss, "
    r"(?:\b(?:his|her)|\w\s?['’]\s?s)\s+(?:(?!(?:the|an?)\s)[\w-]+\s+){0,2}([\w-]+)(\s?,)?\s+(?:(?:Mr|Mrs|Ms|Miss|Dr)\.?\s+)?$",
    re.IGNORECASE,
)
_OWNED_ROLE = re.compile(r"\b(?:his|her)\s+(?:[\w-]+\s+){0,4}([\w\]\[-]+)\s?,?\s+$", re.IGNORECASE)
_WITHIN = re.compile(r"\b(?:of|by|with|for|to|from|than|about)\s+$")
_SOON = re.compile(r"\s?(?:,|\b(?:and|or|who|whose|that|to)\b)?\s*(?:\w+\s+)?")
_QUOTED = re.compile(r"(?:[\"“]|`` ?)(?:(?!''|``)[^\"“”]){2,600}(?:[\"”]|''|$)")
_OF_ANOTHER = re.compile(  # "Ann was a pupil of her ", "was confirmed as her ", "spoke of her ", "praised her "
    r"\b(?:is|was|were|been|being|became)\s+(?:also\s+|once\s+|then\s+)?(?:(?:an?|the|one|another)\s+"
    r"(?:(?!(?:who|that|known|noted|best|most|and|which|in|on|for)\b)[^,;\s]+\s+){0,8}?(?:of|to|by|as|from)\s+)?$|"
    r"\b(?:is|was)\s+the\s+(?:most\s+[a-z]+|[a-z]+est)\s+(?:[a-z]+\s+)?of\s+$|\b[a-z]+ed\s+as\s+$|\b(?:impressed|struck|moved|surprised|fascinated|annoyed|offended|charmed|dismayed)\s+(?:by|with)\s+$|"
    r"\b(?:said|says|spoke|speaks|wrote|writes|commented|remarked|thought|complained|joked)\s+(?:[a-z]+ly\s+)?"
    r"(?:of|on)\s+$|"
    r"\b(?:describ|prais|critici[sz]|call|compar|consider|review|hail|not|cit|commend|laud|mention|succeed|replac|"
    r"follow|interview|defend|support|welcom|admir|question|notic|recogni[sz]|encourag|accept|commit\w*\s+to|order|reject|approv|grant|overturn|uphold|"
    r"upheld|endors)"
    r"(?:e?s|e?d|ing)?\s+$"
)
_THEIRS = re.compile(  # "In her book, the cook Ann", "When she left, Ann", "After her win, Ann"
    r"[\s\"“]*(?:(?:But|And|So|Also)\s?,?\s+)?(?:"
    r"(?:In|On|At|During|Through|Throughout|From|Within)\s+(?:\w+\s+){0,2}(?:his|her)\s+(?!(?:\w+\s+)?(?:place|stead|defen[cs]e|"
    r"honou?r|memory|absence|name|funeral|death|trial|behalf|request)\b)[^;:]*,[\"”]?\s+(?:(?!(?:his|her)\b)[\w\[\]’'\"”.,/-]+\s+){0,9}|"
    r"(?:When|Although|Though|Once|After|Before|Since|Despite|For)\s+(?:\w+ing\s+)?"
    r"(?:he|she|his|her)\b(?!\s+(?:\w+\s+)?(?:death|funeral|execution|arrest|trial|resignation|dismissal|departure|retirement)\b)[^;:]*,\s+(?:(?:Dr|Prof|Rev|Mr|Mrs|Ms|Miss)\.?\s+)?)"
)
_WHO_IS = re.compile(r"[\s\"“]*(?!(?:His|Her|Their|My|Our)\b)(?:[\w’'-]+\s+){0,5}[a-z\[][\w\]-]*\s?,\s+")
_AT = re.compile(r"\b(?:at|of|on|mourn\w*|announc\w*|report\w*|confirm\w*|regret\w*)\s+$")
_DEATH = re.compile(r"\s+(?:sudden\s+|untimely\s+)?(?:death|passing|funeral|burial)\b")
_NEW_CLAUSE = re.compile(r"^\s?['’]|\w\s?[,;:]|\b(?:where|that|but|when|because)\b")
_TITLES = re.compile(rf"{TITLE}+$")
_TITLES_ONLY = re.compile(rf"[\s\"“]*(?:The\s+)?(?:late\s+)?{TITLE}{{0,3}}")
_LOSES = re.compile(  # what nobody loses, breaks or spends but their own
    r"\b(?:lost|loses|losing|broke|breaks|breaking|sold|sells|selling|rebuilt|spent|spends|spending|donated|celebrated|"
    r"celebrates|twisted|injured|tore|packed|parked|cutting\s+off|cut\s+off|retired\s+after)\s+"
    r"(?:(?:all|half|most|some|part|much)\s+of\s+)?$"
)
_IS_SOMEBODY = re.compile(r"\b(?:is|was)\s+(?:also\s+)?(?:an?|the|one)\s")
_APPOSED = re.compile(r"^(?:\s+(?:[A-ZÀ-Þ][\w’'.-]*|van|von|de|der|del|da|la|le|al|el|bin))*\s?,")
_SOMETHING_SAID = re.compile(  # before a name that does not begin what is said
    r"\b(?:is|was|were|be|been|has|had|have|when|while|that|who|which|by|with|but|because|as|than|like|including|to|against|and\s+by)\b"
    r"|\S\s+(?:after|before|since|until|where)\b|\(\s?$"
)
_SAYS_THAT = re.compile(  # Ann alleged that she
    r"\b(?:alleg|argu|testif|thought|believ|felt|observ|confirm|reveal|report|predict|expect|speculat|forecast|insist|suspect|assum|conclud)\w*\s+(?:that\b.*)?$"
)
_DONE_TO = re.compile(  # ordered his arrest
    r"\s+(?:[\w-]+\s+){0,2}(?:arrest|execution|extradition|deportation|funeral|murder|detention|imprisonment|autopsy)\b"
)


def only_person(text: str, male: frozenset[str], female: frozenset[str]) -> str | None:
    """The given name of the only person whom the text calls by a full name, and who may be of the gender of its
    pronouns, where that name is of the gender and in its list: "In May, the pianist Ann Lee played her own song".

    >>> only_person("In May, the pianist Anna Lee played her song.", frozenset(["John"]), frozenset(["Anna"]))
    'Anna'
    """
    he, she = MALE.search(text) is not None, FEMALE.search(text) is not None
    if he == she:
        return None
    named = {who.said: who for who in mentions(text) if who.given and not who.noun and who.man in (None, he)}
    if len(named) != 1:
        return None
    (who,) = named.values()
    given, *more = who.said.split()
    begins = next(start for start, end in sentences(text) if start <= who.start < end)
    before = text[begins : who.start]
    if _SOMETHING_SAID.search(before) or ((MALE if he else FEMALE).search(before) and not _THEIRS.fullmatch(before)):
        return None  # he met Ann Lee; it was won by Ann Lee; the cook (Ann Lee)
    first = re.search(r"([A-ZÀ-Þ][\w’'-]+)\s+$", before)
    if first is not None and not says_what(first[1], last=False) and first[1] not in words_of("regions"):
        return None  # Tycho Ann Lee
    return given if more and who.man == he and given in (male if he else female) else None


def somebody_else(text: str, sites: Sequence[Site], own: frozenset[str], man: bool | None) -> bool:
    """Whether a pronoun that changes may be that of somebody who stays.

    own: the names of the subject. man: the gender that changes. Where a name, a noun or a title changes, nobody else
    may stand before a pronoun in its sentence, or act in the sentence before; where pronouns alone do, nobody of whom
    the text says that gender.
    """
    swapped = [site for site in sites if not site.left]
    pronouns = [site for site in swapped if site.kind[0] == 0 and site.kind[1] in _PRONOUNS]
    if not pronouns:
        return False
    others = _others(text, sites, own, man, pronouns)
    names = [site for site in sites if site.kind[0] > 0]
    if any(a.left and not b.left and text[a.end : b.start] == " " for a, b in pairwise(names)):
        return True  # Christopher Ann Lee
    if any(_in_a_list(text, site) for site in names if not site.left):
        return True
    if any(not a.left and b.left and _third_name(text, a, b, man) for a, b in pairwise(names)):
        return True  # Paul Norman Howard Lee
    first = next((site for site in swapped if site.kind[0] > 0), None)
    acted = False
    for start, end in sentences(text):
        here = [who for who in others if start <= who.start < end]
        said = [site for site in pronouns if start <= site.start < end]
        if any(_may_be(text, who, site, start) for who in here for site in said):
            return True
        if said and any(
            who.given and not who.noun and _presents(text[start : who.start], text[who.end :]) for who in here
        ):
            return True
        if any(who.noun and who.man is not None and _IS_ONE.search(text[start : who.start]) for who in here):
            return True  # she is a niece of the mayor
        if any(_stands_beside(text, who, site) for who in here for site in swapped):
            return True  # the mayor's niece Ann Lee
        if acted and said and not text[start : said[0].start].strip('"“ '):
            return True  # Ann Lee taught her. She
        partners = [site for site in swapped if site.kind[1] in PARTNERS and start <= site.start < end]
        if any(_by_name(text, site, start) for site in partners):
            return True  # Ann Lee became his wife
        if first is not None and start <= first.start < end and said and _of_another(text, first, said, start, end):
            return True
        acted = any((who.noun or who.acts) and _BEGINS.fullmatch(text, start, who.start) for who in here)
    return False


def _presents(before: str, after: str) -> bool:
    """Whether a sentence says of the name that follows who it is: "In his book, the cook ", "The cook, Ann Lee, "."""
    return _THEIRS.fullmatch(before) is not None or (
        _WHO_IS.fullmatch(before) is not None and re.match(r"\s?,", after) is not None
    )


def _others(
    text: str, sites: Sequence[Site], own: frozenset[str], man: bool | None, pronouns: Sequence[Site]
) -> list[Mention]:
    """Who is mentioned, may be of the gender that changes, and stays."""
    changed = [site for site in sites if not site.left and site.kind[1] not in _PRONOUNS]
    everybody = mentions(text)
    for site in sites:
        title = site.said[0].isupper() and _TITLE_OF.match(text, site.end)
        if site.left in _STAYS and site.kind[1] in gendered_nouns() and not title:
            known = any(who.start <= site.start < who.end for who in everybody)
            noun = Mention(site.start, site.end, site.said, site.kind[1] in men_nouns(), noun=True)
            everybody += [] if known else [noun]
    everybody.sort(key=lambda who: who.start)
    nobody = [site for site in sites if site.left and site.left not in _STAYS and not site.left.startswith("unsure")]
    everybody = [who for who in everybody if not who.noun or not any(s.end == who.end for s in nobody)]
    mine = [who for who in everybody if any(_changes(text, who, site) for site in changed)]
    words = own | {word for who in mine if not who.noun for word in who.said.split()}
    either = "|".join(map(re.escape, words)) or "(?!)"
    several = len(sentences(text)) > 1
    others = []
    for who in everybody:
        opens = several and who.acts and not who.noun and not text[: who.start].strip()  # Ayelet has worked there. She
        told = changed or opens or who.man is not None or who.given
        if who in mine or not told or who.man not in (None, man) or (not who.noun and _named_so(who, words, sites)):
            continue
        if who.noun and re.match(rf"(?:{either})\s?['’]\s?s\s", text[who.start :]):
            continue  # Ann's mother
        if not who.noun or who.man is not None or not _same_person(text, who, everybody):
            others.append(who)
    named = any(who.man in (None, man) for who in mine)
    if (
        any(site.kind[1] in PARTNERS for site in changed)
        and others
        and not named
        and others[0].end <= pronouns[0].start
        and not others[0].given
    ):
        others = [who for who in others if who.said != others[0].said]  # the clerk and his wife: nobody else
    return others


def _third_name(text: str, name: Site, left: Site, man: bool | None) -> bool:
    """Whether a given name of the gender stays between one that changes and a surname."""
    same = man is not None and left.said in known_names()[not man]
    return same and text[name.end : left.start] == " " and re.match(r"\s[A-ZÀ-Þ][\w’'-]", text[left.end :]) is not None


def _in_a_list(text: str, name: Site) -> bool:
    """ "Zorro Ray, Ann Lee and Max Egli": one of several."""
    before, after = text[max(0, name.start - 60) : name.start], text[name.end : name.end + 60]
    full = r"[A-ZÀ-Þ][\w’'-]+\s+[A-ZÀ-Þ][\w’'-]+"
    return (
        re.search(rf"{full}\s?,\s+$", before) is not None
        and re.match(rf"\s+[A-ZÀ-Þ][\w’'-]+\s?,?\s+and\s+{full}", after) is not None
    )


def _changes(text: str, who: Mention, site: Site) -> bool:
    """Whether a word that changes is of the mention, or is its title."""
    if site.start < who.end and who.start < site.end:
        return True
    return not who.noun and site.end <= who.start and re.fullmatch(r"\.?\s+", text[site.end : who.start]) is not None


def _named_so(who: Mention, words: frozenset[str], sites: Sequence[Site]) -> bool:
    """Whether a name has a word of the subject's, and no other given name: Lee of Ann Lee, not Sam Lee."""
    said = who.said.split()
    if len(said) > 1 and any(site.left and site.start == who.start for site in sites):
        return False  # a namesake
    return not words.isdisjoint(said) and (len(said) == 1 or said[0] in words or said[0] not in all_known_names())


def _same_person(text: str, noun: Mention, everybody: Sequence[Mention]) -> bool:
    """Whether a noun is said of somebody named: "is a ", "the singer Ann Lee", "Ann Lee, the singer".

    everybody: in the order in which they stand."""
    if _LINK.search(text[max(0, noun.start - 80) : noun.start]) or re.match(r"\s?,\s+(?:he|she)\b", text[noun.end :]):
        return True  # A gifted cook, she
    for who in everybody:
        if who.start <= noun.end:
            continue
        if who.start - noun.end > _FAR:
            break
        between = _TITLES.sub("", text[noun.end : who.start])
        if who.noun and re.fullmatch(r"(?:\s?,|\s+(?:is|was|became))\s+", between):
            return True  # The patient is a man
        role = None if who.noun else _ROLE_OF.fullmatch(between)
        last = "" if role is None else role[1] or role[2] or ""
        if role is not None and (not last or last.endswith("]") or names_people(last)):
            return True
    return False


def _may_be(text: str, who: Mention, pronoun: Site, start: int) -> bool:
    """Whether a pronoun may be theirs: they come before it in its sentence, or act after an opening clause with it."""
    if who.end <= pronoun.start:
        said = pronoun.kind[1]
        if said in ("his", "her") and who.noun and _KIN.fullmatch(text, who.start, who.end):
            return False  # his father was a cook and his mother a judge
        if said in ("him", "her") and _is_owned(text, who) and not owned_follows(text, pronoun.start, pronoun.end):
            return False  # her boss, Ann Lee, admires her
        before, between = text[start : who.start], text[who.end : pronoun.start]
        within = (
            who.noun
            and who.man is None
            and _WITHIN.search(before)
            and re.search(r"\b(?:he|she)\b|^[A-Z]", before, re.I)
        )
        if who.noun is False and said in ("his", "her") and re.fullmatch(r"\s?,\s+", between):
            return False  # Ann Lee, her teacher
        return not (within and not _SOON.fullmatch(between))  # the son of a cook, he was raised by his uncle
    if who.noun:
        return False
    if pronoun.kind[1] in ("himself", "herself") and re.fullmatch(r"\s?,?\s+", text[pronoun.end : who.start]):
        return True  # the singer himself, Ann Lee
    follows = who.acts or text[who.end :].lstrip()[:1] == ","
    return follows and not _is_owned(text, who) and _OPENING.fullmatch(text, start, who.start) is not None


def _is_owned(text: str, who: Mention) -> bool:
    """Whether somebody is another's: "her boss, Ann Lee", "Ann's mother"."""
    if who.noun:
        return re.match(r"(?:his|her)\s", text[who.start :], re.IGNORECASE) is not None
    owner = _OWNED.search(text[max(0, who.start - 50) : who.start])
    closed = owner is not None and (not owner[2] or text[who.end :].lstrip()[:1] == ",")
    return owner is not None and closed and names_people(owner[1])


def _stands_beside(text: str, who: Mention, name: Site) -> bool:
    """Whether a noun that says the gender and stays is said of a name that changes: "the mayor's niece Ann Lee", "Ann
    Lee, the mayor's niece"."""
    if not who.noun or who.man is None or name.kind[0] <= 0:
        return False
    if who.end < name.start:
        return re.fullmatch(r"\s?,?\s+", text[who.end : name.start]) is not None
    return re.fullmatch(r"(?:\s+[A-ZÀ-Þ][\w’'.-]*){0,3}\s?,\s+", text[name.end : who.start]) is not None


def _by_name(text: str, partner: Site, start: int) -> bool:
    """Whether a partner may be somebody whose name stands before in the sentence, and stays, or is a third person's."""
    man = partner.kind[1] in men_nouns()
    if _IS_OF.search(text[start : partner.start]):
        return True  # the cook was a friend of his wife
    return any(who.given and not who.noun and who.man == man for who in mentions(text[start : partner.start]))


def _of_another(text: str, name: Site, pronouns: Sequence[Site], start: int, end: int) -> bool:
    """Whether the first pronoun after a name is that of somebody whom the sentence does not name, "Ann Lee was a pupil
    of her", or is said in quotes by the one whose name stands beside them."""
    for quote in _QUOTED.finditer(text, start, end):
        beside = not quote.start() < name.start < quote.end()
        if beside and any(quote.start() < site.start < quote.end() for site in pronouns):
            return True
    before = text[start : name.start]
    if any(site.start < name.start for site in pronouns) and not _THEIRS.fullmatch(before):
        return True
    if _KIN_OF.search(before):
        return True  # The son of Ann Lee, he
    owner = _OWNED_ROLE.search(before)
    if owner is not None and (owner[1].endswith("]") or names_people(owner[1])):
        return True  # her teacher, Ann Lee
    first = next((site for site in pronouns if site.start > name.end), None)
    if first is None:
        return False
    after = [site for site in pronouns if site.start > name.end]
    if any(_is_object(text, site) and not _NEW_CLAUSE.search(_between(text, name, site)) for site in after):
        return True  # Ann Lee met her
    if not _its_own(text, name, pronouns):
        return True
    between = _between(text, name, first)
    if first.kind[1] in ("he", "she") and _SAYS_THAT.search(between):
        return True
    return (not _is_object(text, first) and _OF_ANOTHER.search(between) is not None) or (
        first.kind[1] in ("his", "her")
        and (_DONE_TO.match(text, first.end) or (_AT.search(between) and _DEATH.match(text, first.end))) is not None
    )


def _its_own(text: str, name: Site, pronouns: Sequence[Site]) -> bool:
    """Whether what is owned first is somebody's own by its nature ("In 1901 the cook Max Lee sold his house"), or the
    text opens with the name, says what its bearer is, or has other sentences about them."""
    before = text[: name.start]
    opening = re.search(r"([\w\]]+)\s?,\s+$", before)  # As a mother of three, Ann; not: the cook, Ann
    opens = opening is not None and opening[1][-1] != "]" and (opening[1][-1] == "s" or not names_people(opening[1]))
    if opens or _TITLES_ONLY.fullmatch(before) or len(sentences(text)) > 1:
        return True
    nearest = min(pronouns, key=lambda site: abs(site.start - name.start))
    if nearest.kind[1] not in ("his", "her") or _IS_SOMEBODY.search(text[name.end : nearest.start]):
        return True
    owned = re.match(r"(?:\s+[\w’'\"“”/-]+){1,5}", text[nearest.end :])
    if _LOSES.search(text[max(0, nearest.start - 40) : nearest.start]):
        return True  # Farmer Max Lee lost all of his sheep
    words = [] if owned is None else re.findall(r"[a-z]+", owned[0].lower())
    stop = next((i for i, word in enumerate(words) if i and word in words_of("not_after_possessive")), len(words))
    return not words_of("own_things").isdisjoint(words[:stop]) or (
        words[:1] == ["death"] and re.search(r"\buntil\s+$", text[: nearest.start]) is not None
    )


def _between(text: str, name: Site, pronoun: Site) -> str:
    return _APPOSED.sub("", re.sub(r"\([^)]*\)", "", text[name.end : pronoun.start]))


def _is_object(text: str, pronoun: Site) -> bool:
    """Him, or "her" that owns nothing."""
    return pronoun.kind[1] == "him" or (
        pronoun.kind[1] == "her" and not owned_follows(text, pronoun.start, pronoun.end)
    )
