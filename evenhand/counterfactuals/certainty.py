"""Whether the rules can tell of whom a text speaks. Where they cannot, it has no other version.

A person who is a woman in one word of a text and a man in the next is nobody's counterfactual. Rules without a parser
know the plain cases; this file knows the others: two people by their pronouns, a name that may be the subject's and
cannot be swapped, a noun of which nothing says whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from evenhand.counterfactuals.antecedents import FEMALE, MALE
from evenhand.counterfactuals.bystanders import somebody_else
from evenhand.counterfactuals.given_names import all_known_names, known_names, vague_name
from evenhand.counterfactuals.kept import keeps_gender
from evenhand.counterfactuals.mentions import says_what
from evenhand.counterfactuals.nouns import PARTNERS, PREFIX, gendered_nouns, men_nouns
from evenhand.counterfactuals.people import names_people
from evenhand.counterfactuals.places import ENDED, ROLES, TITLE
from evenhand.counterfactuals.preview import Site
from evenhand.counterfactuals.texts import words_of

__all__ = ["OF_ONE_GENDER", "ONE_OF_SEVERAL", "TWO_PEOPLE", "WHOSE_NAME", "doubt"]

TWO_PEOPLE = "unsure: two people"
WHOSE_NAME = "unsure: whose name"
ONE_OF_SEVERAL = "unsure: one of several"
OF_ONE_GENDER = "unsure: said of one gender only"

_CAPITAL = r"[A-ZÀ-Þ][\w’'-]*[\wà-ÿ]"
_RANKS = r"(?:Princess|Prince|Queen|King|Lady|Lord|Sir|Dame|Mr|Mrs|Ms|Miss)"
_RANK = re.compile(  # what stands before the subject's name says a gender, and stays: Princess Ludovica studied law
    rf"(?:{ENDED}(?:The\s+)?|\b(?:as|called|call(?:s|ed)?\s+(?:him|her))\s+)"
    r"(?:Princess|Prince|Queen|King|Duchess|Duke|Countess|Count|Baroness|Baron|"
    r"Empress|Emperor|Cardinal|Pope|Fr\.?|Madame|Mademoiselle|Frau|Herr|Señora|Señor|Signora|Signor|Monsieur|Tsar|Tsarina|Sultan|Sheikha|"
    r"Alhaji|Alhaja|Hajia|Hajiya|Emir|Maharaja|Maharani|Shrimati|Smt\.?|"
    r"Abbess|Prioress|Mama|Papa|(?:(?:Great|Step)-)?(?:Auntie|[Aa]unt|[Uu]ncle)|Grandpa|Grandma)\s+[A-ZÀ-Þ]"
)
_SEX_OF_ONE = re.compile(r"\s+(?:[a-z-]+\s+)?([a-z\[\]-]+)")
_OF_ONE_GENDER = re.compile(  # a doctor of either gender may care for pregnant women
    r"\b(?:first\s+(?:[a-z-]+\s+){0,2}(?:wo)?man\s+(?:to|in|ever|of|on|since)|(?:is|was|be|became|become|been|being|while|when|months|heavily)\s+(?:[a-z]+ly\s+)?pregnant|"
    r"(?:gave|gives?|giving|given)\s+birth|ba[rt]\s+mitzvah|(?:his|her)\s+(?:\w+\s+)?pregnancy|pregnant\s+(?:woman|girl|wife|mother)|"
    r"(?:mater|pater)nity\s+leave|(?:his|her|s)\s+maternity|(?:his|her)\s+(?:fraternity|sorority)|(?:mother|father)-to-be|maiden\s+name|née|"
    r"(?:terminat|end|carr)(?:y|ied|ing|ying|ed)\s+(?:an?|the|her|his)\s+pregnancy|amniocentesis|(?:his|her)\s+miscarriage|"
    r"(?:his|her)\s+(?:[a-z]+\s+)?(?:boy|girl)\s?-?\s?(?:band|group)|breast-?fe(?:d|eds?|eding)|(?:an?|openly|out)\s+lesbian|expectant\s+(?:mother|father)|(?:women|men)\s+\[|bear(?:s|ing)?\s+(?:an?|his|her|their)\s+child|bore\s+(?:him|her|a|his|their)\b)(?:\b|(?<=\[))",
    re.IGNORECASE,
)
_PRIEST = re.compile(  # who leads no monastery has no title for the other gender
    r"\b(?:ordain|priest|parish|diocese|seminar|Jesuit|Franciscan|Dominican|Capuchin|convent|Superior)", re.IGNORECASE
)
_MY_NAME = re.compile(rf"\b(?:I['’]m|I\s+am|[Mm]y\s+name\s+is|[Cc]all\s+me|[Mm]eet|Introducing)\s+({_CAPITAL})")
_SAYS_OF = re.compile(  # "Georgia, from ", "Angela Ruiz enlisted "; not "Georgia is a state"
    r"(?:\s+[A-ZÀ-Þ][\w’'-]*){0,2}(?:\s?,\s+(?:from|of|who|an?|the|our|\d)\b|\s+(?!(?:and|or|of|in|on|at|for|to|by)\b)[a-z]{2,}\b"
    r"(?!\s+(?:an?|the)\s+(?:[\w-]+\s+)?(?:state|city|town|country|county|place|capital|month)\b))"
)
_CALLS_ALSO = (
    r"(?:,\s+or|\b(?:aka|alias|nicknamed|called|known\s+(?:to\s+[\w\s]+\s+)?as|goes\s+by|"
    r"call(?:s|ed)?\s+(?:him|her)(?:self)?))"
)
_BEGUN = re.compile(r"[\s\"“]*(?:(?:When|After|Before|Since|While|Once|As|Because)\s+)?(?:[A-ZÀ-Þ][\w.]*\s+){0,4}?")
_IN_PLACE = re.compile(r"\bin\s+(?:his|her)\s+(?:place|stead)\b")
_HIMSELF = re.compile(rf"(?<![\w’'-])({_CAPITAL})\s+(?:him|her)self\b")
_OTHER_NAME = re.compile(
    r"\b(?:(?:stage|pen|real|birth|maiden|full)\s+name(?:\s+(?:of|is|was|being))?|born|née|né|alias|a\.k\.a\.|aka|formerly|"
    r"(?:better|best|also)\s+known\s+as|known\s+[a-z]+ly\s+as|"
    r"calling\s+(?:him|her)self(?:\s+as)?|known\s+as|under\s+the\s+name(?:\s+of)?|credited\s+as|"
    r"pseudonym(?:\s+of)?|nom\s+de\s+plume|alter\s+ego|drag\s+name|moniker|(?:re-?)?christened|bapti[sz]ed)"
    rf"\s*(?:,\s+)?\s[\"“‘]?\s?(?:{_RANKS}\.?\s+)?({_CAPITAL})"
)
_A_TITLE = re.compile(rf"{TITLE}|{ROLES}\s")
_PATRONYMIC = re.compile(r"\s+[A-Z]\w+(?:[oe]vna|[oe]vich|ichna)\b")
_ONE_GENDER = re.compile(r"[a-z]{2}(?:(?:wo)?man|mistress|girl|boy)$|^dame$")
_NO_MAN = frozenset(["human", "superhuman", "shaman", "talisman", "ottoman", "caiman", "roman", "german", "norman"])
_NICKNAME = r"\s+(?:[A-ZÀ-Þ]\.\s+)?[\"“‘(]\s?([A-ZÀ-Þ][a-zà-ÿ]+)\s?[\"”’)]"
_HAS_PARTNER = re.compile(r"\s?['’]\s?s\s+(?:[a-z-]+\s+)?(?:wife|husband|girlfriend|boyfriend)\b")
_KIN = frozenset(
    ["brother", "sister", "son", "daughter", "uncle", "aunt", "nephew", "niece", "wife", "husband"] + ["boy", "girl"]
)


def doubt(text: str, sites: Sequence[Site], subject: str | None, called: frozenset[str], named: bool) -> str:
    """Why a text has no other version; "" where it is told apart of whom its words are said.

    sites: what would be swapped. subject: the given name of the person the text is about; called: what else the text
    calls that person. named: whether names are swapped at all.
    """
    swapped = [site for site in sites if not site.left]
    if not swapped:
        return ""
    if MALE.search(text) and FEMALE.search(text):
        return TWO_PEOPLE
    if _one_of_several().search(text):
        return ONE_OF_SEVERAL
    if _OF_ONE_GENDER.search(text):
        return OF_ONE_GENDER
    if any(site.kind in ((-1, "father"), (-1, "mother")) for site in swapped) and _PRIEST.search(text):
        return OF_ONE_GENDER
    if _partner_again(sites) or any(_HAS_PARTNER.match(text, s.end) for s in swapped if s.kind[1] in PARTNERS):
        return TWO_PEOPLE
    again = [s for s in sites if s.left and s.kind[1] in PARTNERS and re.search(r"\b[Tt]he\s+$", text[: s.start])]
    if again and any(s.kind[1] in PARTNERS for s in swapped):
        return TWO_PEOPLE  # a cook and his wife; the husband sings
    if _said_of_one(text, sites):
        return OF_ONE_GENDER
    man = _of_a_man(text, swapped)
    if keeps_gender(text, sites, subject, man):
        return OF_ONE_GENDER
    nouns = {site.kind[1] for site in swapped if site.kind[0] == 0} & gendered_nouns().keys() - set(PARTNERS)
    if any(_for_a_man(noun) != man for noun in nouns):
        return TWO_PEOPLE  # her husband became the headmaster
    if not named:
        return ""
    if _RANK.search(text):
        return WHOSE_NAME
    own = called if subject is None else called | {subject}
    changed = {(site.start, site.end) for site in swapped}
    mine = [m for m in _MY_NAME.finditer(text) if m.span(1) not in changed]
    if any(m[1] in all_known_names() or re.match(r"\s?,\s+an?\s", text[m.end() :]) for m in mine):
        return WHOSE_NAME  # I'm Anneke
    if _opens_with_a_title(text, sites) or _IN_PLACE.search(text) or _opening_name(text, sites, man):
        return WHOSE_NAME
    if subject is not None and (_calls_so(text, called) or _surname_elsewhere(text, subject)):
        return WHOSE_NAME
    if any(m.span(1) not in changed and _A_TITLE.fullmatch(f"{m[1]} ") is None for m in _HIMSELF.finditer(text)):
        return WHOSE_NAME  # the singer was Zorro Quill himself
    left = [site for site in sites if site.left and site.kind[0] > 0 and site.said in own]
    if any(re.search(rf"{ENDED}(?:[A-ZÀ-Þ][\w.]*\s+){{1,4}}$", text[: site.start]) for site in left):
        return WHOSE_NAME  # Sergeant First Class Antonio Lee ... Tony
    if any(re.search(rf"\bDr\.?\s+{re.escape(name)}\b(?!\s+[A-ZÀ-Þ])", text) for name in called):
        return WHOSE_NAME  # Robert "Bob" Lee ... Dr. Bob
    if any(m[1] not in own and _other_name(m, man) for m in _OTHER_NAME.finditer(text)):
        return WHOSE_NAME  # the stage name of Norman Tuttle
    if subject is not None and (
        _kept_nickname(text, subject, own)
        or _PATRONYMIC.match(text, text.find(subject) + len(subject))
        or _surname_first(text, subject)
        or _perhaps_surname(text, subject)
    ):
        return WHOSE_NAME  # Guillermo "Memo" Lee ... Memo teaches; Svetlana Arkadyevna
    return WHOSE_NAME if somebody_else(text, sites, own, man) else ""


def _opens_with_a_title(text: str, sites: Sequence[Site]) -> bool:
    """Lord Ashworth said that he was; Her Majesty and her dogs."""
    ranks = {"lord", "lady", "sir", "dame", "her", "his"} | gendered_nouns().keys() - _KIN  # Councilman Ray
    titles = [s for s in sites if s.left == "name" and s.kind[1] in ranks]
    return any(
        re.search(rf"{ENDED}(?:The\s+)?$", text[: site.start]) and re.match(r"\s+[A-ZÀ-Þ]", text[site.end :])
        for site in titles
    )


def _opening_name(text: str, sites: Sequence[Site], man: bool | None) -> bool:
    """The text opens with a name of the gender, which stays: "Georgia, from Georgia, said that she"."""
    first = next((site for site in sites if site.kind[0] > 0), None)
    if first is None or not first.left or man is None or not _BEGUN.fullmatch(text, 0, first.start):
        return False
    own = known_names()[not man] | words_of("names_and_towns")
    return first.said in own and _SAYS_OF.match(text, first.end) is not None


def _calls_so(text: str, called: frozenset[str]) -> bool:
    """Beatrice Lee, or Bea; Bea, as friends call her; he calls himself Bob: one name would stand for both."""
    return any(
        re.search(
            rf"{_CALLS_ALSO}\s+[\"“]?{name}\b|(?<!\w){name},\s+(?:as|to)\s+(?:\w+\s+)?(?:his|her|friends|every)", text
        )
        for name in called
    )


def _surname_elsewhere(text: str, subject: str) -> bool:
    """Irwin ... Andy Offutt Irwin; Christian Archibald Lee, of whom the second name would change; Singh."""
    if subject in ("Singh", "Kaur") or re.search(rf"\bChristian\s+{re.escape(subject)}\b", text):
        return True
    for named in re.finditer(rf"(?<!\w)((?:[A-ZÀ-Þ][\w’'-]+\s+){{1,2}}){re.escape(subject)}\b", text):
        words = named[1].split()
        if any(
            word in all_known_names() or (vague_name(word) and not _A_TITLE.fullmatch(f"{word} ")) for word in words
        ):
            return True
    return False


def _partner_again(sites: Sequence[Site]) -> bool:
    """A partner who changes is spoken of once more by a noun that stays: "a cook and his wife; the woman fell ill"."""
    if len({site.kind[1] for site in sites if not site.left and site.kind[1] in PARTNERS}) > 1:
        return True  # his wife, ex-wife and fiancée
    changed = {_for_a_man(site.kind[1]) for site in sites if not site.left and site.kind[1] in PARTNERS}
    left = {site.kind[1] for site in sites if site.left and site.kind[1] in gendered_nouns()}
    return any(_for_a_man(noun) in changed for noun in left if noun not in _KIN)


def _of_a_man(text: str, swapped: Sequence[Site]) -> bool | None:
    """The gender that the text says by its pronouns, else by the first noun or title."""
    he, she = MALE.search(text) is not None, FEMALE.search(text) is not None
    if he != she:
        return he
    men = {"mr", "sir", "lord", "male", "brother"}
    for site in swapped:
        word = site.kind[1].lower()
        if word in gendered_nouns() or word in men or word in ("ms", "mrs", "miss", "dame", "lady", "female", "sister"):
            return word in men or (word in gendered_nouns() and _for_a_man(word))
    return None


def _for_a_man(noun: str) -> bool:
    return noun in men_nouns()


def _other_name(match: re.Match[str], man: bool | None) -> bool:
    """Whether what follows "born" or "stage name of" is another given name; after "known as" only a known one."""
    sure = match[1] in all_known_names() or vague_name(match[1]) or not match[0].startswith(("known", "called"))
    return sure and _A_TITLE.fullmatch(f"{match[1]} ") is None and _may_be_given(match[1], man)


def _may_be_given(word: str, man: bool | None) -> bool:
    """Whether a word may be a given name of that gender: a known one of it, or one that is in no list."""
    male, female = known_names()
    if word not in all_known_names():
        return not (names_people(word) or says_what(word, last=True) or says_what(word, last=False))
    return man is None or word in (male if man else female)


def _said_of_one(text: str, sites: Sequence[Site]) -> bool:
    """Whether a word stays that says the gender of one person: a ballerina, a male nurse."""
    for match in re.finditer(r"(?<![\w’'-])[a-z]+(?:-[a-z]+)?(?![\w-])", text):
        prefix = re.sub(r"[a-z]+$", "", match[0])
        word = match[0][len(prefix) :] if PREFIX.fullmatch(prefix) else match[0]
        if word in words_of("gendered_words") or re.fullmatch(r"one-(?:wo)?man", word):
            return True
        if _ONE_GENDER.search(word) and word not in gendered_nouns() and word not in _NO_MAN:
            return True  # a draughtsman, a choirmistress
    for site in sites:
        if site.left and site.kind[1] in ("male", "female"):
            noun = _SEX_OF_ONE.match(text, site.end)
            if noun is not None and not noun[1].endswith("s") and (noun[1].startswith("[") or names_people(noun[1])):
                return True
    return False


def _kept_nickname(text: str, subject: str, own: frozenset[str]) -> bool:
    """Whether a nickname that stays stands for the subject elsewhere: Guillermo "Memo" Lee sings. Memo teaches."""
    found = re.search(rf"(?<!\w){re.escape(subject)}{_NICKNAME}", text)
    return found is not None and found[1] not in own and re.search(rf"\b{found[1]}\b", text[found.end() :]) is not None


def _perhaps_surname(text: str, subject: str) -> bool:
    """Whether the name stands alone throughout and may be a surname: "President Howard suffered", "Martin was born"."""
    if subject not in words_of("names_and_surnames"):
        return False
    return (
        re.search(
            rf"(?<!\w){re.escape(subject)}\s+(?:[A-Z]\.\s+|[\"“(][^\"”)]*[\"”)]\s+)?(?:[a-z]{{2,3}}\s+)?[A-ZÀ-Þ]", text
        )
        is None
    )


def _surname_first(text: str, subject: str) -> bool:
    """Zhang Wenjing; not Wei Chen, nor Chen alone."""
    second = re.search(rf"(?<!\w){re.escape(subject)}\s+([A-ZÀ-Þ][\w’'-]*)", text)
    names = words_of("surnames_first")
    return subject in names and second is not None and re.sub("['’]s$", "", second[1]) not in names


def _plural(noun: str) -> str:
    """Women, actresses, ladies."""
    if noun.endswith("man"):
        return re.sub("man$", "men", noun)
    return re.sub("y$", "ies", noun) if noun.endswith("dy") else f"{noun}es" if noun.endswith("ss") else f"{noun}s"


@cache
def _one_of_several() -> re.Pattern[str]:
    """ "one of the richest businesswomen": the subject is said to be of the gender that stays."""
    nouns = gendered_nouns().keys() | words_of("gendered_words")
    plurals = {_plural(noun) for noun in nouns} | {"wives", r"(?:fe)?male\s+[a-z\[\]]+s"}
    one = (
        r"(?:one\s+of|among(?:st)?|other|fellow|the\s+(?:first|few|only|last)|"
        r"the\s+(?:[a-z]+est|second|third|fourth|fifth|middle)(?:\s+[a-z]+)?\s+of)"  # the youngest of five boys
    )
    return re.compile(rf"\b{one}\s+(?:[\w’'-]+\s+){{0,5}}(?:{'|'.join(sorted(plurals))})\b", re.IGNORECASE)
