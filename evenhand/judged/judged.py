"""The model under audit, whatever it is: an estimator, a Pipeline around one, an nn.Module or any callable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.pipeline import Pipeline
from torch import Tensor, nn

from evenhand.bounds.fitted import fitted_module
from evenhand.devices import check_device
from evenhand.ensembles.trees import TreeEnsemble
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import check_kinds, plain_table
from evenhand.judged import answers
from evenhand.judged.decisions import (
    Behind,
    behind,
    decides_as_predicted,
    refuse_scores_of_pairs,
    refuse_several_labels,
    scores,
)
from evenhand.judged.undo import undo
from evenhand.module_copy import asked_copy
from evenhand.output_distances import (
    Described,
    OutputDistance,
    centred,
    described,
    mean_squared_logits,
    squared_error,
    total_variation,
)

NOBODY = Behind(None, None, None, None)


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
    behind: Behind = NOBODY  # the last estimator, and by what it decides
    own_threshold: float = 0.0  # of the score of two classes: above it predict() says the second
    columns: list[str] | None = None  # of the frame in which the people came, where the model may ask for them

    @classmethod
    def of(
        cls,
        model: Any,
        device: str | torch.device = "cpu",
        shape: tuple[int, ...] = (),
        columns: list[str] | None = None,
    ) -> Judged:
        """device: where a module runs; what is computed about its outputs stays on the CPU. shape: of one person where
        that is more than a row, as an image is; the outputs are a function of flat rows all the same. columns: of the
        frame in which the people came, for a function of frames."""
        judged = cls._of_rows(model, device, columns)
        if len(shape) < 2 or judged.preprocessing is not None:
            return judged
        whole = None if judged.module is None else nn.Sequential(nn.Unflatten(1, shape), judged.module)
        return replace(
            judged, outputs=lambda x: judged.outputs(x.reshape(len(x), *shape)), module=whole, shape=tuple(shape)
        )

    @classmethod
    def _of_rows(cls, given: Any, device: str | torch.device, columns: list[str] | None) -> Judged:
        found = behind(given)
        columns = columns if found.steps is None else None  # these are of what comes before the steps
        model, threshold = found.estimator, found.threshold
        refuse_several_labels(model)
        metric, bounds = getattr(model, "fair_metric_", None), getattr(model, "bounds_", None)
        if getattr(model, "fair_metric", metric) is None:
            metric = None  # trained without one: Euclidean is what it was given for want of a better, not a statement
        classes = getattr(model, "classes_", None)
        if classes is not None and len(classes) == 0:
            classes = None  # as CatBoost's regressors say it
        refuse_scores_of_pairs(model)
        module = model if isinstance(model, nn.Module) else getattr(model, "module_", None) or fitted_module(model)
        wide, ensemble, only_probabilities = None, None, False
        if isinstance(module, nn.Module):
            check_device(device, torch.float64)
            wide = _logits_of(asked_copy(module, device))
            outputs = answers.of_module(wide, device)
        elif (ensemble := answers.trees_of(model)) is not None:
            only_probabilities = answers.votes(model)
            outputs = answers.voted(ensemble) if only_probabilities else answers.logits(ensemble, classes is not None)
        else:
            outputs, only_probabilities = answers.black_box(
                model, None if threshold is None else threshold.method, columns
            )
        return cls(
            outputs,
            wide,
            classes,
            metric,
            bounds,
            found.steps,
            only_probabilities,
            only_probabilities or classes is not None,
            ensemble,
            None if ensemble is None else ensemble.jumps(),
            isinstance(model, RegressorMixin),
            behind=found,
            own_threshold=0.0 if threshold is None else threshold.score(model),
            columns=columns,
        )

    def looked_at(self, x: Tensor, given: OutputDistance | None) -> Judged:
        """After a look at rows (n, d): a network, or a function, whose outputs are the probabilities of classes gives
        nothing else. given: an output distance that takes the outputs as they are leaves them so."""
        asked_for = None if given is None else described(given)
        as_is = asked_for is not None and (not asked_for.of_classes or asked_for.needs_logits)
        if as_is or self.only_probabilities or self.classes is not None or self.is_regressor:
            return self
        with torch.no_grad():
            if not answers.are_probabilities(self.outputs(x)):
                return self
        logarithm, told = answers.Logarithm(), self.outputs
        module = None if self.module is None else nn.Sequential(self.module, logarithm)
        return replace(
            self, outputs=lambda x: logarithm(told(x)), module=module, only_probabilities=True, is_classifier=True
        )

    def as_told(self, x: Tensor, distance: Described) -> Judged:
        """After a look at rows (n, d): a distance between probabilities is about those that ``predict_proba`` gives,
        where these are no softmax of the scores. Models of ours are judged before calibration."""
        model = self.behind.estimator
        of_scores = not distance.of_classes or distance.needs_logits or self.only_probabilities
        if of_scores or self.classes is None or not hasattr(model, "predict_proba") or hasattr(model, "offset_"):
            return self
        with torch.no_grad():
            if answers.gives_their_softmax(model, x, self.outputs(x)):
                return self
        told = answers.log_probabilities(model)
        return replace(self, outputs=told, module=None, ensemble=None, only_probabilities=True)

    def distance(self, given: OutputDistance | None) -> Described:
        """The output distance to judge by: the given one, or the mean squared logits; of probabilities where the model
        gives nothing else, the total variation; of a regressor the squared error."""
        if given is None and self.is_regressor:
            return squared_error
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
        return self.own_threshold if k > 1 or self.is_classifier else None

    def decides(self, x: Tensor, h: Tensor, given: float | None) -> bool:
        """Whether the outputs h (n, K) of rows x (n, d) decide as predict() does, so that decisions can be spoken of;
        a threshold that was given is the user's own word."""
        if self.shape or given is not None:
            return True
        return decides_as_predicted(self.behind, self.classes, x, h, self.own_threshold, self.columns)

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
        check_names(values, getattr(self.behind.estimator, "feature_names_in_", None))
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
            return undo(self.preprocessing, encoded)
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
        best = (scores(h) > self.own_threshold).long().numpy() if h.shape[1] == 2 else h.argmax(1).numpy()
        return np.asarray(self.classes)[best] if self.classes is not None and len(self.classes) == h.shape[1] else best


