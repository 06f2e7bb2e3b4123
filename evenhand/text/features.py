"""Texts to scaled vectors, as a step of a Pipeline or a ColumnTransformer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from evenhand.counterfactuals.texts import as_texts
from evenhand.text.encoder import SentenceEncoder
from evenhand.text.shrink import Shrinkage
from evenhand.variations import Variations

__all__ = ["TextFeatures", "without_blind"]

Encoder = Callable[[list[str]], Any]


class TextFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The vectors of an encoder, each feature scaled to mean 0 and standard deviation 1 on the texts of `fit`.

    encoder: a `SentenceEncoder`, any function list[str] -> array (n, d), or the name of a sentence-transformers model.
    Without the scaling a network of the usual start hardly learns: features of sentence encoders are about 0.05 large.
    """

    def __init__(self, encoder: Encoder | str) -> None:
        self.encoder = encoder

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        self.fit_vectors(self.vectors(X))
        return self

    def fit_vectors(self, vectors: NDArray[np.float32]) -> Self:
        """Learn the scale from vectors that are there already."""
        self.mean_ = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        scale = vectors.std(axis=0, dtype=np.float64)
        self.scale_ = np.where(scale < 1e-6, 1.0, scale).astype(np.float32)  # some encoders have a constant feature
        self.n_features_out_ = vectors.shape[1]
        self.shrinkage_ = Shrinkage.none(vectors.shape[1])  # a TextClassifier learns one
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        check_is_fitted(self, "mean_")
        return self.shrinkage_(self.scaled(self.vectors(X)))

    def scaled(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors of the encoder on the learned scale: (..., d)."""
        scaled: NDArray[np.float32] = ((vectors - self.mean_) / self.scale_).astype(np.float32)
        return scaled

    def vectors(self, X: Iterable[str]) -> NDArray[np.float32]:
        """What the encoder says of the texts: (n, d), finite."""
        listed = as_texts(X)
        if not callable(getattr(self, "encoder_", None)):
            self.encoder_ = SentenceEncoder(self.encoder) if isinstance(self.encoder, str) else self.encoder
        vectors = np.asarray(self.encoder_(listed), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(listed):
            raise ValueError(f"the encoder must give one vector for each of {len(listed)} texts, got {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise ValueError("the encoder gave NaN or infinite values; look at its input and its weights")
        return vectors

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        return np.array([f"text_{j}" for j in range(self.n_features_out_)], dtype=object)


def without_blind(versions: Variations) -> tuple[Variations, int]:
    """The vectors of those individuals whose versions the encoder can tell apart, and how many others there are.

    A swap that lies beyond the encoder's cut, or that it reads as the same word, changes nothing it sees. Counting such
    versions as treated alike would be praise for not having looked.

    >>> seen, blind = without_blind(Variations(np.array([[[0.0], [0.0]], [[0.0], [1.0]]]), rows=[3, 4]))
    >>> seen.rows, blind
    (array([4]), 1)
    """
    if len(versions) == 0:
        return versions, 0
    values = np.asarray(versions.values)
    differs = (values != values[:, :1]).reshape(len(values), -1).any(axis=1)
    return Variations(values[differs], versions.rows[differs], versions.like), int((~differs).sum())
