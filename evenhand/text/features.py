"""Texts to scaled vectors, as a step of a Pipeline or a ColumnTransformer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from evenhand.counterfactuals.texts import as_texts
from evenhand.frames import plain_table
from evenhand.text.encoder import SentenceEncoder
from evenhand.text.shrink import Shrinkage
from evenhand.variations import Variations

__all__ = ["TextFeatures", "without_blind"]

Encoder = Callable[[list[str]], Any]


class TextFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The vectors of an encoder, each feature scaled to mean 0 and standard deviation 1 on the texts of `fit`.

    encoder: a `SentenceEncoder`, any function list[str] -> array, tensor or sparse matrix (n, d), or the name of a
        sentence-transformers model.
    alike: None, or a swap with a method `alike` (`TokenSwap`, `GenderSwap`): then a text that it would swap is the mean
        of its few forms that are the same whoever of the list the text is about, so that nobody can be told apart.
    Without the scaling a network of the usual start hardly learns: features of sentence encoders are about 0.05 large.
    """

    def __init__(self, encoder: Encoder | str, alike: Any = None) -> None:
        self.encoder = encoder
        self.alike = alike

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
        return self.shrinkage_(self.scaled(self.read(X)))

    def scaled(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Vectors of the encoder on the learned scale: (..., d)."""
        scaled: NDArray[np.float32] = ((vectors - self.mean_) / self.scale_).astype(np.float32)
        return scaled

    def vectors(self, X: Any) -> NDArray[np.float32]:
        """What the encoder says of the texts as they stand: (n, d), finite."""
        return self._with_columns(X, self._encoded(self._texts(X)))

    def read(self, X: Any) -> NDArray[np.float32]:
        """The vectors of the texts as the model reads them: as they stand, or alike whoever of the list is meant."""
        return self._with_columns(X, self._alike(self._texts(X)))

    def seen(self, versions: Variations) -> tuple[Variations, int]:
        """Versions as the model reads them, of those whose versions the encoder can tell apart as they stand; and how
        many others there are (`without_blind`). Versions that are read alike are seen: reading them so is the model's
        own doing."""
        apart, blind = without_blind(versions.map(self.vectors))
        if self.alike is None or len(apart) == 0:
            return Variations(self.shrinkage_(self.scaled(apart.values)), apart.rows) if len(apart) else apart, blind
        kept = np.isin(versions.rows, apart.rows)
        return Variations(versions.values[kept], versions.rows[kept], versions.like).map(self.transform), blind

    def _alike(self, texts: list[str]) -> NDArray[np.float32]:
        if self.alike is None:
            return self._encoded(texts)
        forms = self.alike.alike(texts)
        said = forms.flat() if len(forms) else []
        own = np.setdiff1d(np.arange(len(texts)), forms.rows)
        place = {text: i for i, text in enumerate(dict.fromkeys([*said, *(texts[i] for i in own)]))}
        encoded = self._encoded(list(place))  # each once: what is the same has the same vector, whatever the encoder
        out = np.empty((len(texts), encoded.shape[1]), dtype=np.float32)
        out[own] = encoded[[place[texts[i]] for i in own]]
        if len(forms):
            out[forms.rows] = encoded[[place[text] for text in said]].reshape(*forms.values.shape, -1).mean(axis=1)
        return out

    def _texts(self, X: Any) -> list[str]:
        return as_texts(X)

    def _with_columns(self, X: Any, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        return vectors

    def _encoded(self, listed: list[str]) -> NDArray[np.float32]:
        if not callable(getattr(self, "encoder_", None)):
            self.encoder_ = _opened(self.encoder)
        if not listed:  # not every function takes an empty list
            return self._encoded([""])[:0]
        vectors = np.asarray(plain_table(self.encoder_(listed)), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(listed):
            raise ValueError(f"the encoder must give one vector for each of {len(listed)} texts, got {vectors.shape}")
        if not np.isfinite(vectors).all():
            raise ValueError("the encoder gave NaN or infinite values; look at its input and its weights")
        return vectors

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        return np.array([f"text_{j}" for j in range(self.n_features_out_)], dtype=object)


def _opened(encoder: Any) -> Encoder:
    """The encoder as a function of texts."""
    if isinstance(encoder, str):
        return SentenceEncoder(encoder)
    # A SentenceTransformer is callable, but not with texts; scikit-learn's vectorizers are not.
    methods = ["encode"] if hasattr(encoder, "forward") else [] if callable(encoder) else ["transform", "encode"]
    kind, method = type(encoder).__name__, next((m for m in methods if callable(getattr(encoder, m, None))), None)
    if method is not None:
        raise TypeError(f"the encoder is a {kind}; give its method {method}, a function of texts, as the encoder")
    if not callable(encoder):
        raise TypeError(
            "the encoder must be a function list[str] -> array (n, d), a SentenceEncoder or the name of a "
            f"sentence-transformers model; got a {kind}"
        )
    return cast(Encoder, encoder)


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
