"""How the columns become numbers: scikit-learn preprocessing for a schema."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from evenhand.tables.kinds import MAX_CATEGORIES
from evenhand.tables.schema import Schema

__all__ = ["encode", "encoded_names", "make_encoder", "positions", "strangers"]

CHUNK = 100_000


def make_encoder(schema: Schema) -> ColumnTransformer:
    """scikit-learn preprocessing for the schema: median and scaling for numbers, one-hot for categories (the rare ones
    together), one column for categories with two values."""
    number = Pipeline(
        [
            ("fill", SimpleImputer(strategy="median", keep_empty_features=True)),
            ("clip", MinMaxScaler(clip=True)),  # to the range seen in training: nobody is outside the bounds
            ("scale", StandardScaler()),
        ]
    )
    one_hot: dict[str, Any] = {"sparse_output": False, "dtype": np.float32}
    parts = [
        ("number", number, schema.names("number")),
        ("binary", OneHotEncoder(drop="if_binary", handle_unknown="ignore", **one_hot), schema.names("binary")),
        (
            "category",
            OneHotEncoder(max_categories=MAX_CATEGORIES, handle_unknown="infrequent_if_exist", **one_hot),
            schema.names("category"),
        ),
    ]
    encoder = ColumnTransformer([part for part in parts if part[2]])
    return encoder.set_output(transform="pandas")


def encode(encoder: ColumnTransformer, frame: pd.DataFrame) -> pd.DataFrame:
    """The encoded table as float32, in chunks so that a million rows fit into memory."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Found unknown categories")
        parts = [
            encoder.transform(frame.iloc[start : start + CHUNK]).astype(np.float32)
            for start in range(0, len(frame), CHUNK)
        ]
    whole: pd.DataFrame = parts[0] if len(parts) == 1 else pd.concat(parts)
    return whole


def strangers(encoder: ColumnTransformer, clean: pd.DataFrame) -> dict[str, int]:
    """How many values of each category column training did not have, such as 1307 where it had 01307; only where there
    are any."""
    counts = {}
    for part, one_hot, columns in encoder.transformers_:
        if part in ("binary", "category"):
            for column, known in zip(columns, one_hot.categories_):
                counts[column] = int((~clean[column].isin(known)).sum())
    return {column: count for column, count in counts.items() if count}


def encoded_names(encoder: ColumnTransformer) -> list[tuple[str, str]]:
    """(column, value) behind each encoded feature; value is "" for a number."""
    names: list[tuple[str, str]] = []
    for part, transformer, columns in encoder.transformers_:
        if part == "number":
            names += [(column, "") for column in columns]
        elif part in ("binary", "category"):
            for column, shown in zip(columns, _shown(transformer, columns)):
                names += [(column, value) for value in shown]
    return names


def _shown(one_hot: OneHotEncoder, columns: Sequence[str]) -> list[list[str]]:
    features = list(one_hot.get_feature_names_out(list(columns)))
    shown: list[list[str]] = []
    for i, column in enumerate(columns):
        width = len(one_hot.categories_[i]) - (one_hot.drop_idx_ is not None and one_hot.drop_idx_[i] is not None)
        rare = one_hot.infrequent_categories_[i] if hasattr(one_hot, "infrequent_categories_") else None
        width += 0 if rare is None else 1 - len(rare)
        block, features = features[:width], features[width:]
        texts = [name.removeprefix(f"{column}_") for name in block]
        shown.append(["(rare)" if text == "infrequent_sklearn" else text for text in texts])
    return shown


def positions(encoder: ColumnTransformer) -> dict[str, list[int]]:
    """Where each column went: name -> positions of its encoded features."""
    places: dict[str, list[int]] = {}
    for i, (column, _) in enumerate(encoded_names(encoder)):
        places.setdefault(column, []).append(i)
    return places
