"""The model under audit, whatever it is: an estimator, a Pipeline around one, an nn.Module or any callable."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from torch import Tensor, nn

from evenhand.bounds.fitted import fitted_module
from evenhand.ensembles.read import CannotRead, read_ensemble
from evenhand.ensembles.trees import TreeEnsemble
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import check_kinds, plain_table
from evenhand.output_distances import (
    Described,
    OutputDistance,
    centred,
    described,
    mean_squared_logits,
    total_variation,
)


@dataclass(frozen=True)
class Judged:
    """A model as the audit sees it: a function from encoded features to outputs, both float64."""

    outputs: Callable[[Tensor], Tensor]  # (n, d) -> (n, K), logits for classifiers (or the logarithm of probabilities)
    module: nn.Module | None  # None: a black box without gradients
    classes: NDArray[Any] | None
    fair_metric: FairMetric | None  # what the estimator was trained with, where it says so
    bounds: Any
    preprocessing: Pipeline | None  # the steps of a Pipeline before the estimator
    only_probabilities: bool = False  # a classifier that does not say how it comes to them
    is_classifier: bool = False
    ensemble: TreeEnsemble | None = None  # its trees, where its outputs are the sum of trees that can be read
    jumps: list[NDArray[np.float64]] | None = None  # of any model of trees: where its outputs may jump, by column
    is_regressor: bool = False  # its outputs are numbers, not the logits of classes
    shape: tuple[int, ...] = ()  # of what a model takes that takes no rows, such as images: (C, H, W)

    @classmethod
    def of(cls, model: Any, device: str | torch.device = "cpu", shape: tuple[int, ...] = ()) -> Judged:
        """device: where a module runs; what is computed about its outputs stays on the CPU. shape: of one person where
        that is more than a row, as an image is; the outputs are a function of flat rows all the same."""
        judged = cls._of_rows(model, device)
        if len(shape) < 2 or judged.preprocessing is not None:
            return judged
        whole = None if judged.module is None else nn.Sequential(nn.Unflatten(1, shape), judged.module)
        return replace(
            judged, outputs=lambda x: judged.outputs(x.reshape(len(x), *shape)), module=whole, shape=tuple(shape)
        )

    @classmethod
    def _of_rows(cls, model: Any, device: str | torch.device) -> Judged:
        model, preprocessing = getattr(model, "best_estimator_", model), None  # a search stands for what it chose
        if isinstance(model, Pipeline):
            preprocessing, model = (model[:-1] if len(model) > 1 else None), model[-1]
        metric, bounds = getattr(model, "fair_metric_", None), getattr(model, "bounds_", None)
        if getattr(model, "fair_metric", metric) is None:
            metric = None  # trained without one: Euclidean is what it was given for want of a better, not a statement
        classes = getattr(model, "classes_", None)
        if classes is not None and len(classes) == 0:
            classes = None  # as CatBoost's regressors say it
        module = model if isinstance(model, nn.Module) else getattr(model, "module_", None) or fitted_module(model)
        if isinstance(module, nn.Module):
            _check_device(device)
            wide = _logits_of(copy.deepcopy(module)).to(device=device, dtype=torch.float64).eval()
            for parameter in wide.parameters():
                parameter.requires_grad_(False)
            outputs = lambda x: _rows_of(wide(x.to(device, copy=True)), len(x))  # noqa: E731  # which it may overwrite
            known, numbers = classes is not None, isinstance(model, RegressorMixin)
            return cls(outputs, wide, classes, metric, bounds, preprocessing, False, known, is_regressor=numbers)
        ensemble = _trees(model)
        if ensemble is not None:
            votes, known = _votes(model), classes is not None
            outputs = _voted(ensemble) if votes else _logits(ensemble, known)
            return cls(outputs, None, classes, metric, bounds, preprocessing, votes, known, ensemble, ensemble.jumps())
        outputs, only_probabilities = _black_box(model)
        known = only_probabilities or classes is not None
        numbers = isinstance(model, RegressorMixin)
        return cls(
            outputs, None, classes, metric, bounds, preprocessing, only_probabilities, known, is_regressor=numbers
        )

    def distance(self, given: OutputDistance | None) -> Described:
        """The output distance to judge by: the given one, or the mean squared logits; of probabilities where the model
        gives nothing else, the total variation."""
        if given is None:
            return total_variation if self.only_probabilities else mean_squared_logits
        if described(given).needs_logits and self.only_probabilities:
            raise ValueError(
                f"{described(given)!r} needs logits and the model only gives probabilities, whose logarithms explode "
                "near 0; use total_variation or absolute_probability"
            )
        return described(given)

    def metric(self, given: FairMetric | None) -> FairMetric:
        """The fair metric to judge by: the given one, or the one that the model was trained with."""
        metric = given if given is not None else self.fair_metric
        if metric is None:
            raise ValueError("fair_metric is needed: the model does not carry one; see evenhand.fair_metrics")
        return metric

    def threshold(self, k: int, given: float | None) -> float | None:
        """The score (see ``scores``) above which a model with k outputs says yes; None where nothing is decided."""
        if self.is_regressor and k > 1:  # not the logits of k classes: what is said of decisions would be wrong
            raise ValueError(
                f"the model predicts {k} numbers for each person, and audits and certificates speak of one; look at "
                "each alone, for example at lambda x: model.module_(x)[:, :1], with fair_metric=model.fair_metric_ and "
                "bounds=model.bounds_"
            )
        if given is not None:
            return given
        return 0.0 if k > 1 or self.is_classifier else None

    def outputs_for(self, distance: Described) -> Callable[[Tensor], Tensor]:
        """Outputs as the distance means them: of classes, a shift of all logits of a person is nothing."""
        return (lambda x: centred(self.outputs(x))) if distance.of_classes else self.outputs

    def has_slopes(self, x: Tensor) -> bool:
        """Whether autograd can follow it at x (n, d): some networks run a part under no_grad, or detach it."""
        if self.module is None:
            return False
        with torch.enable_grad():
            return self.outputs(x[:2].detach().clone().requires_grad_(True)).requires_grad

    def check_function(self, x: Tensor) -> None:
        """Is it a function of one person at a time? The same people, asked again in another order, must get the same
        answers; otherwise no statement about it would mean anything."""
        with torch.no_grad():
            first, again = self.outputs(x), self.outputs(x.flip(0)).flip(0)
        if not bool(torch.isfinite(first).all()):
            raise ValueError("the model's outputs hold NaN or infinity for some of the rows; they must be finite")
        scale = float((first - first.mean(0)).abs().max() + 1e-3 * first.abs().max())
        gap = float((first - again).abs().max())
        if gap > 1e-4 * scale:  # float32 sums in another order differ by far less
            raise ValueError(
                f"the model gives the same people other answers when asked again (they differ by {gap:.3g}): it must "
                "be a fixed function of each row, without randomness and without looking at the other rows"
            )

    def encode(self, x: Any) -> Tensor:
        """The rows as the model sees them: (n, d), float64, finite."""
        values = x if self.preprocessing is None else self.preprocessing.transform(x)
        values = plain_table(values)
        check_kinds(values)
        if isinstance(values, Tensor):
            encoded = values.to(dtype=torch.float64)
        else:
            encoded = torch.from_numpy(np.array(values, dtype=np.float64))
        if self.shape and encoded.shape[1:] == self.shape:
            encoded = encoded.flatten(1)
        if encoded.ndim != 2:
            few = "a single person is x.reshape(1, -1)" if encoded.ndim < 2 else "flatten them, x.reshape(len(x), -1)"
            raise ValueError(f"x must be (individuals, features); got shape {tuple(encoded.shape)}; {few}")
        if not bool(torch.isfinite(encoded).all()):
            bad = int((~torch.isfinite(encoded)).any(1).sum())
            raise ValueError(f"{bad} of {len(encoded)} rows hold NaN or infinity; impute or drop them first")
        return encoded

    def decode(self, encoded: NDArray[np.float64], x: Any) -> pd.DataFrame:
        """Encoded rows in the user's own units and categories, as far as the preprocessing can be undone."""
        if self.preprocessing is not None:
            return _undo(self.preprocessing, encoded)
        names = list(x.columns) if hasattr(x, "columns") else None
        if names is None or len(names) != encoded.shape[1]:
            names = [f"x{j}" for j in range(encoded.shape[1])]
        return pd.DataFrame(encoded, columns=[str(name) for name in names])

    def rare_category(self, column: str) -> Any:
        """One of the categories that an encoder put together as infrequent, for a column of the user's."""
        parts = [step for _, step in self.preprocessing.steps] if self.preprocessing is not None else []
        for part in parts:
            for _, transformer, columns in getattr(part, "transformers_", []):
                steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
                for step in steps:
                    rare = getattr(step, "infrequent_categories_", None)
                    names = [str(name) for name in columns] if not isinstance(columns, str) else [columns]
                    if rare is not None and column in names and rare[names.index(column)] is not None:
                        return rare[names.index(column)][0]
        return "another rare category"

    def predictions(self, x: Tensor) -> NDArray[Any]:
        """What the user would call the model's answer for each encoded row."""
        with torch.no_grad():
            h = self.outputs(x)
        if h.shape[1] == 1:
            return h[:, 0].numpy()
        best = h.argmax(1).numpy()
        return np.asarray(self.classes)[best] if self.classes is not None and len(self.classes) == h.shape[1] else best


