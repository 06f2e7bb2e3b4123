"""What a model answers, whatever it is: a function from encoded rows to outputs, both float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from evenhand.ensembles.read import CannotRead, read_ensemble
from evenhand.ensembles.trees import TreeEnsemble
from evenhand.module_copy import is_quantised, keeps_its_precision

Outputs = Callable[[Tensor], Tensor]  # (n, d) -> (n, K)
PROBABILITY = 1e-4  # a difference that float32 may make


class Logarithm(nn.Module):
    """Of probabilities: the logits but for a shift of all of them, which is nothing."""

    def forward(self, p: Tensor) -> Tensor:
        return p.clamp(min=1e-300).log()


def of_module(wide: nn.Module, device: str | torch.device) -> Outputs:
    """Outputs of a network's copy, from a copy of the rows, which it may overwrite."""
    if is_quantised(wide):  # it has steps, and no slopes
        return torch.no_grad()(lambda x: rows_of(_called(wide, x.to(device, copy=True)), len(x)))
    if keeps_its_precision(wide):
        return lambda x: rows_of(_called(wide, x.to(device, copy=True)), len(x))
    return lambda x: rows_of(wide(x.to(device, copy=True)), len(x))


def as_given(x: Tensor, model: Any) -> Any:
    """Encoded rows as the estimator was given them when it was fitted: a frame where it knows names."""
    names, rows = getattr(model, "feature_names_in_", None), x.detach().numpy()
    return rows if names is None else pd.DataFrame(rows, columns=names)


def asked_for(method: str, model: Any, x: Tensor, columns: list[str] | None = None) -> Any:
    """What a method of the estimator says of encoded rows; one around a network of fewer digits is asked in those."""
    ask = tabular(getattr(model, method), columns)
    return _called(lambda rows: ask(as_given(rows, model)), x)


def are_probabilities(h: Tensor) -> bool:
    """Whether all rows of outputs (n, K) lie between 0 and 1 and sum to 1."""
    if len(h) == 0 or h.shape[1] < 2:
        return False
    return bool((h >= 0).all() & ((h.sum(1) - 1).abs() <= 1e-5).all())


def black_box(model: Any, of: str | None = None, columns: list[str] | None = None) -> tuple[Outputs, bool]:
    """Outputs of anything callable, and whether it only gives probabilities (whose logarithms the outputs are). of: the
    method to ask, where there are several. columns: of the frame in which the people came."""
    if of != "predict_proba" and hasattr(model, "decision_function") and hasattr(model, "classes_"):
        classes, ask = len(model.classes_), tabular(model.decision_function, columns)

        def decision(x: Tensor) -> Tensor:
            h = _columns(torch.from_numpy(np.array(ask(as_given(x, model)), dtype=np.float64)))
            return torch.cat([-h / 2, h / 2], 1) if classes == 2 and h.shape[1] == 1 else h

        return decision, False
    if hasattr(model, "predict_proba"):
        return log_probabilities(model, columns), True
    if hasattr(model, "predict") and getattr(model, "classes_", None) is not None and len(model.classes_):
        return _certain(model, columns), True
    call = model.predict if hasattr(model, "predict") else model
    if not callable(call):
        raise TypeError(
            f"model must be an estimator, an nn.Module or a function of x (n, d); got {type(model).__name__}"
        )

    ask = tabular(lambda rows: _called(call, rows), columns)

    def outputs(x: Tensor) -> Tensor:
        h = _logits_in(ask(x.detach()))
        return rows_of(h.detach() if isinstance(h, Tensor) else torch.from_numpy(_numbers(h)), len(x))

    return outputs, False


def log_probabilities(model: Any, columns: list[str] | None = None) -> Outputs:
    """What ``predict_proba`` gives, as logits."""
    ask = tabular(model.predict_proba, columns)

    def outputs(x: Tensor) -> Tensor:
        p = np.asarray(ask(as_given(x, model)), dtype=np.float64)
        return torch.from_numpy(np.log(np.clip(p, 1e-300, 1.0)))

    return outputs


def gives_their_softmax(model: Any, x: Tensor, h: Tensor) -> bool:
    """Whether ``predict_proba`` of rows x (n, d) is the softmax of their outputs h (n, K), or the sigmoid of one: it is
    not where probabilities are fitted to scores, cut off at 0 and 1, or made one class against the rest."""
    p = log_probabilities(model)(x).exp()
    ours = h.softmax(1) if h.shape[1] > 1 else torch.cat([torch.sigmoid(-h), torch.sigmoid(h)], 1)
    return p.shape == ours.shape and bool(((p - ours).abs() <= PROBABILITY).all())


