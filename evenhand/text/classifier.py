"""TextClassifier: from strings and labels to a classifier that does not care who a text is about."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from evenhand.counterfactuals.columns import swap_column
from evenhand.counterfactuals.texts import as_texts
from evenhand.counterfactuals.tokens import TokenSwap
from evenhand.dual.order import row_keys
from evenhand.error_rates import auc, threshold_at
from evenhand.estimators import CLPClassifier, ERMClassifier, SenSeIClassifier, SenSRClassifier
from evenhand.estimators.inputs import named
from evenhand.evaluation import balanced_accuracy, ctf_std, prediction_consistency
from evenhand.fair_metrics.metric import FairMetric
from evenhand.search.gradient import GradientSearch
from evenhand.text.averaged import mean_network, on_other_features
from evenhand.text.calibration import Calibration
from evenhand.text.directions import main_directions
from evenhand.text.features import Encoder, TextFeatures, without_blind
from evenhand.text.frames import FrameFeatures, as_frame
from evenhand.text.levels import Levels, learn_levels
from evenhand.text.shrink import Shrinkage
from evenhand.text.validation import best_fpr, between, choose, one_against_rest, passes, split, weights
from evenhand.text.worst_version import WorstVersionClassifier
from evenhand.variations import Variations

__all__ = ["TextClassifier"]

Swaps = Callable[[list[str]], Variations]
RHOS = {"sensei": (0.03, 0.06, 0.1), "clp": (0.03, 0.1, 0.3), "sensr": (0.0,), "plain": (0.0,)}  # of two classes
ALONG, AMONG = (0.06,), (8.0, 12.0)  # of SenSeI with `about`: along directions, and among versions
DRAWN = 32  # texts, and sentences, whose versions a step looks among
RATE, RATE_OF_VERSIONS = 1e-3, 3e-3  # so large a weight slows the training
SHARPER = 10.0  # times the shrinkage among versions: where no gradient is followed, less of who is spoken of is needed
MOST_ROWS = 5000  # whose versions are looked among
EVERY = 4  # worst cases along directions are looked for of each fourth text of a batch


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Encode, scale, swap, learn the fair metric (FACE), train, calibrate: strings in, labels and probabilities out.

    encoder: the name of a sentence-transformers model, a `SentenceEncoder`, or any function list[str] -> (n, d).
    swaps: a function list[str] -> `Variations`, such as `TokenSwap(identity_tokens(), sample=8)` or `GenderSwap()`;
        None only for the method "plain".
    method: "sensei", "clp" (counterfactual logit pairing), "sensr" or "plain".
    text: None where X holds the texts; the name of their column where X is a table. Its other columns are features too,
        numbers and categories as they come, and stay as they are in every version (`counterfactuals.swap_column`).
    mentions: more labelled texts (texts, y) to train on, never to validate on: `datasets.mentions(tokens)` holds
        harmless and abusive sentences about every token, against the belief that a mention is an insult.
    about: versions of sentences that are no data, as strings: `datasets.about_people(tokens)` says the same of many
        kinds of people. Shrinkage and directions are learned from them, too, half and half: what your list leaves out,
        or what few of your texts mention, lies mostly near what they hold.
    rho: the weight of fairness, or "auto": of the values tried, the largest with (about) the lowest CTF score on
        validation texts among those whose AUC (with more than two classes also the balanced accuracy) stays within
        `max_accuracy_loss` of the plain model's; the smallest of these where a class has fewer than 20 validation
        texts. If none does, the one that loses least, but never more than .05, or .1 where few texts validate: then
        the plain model is kept (`rho_` is 0) and a warning says so.
    With `about`, SenSeI trains one network whose worst cases are searched along the k main directions in which versions
        differ, and beyond them (eps: the mean fair distance that it may use there, in squared standard deviations),
        and two whose worst case is one of the versions, of texts and of `about`, with much larger weights. The mean of
        the three, which is one network, is taken before any of them if it keeps within `max_accuracy_loss`; so is the
        mean of CLP's. Without `about`, or where rho is given, there is only the search along directions.
    shrink: how much less the features count along directions in which versions of a text differ more than texts do
        (`Shrinkage`), ten times as much among versions; 0 for not at all.
    read_alike: read a text that the swap would change alike whoever of the list it is about: its features are the mean
        of those of a few forms (`TokenSwap.alike`, `GenderSwap.alike`). Over the words of the list the model then
        answers alike by construction, wherever the rules see them; training does what it can for all others, and
        trains on the texts as they stand. None: with a `TokenSwap`, for which it was measured; True: with any swap that
        has the method. Nothing changes for the method "plain".
    lr: the rate of the training; None for .001, or .003 where SenSeI looks among versions.
    validation_fraction: the share of the texts that chooses rho, the calibration and the threshold.
    The threshold of two classes is the lowest that flags no more harmless validation texts than the plain model does
    at the threshold of its best balanced accuracy (or, the same there, half-way to the next text below): a model cannot
    look consistent by flagging everybody.

    Fitted: `classes_`, `pipeline_` (features and network, for `audit` and `certify`), `fair_metric_`, `calibration_`,
    `threshold_`, `choice_` (a row for every rho tried and, where there is a mean, one for it with the mean of theirs),
    `blind_` (texts whose versions the encoder cannot tell apart),
    `levels_` (what gives sensitive attributes away), `chosen_because_` (what the rule had to say, mostly nothing).
    """

    def __init__(
        self,
        encoder: Encoder | str,
        swaps: Swaps | None = None,
        method: str = "sensei",
        *,
        text: Any = None,
        mentions: tuple[Sequence[str], Any] | None = None,
        about: Variations | None = None,
        rho: float | str = "auto",
        eps: float = 0.3,
        k: int = 25,
        shrink: float = 30.0,
        read_alike: bool | None = None,
        hidden: tuple[int, ...] = (500,),
        steps: int = 400,
        batch_size: int = 256,
        lr: float | None = None,
        max_accuracy_loss: float = 0.005,
        validation_fraction: float = 0.2,
        random_state: int = 0,
        progress: bool = False,
    ) -> None:
        self.encoder = encoder
        self.swaps = swaps
        self.method = method
        self.text = text
        self.mentions = mentions
        self.about = about
        self.rho = rho
        self.eps = eps
        self.k = k
        self.shrink = shrink
        self.read_alike = read_alike
        self.hidden = hidden
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.max_accuracy_loss = max_accuracy_loss
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Train on texts (a list, a column, a frame with one column; with `text`, any table) and labels of any kind.

        sensitive_features: attributes of the rows that are no features (a frame, or name -> values). What predicts one
        of them from the vectors becomes free, too, where that is more than chance; `levels_` holds what was found.
        """
        given: Any = as_texts(X) if self.text is None else as_frame(X, self.text)
        texts, labels = given if self.text is None else as_texts(given[self.text]), np.asarray(y)
        attributes = {} if sensitive_features is None else named(sensitive_features)
        self._check(texts, labels, attributes)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        rows = texts if self.text is None else row_keys(given)  # an empty text beside other columns is no copy
        fit, held = split(codes, self.validation_fraction, self.random_state, rows)
        alike = self.swaps if self._reads_alike() else None
        self.features_ = TextFeatures(self.encoder, alike)
        if self.text is not None:
            self.features_ = FrameFeatures(self.encoder, self.text, alike).fit_columns(given.iloc[fit])
        vectors = self.features_.vectors(given)
        self.features_.fit_vectors(vectors[fit])
        scaled = self.features_.scaled(vectors)
        versions, self.blind_ = self._versions(given, attributes)
        self.levels_ = [] if self.method == "plain" else _levels(attributes, scaled, fit, held)
        plain = self._net("plain", 0.0).fit(*self._with_mentions(scaled[fit], codes[fit]))
        self.plain_fpr_ = self._flagged_by(plain, scaled[held], codes[held])
        valid = [versions.select(held), *(levels.versions(scaled[held]) for levels in self.levels_)]
        self.plain_ = self._judge(plain, scaled[held], codes[held], valid)
        about = self._about(given)
        every = [versions.select(fit), *about, *(levels.versions(scaled[fit]) for levels in self.levels_)]
        among = bool(about) and self.method in ("sensei", "clp")  # versions say enough by themselves
        strength = self.shrink / (1 + len(about))
        if self.method != "plain":
            self.features_.shrinkage_ = Shrinkage.learned(every, scaled[fit], strength)
        shrunk = self.features_.shrinkage_
        x, (seen, *others) = shrunk(scaled), [_with(shrunk, some) for some in every]
        valid = [_with(shrunk, some) for some in valid]
        read = scaled[held] if alike is None else self.features_.scaled(self.features_.read(_rows(given, held)))
        train = self._with_mentions(x[fit], codes[fit])
        self.fair_metric_ = self._metric([seen, *others[: len(about)]])
        both = among and self.method == "sensei" and self.rho == "auto"
        rhos = self._weights(ALONG if both else RHOS[self.method])
        nets = [plain] if self.method == "plain" else [self._fitted(rho, train, seen, x[fit]) for rho in rhos]
        if both:
            sharper = Shrinkage.learned(every, scaled[fit], SHARPER * strength)
            nets += self._among([seen, *others], train, shrunk.to(sharper).astype(np.float32))
        mean = among and len(nets) > 1
        nets += [_mean(nets)] if mean else []
        judged = [self._judge(net, shrunk(read), codes[held], valid) for net in nets]
        self.choice_ = [{"rho": getattr(net, "rho", 0.0), **found} for net, found in zip(nets, judged)]
        self._take(nets, mean, plain, codes[held], sum(map(len, valid)))
        read = scaled[held] if self.features_.alike is None else read
        self._calibrate(self.features_.shrinkage_(read), codes[held])
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Calibrated class probabilities (n, K), columns in the order of `classes_`."""
        check_is_fitted(self, "net_")
        return self.calibration_.probabilities(self._logits(self.features_.transform(X)))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Of two classes, how far the log odds lie above the threshold (n,); of more, calibrated log probabilities."""
        p = self.predict_proba(X)
        if len(self.classes_) > 2:
            return np.log(np.clip(p, 1e-300, None))
        return _log_odds(p[:, 1]) - float(_log_odds(np.array([self.threshold_]))[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each text: of two classes the second where its probability reaches `threshold_`."""
        check_is_fitted(self, "net_")
        return self.classes_[_decided(self.predict_proba(X), self.threshold_)]

    @property
    def pipeline_(self) -> Pipeline:
        """Features and network without calibration, as `audit` and `certify` take them."""
        check_is_fitted(self, "net_")
        return Pipeline([("features", self.features_), ("net", self.net_)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")

    def _take(self, nets: list[Any], mean: bool, plain: Any, codes: NDArray[Any], compared: int) -> None:
        """Of the networks that were tried their mean (the last), or one by the rule; or none, and a warning."""
        taken: int | None = len(nets) - 1
        self.chosen_because_ = ""
        if self.method != "plain" and self.rho == "auto":
            last, rule = self.choice_[-1], (self.plain_, self.max_accuracy_loss, codes)
            if not (mean and passes(last, *rule)):
                single = self.choice_[:-1] if mean else self.choice_
                taken, self.chosen_because_ = choose(single, *rule, compared)
        if taken is None:
            warnings.warn(self.chosen_because_, stacklevel=3)
            self.rho_, self.net_, self.features_.alike = 0.0, plain, None
            self.features_.shrinkage_ = Shrinkage.none(self.features_.n_features_out_)
        else:
            self.rho_, self.net_ = self.choice_[taken]["rho"], nets[taken]

    def _reads_alike(self) -> bool:
        there = self.method != "plain" and hasattr(self.swaps, "alike")
        return there and (isinstance(self.swaps, TokenSwap) if self.read_alike is None else bool(self.read_alike))

    def _weights(self, two: tuple[float, ...]) -> tuple[float, ...]:
        return weights(two, len(self.classes_)) if self.rho == "auto" else (float(self.rho),)

    def _check(self, texts: list[str], labels: NDArray[Any], attributes: dict[str, Any]) -> None:
        if self.method not in RHOS:
            raise ValueError(f"method is one of {', '.join(RHOS)}; got {self.method!r}")
        if self.read_alike is True and self.swaps is not None and not hasattr(self.swaps, "alike"):
            kind = type(self.swaps).__name__
            raise ValueError(
                f"read_alike=True needs swaps with a method alike, as TokenSwap has; got a {kind}: leave it out"
            )
        if self.swaps is None and self.method != "plain" and (not attributes or self.method == "clp"):
            raise ValueError(f"method {self.method!r} needs swaps, for example TokenSwap(identity_tokens(), sample=8)")
        if self.swaps is not None and not callable(self.swaps):
            kind = type(self.swaps).__name__
            raise TypeError(
                f"swaps is a function list[str] -> Variations, such as TokenSwap(tokens) or GenderSwap(); got a {kind}"
            )
        if self.about is not None and not isinstance(self.about, Variations):
            kind = type(self.about).__name__
            raise ValueError(f"about holds versions, as swaps(sentences) or about_people(tokens) give; got a {kind}")
        for name, values in attributes.items():
            if values.shape != (len(texts),):
                raise ValueError(f"sensitive feature {name!r} must hold one value for each of the {len(texts)} texts")
        if labels.ndim != 1 or len(labels) != len(texts):
            raise ValueError(f"y must hold one label for each of the {len(texts)} texts, got shape {labels.shape}")
        missing = np.flatnonzero(pd.isna(labels))
        if len(missing):
            raise ValueError(
                f"y holds {len(missing):,} missing labels, the first at position {missing[0]}; leave these texts out"
            )
        check_classification_targets(labels)
        if len(np.unique(labels)) < 2:
            raise ValueError("a classifier needs two classes or more; y holds one class only")
        if self.text is not None and self.mentions is not None:
            raise ValueError("mentions are texts without other columns; leave them out, or text= and the other columns")
        if not isinstance(self.rho, Real) and not (isinstance(self.rho, str) and self.rho == "auto"):
            raise ValueError(f"rho is a number or 'auto', got {self.rho!r}")
        if not isinstance(self.k, Integral) or self.k < 1:
            raise ValueError(f"k is a number of directions, 1 or more; got {self.k!r}")
        for name in ("shrink", "max_accuracy_loss"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be zero or positive, got {getattr(self, name)!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1, got {self.validation_fraction}")

    def _versions(self, given: Any, attributes: dict[str, Any]) -> tuple[Variations, int]:
        """Versions as scaled vectors; those that the encoder cannot tell apart are left out and counted."""
        none = Variations(np.empty((0, 2, self.features_.n_features_out_), dtype=np.float32), np.empty(0, int))
        if self.swaps is None:
            return none, 0
        said = self.swaps(given) if self.text is None else swap_column(given, self.text, self.swaps)
        if not isinstance(said, Variations):
            kind = type(said).__name__
            raise TypeError(f"swaps must give Variations of the texts that have versions; it gave a {kind}")
        if len(said) == 0:
            if self.method == "plain" or attributes:
                return none, 0
            raise ValueError("no text has versions, so there is nothing to be fair about; look at swaps.preview(texts)")
        seen, blind = without_blind(said.map(lambda rows: self.features_.scaled(self.features_.vectors(rows))))
        if blind:
            warnings.warn(
                f"{blind:,} of {len(said):,} texts with versions look the same to the encoder in all of them; they are "
                "left out. Give the swap passage= to look at the words around the token.",
                stacklevel=3,
            )
        return seen if len(seen) else none, blind

    def _with_mentions(self, x: NDArray[Any], codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        if self.mentions is None:
            return x, codes
        more, labels = as_texts(self.mentions[0]), np.asarray(self.mentions[1])
        if labels.shape != (len(more),):
            raise ValueError(f"mentions are texts and one label for each, got {len(more)} and shape {labels.shape}")
        unknown = set(labels.tolist()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(f"mentions have {len(unknown)} labels that y does not have; use the same labels")
        added = self.features_.shrinkage_(self.features_.scaled(self.features_.vectors(more)))
        return np.concatenate([x, added]), np.concatenate([codes, np.searchsorted(self.classes_, labels)])

    def _about(self, given: Any) -> list[Variations]:
        """The sentences beside the data as scaled vectors; in a table, as the texts of its first row."""
        if self.about is None or self.method == "plain":
            return []

        def rows(texts: list[str]) -> Any:
            if self.text is None:
                return texts
            table = given.iloc[np.zeros(len(texts), dtype=int)].copy()
            table[self.text] = texts
            return table

        return [self.about.map(lambda texts: self.features_.scaled(self.features_.vectors(rows(texts))))]

    def _metric(self, seen: list[Variations]) -> FairMetric | None:
        """Free are the directions in which versions differ, and those that give sensitive attributes away."""
        if self.method in ("plain", "clp"):
            return None
        parts = [self.features_.shrinkage_(levels.directions.T).T for levels in self.levels_]
        if any(len(some) for some in seen):
            parts.insert(0, main_directions(seen, self.k))
        if not parts:
            return FairMetric.euclidean(self.features_.n_features_out_)
        return FairMetric(np.concatenate(parts, axis=1))

    def _training(self) -> dict[str, Any]:
        return {
            "hidden": self.hidden,
            "steps": self.steps,
            "batch_size": self.batch_size,
            "lr": RATE if self.lr is None else self.lr,
            "random_state": self.random_state,
            "progress": self.progress,
        }

    def _net(self, method: str, rho: float) -> Any:
        common = self._training()
        search = GradientSearch(subspace_step=0.5, subspace_steps=3, full_steps=int(self.eps > 0))
        if method == "sensei":
            return SenSeIClassifier(
                self.fair_metric_, rho=rho, eps=self.eps, bounds=None, search=search, every=EVERY, free=0.0, **common
            )
        if method == "sensr":
            return SenSRClassifier(self.fair_metric_, eps=0.0, bounds=None, search=search, **common)
        return CLPClassifier(rho=rho, **common) if method == "clp" else ERMClassifier(**common)

    def _among(
        self, versions: list[Variations], train: tuple[NDArray[Any], NDArray[Any]], m: NDArray[np.float32]
    ) -> list[Any]:
        """SenSeI whose worst case is one of the versions: trained on features @ m, then networks of the features."""
        kinds = tuple(some.values[:MOST_ROWS] @ m for some in versions if len(some))
        training = self._training() | {"lr": RATE_OF_VERSIONS if self.lr is None else self.lr}
        nets = [WorstVersionClassifier(kinds, rho=rho, drawn=DRAWN, **training) for rho in self._weights(AMONG)]
        for i, net in enumerate(nets, start=1):
            if isinstance(self.random_state, Integral):  # others begin elsewhere by themselves
                net.set_params(random_state=self.random_state + 1000 * i)  # the more they differ, the more a mean gains
            net.fit(train[0] @ m, train[1])
            net.module_ = on_other_features(net.module_, torch.from_numpy(m))
        return nets

    def _fitted(self, rho: float, train: tuple[NDArray[Any], NDArray[Any]], seen: Variations, x: NDArray[Any]) -> Any:
        net = self._net(self.method, rho)
        if self.method != "clp":
            return net.fit(*train)
        whole = np.array([np.array_equal(v[0], x[row]) for v, row in zip(seen.values, seen.rows)], dtype=bool)
        paired = Variations(seen.values[whole], seen.rows[whole])  # a passage is no version of the whole text
        return net.fit(*train, variations=paired if len(paired) else seen)

    def _judge(self, net: Any, x: NDArray[Any], codes: NDArray[Any], valid: list[Variations]) -> dict[str, float]:
        """Skill and CTF score on validation texts, calibrated there; balanced accuracy and consistency of decisions.

        CTF score and consistency are means over the versions of the texts and those of each sensitive attribute; where
        there are none, the score is 0 and the consistency 1.
        """
        logits = net._outputs(x)
        calibration = Calibration.learned(logits, codes)
        two, p = len(self.classes_) == 2, calibration.probabilities(logits)
        threshold = self._threshold(p, codes)
        ranked = auc(codes, logits[:, 1] - logits[:, 0]) if two else one_against_rest(codes, logits)
        accuracy = balanced_accuracy(codes, _decided(p, threshold))
        ctf, pc = [], []
        for some in valid:
            if len(some):
                versions = some.map(lambda rows: calibration.probabilities(net._outputs(rows))).values
                ctf.append(ctf_std(versions[:, :, 1]) if two else float(np.mean(versions.std(axis=1).sum(axis=-1))))
                pc.append(prediction_consistency(_decided(versions, threshold)))
        found = {"skill": ranked if two else accuracy, "auc": ranked, "ctf": float(np.mean(ctf)) if ctf else 0.0}
        return found | {"ba": accuracy, "pc": float(np.mean(pc)) if pc else 1.0}

    def _flagged_by(self, plain: Any, x: NDArray[Any], codes: NDArray[Any]) -> float:
        """The share of harmless validation texts that the plain model flags at its best; NaN with more classes."""
        logits = plain._outputs(x)
        return best_fpr(codes, logits[:, 1] - logits[:, 0]) if len(self.classes_) == 2 else float("nan")

    def _threshold(self, p: NDArray[np.float64], codes: NDArray[Any]) -> float:
        if len(self.classes_) > 2:
            return float("nan")
        return between(p[:, 1], min(threshold_at(codes, p[:, 1], self.plain_fpr_), 1.0))

    def _calibrate(self, x: NDArray[Any], codes: NDArray[Any]) -> None:
        logits = self._logits(x)
        self.calibration_ = Calibration.learned(logits, codes)
        self.threshold_ = self._threshold(self.calibration_.probabilities(logits), codes)

    def _logits(self, x: NDArray[Any]) -> NDArray[np.float64]:
        return cast(NDArray[np.float64], self.net_._outputs(x))


def _mean(nets: list[Any]) -> Any:
    """The mean of the networks as one network; its rho is the mean of theirs."""
    mean = copy.copy(nets[0])
    mean.rho = float(f"{np.mean([net.rho for net in nets]):.3g}")
    mean.module_ = mean_network([net.module_ for net in nets])
    return mean


def _rows(given: Any, rows: NDArray[np.intp]) -> Any:
    return [given[i] for i in rows] if isinstance(given, list) else given.iloc[rows]


def _with(f: Callable[[NDArray[Any]], NDArray[Any]], versions: Variations) -> Variations:
    return Variations(f(versions.values), versions.rows)


def _levels(
    attributes: dict[str, NDArray[Any]], x: NDArray[Any], fit: NDArray[np.intp], held: NDArray[np.intp]
) -> list[Levels]:
    """What gives each attribute away, learned on the texts to train on and tried on the others."""
    found = [learn_levels(name, x[fit], values[fit], x[held], values[held]) for name, values in attributes.items()]
    return [one for one in found if one is not None]


def _decided(p: NDArray[np.float64], threshold: float) -> NDArray[np.intp]:
    """The class numbers of probabilities (..., K): of two the second where it reaches the threshold."""
    return (p[..., 1] >= threshold).astype(np.intp) if p.shape[-1] == 2 else p.argmax(axis=-1)


def _log_odds(p: NDArray[np.float64]) -> NDArray[np.float64]:
    q = np.clip(p, 1e-12, 1 - 1e-12)
    return np.log(q / (1 - q))
