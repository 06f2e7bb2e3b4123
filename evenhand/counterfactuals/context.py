"""Whether a word is about a person where it stands: idioms, compounds, names, ages and insults are not.

English rules and short lists, no parser. A rule says why a word is left, so that a preview can show it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from evenhand.counterfactuals.given_names import all_known_names
from evenhand.counterfactuals.identities import identity_categories
from evenhand.counterfactuals.insults import HEDGE, OF_IT, insulted, repeated
from evenhand.counterfactuals.people import BE, DETERMINERS, identity_word, identity_words, listed_people, names_people
from evenhand.counterfactuals.quoted import in_a_title, spoken_about
from evenhand.counterfactuals.texts import unmarked, word_list, words_of

__all__ = ["VAGUE", "left_because"]

# Words of many meanings: they count only where something says that they describe somebody.
VAGUE = frozenset(
    ["black", "white", "male", "female", "straight", "old", "older", "young", "younger", "blind", "teenage"]
    + ["paralyzed"]
)
_SENSES = frozenset(["blind", "deaf", "paralyzed"])
_JOINED_AFTER = frozenset(["friendly", "owned", "led", "only", "hating", "bashing", "looking"])
_JOINED_BEFORE = frozenset(["non", "anti", "pro", "ex", "openly", "so"])
_WHOLE = frozenset(["south", "north", "east", "west", "central", "latin", "native", "new", "saint", "st"])
_WHO = (
    r"(?:i|them|us|he|she|they|we|you|u|who|someone|somebody|everyone|people|person|man|woman|men|women|guy|girl|boy)"
)
_PREDICATE = re.compile(
    rf"(?:\b{_WHO}\s*{BE}|\bim|\bur|\b(?:me|him|her|them|us|my|your|his|their)\s+being)\s+{HEDGE}$", re.IGNORECASE
)
_BEING_ONE = re.compile(  # "he was fired for being ", "it is okay to be "; "Being ", before "is no crime"
    rf"(?:\b{_WHO}\b[^.;!?]{{0,40}}\b(?:for|of|about)\s+being|"
    rf"\b(?:ok|okay|fine|proud|ashamed|afraid|lucky|hard|wrong|normal|crime|sin|illegal|privilege)\s+to\s+be)\s+{HEDGE}$",
    re.IGNORECASE,
)
_TO_BE_ONE = (
    re.compile(rf"(?:^|[.!?\n][\"”’']?\s*|\b(?:that|thinks?|says?|said)\s+)[\"“‘']?being\s+{HEDGE}$", re.IGNORECASE),
    re.compile(r"\s+(?:is|was|isn['’]?t|wasn['’]?t|does|doesn['’]?t|did|didn['’]?t|means|makes)\b", re.IGNORECASE),
)
_ANIMAL = (
    r"(?:dog|cat|horse|pony|puppy|kitten|bird|parrot|penguin|rabbit|sheep|cow|goat|pig|donkey|monkey|lion|tiger|elephant|"
    r"bear|wolf|fox|duck|swan|fish|frog|snake|spider|animal)s?"
)
_OF_AN_ANIMAL = re.compile(
    rf"\b{_ANIMAL}['’]?s?\s+{BE}\s+{HEDGE}(?:\w+,\s+|\w+\s+and\s+)*(?:\w+ly\s+)?$", re.IGNORECASE
)
_BECOMES = re.compile(r"\b(?:went|gone|goes|going|born|bec[ao]mes?|turned)\s+(?:[a-z]+ly\s+)?$", re.IGNORECASE)
_ONE = re.compile(r"\b(?:an?|the|one|every|another|this|that)\s+(?:\w+\s+)?$", re.IGNORECASE)
_SAID_OF_ONE = re.compile(rf"\b([a-z]+)\s+{BE}\s+{HEDGE}$", re.IGNORECASE)
_PREDICATIVE = re.compile(  # Tom is very, you, make him
    rf"(?:\b{BE}|\b(?:i|you|u|y'?all|he|she|they|we|him|them|me|hes|shes|youre|your|turns?|sounds?|looks?|act(?:s|ing)?))"
    r"\s+(?:(?:not|so|too|very|really|also|both|all|just|only|still|now|being|either|totally|[a-z]+ly)\s+)*$",
    re.IGNORECASE,
)
_SHARED = re.compile(  # "Indian[ and Pakistani] villages": what follows is said of both
    r"(?:\s*,\s*[a-z]{3,}(?:an|ish|ese|ic|ch|ek|i))*,?\s+(?:and|or)\s+(?:the\s+)?[a-z]{2,}(?:an|ish|ese|ic|ch|ek|i)(?=\s+\w)",
    re.IGNORECASE,
)
_BASED = re.compile(  # Canadian - based, Canadian-born, American - Canadian
    r"\s?[-‐‑]\s?(?:based|style|language|themed|made|born)\b|"
    r"\s+born\s+(?!(?:and|in|on|to|at|into)\b)\w|\s[-‐‑]\s\w+(?:an|ish|ese|ino|ic)\b",
    re.IGNORECASE,
)
_TEAM = re.compile(  # the Indians player; people own theirs
    r"\s+(?:players?|pitchers?|catchers?|infielders?|outfielders?|shortstop|quarterback|manager|coach|fans?|roster|"
    r"games?|season|uniform|franchise|clubhouse|organi[sz]ation)\b",
    re.IGNORECASE,
)
_RELATED = re.compile(r"\s?,\s+(?:the\s+|only\s+|eldest\s+)*(?:daughter|son|widow|sister|brother)\s+of\b")
_OLD_FRIENDS = re.compile(
    r"(?:\s+(?!and\b|or\b)\w+){0,2}?\s+(?:friend|buddy|buddie|pal|mate|chum|rival|enemy|enemie|flame|classmate|"
    r"schoolmate|acquaintance|master)s?\b",
    re.IGNORECASE,
)
_CONTINENTS = frozenset(["african", "american", "asian", "european", "indian"])
_PART_OF = re.compile(
    r"\b(?:latin|native|(?:south|north)(?:east|west)?|east|west|central|sub-saharan)\s+$", re.IGNORECASE
)
_SECOND = re.compile(  # chinese american
    r"\b(?:(?:brit|ir|pol|swed|dan|finn|turk|scott|span)ish|\w{3,}ese|\w{2,}(?:i|re|le)an)\s+$", re.IGNORECASE
)
_BODY = re.compile(  # Federation of American Scientists
    r"\b(?:Federation|Association|Society|Institute|Council|Union|Academy|Conference|League|Board|Bureau|Alliance|Congress|"
    r"Department|Ministry|Committee|Foundation|Museum|Journal|History|Church|Organi[sz]ation) (?:of|for) (?:the )?$"
)
_FOR_SOMETHING = (re.compile(r"(?:^|[.!?:]\s+|\n)[\"“‘'(]*$"), re.compile(r" for (?:the )?[A-Z][a-z]+"))
_BODY_FOLLOWS = re.compile(  # Mexican National Championship, American Family Association
    r"(?: [A-Z][\w’']*(?: ['’]s?)?){1,3} "
    r"(?:Association|Society|Institute|Council|Union|Academy|Conference|League|Board|Alliance|Congress|Committee|Foundation|Museum|Journal|Church|Cent(?:er|re)|Championships?|Act|Awards?|Party|Fund|Network|"
    r"Project|Movement|Front|Team|Cup|Day|Month|Games|Organi[sz]ation|Code|School|University|College|Hospital|Club)\b"
)
_LINKED = re.compile(  # a page's name
    r"(?:^|\W)(?:Talk|Category|User|File|Image|Template|Portal):(?:\S+ ){0,3}$|:[\w ]+/(?:\S+ ){0,4}$"
)
_OFFICES = frozenset(
    ["ceo", "cfo", "cto", "mp", "mps", "pm", "vp", "dj", "djs", "md", "gi", "gis", "mc", "phd", "vip", "wag"]
)
_PERSONAL = re.compile(r"\b(?:you|us|u)\s+(?:all\s+)?$", re.IGNORECASE)
_ENDS = re.compile(
    r"\s*(?:$|[.,;:!?)\"”’\n]|(?:and|or|but|because|who|that|when|while|if|in|on|as|like|too|yet|now|so|from)\b)", re.I
)
_LANGUAGES = frozenset(["chinese", "japanese"])
_SPOKEN = re.compile(  # "speaks English, Chinese and ", "translated into "
    r"\b(?:spe(?:ak|aks|aking)|spoken?|learn(?:s|ed|ing)?|understands?|listen(?:s|ed|ing)?(?: to)?|"
    r"knows?|knew|about|(?:is|was) (?:\w+er|more \w+|less \w+) than|teach(?:es)?|taught|stud(?:y|ies|ied|ying)|"
    r"read(?:s|ing)?|writes?|in|[Oo]ld|[Cc]lassical|[Ss]implified|[Tt]raditional|[Mm]odern|contemporary|spoken|written|translat(?:e|es|ed|ion)|into|from|"
    r"(?:dialect|speaker|grammar|vocabulary|translation|form)s? of)\s+"
    r"(?:[A-Z]\w+,?\s+(?:and\s+|or\s+|to\s+|into\s+)?){0,4}$|"
    r"\bin\s+(?:both\s+|either\s+)?(?:[A-Z]\w+,?\s+){0,3}(?:English|French|German|Spanish|Latin|Russian|Korean|Arabic),?\s+"
    r"(?:[A-Z]\w+,?\s+){0,3}(?:and\s+|or\s+)?$"
)
_OLD_MAN = re.compile(r"\b(?:my|your|his|her|our|their)\s+$", re.IGNORECASE)  # a father, a husband, a wife
_ADDRESSED = re.compile(r"\s+(?:man|chap|boy|fellow|bean|sport|girl)\s*(?:[.,!?\"”]|$)", re.IGNORECASE)
_OLD_MEN = r"\s+(?:man|lady|woman|folks|girl|boy)\b"
_WORD = re.compile(r"\s{0,2}[\"“'‘(]?([^\W\d_][\w’']*)")


class _Idioms(NamedTuple):
    after: tuple[str, ...]
    before: tuple[str, ...]


@cache
def _idioms() -> dict[str, _Idioms]:
    after: dict[str, tuple[str, ...]] = {}
    before: dict[str, tuple[str, ...]] = {}
    for line in word_list("not_identity"):
        where = after if ":" in line else before
        token, words = re.split("[:<]", line, maxsplit=1)
        where[token.strip()] = tuple(word.replace("_", " ") for word in words.split())
    return {token: _Idioms(after.get(token, ()), before.get(token, ())) for token in {*after, *before}}


def left_because(text: str, start: int, end: int, token: str, *, plural: bool, insults: bool) -> str:
    """Why text[start:end], a form of `token`, is left as it is; "" where it is about people.

    >>> left_because("He wore a black tie.", 10, 15, "black", plural=False, insults=False)
    'idiom'
    >>> left_because("a black man", 2, 7, "black", plural=False, insults=False)
    ''
    """
    said = text[start:end]
    before, after = unmarked(text[max(0, start - 60) : start]), unmarked(text[end : end + 80])
    if (
        _joined(before, after)
        or (token in _CONTINENTS and _PART_OF.search(before))
        or (token == "american" and _SECOND.search(before))
        or (token in _category("origin") and _BASED.match(after))
    ):
        return "compound"
    if re.search(r"[/_@=#\\.:][\w-]*$", before.rsplit(" ", 1)[-1]) and not re.search(r"[.:=]$", before):
        return "address"
    if (
        _LINKED.search(before)
        or re.match(r"[/_@=#\\]\w|\.\w", after)
        or (re.search(r"[+&=]\s?$", before) and re.match(r"\s?[+&]", after))
    ):
        return "address"
    if repeated(text, start, end):
        return "repeated"
    if in_a_title(before, said, after) or (plural and said == "Blacks" and re.search(r"\b(?:the|The) All $", before)):
        return "name"  # of a song, of a rugby team
    if plural and said[:1].isupper() and _TEAM.match(after):
        return "name"  # an Indians player
    for_something = _FOR_SOMETHING[0].search(before) and _FOR_SOMETHING[1].match(after)
    if plural and for_something and said[:1].isupper() and not said.isupper():
        return "name"  # Jews for Jesus
    if said == "Indians" and re.search(r"[^.!?:\s]\s+(?!The\b)[A-Z]\w+\s$", before):
        return "name"  # of a team or a nation: the Plains Indians
    if plural and said[:1].isupper() and not said.isupper() and _group(before):
        return "name"  # of a group: Real Torah Jews
    if said == "Christian" and re.search(r"\bmarried\s$", before) and _RELATED.match(after):
        return "name"
    if token in ("old", "older", "younger") and re.search(
        r"(?:\b(?:years?|months?|weeks?|days?|yrs?|yr|y)[\s-]*|\d\s*)$", before, re.IGNORECASE
    ):
        return "age"
    if _idiom(before, after, token) or (token == "old" and _OLD_MAN.search(before) and re.match(_OLD_MEN, after)):
        return "idiom"
    if token == "old" and (_OLD_FRIENDS.match(after) or re.search(r"\b(?:dear|good)\s+$", before, re.IGNORECASE)):
        return "idiom"  # friends of long standing
    if token == "young" and _young_adult(after):
        return "idiom"
    if token == "old" and re.search(r",\s*$", before) and _ADDRESSED.match(after):
        return "idiom"  # Cheers, old man.
    if not insults and insulted(before, said, after, plural=plural):
        return "insult"
    if not plural and _OF_AN_ANIMAL.search(before):
        return "no person"
    if token in _LANGUAGES and not plural and not _being_one(before, after) and _language(before, after):
        return "language"
    if spoken_about(before, after):
        return "word"
    if _names_thing(before, said, after, token, plural):
        return "thing"
    if not plural and _part_of_a_name(before, said, after):
        return "name"
    noun = said.lower() != token  # whites, straights, a teenager: people
    leading = re.search(r"([\w-]+)\s+$", before)
    if noun and token == "teenage" and leading is not None and identity_word(leading[1]):
        return "noun"  # an LGBT teenager: the word before says who
    if token in VAGUE and not noun and not _about_somebody(before, after, token):
        return "" if token in ("male", "female") and _stands_alone(before, after) else "no person"
    return ""


def _young_adult(after: str) -> bool:
    """Of books: "young adult fiction"; not "young adult patients", "a young adult who"."""
    follows = re.match(r"[\s-]+adult\s+([a-z]+)", after, re.IGNORECASE)
    word = "" if follows is None else follows[1].lower()
    return word not in {""} | words_of("not_after_possessive") | words_of("verbs") and not names_people(word)


def _group(before: str) -> bool:
    """Two words with a capital before it, within a sentence, that are neither common nor an identity."""
    found = re.search(r"[^.!?:;\n\s\"]\s+([A-Z][a-z]+)\s([A-Z][a-z]+)\s$", before)
    return found is not None and not any(
        _common(word) or identity_word(word) or _another_identity(word) or listed_people(word)
        for word in found.groups()
    )


def _stands_alone(before: str, after: str) -> bool:
    """Somebody: "a white male.", "the female who"; not "a female name"."""
    like = re.search(r"\b(?:fe)?male\s+(\w+)(?:\s+the\s+(species))?", before, re.IGNORECASE)
    if like is not None and not names_people(like[1]):
        small = like[1] in words_of("not_after_possessive") | words_of("verbs") and like[2] is None
        if re.match(r"\s+ones?\b", after) or (re.search(r"\bthe\s+$", before) and not small):
            return False  # the female connector and the male one; the female wren and the male
    if re.search(
        r"\b(?:juvenile|immature|breeding|mature|alpha|dominant|mated|spotted|adult|larger|smaller)\s+$", before, re.I
    ):
        return False  # of an animal
    one = re.search(r"\b(?:an?|one|every|another|any|either|that|this|the)\s+(?:\w+\s+)?$", before, re.IGNORECASE)
    acts = re.match(r"\s+(?:i|you|s?he|they|we|is|was|are|were|has|had|with|can|will|would|at|of|ones?)\b", after, re.I)
    return one is not None and (acts or _ENDS.match(after)) is not None


def _being_one(before: str, after: str) -> bool:
    """Whether somebody is it, though the sentence does not say who: "Being old is no crime", "fired for being old"."""
    if _TO_BE_ONE[0].search(before) and _TO_BE_ONE[1].match(after):
        return True
    return _BEING_ONE.search(before) is not None and _ENDS.match(after) is not None


def _joined(before: str, after: str) -> bool:
    """Part of a hyphenated word: 97-year-old, old-fashioned, Indo-European; gay-friendly is about people."""
    following, leading = re.match(r"[-‐‑–](\w+)", after), re.search(r"(\w+)[-‐‑]$", before)
    if re.search(r"\w(?:an|ish|ese|ino|ic)\s[-‐‑]\s$|\b(?:afro|anglo|euro|indo|sino|franco)\s$", before, re.I):
        return True  # serbian - american, afro american
    if after.startswith("+"):  # LGBTQ+
        return True
    if following is not None and following[1].lower() not in _JOINED_AFTER:
        return True
    return leading is not None and leading[1].lower() not in _JOINED_BEFORE


def _idiom(before: str, after: str, token: str) -> bool:
    known = _idioms().get(token)
    if known is None:
        return False
    following = re.sub(r"[\s-]+", " ", after.lower()).lstrip(" ,'\"“”’")
    leading = re.sub(r"[\s-]+", " ", before.lower()).rstrip()
    if any(re.match(rf"{re.escape(w)}(?!\w)", following) for w in known.after):
        both = re.match(r"\s+and\s+[\w]+\s+(\w+)", after)  # black and white people
        return both is None or not names_people(both[1])
    described = _WORD.match(after)
    if described is not None and names_people(described[1]):  # "I think straight people"
        return False
    return any(re.search(rf"(?<!\w){re.escape(w)}$", leading) for w in known.before)


@cache
def _category(name: str) -> frozenset[str]:
    return frozenset(identity_categories()[name]) - {"black", "white"}  # judged by what they describe


def _names_thing(before: str, said: str, after: str, token: str, plural: bool) -> bool:
    """Indian restaurant, Buddhist temples, gay bars, "it's Mexican": what something is like, not who somebody is."""
    if plural or token not in _category("origin") | _category("religion") | _category("orientation"):
        return False
    if OF_IT.search(before) and _ENDS.match(after) and token not in _category("orientation"):
        return True
    shared = _SHARED.match(after)
    rest = after if shared is None else after[shared.end() :]
    bracket = "" if before[-1:] not in ("(", '"', "“", "‘") else r"[)\"”’]*"  # "Christian" radio
    follows = re.match(rf"{bracket}\s+([^\W\d_]+)(?![\w’'-])", rest)
    if follows is None:
        return False
    word = follows[1].lower()
    if token in _category("orientation") and _PREDICATIVE.search(before):
        return False  # Tom is gay lol
    listed = {word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word)}
    next_word = re.match(r"\s+([^\W\d_]+)", rest[follows.end(1) :])
    head = "" if next_word is None else next_word[1].lower()
    if not listed.isdisjoint(words_of("things")):
        return head == "being" or not listed_people(head)  # American college graduates
    if head in DETERMINERS - {"that", "all", "most"} and _ONE.search(before):
        return False  # a Taoist shares the flat: a verb
    if follows[1].isupper() and not said.isupper() and len(word) > 1:
        return word not in _OFFICES  # Japanese SVG, an American CEO
    if not (follows[1].islower() or said.isupper()):
        return False
    # Nearly everything has an origin (Canadian maple syrup), so an unknown word is a thing rather than somebody.
    phrase = _phrase(rest[follows.start(1) :])
    if not phrase or any(identity_word(w) or _says_somebody(phrase, i) for i, w in enumerate(phrase)):
        return False
    known = words_of("of_people") | words_of("verbs")
    often = word in ("daily", "weekly", "monthly", "quarterly")  # papers
    return word not in known and (often or re.search(r"(?:ed|ing|....ly)$", word) is None)


def _says_somebody(words: list[str], at: int) -> bool:
    """Whether the word names people and is not said of a thing: "young editors", not "teenage racist blogs"."""
    following = words[at + 1].lower() if at + 1 < len(words) else ""
    if words[at].lower() in ("male", "female") and following:  # a white male pug; a white male who
        return names_people(following) or following in words_of("not_after_possessive") | words_of("verbs")
    return names_people(words[at]) and following.removesuffix("s") not in words_of("things")


def _identity_of_somebody(token: str, after: str, word: str) -> bool:
    """Whether the identity after a vague word is somebody's: "an old Japanese man", not "an old Japanese car"."""
    at = after.index(word)
    rest, lowered = after[at + len(word) :], word.lower()
    if lowered not in identity_words():  # a plural
        return True
    if lowered in VAGUE:
        return _ENDS.match(rest) is not None or _about_somebody(f"{token} ", rest, lowered)
    return not _names_thing(f"{token} ", word, rest, lowered, plural=False)


