"""The Adult (Census Income) table, with the protocol of the paper."""

from __future__ import annotations

import io
import lzma
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Split", "Table", "adult", "adult_frame"]

NUMERIC = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
ONE_HOT = ["workclass", "marital-status", "occupation", "relationship"]


class Table(NamedTuple):
    """One part of a split: features, labels, and the groups that scores are computed for."""

    X: pd.DataFrame
    y: NDArray[np.int64]
    sex: NDArray[Any]
    race: NDArray[Any]


class Split(NamedTuple):
    train: Table
    test: Table


def adult(seed: int = 0) -> Split:
    """Train and test part of Adult as in the paper: 36,177 and 9,045 rows, 41 features; y: is the income above 50K?

    Rows with unknown native-country or occupation are dropped (45,222 remain, 24.784 % positive). Features in order:
    age, education-num, capital-gain, capital-loss, hours-per-week (standardised with mean and population standard
    deviation of the train part), one-hot workclass, marital-status, occupation, relationship, then sex (1 male) and
    race (1 white), which stay among the features. The split is `RandomState(seed).permutation(n)`, its first 80 %
    being train; the paper uses the seeds 0 to 9. The index of X is the row number in `adult_frame()`.

    `sex` ("Female", "Male") and `race` ("Non-White", "White") are the groups of each row, for scores.

    Data: B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, CC BY 4.0.

    >>> train, test = adult(seed=0)
    >>> train.X.shape, test.X.shape
    ((36177, 41), (9045, 41))
    """
    frame = _read().dropna(subset=["native-country", "occupation"])
    X = pd.concat(
        [
            frame[NUMERIC].astype(np.float64),
            pd.get_dummies(frame[ONE_HOT], dtype=np.float64),  # in alphabetical order: Husband first, Wife last
            (frame["sex"] == "Male").astype(np.float64),
            (frame["race"] == "White").astype(np.float64),
        ],
        axis=1,
    )
    y = (frame["income"] == ">50K").to_numpy().astype(np.int64)
    sex = np.where(X["sex"] == 1, "Male", "Female")
    race = np.where(X["race"] == 1, "White", "Non-White")

    # the legacy generator, because it makes the paper's splits
    order = np.random.RandomState(seed).permutation(len(X))
    train, test = np.split(order, [int(0.8 * len(X))])
    known = X[NUMERIC].iloc[train]
    X[NUMERIC] = (X[NUMERIC] - known.mean()) / known.std(ddof=0)
    return Split(*(Table(X.iloc[part].copy(), y[part], sex[part], race[part]) for part in (train, test)))


def adult_frame() -> pd.DataFrame:
    """Adult as published, adult.data then adult.test: 48,842 rows, 14 features of mixed type and `income`.

    Unknown values are NaN.

    Data: B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, CC BY 4.0.

    >>> adult_frame()["income"].value_counts().to_dict()
    {'<=50K': 37155, '>50K': 11687}
    """
    return _read().copy()


@lru_cache(maxsize=1)
def _read() -> pd.DataFrame:
    packed = files("evenhand.datasets").joinpath("adult.csv.xz").read_bytes()
    return pd.read_csv(io.BytesIO(lzma.decompress(packed)))
