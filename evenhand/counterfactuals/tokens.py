"""Identity tokens: the same text, said of somebody else."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from evenhand.counterfactuals.context import VAGUE, left_because
from evenhand.counterfactuals.identities import capitalised, forms_of, known
from evenhand.counterfactuals.people import DETERMINERS, described, names_people
from evenhand.counterfactuals.preview import Change, Preview, Site, change
from evenhand.counterfactuals.texts import (
    any_of,
    around,
    as_texts,
    check_passage,
    cleaned,
    like_case,
    unmarked,
    with_article,
    words_of,
)
from evenhand.variations import Variations

__all__ = ["TokenSwap"]

_TOGETHER = frozenset(["elderly", "deaf", "blind", "old", "young", "paralyzed", "chinese", "japanese"])  # are several
_OF_SEVERAL = frozenset(["are", "were", "have", "do", "don't", "aren't", "weren't"])
_BEGINS = re.compile(r"(?:^|[.!?\n=]\s*|\b\w{2,}s,?\s+(?:and|or)\s+)$")  # Chinese are; gays, bis and trans have
_DETERMINED = re.compile(  # a, the very first, that poor
    r"\b(an?|the|any|each|every|another|one|some|no|(?<!is )(?<!was )(?:that|this))\s+"
    r"(?:(?:\w+ly|\w{2,}est|real|true|actual|proud|fellow|former|typical|only|first|second|third|last|next|other|poor|lone|single|"
    r"fucking|fuckin|filthy|dirty|born|stupid|average|good|great|bad|nice|new|old|young|elderly|deaf|blind|rich|famous|fat|ugly|"
    r"little old|self[- ]hating|most \w+)\s+){0,2}$",
    re.IGNORECASE,
)
_ANY_ONE = re.compile(
    r"\b(an?|every|another|one)\s+(?:(?!(?:am|is|are|was|were|be|been|of|to|in|on|at|by|for|with|and|or|that|man|woman|guy)\b)"
    r"[\w-]+\s+){1,3}$",
    re.IGNORECASE,
)
_YOU = re.compile(  # you dirty American!
    r"(?<!are )(?<!were )(?<!make )(?<!makes )(?<!made )(?<!call )(?<!called )\b(?:you|u)\s+"
    r"(?:(?!(?:are|were|be|look|sound|feel|act|not|say|said|mean|like|hate|love|call)\b)[\w-]+\s+){0,2}$",
    re.IGNORECASE,
)
_OVER = re.compile(r"\s*(?:$|[.,;:!?\n]|(?:and|or|but|why|who|how|when|if|so|go|get|stop)\b)", re.IGNORECASE)
_GAP, _WORD = re.compile(r"\s+"), re.compile(r"\w+")
_CALLED = re.compile(r"\s+(person|people)\b", re.IGNORECASE)  # a deaf person is what a lesbian is: one noun
_OF_THEM = re.compile(r"['’]s?(?!\w)")
READINGS = 4  # tokens of the list, or of a category, as which a text that mentions one of them is read


class TokenSwap:
    """Versions of texts in which the tokens they mention are replaced by each other token.

    tokens: words, or several words ("african american", which also matches "African-American"); or categories,
        name -> words (`identity_categories()`), and then a token is replaced by those of its own category only. Whole
        words match, in any case, the longest first, and neither zero-width nor decomposed characters hide one. A
        replacement is written in the case of what it replaces, "a" and "an" follow it, and where a noun stood ("a
        lesbian", "Jews") it is one ("a deaf person", "Muslims").
    plurals: also match "lesbians" and write "blacks"; by regular English rules for tokens outside the 50.
    everywhere: replace a token wherever it stands. By default English rules leave it where it is not about people
        (idioms, compounds, names, ages: "black market", "97-year-old", "Barry White", "straight away");
        `preview(texts)` shows what is swapped and what is left, and why. Tokens of your own have no such rules.
    insults: also replace a token that is the insult itself ("you are so gay"); without the word another thing is said.
    neutral: a last version in which the token is left out: "a gay man" -> "a man", "Muslims" -> "people".
    passage: None, or a number of words: of a longer text only so many around its first token are taken, also in
        version 0. An encoder reads the beginning of a text and cannot see a swap that lies beyond its cut.
    sample: None for every other token; a number for that many random ones, as counterfactual logit pairing draws them.
        The draw depends on `random_state` and on the text itself only.

    Version 0 is the original, then one version for each other token in the order of the list. Of a text that mentions
    several, one after the other makes way for the token of the version, in all its places; where that token is in the
    text, too, the two change places, so that "gays and lesbians" stay two kinds of people (with `everywhere` all of
    them are replaced by the one, as in the paper). Tokens of other categories than the first's stay, and `preview`
    lists them as left. A category with fewer tokens than the largest repeats its versions in turn; a certificate counts
    them once. Texts without any token have no versions and are not in `rows`.

    A lexical swap is not a causal counterfactual: it changes the word and nothing of what would follow from it.

    >>> texts = ["Gay people cook.", "No token.", "straight men, gay men"]
    >>> found = TokenSwap(["gay", "straight", "middle aged"])(texts)
    >>> found.rows, found.values[0].tolist()
    (array([0, 2]), ['Gay people cook.', 'Straight people cook.', 'Middle aged people cook.'])
    >>> found.values[1].tolist()
    ['straight men, gay men', 'gay men, straight men', 'straight men, middle aged men']
    """

    def __init__(
        self,
        tokens: Iterable[str] | Mapping[str, Iterable[str]],
        *,
        plurals: bool = True,
        everywhere: bool = False,
        insults: bool = False,
        neutral: bool = False,
        passage: int | None = None,
        sample: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.categories = (
            {name: _checked(some, f"category {name!r}: ") for name, some in tokens.items()}
            if isinstance(tokens, Mapping)
            else {"": _checked(tokens)}
        )
        self.tokens = _checked([token for some in self.categories.values() for token in some])
        self.plurals, self.everywhere, self.insults, self.neutral = plurals, everywhere, insults, neutral
        self.passage, self.sample, self.random_state = passage, sample, random_state
        check_passage(passage)
        others = max(map(len, self.categories.values())) - 1
        if sample is not None and not 1 <= sample <= others:
            raise ValueError(
                f"sample must be between 1 and {others}, the number of other tokens, or None; got {sample!r}"
            )
        self._m = 1 + (others if sample is None else sample) + int(neutral)
        self._forms = [forms_of(token) for token in self.tokens]
        # Vague words have passed a test of their own, and words of your own have none.
        self._unclear = [not everywhere and known(t.lower()) and t.lower() not in VAGUE for t in self.tokens]
        self._category = [name for name, some in self.categories.items() for _ in some]
        of = {name: [i for i, kind in enumerate(self._category) if kind == name] for name in self.categories}
        self._handful = {name: _spread(some, READINGS) for name, some in of.items()}
        self._readings = max(map(len, self._handful.values()))
        # One group for each form, longest first: the group which matched says which token it was, whatever the case.
        spelt = {form.adjective.lower(): (i, "adjective") for i, form in enumerate(self._forms)}
        for i, form in enumerate(self._forms):
            if " person" not in form.noun:
                spelt.setdefault(form.noun.lower(), (i, "noun"))
            if plurals and " people" not in form.plural:
                spelt.setdefault(form.plural.lower(), (i, "plural"))
        ordered = sorted(spelt.items(), key=lambda pair: len(pair[0]), reverse=True)
        self._which = [token for _, token in ordered]
        self._pattern = re.compile(any_of([form for form, _ in ordered]), re.IGNORECASE)

    def __repr__(self) -> str:
        kinds = f" in {len(self.categories)} categories" if len(self.categories) > 1 else ""
        return f"TokenSwap({len(self.tokens)} tokens{kinds}, plurals={self.plurals}, sample={self.sample})"

    def __call__(self, texts: Iterable[str]) -> Variations:
        """The versions of the texts that mention a token: values (g, m) of strings, rows (g,)."""
        values: list[list[str]] = []
        rows: list[int] = []
        for row, text in enumerate(as_texts(texts)):
            versions = self._versions(text)
            if versions:
                values.append(versions)
                rows.append(row)
        table = np.empty((len(values), self._m), dtype=object)
        for i, versions in enumerate(values):
            table[i] = versions
        return Variations(table, np.array(rows, dtype=np.intp))

    def alike(self, texts: Iterable[str]) -> Variations:
        """The texts that mention a token in a few forms that are the same whichever token of the list it is.

        Each token is replaced by the same few tokens of the list (of its category), spread evenly over it, in one
        spelling: a model that reads the mean of these forms cannot tell who of the list is spoken of. What the rules
        leave stays as it is, and so does a text that mentions nobody of the list, which is not in `rows`.

        >>> swap = TokenSwap(["gay", "deaf", "muslim"])
        >>> swap.alike(["A gay man sings.", "Nobody."]).values.tolist()
        [['A gay man sings.', 'A deaf man sings.', 'A Muslim man sings.']]
        >>> swap.alike(["Deaf people's songs"]).values.tolist() == swap.alike(["Muslims' songs"]).values.tolist()
        True
        """
        values: list[list[str]] = []
        rows: list[int] = []
        for row, text in enumerate(map(cleaned, as_texts(texts))):
            sites = [site for site in self.sites(text) if not site.left]
            if sites:
                values.append([self._read_as(text, sites, j) for j in range(self._readings)])
                rows.append(row)
        table = np.empty((len(values), self._readings), dtype=object)
        for i, forms in enumerate(values):
            table[i] = forms
        return Variations(table, np.array(rows, dtype=np.intp))

    def mentioned(self, texts: Iterable[str]) -> list[set[str]]:
        """Which of the tokens each text mentions, for example to form groups of texts."""
        return [
            {self.tokens[site.kind[0]] for site in self.sites(cleaned(text)) if not site.left}
            for text in as_texts(texts)
        ]

    def preview(self, texts: Iterable[str], show: int = 12) -> Preview:
        """What would be swapped in the texts, and what is left and why; each change is shown with one replacement."""
        listed, swapped = as_texts(texts), 0
        changes: list[Change] = []
        left: list[Change] = []
        for row, text in enumerate(listed):
            clean = cleaned(text)
            sites = self.sites(clean)
            about = [site for site in sites if not site.left]
            swapped += bool(about)
            other = self._others(text, about[0].kind[0])[0] if about else 0
            first = self._category[about[0].kind[0]] if about else ""
            for site in sites:
                if site.left:
                    left.append(change(row, clean, site, ""))
                elif self._category[site.kind[0]] == first:
                    instead = about[0].kind[0] if site.kind[0] == other else other
                    changes.append(change(row, clean, site, self._written(clean, site, instead)))
                else:
                    left.append(change(row, clean, replace(site, left="another category"), ""))
        return Preview(tuple(changes), tuple(left), len(listed), swapped, show)

    def sites(self, text: str) -> list[Site]:
        """Every place where a token stands, also those that are left."""
        found = []
        for match in self._pattern.finditer(text):
            assert match.lastindex is not None  # the pattern is an alternative of groups: one of them matched
            token, form = self._which[match.lastindex - 1]
            left = "" if self.everywhere else self._left(text, match, token, form)
            if form == "adjective" and not left:
                counted = self._forms[token].noun == self._forms[token].adjective
                form = _form_here(text, match.start(), match.end(), counted)
                if form == "adjective" and self._unclear[token]:
                    near = text[max(0, match.start() - 60) : match.start()], text[match.end() : match.end() + 80]
                    left = "" if described(*map(unmarked, near)) else "no person"
            found.append(Site(match.start(), match.end(), match.group(), (token, form), left))
        if self.everywhere:
            return found
        found = [self._alone(text, site, after) for site, after in zip(found, [*found[1:], None])]
        for i in range(len(found) - 2, -1, -1):
            found[i] = _in_the_name(text, found[i], found[i + 1])
        return found

    def _alone(self, text: str, site: Site, after: Site | None) -> Site:
        """Of two tokens of a kind in a row the second is swapped: "an elderly Mexican man" -> "an elderly gay man"."""
        if site.left or after is None or after.left or text[site.end : after.start].strip():
            return site
        alike = self._category[site.kind[0]] == self._category[after.kind[0]]
        return replace(site, left="another follows") if alike else site

    def _left(self, text: str, match: re.Match[str], token: int, form: str) -> str:
        name = self.tokens[token].lower()
        if not known(name):
            return ""
        return left_because(text, match.start(), match.end(), name, plural=form == "plural", insults=self.insults)

    def _versions(self, text: str) -> list[str]:
        clean = cleaned(text)
        sites = [site for site in self.sites(clean) if not site.left]
        if not sites:
            return []
        if self.passage is not None:
            start, end = around(clean, sites[0].start, self.passage)
            if (start, end) != (0, len(clean)):
                text = clean = clean[start:end]
                sites = [site for site in self.sites(clean) if not site.left] or []
            if not sites:
                return []
        first = sites[0].kind[0]
        sites = [site for site in sites if self._category[site.kind[0]] == self._category[first]]
        others = self._others(text, first)
        turns = [others[i % len(others)] for i in range(self._m - 1 - int(self.neutral))]
        mentioned = list(dict.fromkeys(site.kind[0] for site in sites))
        versions = [text]
        for i, other in enumerate(turns):
            makes_way = mentioned[i % len(mentioned)]
            versions.append(self._join(clean, sites, self._instead(mentioned, makes_way, other)))
        neutral: dict[int, int | None] = dict.fromkeys(mentioned)
        return [*versions, self._join(clean, sites, neutral)] if self.neutral else versions

    def _instead(self, mentioned: list[int], makes_way: int, other: int) -> dict[int, int | None]:
        """Which token stands for each of a text in the version of `other`; the first one never is `other`."""
        if self.everywhere:
            return dict.fromkeys(mentioned, other)
        makes_way = mentioned[0] if makes_way == other else makes_way
        return {token: other if token == makes_way else makes_way if token == other else token for token in mentioned}

    def _others(self, text: str, first: int) -> list[int]:
        others = [i for i, name in enumerate(self._category) if i != first and name == self._category[first]]
        if self.sample is None or self.sample >= len(others):
            return others
        return sorted(random.Random(f"{self.random_state}:{text}").sample(others, self.sample))

    def _join(self, text: str, sites: list[Site], instead: dict[int, int | None]) -> str:
        """The text with another token (its number), or with none, at each site."""
        pieces: list[str] = []
        end = 0
        for site in sites:
            other = instead[site.kind[0]]
            if other == site.kind[0]:
                continue
            said = self._neutral(text, site) if other is None else self._written(text, site, other)
            before, end = text[end : site.start], site.end
            if said.endswith("'s"):
                end += 1  # the apostrophe of the plural is in it
            if said:
                pieces += [with_article(before, said), said]
                continue
            gap = _GAP.match(text, end)  # leave out the space after it too, and let "a" or "an" follow the next word
            end += len(gap[0]) if gap is not None else 0
            following = _WORD.match(text, end)
            pieces.append(with_article(before, following[0] if following is not None else ""))
        return "".join([*pieces, text[end:]])

    def _read_as(self, text: str, sites: list[Site], j: int) -> str:
        """The text with the j-th of the few tokens of its category at each site, spelt alike whatever stood there."""
        pieces: list[str] = []
        end = 0
        for site in sites:
            token, form = site.kind
            handful = self._handful[self._category[token]]
            new = self._forms[handful[j % len(handful)]]
            before, end = text[end : site.start], site.end
            called = _CALLED.match(text, end) if form == "adjective" else None
            if called is not None:
                form, end = ("noun" if called[1].lower() == "person" else "plural"), called.end()
            word = str(getattr(new, form))
            word = capitalised(word) if new.proper else word
            if form == "plural" and (owns := _OF_THEM.match(text, end)) and (owns[0][1:] or _owns(text, site)):
                word, end = word + ("'" if word.endswith("s") else "'s"), owns.end()
            pieces += [with_article(before, word), word]
        return "".join([*pieces, text[end:]])

    def _written(self, text: str, site: Site, other: int) -> str:
        token, form = site.kind
        new, old = self._forms[other], self._forms[token]
        word = str(getattr(new, form))
        said = site.said
        if form == "plural" and not word.endswith("s") and _owns(text, site):
            word += "'s"  # muslims' rights -> deaf people's rights
        if said.islower():
            return capitalised(word) if new.proper and not old.proper and not text.islower() else word
        spelt_out = old.adjective.lower().startswith("lgbt")
        if not said.isupper() or spelt_out:
            if new.proper:
                return capitalised(word)
            if spelt_out:
                return word if _within(text, site) else word[:1].upper() + word[1:]
            if old.proper:
                return word if _within(text, site) else word[:1].upper() + word[1:]  # "the Muslim man" -> "the gay man"
        return like_case(word, said)

    def _neutral(self, text: str, site: Site) -> str:
        """What stands for nobody in particular: people, a person, or nothing before a noun."""
        word = {"plural": "people", "noun": "person"}.get(site.kind[1], "")
        return (
            word
            if self._forms[site.kind[0]].proper and not site.said.isupper() and _within(text, site)
            else (like_case(word, site.said))
        )


def _spread(some: list[int], n: int) -> list[int]:
    """At most n of the numbers, evenly spread over them: a list mostly goes from kind to kind."""
    return [some[(2 * i + 1) * len(some) // (2 * n)] for i in range(n)] if len(some) > n else some


def _within(text: str, site: Site) -> bool:
    """Whether the site stands inside a sentence, not at its beginning."""
    return re.search(r"[^.!?:\n\s=][\s\"“(]*$", text[max(0, site.start - 9) : site.start]) is not None


def _owns(text: str, site: Site) -> bool:
    """An apostrophe follows, and it does not close a quotation: muslims' rights, not 'Muslims'."""
    quoted = text[max(0, site.start - 1) : site.start] in tuple("'‘’")
    return not quoted and re.match(r"['’](?!\w)", text[site.end :]) is not None


def _in_the_name(text: str, site: Site, after: Site) -> Site:
    """Of tokens in a row the last of which is in a name all are: "the Gay and Lesbian Alliance"."""
    row = re.fullmatch(r"\s?(?:,|&|,?\s?and)\s", text[site.end : after.start]) is not None
    named = row and not site.left and after.left == "name" and site.kind[1] == "adjective"
    return replace(site, left="name") if named and site.said[0].isupper() else site


def _form_here(text: str, start: int, end: int, counted: bool) -> str:
    """An adjective that stands as a noun: "is a lesbian.", "the deaf are", "the ugliest Latina in"; "Chinese have".

    counted: whether one of them is called by the word itself, "an American", as no one is called "a deaf".
    """
    after = re.match(r"\s+[\[\"“‘]*([\w'’]+)", text[end : end + 24])
    verb = "" if after is None else after[1].lower()
    before = _DETERMINED.search(text[max(0, start - 60) : start])
    if verb == "who" and before is None:  # a conservative Christian who
        before = _ANY_ONE.search(text[max(0, start - 60) : start])
    if before is None:
        if counted and _YOU.search(text[max(0, start - 40) : start]) and _OVER.match(text, end):
            return "noun"
        several = verb in _OF_SEVERAL and _BEGINS.search(text[max(0, start - 24) : start])
        return "plural" if several else "adjective"
    if re.match(r"['’]s\b", text[end : end + 4]):
        return "noun"
    acts = after is not None and (verb in words_of("verbs") or re.search(r"\w{3}ed$", verb) is not None)
    ends = after is None or acts or re.split("['’]", verb)[0] in words_of("not_after_possessive")  # a Muslim I'm
    if not ends:
        return "adjective"
    article, said = before[1].lower(), text[start:end].lower()
    if verb == "vote" and said not in _TOGETHER:
        return "adjective"  # the Latino vote
    if verb in ("and", "or") and _shares_a_noun(text[end : end + 60]):
        return "adjective"  # a gay or lesbian couple, the Christian and Muslim communities
    if article not in ("the", "some", "no", "that", "this"):
        return "noun"
    if article == "the" and (said in _TOGETHER or verb in _OF_SEVERAL or (verb == "who" and not counted)):
        return "plural"
    return "noun" if acts or (counted and article not in ("some", "no")) else "adjective"


def _shares_a_noun(after: str) -> bool:
    """ " and Muslim communities": what follows describes the same noun; not " and a Muslim", " or expat who"."""
    found = re.match(r"\s+(?:and|or)\s+(\w+)[\s-]+(\w+)", after)
    if found is None or found[1].lower() in DETERMINERS | {"she", "he", "i", "they", "we", "you", "it"}:
        return False
    ends = found[2].lower() in words_of("not_after_possessive") or found[2].lower() in words_of("verbs")
    return not ends and not names_people(found[1])


def _checked(tokens: Iterable[str], where: str = "") -> list[str]:
    if isinstance(tokens, str):
        raise TypeError(f"{where}expected a list of tokens, got a single string")
    listed: list[str] = []
    for token in tokens:
        if not isinstance(token, str) or not cleaned(token).strip():
            raise ValueError(f"{where}token {len(listed)} is {token!r}, expected a word; remove it from the list")
        listed.append(" ".join(cleaned(token).split()))
    seen: set[str] = set()
    for token in listed:
        if token.casefold() in seen:
            raise ValueError(f"{where}token {token!r} comes more than once (case does not count); list each token once")
        seen.add(token.casefold())
    if len(listed) < 2:
        raise ValueError(f"{where}a swap needs at least two tokens, got {listed}")
    return listed
