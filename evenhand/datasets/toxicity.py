"""Comments with a toxicity label: readers of the two public Jigsaw formats."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.datasets.texts import read_texts, text_column

__all__ = ["Comments", "civil_comments", "jigsaw_toxicity"]

# The identities of the "unintended bias" data; files may hold only some of them.
IDENTITIES = [
    *["male", "female", "transgender", "other_gender", "heterosexual", "homosexual_gay_or_lesbian", "bisexual"],
    *["other_sexual_orientation", "christian", "jewish", "muslim", "hindu", "buddhist", "atheist", "other_religion"],
    *["black", "white", "asian", "latino", "other_race_or_ethnicity", "physical_disability"],
    *["intellectual_or_learning_disability", "psychiatric_or_mental_illness", "other_disability"],
]


class Comments(NamedTuple):
    """texts, y (1 toxic), and for each identity group a column that says which comments belong to it."""

    texts: list[str]
    y: NDArray[np.int64]
    groups: pd.DataFrame


def civil_comments(path: str | os.PathLike[str], threshold: float = 0.5) -> Comments:
    """Civil Comments with identity labels, the Jigsaw "unintended bias" file: comment_text, target, one column an
    identity.

    Toxic is target >= threshold, a member of a group who has a share of annotators >= threshold; comments that nobody
    asked about (empty identity fields) belong to none.
    """
    frame = read_texts(path, ["comment_text", "target"], texts=["comment_text"])
    texts = text_column(frame, "comment_text")
    identities = [name for name in IDENTITIES if name in frame.columns]
    if not identities:
        raise ValueError(
            f"{os.path.basename(path)} has no identity column such as 'muslim' or 'homosexual_gay_or_lesbian'; "
            "use the file with identity annotations, or jigsaw_toxicity"
        )
    shares = {name: _numbers(frame[name], name) for name in identities}
    target = _numbers(frame["target"], "target")
    if np.isnan(target).any():
        raise ValueError(f"'target' is missing in {int(np.isnan(target).sum())} rows; drop them from the file first")
    groups = pd.DataFrame({name: share >= threshold for name, share in shares.items()})
    return Comments(texts, (target >= threshold).astype(np.int64), groups)


def jigsaw_toxicity(path: str | os.PathLike[str], text: str = "comment_text", toxic: str = "toxic") -> Comments:
    """The Jigsaw toxic comment data: comment_text, toxic (0 or 1). It says nothing of groups, so `groups` has no
    column.

    text, toxic: the names of the columns, for files that name them otherwise.
    """
    frame = read_texts(path, [text, toxic], texts=[text])
    texts = text_column(frame, text)
    labels = _numbers(frame[toxic], toxic)
    if not np.isin(labels, (0, 1)).all():
        found = sorted({str(value) for value in labels[~np.isin(labels, (0, 1))]})
        raise ValueError(
            f"{toxic!r} must be 0 or 1, got {', '.join(found[:5])}; "
            "-1 marks comments of the test file that were not scored: drop them"
        )
    return Comments(texts, labels.astype(np.int64), pd.DataFrame(index=range(len(texts))))


def _numbers(column: Any, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(pd.to_numeric(column), dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name!r} must hold numbers: {error}") from error
