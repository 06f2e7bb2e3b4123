"""Gender: the same text about a person of the other gender."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from evenhand.counterfactuals.antecedents import FEMALE, MALE
from evenhand.counterfactuals.bystanders import only_person
from evenhand.counterfactuals.capitals import as_usual
from evenhand.counterfactuals.certainty import doubt
from evenhand.counterfactuals.given_names import other_names
from evenhand.counterfactuals.names import namesake, other_word, second_name, subject_name
from evenhand.counterfactuals.nouns import (
    PERHAPS_ANOTHER,
    UNSURE,
    describes_subject,
    gendered_nouns,
    left_noun,
    other_people,
)
from evenhand.counterfactuals.places import part_of_a_place
from evenhand.counterfactuals.possessives import owned_follows
from evenhand.counterfactuals.preview import Change, Preview, Site, change
from evenhand.counterfactuals.short_names import called_too, short_form
from evenhand.counterfactuals.texts import around, as_texts, check_passage, cleaned, foreign, like_case, with_article
from evenhand.counterfactuals.titles import TITLES, left_title
from evenhand.counterfactuals.unlisted import unlisted_subject
from evenhand.variations import Variations

__all__ = ["GenderSwap"]

_PRONOUNS = {"he": "she", "she": "he", "himself": "herself", "herself": "himself", "him": "her", "hers": "his"}
_HONOURS = {"sir": "dame", "dame": "sir", "lord": "lady", "lady": "lord", "sister": "brother", "brother": "sister"}
_HONOURS |= {"father": "mother", "mother": "father"}  # of a church
_SEXES = {"male": "female", "female": "male"}
# Both are said, of anybody: "his or her laptop", "he/she", "s/he".
_BOTH = re.compile(
    r"\b(?:s/he|\(s\)he|(?:she|her|hers|herself)\s*(?:/|\bor\b)\s*(?:he|him|his|himself)|"
    r"(?:he|him|his|himself)\s*(?:/|\bor\b)\s*(?:she|her|hers|herself))(?!\w)|\(s\)he\b",
    re.IGNORECASE,
)
_MAJESTY = re.compile(  # Her Majesty; in "her honour" it is the subject's
    r"\s+(?:Royal|Imperial|Majesty|Highness|Excellency|Holiness|Ladyship|Lordship|Honou?r\b(?!\s+(?:the|roll|society)\b)|Grace\s+the)"
)
_WITHIN = re.compile(r"[a-z]{2}\s+$")
_SHORT, _WITH_SHORT = 3, 4  # kinds of sites: a nickname beside the name, and a name that has one
_START, _END = r"(?<![\w])", r"(?![\w])"


class GenderSwap:
    """Two versions of each text that says a gender: the original, and he for she, his for her, Mr for Ms, and so on.

    nouns: also swap common gendered nouns for one person (actress, businessman, a mother of two;
        `words/gendered_nouns.txt`). They are left in names and compounds ("Lady Gaga", "best man", "man-made"), in the
        plural, and where they are somebody else's: the subject's relatives stay as they are ("her father"), the partner
        changes with the subject ("her husband" -> "his wife") unless a name follows.
    names: (male names, female names); the given name of the person the text is about, at the beginning of a sentence,
        is replaced by a random one of the other list, alike in all its places. Names of other people, of places and of
        organisations are left. `names_in(texts)` finds names in the data. The draw depends on `random_state` and on the
        text itself only.

    sure: with nouns or names, leave texts in which the rules cannot tell of whom a word is said: pronouns of both
        genders, a name that may be the subject's and cannot be swapped, a noun of which nothing says whose it is. False
        swaps what can be swapped in them, too, often half of a person.

    passage: None, or a number of words: of a longer text only so many around the first word that is swapped are taken,
        in both versions; for encoders that read the beginning of a text only.

    everywhere: swap every word and every name of the lists wherever it stands, as the paper does.

    `preview(texts)` shows what is swapped and what is left, and why.

    "her" is "his" before what somebody owns ("her book") and "him" otherwise ("saw her in Rome"); "his" is "hers"
    where nothing that is owned follows ("a friend of his."). Swapping twice gives the text back, except where
    English does not: "Mrs" and "Miss" come back as "Ms", an object pronoun before a noun ("gave him money") as "his",
    and names are drawn anew.

    A lexical swap is not a causal counterfactual: it changes the word and nothing of what would follow from it.

    >>> GenderSwap()(["She took her book with her.", "It rained."])
    Variations of 1 individuals x 2 versions
    >>> GenderSwap()(["She took her book with her."]).values[0, 1]
    'He took his book with him.'
    """

    def __init__(
        self,
        *,
        nouns: bool = False,
        names: tuple[Sequence[str], Sequence[str]] | None = None,
        sure: bool = True,
        passage: int | None = None,
        everywhere: bool = False,
        random_state: int = 0,
    ) -> None:
        self.nouns, self.everywhere, self.sure = nouns, everywhere, sure
        self.names = names
        check_passage(passage)
        self.passage, self.random_state = passage, random_state
        self._nouns = gendered_nouns() if nouns else {}
        self._swap = _HONOURS | _SEXES | _PRONOUNS | TITLES | self._nouns
        self._others = {} if names is None else other_names(*names)
        self._all = frozenset(self._others)
        self._male = frozenset() if names is None else frozenset(names[0])
        named = {male: [n for n in self._others if (n in self._male) == male] for male in (True, False)}
        self._first = {male: (some[0], some[1 % len(some)]) for male, some in named.items() if some}
        self._own = {male: frozenset(some) for male, some in named.items()}
        self._name = re.compile(_either(self._others)) if self._others else None
        more = [*self._nouns, *(_SEXES if nouns else ()), *(_HONOURS if names is not None and not everywhere else ())]
        self._pattern = re.compile(_either([*_PRONOUNS, *TITLES, *more, "his", "her"]), re.IGNORECASE)

    def __repr__(self) -> str:
        return f"GenderSwap(nouns={self.nouns}, names={'none' if self.names is None else len(self._others)})"

    def __call__(self, texts: Iterable[str]) -> Variations:
        """The two versions of the texts that say a gender: values (g, 2) of strings, rows (g,)."""
        values: list[tuple[str, str]] = []
        rows: list[int] = []
        for row, text in enumerate(as_texts(texts)):
            clean = cleaned(text)
            sites = [site for site in self.sites(clean) if not site.left]
            if sites:
                start, end = 0, len(clean)
                if self.passage is not None:
                    start, end = around(clean, sites[0].start, self.passage)
                whole = (start, end) == (0, len(clean))
                values.append((text if whole else clean[start:end], self._joined(clean, text, sites, start, end)))
                rows.append(row)
        table = np.empty((len(values), 2), dtype=object)
        for i, pair in enumerate(values):
            table[i] = pair
        return Variations(table, np.array(rows, dtype=np.intp))

    def swap(self, text: str) -> str | None:
        """The text with the other gender, or None if it says none."""
        clean = cleaned(text)
        sites = [site for site in self.sites(clean) if not site.left]
        return self._joined(clean, text, sites, 0, len(clean)) if sites else None

    def _joined(self, clean: str, text: str, sites: list[Site], start: int, stop: int) -> str:
        """The passage clean[start:stop] with the other gender at its sites."""
        pieces: list[str] = []
        end = start
        for site in sites:
            if start <= site.start and site.end <= stop:
                written = self._written(clean, text, site)
                pieces += [with_article(clean[end : site.start], written), written]
                end = site.end
        return "".join([*pieces, clean[end:stop]])

    def alike(self, texts: Iterable[str]) -> Variations:
        """The texts that say a gender in two forms, as it is and as the other one, the same two for both versions.

        Names are always the first of their list, "Mrs" and "Miss" are "Ms", and "him" is judged as "her" is: a model
        that reads the mean of the two forms cannot tell the versions of a text apart.

        >>> GenderSwap().alike(["Mrs Lee took her book with her."]).values.tolist()
        [['Mr Lee took his book with him.', 'Ms Lee took her book with her.']]
        """
        values: list[list[str]] = []
        rows: list[int] = []
        for row, text in enumerate(map(cleaned, as_texts(texts))):
            sites = [site for site in self.sites(text) if not site.left]
            if sites:
                values.append(sorted(self._spelt(text, sites, other=other) for other in (False, True)))
                rows.append(row)
        table = np.empty((len(values), 2), dtype=object)
        for i, pair in enumerate(values):
            table[i] = pair
        return Variations(table, np.array(rows, dtype=np.intp))

    def preview(self, texts: Iterable[str], show: int = 12) -> Preview:
        """What would be swapped in the texts, and what is left and why."""
        listed, swapped, unsure = as_texts(texts), 0, 0
        changes: list[Change] = []
        left: list[Change] = []
        for row, text in enumerate(listed):
            clean = cleaned(text)
            sites = self.sites(clean)
            swapped += any(not site.left for site in sites)
            unsure += any(site.left.startswith("unsure") for site in sites)
            for site in sites:
                written = "" if site.left else self._written(clean, text, site)
                (left if site.left else changes).append(change(row, clean, site, written))
        return Preview(tuple(changes), tuple(left), len(listed), swapped, show, unsure)

    def sites(self, text: str) -> list[Site]:
        """Every place that says a gender, also those that are left."""
        if self.everywhere:
            words = [(0, m) for m in self._pattern.finditer(text)]
            names = [] if self._name is None else [(1, m) for m in self._name.finditer(text)]
            kinds = sorted([*words, *names], key=lambda pair: pair[1].start())
            return [Site(m.start(), m.end(), m[0], (k, m[0] if k else m[0].lower())) for k, m in kinds]
        written, text = text, as_usual(text, self._all)
        if foreign(text):
            said = [*self._pattern.finditer(text), *([] if self._name is None else self._name.finditer(text))]
            left = [
                Site(m.start(), m.end(), written[m.start() : m.end()], (0, m[0].lower()), "not English") for m in said
            ]
            return sorted(left, key=lambda site: site.start)
        subject, male, called = self._subject(text)
        others = other_people(text, subject) - called if self._nouns else frozenset[str]()
        both = [m.span() for m in _BOTH.finditer(text)]
        anybody = bool(both) and not any(said.search(_BOTH.sub("", text)) for said in (MALE, FEMALE))
        found = []
        for m in self._pattern.finditer(text):
            of_both = any(start <= m.start() < end for start, end in both) or (anybody and m[0].lower() in self._nouns)
            honour = (
                subject is not None and m[0][0].isupper() and m[0].lower() in _HONOURS and _before(text, m, subject)
            )
            why = "both genders" if of_both else "" if honour else self._left(text, m, subject, male, others)
            kind = (-1 if honour else 0, m[0].lower())  # Sir Alfred -> Dame Emma
            found.append(Site(m.start(), m.end(), written[m.start() : m.end()], kind, why))
        if self._name is not None:
            found += self._name_sites(text, written, subject, male is True, called)
        return self._told(text, sorted(found, key=lambda site: site.start), subject, called)

    def _told(self, text: str, sites: list[Site], subject: str | None, called: frozenset[str]) -> list[Site]:
        """The sites of a text of which the rules can tell of whom it speaks; else they are all left, and say why."""
        if not self.sure or not (self._nouns or self._name):
            guessed = {UNSURE: "", PERHAPS_ANOTHER: "somebody else"}
            return [replace(site, left=guessed.get(site.left, site.left)) for site in sites]
        unsure = next((site.left for site in sites if site.left in (UNSURE, PERHAPS_ANOTHER)), "")
        unsure = unsure or doubt(_BOTH.sub("", text), sites, subject, called, self._name is not None)
        return [replace(site, left=site.left or unsure) for site in sites] if unsure else sites

    def _subject(self, text: str) -> tuple[str | None, bool | None, frozenset[str]]:
        """The given name of the person the text is about, whether it is a man's, and what else the text calls them."""
        if self._name is None:
            return None, None, frozenset()
        found = unlisted_subject(text)
        if found is None:
            name = subject_name(text, self._name, self._male)
            if name is None and self.sure:
                name = only_person(text, self._own[True], self._own[False])
            found = None if name is None else (name, name in self._male)
        if found is None:
            return None, None, frozenset()
        name, male = found
        return name, male, called_too(text, name, self._own[male])

    def _name_sites(
        self, text: str, written: str, subject: str | None, male: bool, called: frozenset[str]
    ) -> list[Site]:
        """Every given name, also those that are left."""
        assert self._name is not None
        matches = {m.start(): m for m in self._name.finditer(text)}
        own = {subject, *called} - {None}
        if not own <= self._others.keys():  # names of no list
            matches |= {m.start(): m for m in re.finditer(_either(map(str, own)), text)}
        nicknames = {
            m.start()
            for m in matches.values()
            if m.group() in called and text[: m.start()].rstrip()[-1:] in tuple("\"“‘'(")
        }
        paired = bool(nicknames) and any(map(short_form, self._own[not male]))  # William "Billy" Lee
        found = []
        for m in matches.values():
            nickname = m.start() in nicknames
            mine = m.group() in own and (nickname or not part_of_a_place(text, m.start(), m.end()))
            mine = mine and not other_word(text, m.start(), m.end()) and not namesake(text, m)
            second = not mine and subject is not None and second_name(text, m, subject, male, self._male)
            why = "" if mine or second else "somebody else, a place or an organisation"
            name = m.group() if nickname or m.group() not in called else str(subject)  # Thomas ... Tom: one other name
            listed = name in self._own[male] or (name in self._others and name not in called)  # Winifred "Freddie" Lee
            key = name if listed else self._first[male][name in called]
            kind = 2 if second else 1
            if paired and mine:
                kind = _SHORT if nickname else _WITH_SHORT
                key = str(subject) if subject in self._own[male] else self._first[male][0]
            found.append(Site(m.start(), m.end(), written[m.start() : m.end()], (kind, key), why))
        return found

    def _left(
        self, text: str, match: re.Match[str], subject: str | None, male: bool | None, others: frozenset[str]
    ) -> str:
        """Why the word stays; pronouns never do."""
        word = match.group().lower()
        before, after = text[max(0, match.start() - 120) : match.start()], text[match.end() : match.end() + 40]
        if word in TITLES:
            return left_title(text, match, subject, male)
        if word in ("his", "her") and match.group()[:1].isupper() and _MAJESTY.match(after):
            return "name"
        if word in ("his", "him", "he", "himself") and match.group() == word.capitalize() and _WITHIN.search(before):
            return "name" if before.endswith(" of ") else UNSURE  # the bundle of His; God in His mercy
        if word in _SEXES and match.group()[0].isupper() and re.match(r"\s+[A-ZÀ-Þ]", after):
            return "name"  # the Male Choir
        if word in _SEXES and word not in self._nouns:
            return "" if _of_one_person(word, before, subject) else "no person"
        if word in _HONOURS and word not in self._nouns:
            return "name"
        return left_noun(word, match, before, after, subject, others) if word in self._nouns else ""

    def _spelt(self, text: str, sites: list[Site], *, other: bool) -> str:
        """The text in one spelling of either gender: as it is, or as the other one."""
        pieces: list[str] = []
        end = 0
        for site in sites:
            word = self._one_spelling(text, site, other)
            word = word.lower() if site.said.islower() else like_case(word, site.said)
            pieces += [with_article(text[end : site.start], word), word]
            end = site.end
        return "".join([*pieces, text[end:]])

    def _one_spelling(self, text: str, site: Site, other: bool) -> str:
        """What a version and its own other version have in common: "him" may come back as "his", "hers" as "her"."""
        kind, word = site.kind
        if kind > 0:  # always the first names of the lists
            names = self._others[word] if other else self._others[self._others[word][0]]
            return names[(kind - 1) % len(names)]
        if word in ("his", "hers", "him", "her"):
            if (word in ("her", "hers")) != other:
                return "her"
            of_somebody = word in ("his", "hers") or owned_follows(text, site.start, site.end)
            return "his" if of_somebody else "him"
        if word in TITLES:
            return "mr" if (word == "mr") != other else "ms"
        swapped = _HONOURS[word] if kind < 0 else self._swap[word]
        if kind < 0:
            return swapped if other else word
        return swapped if other else self._swap.get(swapped, swapped)  # a hostess is a host in both

    def _written(self, clean: str, text: str, site: Site) -> str:
        kind, word = site.kind
        if kind > 0:
            first = ""
            if kind == 2:  # after the first name, which has one of its own
                before = clean[max(0, site.start - 60) : site.start].split()[-1]
                before = before if before in self._others else before.capitalize()
                before = before if before in self._others else self._first[word in self._male][0]  # a name of no list
                first = _drawn(tuple(self._others[before]), text, f"{self.random_state}:{before}", "")
            names = tuple(self._others[word])
            if kind in (_SHORT, _WITH_SHORT):  # Robert "Bob" Lee
                names = tuple(filter(short_form, names))
            drawn = _drawn(names, text, f"{self.random_state}:{word}", first)
            drawn = short_form(drawn) if kind == _SHORT else drawn
            return drawn.lower() if site.said.islower() else like_case(drawn, site.said)
        if kind < 0:
            return like_case(_HONOURS[word], site.said)
        if word in ("his", "her"):
            owns = owned_follows(clean, site.start, site.end)
            return like_case(("her" if owns else "hers") if word == "his" else ("his" if owns else "him"), site.said)
        return like_case(self._swap[word], site.said)