def _phrase(text: str) -> list[str]:
    """The first words up to three, in small letters, as far as they belong together: "sex with men" is "sex"."""
    found = re.match(r"([^\W\d_]+)(?:\s+([^\W\d_]+))?(?:\s+([^\W\d_]+))?", text)
    words = [] if found is None else [each.lower() for each in found.groups() if each is not None]
    ends = (i for i, word in enumerate(words) if word in words_of("not_after_possessive"))
    return words[: next(ends, len(words))]


def _language(before: str, after: str) -> bool:
    """ "speaks Chinese", "Chinese is hard"; not "the Chinese are", "from Chinese parents"."""
    follows = _WORD.match(after)
    if follows is not None and names_people(follows[1]):
        return False
    if re.search(r"\bthe $", before, re.I) and re.match(r"\s+(?:is|was|means|says|reads|where it|for \w+ is)\b", after):
        return True  # people would be many: the Chinese are
    if re.search(r"\b(?:term|word|name|spelling|translation)s?\b.{0,40}\bfor the $", before):
        return True
    if (
        re.match(r"\s+(?:is|was|has)\b", after)
        and re.search(r"\b(?:an?|the|every|this|that)\s+(?:\w+\s+)?$", before, re.I) is None
    ):
        return re.search(r"\b(?:he|she|who|wife|husband|father|mother)\s+(?:\w+\s+)?$", before, re.I) is None
    ends = _ENDS.match(after) or re.match(
        r"\s+(?:\(|(?:at|every|for|with|well|fluently|from|to|into|very|quite|badly)\b)", after
    )
    return _SPOKEN.search(before) is not None and ends is not None