def _logits_of(module: nn.Module) -> nn.Module:
    """A Sequential without a softmax, or its logarithm, at its end: the logarithms of the probabilities are the logits
    but for a shift of all of them, which is nothing; any other module as it is. Changes the module."""
    if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward and len(module) > 1:
        last = module[-1]
        ends = type(last) in (nn.Softmax, nn.LogSoftmax) and last.dim in (None, 1, -1)
        module[-1] = nn.Identity() if ends else _logits_of(last)
    return module


def scores(h: Tensor, own: Tensor | None = None) -> Tensor:
    """The one number that a decision looks at, (n, K) -> (n,): the output itself, the second logit minus the first, or,
    with more classes, how far the person's own class (``own``, by default the largest) is above the best other."""
    k = h.shape[-1]
    if k == 1:
        return h[..., 0]
    if k == 2:
        return h[..., 1] - h[..., 0]
    own = h.argmax(-1) if own is None else own
    others = h.scatter(-1, own[..., None], -torch.inf)
    return h.gather(-1, own[..., None])[..., 0] - others.amax(-1)


def _black_box(model: Any) -> tuple[Callable[[Tensor], Tensor], bool]:
    """Outputs of anything callable, and whether it only gives probabilities (whose logarithms the outputs are)."""
    names = getattr(model, "feature_names_in_", None)

    def rows_of(x: Tensor) -> Any:
        rows = x.detach().numpy()
        return rows if names is None else pd.DataFrame(rows, columns=names)

    if hasattr(model, "decision_function") and hasattr(model, "classes_"):
        classes = len(model.classes_)

        def decision(x: Tensor) -> Tensor:
            h = _columns(torch.from_numpy(np.array(model.decision_function(rows_of(x)), dtype=np.float64)))
            return torch.cat([-h / 2, h / 2], 1) if classes == 2 and h.shape[1] == 1 else h

        return decision, False
    if hasattr(model, "predict_proba"):

        def log_probability(x: Tensor) -> Tensor:
            p = np.asarray(model.predict_proba(rows_of(x)), dtype=np.float64)
            return torch.from_numpy(np.log(np.clip(p, 1e-300, 1.0)))

        return log_probability, True
    call = model.predict if hasattr(model, "predict") else model
    if not callable(call):
        raise TypeError(
            f"model must be an estimator, an nn.Module or a function of x (n, d); got {type(model).__name__}"
        )

    def outputs(x: Tensor) -> Tensor:
        h = _logits_in(_called(call, x.detach()))
        return _rows_of(h.detach() if isinstance(h, Tensor) else torch.from_numpy(_numbers(h)), len(x))

    return outputs, False


