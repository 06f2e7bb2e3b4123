"""What gives a sensitive attribute away in the vectors, and versions of a row that give something else away."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.fair_metrics.classifier import from_classifier
from evenhand.fair_metrics.metric import orthonormal_basis
from evenhand.variations import Variations

__all__ = ["Levels", "groups_of", "learn_levels"]

Floats = NDArray[np.float64]
MOST_GROUPS = 8  # groups of which versions are made, the largest ones
NUMBERS = 10  # a number of more values than that is cut at its quartiles
SMALL = "(small groups)"


@dataclass(frozen=True)
class Levels:
    """A sensitive attribute as linear directions of the vectors, learned from rows whose attribute is known.

    directions: (d, r), orthonormal. levels: (g, r), where the mean row of each of `groups` lies along them.
    explained: the share of the uncertainty about the attribute that the vectors take away, on rows not learned from.
    """

    name: str
    directions: NDArray[np.float32]
    groups: tuple[str, ...]
    levels: NDArray[np.float32]
    explained: float

    def versions(self, x: NDArray[np.float32]) -> Variations:
        """Each row as it is, then once for each group: along the directions where the group's mean row lies, in
        everything else as it is. (n, d) -> (n, 1 + g, d)."""
        away = self.levels[None] - (x @ self.directions)[:, None]
        moved = x[:, None] + away @ self.directions.T
        return Variations(np.concatenate([x[:, None], moved], axis=1).astype(np.float32), np.arange(len(x)))


def groups_of(values: NDArray[Any], teaching: NDArray[Any]) -> NDArray[Any]:
    """The attribute as groups: quartiles of a number, otherwise its values as text, the small ones together.

    A group is small with fewer than twenty of the teaching rows, or a twentieth of them where they are few.

    >>> groups_of(np.array(["f", "m", "x"]), np.array(["f"] * 30 + ["m"] * 30 + ["x"])).tolist()
    ['f', 'm', '(small groups)']
    """
    if _quantity(teaching):
        known = teaching[~np.isnan(teaching)]
        cuts = np.unique(np.quantile(known, [0.25, 0.5, 0.75]))
        edges = [known.min(), *cuts, known.max()]
        names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
        places = np.searchsorted(cuts, values, side="left")
        return np.array(["(missing)" if np.isnan(v) else names[i] for v, i in zip(values, places)], dtype=object)
    texts, of = _texts(values), _texts(teaching)
    kinds, counts = np.unique(of, return_counts=True)
    large = kinds[counts >= min(20, max(2, len(of) // 20))]
    return np.where(np.isin(texts, large), texts, SMALL).astype(object)


def learn_levels(name: str, x: Any, values: Any, x_new: Any, new: Any) -> Levels | None:
    """Directions that predict the attribute from the rows x, tried on x_new; None where they tell nothing for sure.

    A regression of a number, otherwise a logistic regression of its groups. What predicts it by chance only must not be
    free: the loss on x_new has to be lower than without looking by more than two standard errors.
    """
    values, new = np.asarray(values), np.asarray(new)
    groups = groups_of(values, values)
    large, counts = np.unique(groups, return_counts=True)
    if len(large) < 2:
        return None
    teaching, wanted = (values, new) if _quantity(values) else (groups, groups_of(new, values))
    if _quantity(values):
        teaching, wanted = (np.where(np.isnan(v), np.nanmedian(values), v) for v in (teaching, wanted))
    inner = from_classifier(x, (), {name: teaching}, l2=0.1).attribute_models[0]
    explained, surely = _evidence(inner.estimator, x_new, wanted, teaching)
    if not surely:
        return None
    basis = np.asarray(orthonormal_basis(_tensor(inner.directions), 1e-6), dtype=np.float32)
    shown = large[np.argsort(-counts, kind="stable")][:MOST_GROUPS]
    along = np.asarray(x, dtype=np.float32) @ basis
    means = np.stack([along[groups == group].mean(axis=0) for group in shown])
    return Levels(name, basis, tuple(map(str, shown)), means, explained)


def _quantity(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "fiu" and len(np.unique(values[~np.isnan(values.astype(float))])) > NUMBERS


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    return np.array(["(missing)" if v is None or v != v else str(v) for v in values.tolist()], dtype=object)


def _evidence(inner: Any, x: Any, wanted: NDArray[Any], teaching: NDArray[Any]) -> tuple[float, bool]:
    """How much less one is wrong about the attribute by looking at the vectors: the share, and whether for sure."""
    if not hasattr(inner, "predict_proba"):
        without, looking = np.square(wanted - teaching.mean()), np.square(wanted - inner.predict(x))
    else:
        known = np.isin(wanted.astype(str), inner.classes_)
        x, codes = np.asarray(x)[known], np.searchsorted(inner.classes_, wanted[known].astype(str))
        share = np.array([(teaching.astype(str) == kind).mean() for kind in inner.classes_])
        p = inner.predict_proba(x)[np.arange(len(codes)), codes] if len(codes) else np.empty(0)
        without, looking = -np.log(share[codes].clip(1e-12)), -np.log(p.clip(1e-12))
    if len(without) < 20:
        return float("nan"), False
    gain = without - looking
    error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
    return float(gain.mean() / max(float(without.mean()), 1e-12)), bool(gain.mean() > 2 * error)


def _tensor(values: Any) -> Any:
    import torch

    return torch.as_tensor(values, dtype=torch.float64)
