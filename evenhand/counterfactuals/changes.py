"""What a version of a text changes: the places where both differ, and the words that name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

__all__ = ["Span", "changed_places", "changed_words"]

Span = tuple[int, int]

# Chinese, Japanese, Thai, Lao, Khmer and Burmese put no space between words: there each letter is one.
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\W{_NO_SPACES}]+(?:['’-][^\W{_NO_SPACES}]+)*")
_LONG = 500  # words
_ARTICLE = re.compile(r"an?\s+", re.IGNORECASE)


def changed_places(text: str, version: str) -> list[tuple[Span, Span]]:
    """Where a version says something else: (start, end) in the text and in the version, in their order; one of the two
    is empty where words are only added or left out.

    >>> changed_places("straight men, gay men", "gay men, gay men")
    [((0, 8), (0, 3))]
    """
    ours, theirs = ([match.span() for match in _WORD.finditer(said)] for said in (text, version))
    a, b = [text[slice(*span)] for span in ours], [version[slice(*span)] for span in theirs]
    shorter = min(len(a), len(b))
    first = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    last = next((i for i in range(shorter - first) if a[-1 - i] != b[-1 - i]), shorter - first)
    return [
        (_span(ours, first + i, first + j), _span(theirs, first + k, first + m))
        for i, j, k, m in _differing(a[first : len(a) - last], b[first : len(b) - last])
    ]


def _differing(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Where a[i:j] and b[k:m] differ. Long texts of as many words are compared word by word: the usual comparison takes
    the square of their length where words come again and again."""
    if len(a) == len(b) > _LONG:
        off = [word != other for word, other in zip(a, b)]
        edges = [i for i, (before, here) in enumerate(pairwise([False, *off, False])) if before != here]
        return [(start, end, start, end) for start, end in zip(edges[::2], edges[1::2])]
    found = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(i, j, k, m) for kind, i, j, k, m in found if kind != "equal"]


def changed_words(text: str, version: str) -> str:
    """The words of a version that stand where its text says something else, each once; what is only left out is said.

    >>> changed_words("my gay friend", "my deaf friend"), changed_words("a lesbian, a gay man", "an old one, a gay man")
    ('deaf', 'old one')
    >>> changed_words("a gay man", "a man")
    'without gay'
    """
    places = changed_places(text, version)
    written = [_ARTICLE.sub("", version[slice(*span)], count=1) for _, span in places]
    written = [word for word in written if word.lower() not in ("", "a", "an")]
    if not written:
        gone = [text[slice(*span)] for span, _ in places]
        gone = [word for word in gone if word.lower() not in ("", "a", "an")]
        return f"without {' '.join(_once(gone))}" if gone else ""
    return " ".join(_once(written))


def _span(words: Sequence[Span], start: int, end: int) -> Span:
    """From the first of some words to the last; where there is none, the place before the next."""
    if start == end:
        here = words[start][0] if start < len(words) else words[-1][1] if words else 0
        return here, here
    return words[start][0], words[end - 1][1]


def _once(words: Sequence[str]) -> list[str]:
    """Each of the words once, whatever its case."""
    return list({word.lower(): word for word in reversed(words)}.values())[::-1]
