"""What the lexical swaps share: a checked list of texts, word boundaries, the case of a word, the word lists."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources

__all__ = ["as_texts", "like_case", "word_list"]

# Whole words, also for tokens that begin or end with a sign which is no letter ("c++"), where \b would not do.
WORD_START, WORD_END = r"(?<!\w)", r"(?!\w)"


def as_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list; anything that is not a string is refused by its position."""
    if isinstance(texts, (str, bytes)):
        raise TypeError("expected a list of texts, got a single string; wrap it: [text]")
    listed = list(texts)
    for i, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(
                f"text {i} is {text!r} ({type(text).__name__}), expected a string; "
                "drop missing texts or replace them by ''"
            )
    return listed


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
    parts = pattern.replace("-", " ").split()
    if len(parts) > 1 and all(part[:1].isupper() for part in parts):
        return " ".join(part[:1].upper() + part[1:] for part in word.split(" "))
    return word[:1].upper() + word[1:]


def word_list(name: str) -> list[str]:
    """The lines of `words/<name>.txt`, without blank lines and # comments."""
    text = (resources.files("evenhand.counterfactuals") / "words" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]