def _part_of_a_name(before: str, said: str, after: str) -> bool:
    """Black Sabbath, White House, Claudia Black, South African, Irish American."""
    if not said[:1].isupper() or (len(said) > 1 and said.isupper()):
        return False
    following = re.match(r" (?!I\b)([A-ZÀ-Þ][\w’']*)", after)  # As a Christian I believe
    if (
        _BODY_FOLLOWS.match(after)
        or (following is not None and _BODY.search(before))
        or re.search(r"\b(?:bin|ibn|van|von|der|del|da) $", before)
    ):
        return True
    if following is not None and not listed_people(following[1]) and not _another_identity(following[1]):
        return not following[1].isupper() or len(following[1]) < 2
    leading = re.search(r"([.!?:\n]|^)?\s?([A-ZÀ-Þ][\w’'.]*) $", before)
    if leading is None or leading[1] is not None or re.search("['’]s?$", leading[2]):
        return False
    if re.match(r"\s*\?", after) and re.search(r"\b(?:is|was) (?:\w+ )?\S+ $", before, re.IGNORECASE):
        return False  # Is Tom Lee Muslim?
    if re.fullmatch(r"\w{4,}\.", leading[2]):  # the end of a sentence, not a short "St." or "J."
        return False
    first = leading[2].lower().rstrip(".")
    return first in _WHOLE or re.search(r"(?:ish|ian|ese|ean|an)$", first) is not None or not _common(leading[2])


