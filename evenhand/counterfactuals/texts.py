"""What the lexical swaps share: a checked list of texts, word boundaries, the case of a word, a or an, word lists."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["any_of", "as_texts", "cleaned", "foreign", "like_case", "unmarked", "vowel_sound"]
__all__ += ["with_article", "word_list"]

# Chinese, Japanese, Thai, Lao, Khmer and Burmese put no space between words, so a word there has no border to look for.
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_BEFORE, _AFTER = rf"(?<![^\W{_NO_SPACES}])", rf"(?![^\W{_NO_SPACES}])"  # a letter of these scripts is a border too
# Signs that nobody sees: some wherever they stand (of no width, of direction), variation selectors and tags behind a
# letter only, since emoji are made with them, and joiners between Latin letters only: other scripts need them.
_INVISIBLE = re.compile(r"[\u00ad\u034f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")
_SELECTORS = re.compile(
    r"(?<=[^\W\d_\u2100-\u214f]|[\u0300-\u036f\u180e\u200c\u200d])[\ufe00-\ufe0f\U000e0000-\U000e007f]+"
)
_JOINERS = re.compile(r"(?<=[A-Za-zÀ-ɏ])[\u180e\u200c\u200d]+(?=[A-Za-zÀ-ɏ])")
_MARKS = re.compile(
    r"</?(?:b|i|u|s|q|em|strong|span|font|mark|small|big)(?:\s[^<>]*)?>|^\*{1,3}|\*{1,3}$|&(?:quot|ldquo|rdquo);",
    re.IGNORECASE,
)
_HYPHENS = r"\-\u2010\u2011"
_WIDE = {code: code - 0xFEE0 for code in (*range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))}  # full-width letters
_ARTICLE = re.compile(r"(?<!\w)(an?)(\s+[\"“'‘(]?)$", re.IGNORECASE)
_SPELT_OUT = re.compile(  # letter by letter: an LGBT group; not A MAN
    r"(?!(?:MAN|MEN|SON|HE|HIM|HIS|HER)\b)(?:[B-DF-HJ-NP-TV-XZ]{2,}|[A-Z]{2,3})(?![A-Za-z])"
)


def as_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list: of a list, an array, a column (pandas, polars, Arrow) or a frame with one column.

    Anything that is not a string is refused by its position.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError("expected a list of texts, got a single string; wrap it: [text]")
    if isinstance(texts, Mapping | Set):  # of which the names, or no order, would be read
        kind = type(texts).__name__
        raise TypeError(f"expected a list of texts, got a {kind}; give a list, or one column of a table")
    listed = list(_column(texts))
    for i, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"text {i} is {_kind(text)}, expected a string; {_cure(text)}")
    return listed


def _kind(text: Any) -> str:
    """What stands where a text should: never what it says, which may be somebody's."""
    missing = text is None or (isinstance(text, float) and text != text) or type(text).__name__ in ("NAType", "NaTType")
    return f"{text!r} ({type(text).__name__})" if missing else f"of type {type(text).__name__}"


def _cure(text: Any) -> str:
    if isinstance(text, bytes | bytearray):
        return "decode it: text.decode()"
    if isinstance(text, list | tuple | dict | set):
        return "give one string for each text"
    return "drop missing texts or replace them by ''"


def _column(texts: Any) -> Iterable[Any]:
    """A frame is its one column, not the names of its columns; a column of Arrow gives Python strings."""
    if type(texts).__name__ == "LazyFrame":
        raise TypeError("expected texts, got a LazyFrame, which has not been computed yet; give frame.collect()")
    names = getattr(texts, "column_names", None) or getattr(texts, "columns", None)
    if names is not None and hasattr(texts, "shape"):
        if len(names) != 1:
            raise TypeError(
                f"expected one column of texts, got a table with {len(names)} columns; choose one: table['column']"
            )
        texts = texts[names[0]]
    if hasattr(texts, "to_pylist"):
        return list(texts.to_pylist())
    if getattr(texts, "ndim", 1) == 2 and texts.shape[1] == 1:
        return list(texts[:, 0])
    return list(texts)


def cleaned(text: str) -> str:
    """The text with composed characters and without invisible ones, so that neither hides a word.

    >>> cleaned("g\\u200bay cafe\\u0301") == "gay café"
    True
    """
    if text.isascii():
        return text
    for signs in (_INVISIBLE, _SELECTORS, _JOINERS):
        text = signs.sub("", text)
    return unicodedata.normalize("NFC", text).translate(_WIDE)


def unmarked(text: str) -> str:
    """What stands beside a word without the marks that make it bold or quoted: "<b>gay</b> men", "**gay** men".

    >>> unmarked("</b> men"), unmarked("** men"), unmarked("a <p>")
    (' men', ' men', 'a <p>')
    """
    return _MARKS.sub("", text) if "<" in text or "*" in text or "&" in text else text