def _certain(model: Any, columns: list[str] | None) -> Outputs:
    """Labels, of a classifier that gives nothing else, as probabilities that are 0 or 1: numbers that stand for classes
    are no scores, and what can be said is whether they change."""
    ask = tabular(model.predict, columns)

    def outputs(x: Tensor) -> Tensor:
        said = np.asarray(ask(as_given(x, model)))
        if said.ndim == 2 and said.shape[1] > 1:
            raise several_labels(said.shape[1])
        is_class = said.reshape(-1, 1) == np.asarray(model.classes_)
        if not bool(is_class.any(1).all()):
            raise ValueError("predict() gives labels that are not among the model's classes_; it must give one of them")
        return torch.from_numpy(is_class.astype(np.float64)).clamp(min=1e-300).log()

    return outputs


def several_labels(count: int | None) -> ValueError:
    return ValueError(
        f"the model predicts {'several' if count is None else count} labels for each person, and audits and "
        "certificates speak of one; train one estimator for each label, as MultiOutputClassifier does, and judge each "
        "alone: model.estimators_[0]"
    )


def _logits_in(out: Any) -> Any:
    """What a model returned, or the logits in it, as models of transformers give them."""
    return out["logits"] if isinstance(out, Mapping) and "logits" in out else getattr(out, "logits", out)


def rows_of(out: Any, n: int) -> Tensor:
    """The outputs of n people, (n, K), from whatever a network returned."""
    h = _logits_in(out)
    if not isinstance(h, Tensor):
        raise TypeError(
            f"the model must return a tensor, one row for each person, or something with logits; got a "
            f"{type(h).__name__}. Put it into a module whose forward returns the tensor that counts, such as "
            "self.model(x)[0]"
        )
    if h.ndim == 0 or len(h) != n:
        raise ValueError(f"the model gave {tuple(h.shape)} for {n} rows; it must give one output a row")
    return _columns(h.to(device="cpu", dtype=torch.float64))


def tabular(call: Callable[[Any], Any], columns: list[str] | None) -> Callable[[Any], Any]:
    """The call, which is given a frame of these columns where it cannot read rows without names. What it raises when it
    is asked first comes with a sentence on what it was asked."""
    read: list[Callable[[Any], Any]] = []

    def framed(rows: Any) -> Any:
        return call(pd.DataFrame(np.asarray(rows), columns=columns))

    def asked(rows: Any) -> Any:
        if read:
            return read[0](rows)
        ways = [call] if columns is None or isinstance(rows, pd.DataFrame) else [call, framed]
        for way in ways:
            try:
                with warnings.catch_warnings():
                    if len(ways) > 1:  # of torch, about a tensor that is asked for a name
                        warnings.simplefilter("ignore", DeprecationWarning)
                    said = way(rows)
            except (TypeError, IndexError, KeyError, AttributeError, ValueError) as error:
                failed = error
                continue
            read.append(way)
            return said
        tried = f"a {type(rows).__name__}" + (" and a frame" if len(ways) > 1 else "")
        raise TypeError(
            f"the model failed when it was given {tried} of shape {tuple(rows.shape)} ({type(failed).__name__}, see "
            "above); it must take many people at once, one a row, and give one output a row"
        ) from failed

    return asked


def _called(call: Callable[[Any], Any], x: Any) -> Any:
    """The function's answer to float64; one around a network of fewer digits is asked in those it has."""
    if not isinstance(x, Tensor):
        return call(x)
    try:
        return call(x)
    except RuntimeError:
        if x.dtype == torch.get_default_dtype():
            raise
        return call(x.to(torch.get_default_dtype()))


def _numbers(given: Any) -> NDArray[np.float64]:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"the model must give numbers, one or more a row; got {type(given).__name__} that are none. Of labels "
            "nothing can be said but whether they change: give the scores or probabilities behind them"
        ) from None


def trees_of(model: Any) -> TreeEnsemble | None:
    """The ensemble behind boosted trees and forests."""
    try:
        return read_ensemble(model)
    except CannotRead:
        return None


def votes(model: Any) -> bool:
    """Whether its trees vote with probabilities, as forests of classifiers do."""
    kind = type(model).__name__
    return hasattr(model, "predict_proba") and kind.startswith(("RandomForest", "Extra", "DecisionTree"))


def voted(ensemble: TreeEnsemble) -> Outputs:
    """Logarithms of the mean vote, as of every model that only gives probabilities."""
    return lambda x: torch.from_numpy(np.log(np.clip(ensemble(x.detach().numpy()), 1e-300, 1.0)))


def logits(ensemble: TreeEnsemble, classifier: bool) -> Outputs:
    """Outputs of an ensemble; the log-odds f of two classes as the logits (-f/2, f/2)."""

    def outputs(x: Tensor) -> Tensor:
        h = torch.from_numpy(ensemble(x.detach().numpy()))
        return torch.cat([-h / 2, h / 2], 1) if classifier and h.shape[1] == 1 else h

    return outputs


def _columns(h: Tensor) -> Tensor:
    if h.ndim > 2:
        raise ValueError(
            f"the model gives outputs of shape {tuple(h.shape)}, several for each person, and audits and certificates "
            "speak of one, (n,) or (n, K); look at each alone, in a module whose forward returns self.model(x)[:, 0]"
        )
    return h[:, None] if h.ndim == 1 else h
