"""Biographies with an occupation and a gender: a reader of Bias in Bios."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.datasets.texts import read_texts, text_column

__all__ = ["Biographies", "bias_in_bios"]

_GENDERS = {
    "m": "male",
    "male": "male",
    "0": "male",
    "0.0": "male",
    "f": "female",
    "female": "female",
    "1": "female",
    "1.0": "female",
}


class Biographies(NamedTuple):
    """texts, y (the profession as in the file), gender ("male" or "female")."""

    texts: list[str]
    y: NDArray[Any]
    gender: NDArray[Any]


def bias_in_bios(
    path: str | os.PathLike[str], text: str = "hard_text", profession: str = "profession", gender: str = "gender"
) -> Biographies:
    """Bias in Bios as CSV, JSON lines or parquet with the columns hard_text, profession and gender (M, F, male,
    female, or 0, 1).

    text, profession, gender: the names of the columns, for files that name them otherwise. A pickle, the form in
    which the authors' script leaves the data, is refused: reading one can run any code.
    """
    frame = read_texts(path, [text, profession, gender], texts=[text])
    texts = text_column(frame, text)
    missing = frame[profession].isna().to_numpy()
    if missing.any():
        raise ValueError(f"{profession!r} is missing in {int(missing.sum())} rows; drop them from the file first")
    said = [str(value).strip().lower() for value in frame[gender]]
    unknown = sorted({value for value in said if value not in _GENDERS})
    if unknown:
        raise ValueError(
            f"{gender!r} must be M or F, male or female, or 0 (male) or 1 (female); got {', '.join(unknown[:5])}"
        )
    genders = np.array([_GENDERS[value] for value in said], dtype=object)
    return Biographies(texts, frame[profession].to_numpy(), genders)