def columns_of(people: Any) -> list[str] | None:
    """The names of a frame's columns; None where they have none."""
    names = list(people.columns) if isinstance(people, pd.DataFrame) else []
    return names if names and all(isinstance(name, str) for name in names) else None


def check_names(x: Any, known: Any) -> None:
    """A frame's columns must be those of the rows the estimator was fitted on, in their order, as predict() asks too:
    they are read by position, and metric and bounds are about these positions."""
    names = list(x.columns) if hasattr(x, "columns") else []
    if known is None or not names or not all(isinstance(name, str) for name in names):
        return
    plain = [_plainly(name) for name in names]
    known, given = [str(name) for name in known], plain if len(set(plain)) == len(plain) else names
    if known in (names, given):
        return
    missing, more = [name for name in known if name not in given], [name for name in given if name not in known]
    said = [f"{what} {', '.join(map(repr, some[:5]))}" for what, some in (("without", missing), ("with", more)) if some]
    cure = "" if missing else "; give x[model.feature_names_in_]"
    raise ValueError(
        "the columns of x are not those that the model was fitted on, in their order: "
        f"{' and '.join(said) if said else 'they stand in another order'}{cure}"
    )


def _plainly(name: str) -> str:
    """A name as LightGBM keeps it, which writes blanks as underscores."""
    return "_".join(name.split())


def _logits_of(module: nn.Module) -> nn.Module:
    """A Sequential without a softmax, or its logarithm, at its end: the logarithms of the probabilities are the logits
    but for a shift of all of them, which is nothing; any other module as it is. Changes the module."""
    if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward and len(module) > 1:
        last = module[-1]
        ends = type(last) in (nn.Softmax, nn.LogSoftmax) and last.dim in (None, 1, -1)
        module[-1] = nn.Identity() if ends else _logits_of(last)
    return module
