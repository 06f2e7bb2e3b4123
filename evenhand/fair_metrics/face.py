"""FACE: the sensitive directions are those along which versions of the same individual differ."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evenhand.fair_metrics.metric import FairMetric
from evenhand.variations import Variations, check_variations

__all__ = ["face", "face_stream"]

CHUNK = 1 << 22  # numbers that are widened at a time


def face(variations: Variations, k: int) -> FairMetric:
    """The metric in which the k main directions of difference between versions cost nothing (Mukherjee et al. 2020).

    The vectors of each individual are centred on their mean, stacked, and the top k right singular vectors taken. For
    pairs these are the singular vectors of X - X'. `variations.values` must be vectors, (g, m, d).

    >>> import numpy as np
    >>> from evenhand.variations import Variations
    >>> swapped = Variations(np.array([[[0.0, 1.0], [2.0, 1.0]], [[1.0, 5.0], [-3.0, 5.0]]]), rows=[0, 1])
    >>> abs(face(swapped, k=1).directions.ravel())
    tensor([1., 0.], dtype=torch.float64)
    """
    check_variations(variations)
    values = np.asarray(variations.values)
    if len(values) == 0:
        raise ValueError(
            "there is nobody with versions, so there is nothing to learn from; did any text contain one of the tokens?"
        )
    if values.ndim != 3 or values.dtype.kind not in "fiu":
        raise ValueError(
            f"expected vectors (individuals, versions, features), got {values.dtype} of shape {values.shape}; "
            "encode texts first: variations.map(embed)"
        )
    d = values.shape[2]
    if not 1 <= k < d:
        raise ValueError(
            f"k must be at least 1 and less than the {d} features, got {k}; with k = {d} all points are alike"
        )
    largest, squares = 0.0, np.zeros((d, d))
    few = len(values) * values.shape[1] <= d
    step = max(1, CHUNK // (values.shape[1] * d))  # a part at a time: wide copies of all versions would fill the memory
    for start in range(0, len(values), step):
        part = values[start : start + step].astype(np.float64)
        if not np.isfinite(part).all():
            raise ValueError("the vectors hold NaN or infinite values; clean them first")
        largest = max(largest, float(np.abs(part).max()))
        centred = (part - part.mean(axis=1, keepdims=True)).reshape(-1, d)
        if not few:
            squares += centred.T @ centred
    if few:
        wide = values.astype(np.float64)
        _, singular, rows = np.linalg.svd((wide - wide.mean(axis=1, keepdims=True)).reshape(-1, d), full_matrices=False)
        basis = rows.T
    else:  # the same right singular vectors, from a (d, d) matrix instead of a tall one
        eigenvalues, vectors = np.linalg.eigh(squares)
        singular, basis = np.sqrt(eigenvalues[::-1].clip(min=0)), vectors[:, ::-1]
    rank = int((singular > 1e-7 * max(float(singular[0]), largest)).sum())
    if k > rank:
        raise ValueError(
            f"k is {k}, but the versions differ in only {rank} directions; "
            f"use k <= {rank}, or more individuals and tokens"
        )
    dtype = values.dtype if values.dtype in (np.float32, np.float64) else np.float64
    return FairMetric(basis[:, :k].astype(dtype))


def face_stream(chunks: Iterable[Variations], k: int) -> FairMetric:
    """``face`` of all chunks together, from one pass and a (d, d) matrix: the scatter of versions about their means.

    >>> import numpy as np
    >>> swapped = Variations(np.array([[[0.0, 1.0], [2.0, 1.0]], [[1.0, 5.0], [-3.0, 5.0]]]), rows=[0, 1])
    >>> abs(face_stream([swapped, swapped], k=1).directions.ravel())
    tensor([1., 0.], dtype=torch.float64)
    """
    scatter, largest, dtype = None, 0.0, np.dtype(np.float64)
    for chunk in chunks:
        check_variations(chunk)
        values = np.asarray(chunk.values)
        if len(values) == 0:
            continue
        if values.ndim != 3 or values.dtype.kind not in "fiu":
            raise ValueError(
                f"expected vectors (individuals, versions, features), got {values.dtype} of shape {values.shape}; "
                "encode texts first: variations.map(embed)"
            )
        if not np.isfinite(values).all():
            raise ValueError("the vectors hold NaN or infinite values; clean them first")
        if scatter is None:
            scatter = np.zeros((values.shape[2], values.shape[2]))
            dtype = values.dtype if values.dtype in (np.float32, np.float64) else dtype
        if values.shape[2] != len(scatter):
            raise ValueError(f"every chunk must have {len(scatter)} features; one has {values.shape[2]}")
        wide = values.astype(np.float64)
        largest = max(largest, float(np.abs(wide).max()))
        centred = (wide - wide.mean(axis=1, keepdims=True)).reshape(-1, values.shape[2])
        scatter += centred.T @ centred
    if scatter is None:
        raise ValueError("there is nobody with versions, so there is nothing to learn from; are the chunks empty?")
    d = len(scatter)
    if not 1 <= k < d:
        raise ValueError(f"k must be at least 1 and less than the {d} features, got {k}")
    squares, vectors = np.linalg.eigh(scatter)
    singular = np.sqrt(squares[::-1].clip(min=0))
    rank = int((singular > 1e-7 * max(float(singular[0]), largest)).sum())
    if k > rank:
        raise ValueError(
            f"k is {k}, but the versions differ in only {rank} directions; use k <= {rank}, or more chunks"
        )
    return FairMetric(vectors[:, ::-1][:, :k].astype(dtype))
