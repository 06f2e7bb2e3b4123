"""Words that are spoken about, and titles in quotation marks: "Latino" as a word, "American Woman" the song."""

from __future__ import annotations

import re

from evenhand.counterfactuals.people import names_people

__all__ = ["in_a_title", "spoken_about"]

_KIND = (
    r"(?:words?|terms?|phrases?|nouns?|adjectives?|verbs?|labels?|synonyms?|slurs?|epithets?|insults?|pejoratives?|"
    r"spellings?|euphemisms?)"
)
_OPENS, _CLOSES = r"[\"“”'‘`]*", r"[\"”“'’`]*"
_WORD_BEFORE = re.compile(
    r"\b(?:(?:the|an?|this|that|these|those|s)\s+(?:\w+\s+)?(?:word|term|phrase|noun|adjective|epithet)s?,?|spelt|spelled)\s+"
    rf"(?:{_OPENS}[\w\s-]{{2,30}}{_CLOSES}\s+(?:and|or)\s+)?(?:{_OPENS}|[\"\s]+)$",
    re.IGNORECASE,
)
_CHANGED = re.compile(  # "changed 'whites' to '", "German for '"; the words are spoken about
    r"\b(?:chang|replac|reword|renam|rewrit|swap|substitut|correct|translat|remov|delet)\w*\b[^.!?\n]{0,60}[\"“”'‘]+$|"
    r"\b(?:[A-Z]\w+(?:ish|an|ese|ch|in|ic|ew) for|means?|meaning|translate[sd]? (?:as|to))\s+[\"“”'‘]+$"
)
_QUOTE_ENDS = re.compile(r"(?:\s+[\w-]+){0,2}\s?[\"”“'’]")
_TERMS = re.compile(  # the terms "Turks" and "
    rf"\b(?:{_KIND})\s+(?:[\"“”'‘\s]+[\w\s-]{{2,30}}[\"”“'’\s]+,?\s*(?:and|or)?\s*){{1,4}}[\"“”'‘\s]+$", re.IGNORECASE
)
_WRITTEN = re.compile(r"\b(?:instances?|occurrences?|uses?|usage)\s+of\s+[\"“'‘]+$", re.IGNORECASE)
_PAGE = re.compile(r"(?: (?:(?:and|of|in) )?[A-Z]\w*){0,3} (?:section|article|page|entry|category|template|heading)\b")
_ONE = re.compile(r" (?:covers|includes|redirects)\b")  # "Galician Jews" covers all: a page
_WORD_AFTER = re.compile(
    rf"{_CLOSES}\s+(?:as|is|was|isn['’]?t|are)\s+(?:not\s+)?(?:an?|the)\s+(?:[\w-]+\s+){{0,2}}{_KIND}\b", re.IGNORECASE
)
_MEANS = re.compile(rf"{_CLOSES}\s+(?:means\s+(?!that|no\b)|used\s+to\s+mean\b)", re.IGNORECASE)
_BEING = re.compile(r"\b(?:being|be|becoming|am|is|are|was|were)\s+(?:\w+\s+)?$", re.IGNORECASE)
_MARKS = (('"', '"'), ("“", "”"), ("''", "''"), ("«", "»"), ("‘", "’"), ("'", "'"))
_SINGLE = re.compile(r"(?<!\w)['‘][A-Z][^'‘]*$")
_TITLE_GOES_ON = re.compile(r"(?:,?:? [A-Z]\w*){4}")  # the end of a long title is not seen
LONGEST = 60  # characters of a title
_SMALL = frozenset(
    ["a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "of", "on", "or", "the", "to", "with", "vs"]
)


def spoken_about(before: str, after: str) -> bool:
    """The word itself is meant: "the term Jew", "blacks as a noun"; not "being gay means", "the terms gay people use".

    >>> spoken_about("Is ", " a slur?"), spoken_about("the word ", " is old"), spoken_about("being ", " means a lot")
    (False, True, False)
    """
    if _WORD_AFTER.match(after) or (_MEANS.match(after) and _BEING.search(before) is None):
        return True
    if (_CHANGED.search(before) or _TERMS.search(before)) and _QUOTE_ENDS.match(after):
        return True
    follows = re.match(r"\s+([^\W\d_]+)", after)
    if follows is not None and names_people(follows[1]):
        return False
    return (_WORD_BEFORE.search(before) or _WRITTEN.search(before)) is not None


def in_a_title(before: str, said: str, after: str) -> bool:
    """Between quotation marks, or the '' of a wiki, where every word has a capital letter: "Young Americans".

    Also the name of a page: the Jews and Bolshevism section.

    >>> in_a_title('They sang "', "American", ' Woman" again'), in_a_title('"', "American", ' women rule", he said')
    (True, False)
    """
    if said[:1].isupper() and not said.isupper() and (_PAGE.match(after) or (said.endswith("s") and _ONE.match(after))):
        return True
    if re.search(r"[\"“«]$", before) and _TITLE_GOES_ON.match(after):
        return True
    for opening, closing in _MARKS:
        start, end = before.rfind(opening), after.find(closing)
        if start < 0 or end < 0:
            continue
        if opening == closing and before.count(opening) % 2 == 0 and len(before) < LONGEST:
            continue  # the marks before it are pairs: it stands outside
        if closing in "'’" and not (_SINGLE.search(before) and re.search(r"['’](?!\w)", after)):
            continue  # an apostrophe
        inside = f"{before[start + len(opening) :]}{said}{after[:end]}"
        if closing in "'’" and len(inside.split()) < 3:
            continue  # 'True Muslims': a way to speak
        if len(inside) <= LONGEST and _like_a_title(inside.strip(" '\"")):
            return True
    return False


def _like_a_title(inside: str) -> bool:
    words = re.findall(r"[^\W\d_][\w’'-]*", inside)
    if len(words) < 2 or inside.isupper() or re.search(r"[!?]|\.\s+\w", inside):
        return False
    large = [word[:1].isupper() for word in words if word.lower() not in _SMALL]
    return len(large) > 1 and all(large) and words[0][:1].isupper()
