"""What is wrong with a table, and finding a column by its name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class TableError(ValueError):
    """The table cannot be used as it is; the message says what is wrong, where, and how to mend it.

    ``cure`` names the choice that would help, for whoever asks the user: "separator", "header", "missing_sensitive" ...
    """

    def __init__(self, message: str, cure: str | None = None) -> None:
        super().__init__(message)
        self.cure = cure


def find_column(name: str, names: Sequence[str], role: str) -> str:
    """The column of that name, or an error that offers the closest ones."""
    if name in names:
        return name
    if name.isdecimal() and f"column {int(name)}" in names:  # a table without a header
        return f"column {int(name)}"
    folded = {other.casefold(): other for other in names}
    near = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(repr(folded[other]) for other in near)}?"
        if near
        else f"the columns are {', '.join(map(repr, list(names)[:20]))}" + (" ..." if len(names) > 20 else "")
    )
    looks_like_data = sum(is_number(other) for other in names) > len(names) / 4
    cure = "header" if looks_like_data else None
    raise TableError(f"the table has no column {name!r} for the {role}; {hint}", cure)


def find_columns(text: str, names: Sequence[str], role: str) -> list[str]:
    """Names separated by commas, where a name may itself hold commas: 'sex,income, yearly' finds both."""
    pieces = [piece.strip() for piece in text.split(",")]
    found: list[str] = []
    i = 0
    while i < len(pieces):
        for j in range(len(pieces), i, -1):  # the longest run of pieces that is a column
            joined = [sep.join(pieces[i:j]) for sep in (",", ", ")]
            known = next((name for name in joined if name in names), None)
            if known is not None:
                found.append(known)
                i = j
                break
        else:
            if pieces[i]:
                found.append(find_column(pieces[i], names, role))
            i += 1
    return list(dict.fromkeys(found))


def is_number(text: str) -> bool:
    """Whether Python reads the text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