def _another_identity(word: str) -> bool:
    """American Jews, Black Muslims, White Christian."""
    lowered = word.lower()
    return (
        identity_word(word)
        or re.search(r"(?:[ice]ans?|germans?|uslims?|jews?|hists?|heists?|hindus?|olics?|kids?)$", lowered) is not None
        or re.fullmatch(r"(?:chin|japan|vietnam|portugu|leban|nepal|sudan|congol|burm|taiwan)ese", lowered) is not None
    )


def _common(word: str) -> bool:
    """A word that begins sentences or titles rather than names."""
    return word.lower() in words_of("not_after_possessive") or word.lower() in (
        *("many", "most", "some", "all", "no", "every", "dear", "stupid", "fucking", "hey", "well", "yes", "our"),
        *("young", "old", "openly", "proud", "good", "bad", "few", "other", "gay", "straight", "black", "white"),
    )


def _given_name(word: str) -> bool:
    return word in all_known_names()


def _about_somebody(before: str, after: str, token: str) -> bool:
    """Something says that the word describes a person: what follows, what it is said of, or who is addressed."""
    words: list[str] = []
    rest = after = re.sub(rf"^(?:\s*,\s*{token}\b)+", "", after, flags=re.IGNORECASE)  # an old, old man
    while len(words) < 3 and (found := _WORD.match(rest)) is not None:
        words.append(found[1])
        rest = rest[found.end() :]
        if re.match(r"[.;:!?\n]", rest) or (rest.startswith(",") and len(words) > 1):
            break
    for i, word in enumerate(words):
        if _says_somebody(words, i) or (i == 0 and identity_word(word) and _identity_of_somebody(token, after, word)):
            return True
        if word.lower() in DETERMINERS or word.lower() in ("is", "are", "was", "were"):
            break  # all white many people: what follows is somebody else
        if i == 0 and word.lower() in words_of("not_after_possessive") and word.lower() not in ("and", "or"):
            break
    if re.match(r"\s*,\s*(?:\w+\s+){0,2}", after) and any(map(identity_word, re.findall(r"\w+", after)[:2])):
        return True
    paired = re.search(r"(\w+)\s*(?:,|\bor|\band)\s+$", before)
    if paired is not None and _ENDS.match(after) and identity_word(paired[1]) and paired[1].lower() not in VAGUE:
        return True  # queer or straight?
    several = token not in ("male", "female") and re.search(r"\b(?:for|of|to|by|with|among|help) the $", before, re.I)
    if several and re.match(r"\s*(?:$|[.;!?]|,\s(?!\w+,?\s+\w+\s+of\b))", after):
        return True  # books for the blind. Not: of the older, lower number of
    if re.search(r"\bthe\s+$", before, re.I) and re.match(r"\s+(?:are|were|have|who|and the)\b", after, re.I):
        return True  # the deaf are ...
    if _being_one(before, after):
        return True
    if token in _SENSES and _ENDS.match(after) and (_BECOMES.search(before) or re.match(r"\s+from birth\b", after)):
        return True
    said_of = _SAID_OF_ONE.search(before)
    if said_of is not None and _ENDS.match(after) and (names_people(said_of[1]) or _given_name(said_of[1])):
        return True  # his mother is white, Peter is blind
    return (_PREDICATE.search(before) is not None and _ENDS.match(after) is not None) or (
        _PERSONAL.search(before) is not None
    )
