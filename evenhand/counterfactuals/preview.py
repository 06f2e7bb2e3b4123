"""What a swap would change, to be read before anybody relies on it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

__all__ = ["Change", "Preview", "Site"]

WIDTH = 36  # characters of the text shown on either side


@dataclass(frozen=True)
class Site:
    """One place in a text that a swap has looked at: text[start:end] is `said`.

    left: why it stays as it is, "" if it is swapped. kind: what it is to the swap (a token number, a form, a name).
    """

    start: int
    end: int
    said: str
    kind: tuple[int, str] = (0, "")
    left: str = ""


@dataclass(frozen=True)
class Change:
    """One site with its surroundings: `before` [said -> written] `after`, in row `row` of the texts."""

    row: int
    before: str
    said: str
    written: str
    after: str
    left: str

    def __str__(self) -> str:
        shown = f"[{self.said}: left, {self.left}]" if self.left else f"[{self.said} -> {self.written}]"
        return f"row {self.row}: …{self.before}{shown}{self.after}…"


@dataclass(frozen=True)
class Preview:
    """All sites of some texts; `print` shows counts and the first `show` of either kind.

    changes: what would be swapped; left: what looks alike and stays, and why.
    texts: how many were read; swapped: how many of them get versions; unsure: how many get none although they say a
    gender, because the rules cannot tell of whom.
    """

    changes: tuple[Change, ...]
    left: tuple[Change, ...]
    texts: int
    swapped: int
    show: int = 12
    unsure: int = 0

    def __str__(self) -> str:
        lines = [
            f"{self.swapped:,} of {self.texts:,} texts have versions: {len(self.changes):,} words are swapped, "
            f"{len(self.left):,} are left."
        ]
        if self.unsure:
            lines += [f"{self.unsure:,} more say a gender, but the rules cannot tell of whom; they have no versions."]
        lines += [f"  {change}" for change in _spread(self.changes, self.show)]
        if self.left:
            why = ", ".join(f"{reason} {count:,}" for reason, count in Counter(c.left for c in self.left).most_common())
            lines += [f"Left: {why}."]
            lines += [f"  {change}" for change in _spread(self.left, self.show)]
        return "\n".join(lines)


def change(row: int, text: str, site: Site, written: str) -> Change:
    """The site with what stands around it, white space made visible as single spaces."""
    before, after = text[max(0, site.start - WIDTH) : site.start], text[site.end : site.end + WIDTH]
    squeezed = [" ".join(f"|{part}|".split())[1:-1] for part in (before, after)]
    return Change(row, squeezed[0], site.said, written, squeezed[1], site.left)


def _spread(changes: tuple[Change, ...], show: int) -> list[Change]:
    """A few of them, evenly through the texts."""
    step = max(1, -(-len(changes) // max(1, show)))
    return list(changes[::step])