def _check_device(device: str | torch.device) -> None:
    """Not every device is here, and not every one has float64."""
    try:
        torch.empty(1, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0][:200]
        raise ValueError(
            f"device={str(device)!r} cannot be used here, in float64 ({reason}); leave it out, 'cpu' always can"
        ) from error


def _logits_in(out: Any) -> Any:
    """What a model returned, or the logits in it, as models of transformers give them."""
    return out["logits"] if isinstance(out, Mapping) and "logits" in out else getattr(out, "logits", out)


def _rows_of(out: Any, n: int) -> Tensor:
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


def _called(call: Callable[[Tensor], Any], x: Tensor) -> Any:
    """The function's answer to float64; one around a network of fewer digits is asked in those it has."""
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


def _trees(model: Any) -> TreeEnsemble | None:
    """The ensemble behind boosted trees and forests."""
    try:
        return read_ensemble(model)
    except CannotRead:
        return None


def _votes(model: Any) -> bool:
    """Whether its trees vote with probabilities, as forests of classifiers do."""
    kind = type(model).__name__
    return hasattr(model, "predict_proba") and kind.startswith(("RandomForest", "Extra", "DecisionTree"))


def _voted(ensemble: TreeEnsemble) -> Callable[[Tensor], Tensor]:
    """Logarithms of the mean vote, as of every model that only gives probabilities."""
    return lambda x: torch.from_numpy(np.log(np.clip(ensemble(x.detach().numpy()), 1e-300, 1.0)))