def _before(text: str, match: re.Match[str], name: str) -> bool:
    return re.compile(rf"\s+{re.escape(name)}\b").match(text, match.end()) is not None


@lru_cache(maxsize=64)
def _drawn(names: tuple[str, ...], text: str, seed: str, taken: str) -> str:
    """The name that stands for another in the whole text; kept, as a long text may have it many times."""
    drawn = [name for name in names if name not in text] or list(names)
    drawn = [name for name in drawn if name != taken] or drawn
    return random.Random(f"{seed}:{text}").choice(drawn)


def _either(words: Iterable[str]) -> str:
    """Any of the words, whole: a tree by their letters, so that a long list is not tried word by word."""
    return f"{_START}{_tree(frozenset(words))}{_END}"


def _tree(words: frozenset[str]) -> str:
    after: defaultdict[str, set[str]] = defaultdict(set)
    for word in words - {""}:
        after[word[0]].add(word[1:])
    branches = [re.escape(letter) + _tree(frozenset(rest)) for letter, rest in sorted(after.items())]
    some = f"(?:{'|'.join(branches)})" if branches else ""
    return f"{some}?" if some and "" in words else some


def _of_one_person(word: str, before: str, subject: str | None) -> bool:
    """ "is the first female ", "Peter, a male "; not "works with female "."""
    apposition = rf"{re.escape(subject)}(?:\s+[A-ZÀ-Þ][\w’'-]+)?,\s+an?\s+$" if subject is not None else r"(?!)"
    return describes_subject(word, before, subject, male=word == "male") or re.search(apposition, before) is not None