def around(text: str, at: int, words: int) -> tuple[int, int]:
    """Where the passage of so many words around a place begins and ends; the whole text if it has no more.

    >>> text = "one two three four five"
    >>> text[slice(*around(text, 8, 3))]
    'two three four'
    """
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    if len(spans) <= words:
        return 0, len(text)
    place = sum(1 for start, _ in spans if start <= at) - 1
    first = min(max(0, place - words // 2), len(spans) - words)
    return spans[first][0], spans[first + words - 1][1]


def check_passage(passage: Any) -> None:
    if passage is not None and (not isinstance(passage, int) or passage < 3):
        raise ValueError(f"passage must be at least 3 words, or None for whole texts; got {passage!r}")


def any_of(words: Sequence[str]) -> str:
    """A pattern with a group for each of the words, whole words only, any white space or a hyphen between their parts.

    Also for words that begin or end with a sign which is no letter ("c++"), where \\b would not do. The borders stand
    before and after all of them, so that a long list is not tried at every letter.
    """
    spelt = [rf"(?:\s+|\s?[{_HYPHENS}]\s?)".join(re.escape(part) for part in word.split(" ")) for word in words]
    kinds = [(bool(re.match(f"[{_NO_SPACES}]", word)), bool(re.search(f"[{_NO_SPACES}]$", word))) for word in words]
    if not any(map(any, kinds)):
        return rf"{_BEFORE}(?:{'|'.join(f'({pattern})' for pattern in spelt)}){_AFTER}"
    bordered = [
        ("" if start else _BEFORE) + pattern + ("" if end else _AFTER) for pattern, (start, end) in zip(spelt, kinds)
    ]
    return "|".join(f"({pattern})" for pattern in bordered)


def like_case(word: str, pattern: str) -> str:
    """`word` written as `pattern` is: all capitals, each word capitalised, the first letter capitalised, or as it
    stands.

    >>> like_case("middle eastern", "GAY"), like_case("middle eastern", "African American"), like_case("she", "He")
    ('MIDDLE EASTERN', 'Middle Eastern', 'She')
    """
    letters = [c for c in pattern if c.isalpha()]
    if len(letters) > 1 and all(c.isupper() for c in letters):
        return word.upper()
    if not pattern[:1].isupper():
        return word
    parts = re.split(rf"[\s{_HYPHENS}]+", pattern.strip())
    if len(parts) > 1 and all(part[:1].isupper() for part in parts):
        return " ".join(part[:1].upper() + part[1:] for part in word.split(" "))
    return word[:1].upper() + word[1:]


def vowel_sound(word: str) -> bool:
    """Whether the word takes "an".

    >>> [vowel_sound(word) for word in ("old", "european", "LGBT", "hour", "unit", "gay")]
    [True, False, True, True, False, False]
    """
    if _SPELT_OUT.match(word):
        return word[0] in "AEFHILMNORSX"
    lowered = word.lower()
    if re.match(r"eu|u[bcfhjkqrst][aeiou]|uni(?!n)|one\b|once\b|ewe", lowered):
        return False
    return lowered.startswith(("a", "e", "i", "o", "u", "hour", "honest", "honor", "honour", "heir"))


def with_article(before: str, word: str) -> str:
    """The text before `word`, its last word "a" or "an" as the word wants it.

    >>> with_article("She is an ", "gay")
    'She is a '
    """
    tail = before[-12:]  # the article is at the end; a search from the beginning of a long text would be slow
    found = _ARTICLE.search(tail)
    if found is None or not word[:1].isalpha():
        return before
    said = found[1]
    capitals = (len(said) == 2 and said.isupper()) or (said == "A" and word.isupper() and not _SPELT_OUT.match(word))
    article = "an" if vowel_sound(word) else "a"
    written = article.upper() if capitals else said[0] + article[1:]
    return before[: len(before) - len(tail) + found.start()] + written + found[2]


@cache
def word_list(name: str) -> list[str]:
    """The lines of `words/<name>.txt`, without blank lines and # comments."""
    text = (resources.files("evenhand.counterfactuals") / "words" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


@cache
def words_of(name: str) -> frozenset[str]:
    """All words of a list, several on a line."""
    return frozenset(word for line in word_list(name) for word in line.split())


@cache
def _function_words() -> tuple[frozenset[str], frozenset[str]]:
    words: dict[str, set[str]] = {"english": set(), "other": set()}
    for kind, *some in map(str.split, word_list("function_words")):
        words[kind] |= set(some)
    return frozenset(words["english"]), frozenset(words["other"])


def foreign(text: str) -> bool:
    """Whether more of the small words of a text are of another language than are English.

    >>> foreign("Elle est avocate et son mari est cuisinier."), foreign("She met Le Monde's man in La Paz.")
    (True, False)
    """
    english, other = _function_words()
    said = re.findall(r"[^\W\d_]+", text.lower())
    ours = sum(word in english for word in said)
    theirs = sum(word in other and word not in english for word in said)
    return theirs > max(1, ours)  # one alone may be a name