def _logits(ensemble: TreeEnsemble, classifier: bool) -> Callable[[Tensor], Tensor]:
    """Outputs of an ensemble; the log-odds f of two classes as the logits (-f/2, f/2)."""

    def outputs(x: Tensor) -> Tensor:
        h = torch.from_numpy(ensemble(x.detach().numpy()))
        return torch.cat([-h / 2, h / 2], 1) if classifier and h.shape[1] == 1 else h

    return outputs


def _columns(h: Tensor) -> Tensor:
    return h[:, None] if h.ndim == 1 else h


def _undo(step: Any, values: NDArray[np.float64]) -> pd.DataFrame:
    """inverse_transform of a Pipeline or ColumnTransformer, column by column; what cannot be undone stays encoded."""
    if isinstance(step, Pipeline):
        frame: pd.DataFrame | None = None
        for _, part in reversed(step.steps):
            if part in (None, "passthrough"):
                continue
            frame = _undo(part, values)
            try:
                values = frame.to_numpy(dtype=np.float64)
            except (TypeError, ValueError):
                return frame  # categories: there is nothing numeric left to undo
        return frame if frame is not None else pd.DataFrame(values)
    if isinstance(step, ColumnTransformer):
        return _undo_columns(step, values)
    names = getattr(step, "feature_names_in_", None)
    if hasattr(step, "inverse_transform") and not isinstance(step, SimpleImputer):  # it changes nothing that is there
        undone = np.asarray(step.inverse_transform(values))
        names = names if names is not None else [f"x{j}" for j in range(undone.shape[1])]
        return pd.DataFrame(undone, columns=[str(name) for name in names]).infer_objects()
    names = step.get_feature_names_out() if hasattr(step, "get_feature_names_out") else range(values.shape[1])
    return pd.DataFrame(values, columns=[str(name) for name in names])


def _undo_columns(step: ColumnTransformer, values: NDArray[np.float64]) -> pd.DataFrame:
    parts: dict[str, Any] = {}
    encoded_names = [str(name) for name in step.get_feature_names_out()]
    known = [str(name) for name in getattr(step, "feature_names_in_", range(step.n_features_in_))]
    for name, transformer, columns in step.transformers_:
        where = step.output_indices_.get(name)
        if where is None or where.stop == where.start or transformer == "drop":
            continue
        chosen = _column_names(columns, known)
        block = values[:, where]
        if transformer == "passthrough":
            undone: Any = block
        elif hasattr(transformer, "inverse_transform"):
            undone = _undo_part(transformer, block)
        else:
            parts.update({encoded_names[where.start + j]: block[:, j] for j in range(block.shape[1])})
            continue
        parts.update({str(column): undone[:, j] for j, column in enumerate(chosen)})
    frame = pd.DataFrame(parts)
    order = [name for name in known if name in frame.columns]
    return frame[order + [name for name in frame.columns if name not in order]].infer_objects()


def _undo_part(transformer: Any, block: Any) -> Any:
    """inverse_transform of one transformer or of a Pipeline of them; a SimpleImputer changes nothing that is there."""
    if isinstance(transformer, Pipeline):
        for _, part in reversed(transformer.steps):
            block = _undo_part(part, block)
        return block
    if transformer in (None, "passthrough") or isinstance(transformer, SimpleImputer):
        return block
    return np.asarray(transformer.inverse_transform(_categories(transformer, block)))


def _column_names(columns: Any, known: list[str]) -> list[str]:
    """The names behind a ColumnTransformer's columns: a name, a position, or a list, mask or slice of them."""
    if isinstance(columns, str | int):
        columns = [columns]
    if not isinstance(columns, slice) and all(isinstance(column, str) for column in columns):
        return [str(column) for column in columns]
    return [str(name) for name in np.asarray(known)[columns]]


def _categories(transformer: Any, block: NDArray[np.float64]) -> NDArray[np.float64]:
    """One-hot columns as the encoder wrote them: the largest of each feature is 1."""
    if not hasattr(transformer, "categories_") or not hasattr(transformer, "drop_idx_"):
        return block
    if transformer.drop_idx_ is not None:
        return np.round(block)
    whole, start = np.zeros_like(block), 0
    rare = getattr(transformer, "infrequent_categories_", [None] * len(transformer.categories_))
    for categories, together in zip(transformer.categories_, rare):
        stop = start + len(categories) - (0 if together is None else len(together) - 1)  # rare ones share a column
        whole[np.arange(len(block)), start + block[:, start:stop].argmax(1)] = 1.0
        start = stop
    return whole
