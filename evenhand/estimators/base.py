"""What the estimators share: their parameters, one fit over a source, and the way back to labels."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import torch
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from evenhand.devices import device_of_float64
from evenhand.domain import Box
from evenhand.estimators.checks import check_parameters
from evenhand.estimators.inputs import checked_weight, learn_metric, tensor_of
from evenhand.estimators.source import Source, Streamed, class_targets, from_arrays, number_targets
from evenhand.estimators.targets import Targets, float64_outputs
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import check_labels, checked_table
from evenhand.objectives.batch import Objective, squared_loss
from evenhand.regularizer import PricedSearch
from evenhand.search.mode import mode_free
from evenhand.training.loop import History, Progress, train
from evenhand.training.state import MakeOptimizer
from evenhand.training.streams import Stream

ModuleFactory = Callable[[int, int], nn.Module]  # features, outputs -> module
parameters = partial(dataclass, eq=False, repr=False, kw_only=True)  # each parameter is said once, in its own class


@parameters()
class NeuralEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator around ``train()``. Subclasses say what to minimise in ``_objective``.

    hidden: widths of the hidden layers, or ``module`` for a network of one's own, or a function of the numbers of
        features and outputs that makes one. steps, batch_size, lr: of the training, whose rate decays to zero along a
        cosine. optimizer: a class of torch.optim or a partial of one, by default Adam; weight_decay goes to it.
        validation_fraction: so many rows are held out, the best weights on them kept, and after ``patience``
        evaluations without improvement training ends. warm_start: fit goes on from the weights and the lam of the fit
        before; the metric and the domain are those of the present one. callbacks: called with (step, steps, numbers) at
        every evaluation. device: where to train. progress: print.
    """

    hidden: tuple[int, ...] = (100,)
    random_state: Any = None
    module: nn.Module | ModuleFactory | None = None
    steps: int = 1000
    batch_size: int = 500
    lr: float = 2e-3
    optimizer: Callable[..., torch.optim.Optimizer] | None = None
    weight_decay: float = 0.0
    validation_fraction: float = 0.0
    patience: int | None = None
    warm_start: bool = False
    callbacks: Sequence[Progress] | None = None
    device: str = "cpu"
    progress: bool = False

    # Parameters of some methods only, as the others have them.
    fair_metric = None  # type: Any
    bounds = "data"  # type: Any
    warm_up = 0.0
    quiet_start = False
    _loss = None  # type: Any

    def _objective(self, search_generator: torch.Generator) -> Objective:
        raise NotImplementedError

    def _learn_more(self, source: Source) -> None:
        """For methods that know more about each row: take it from the checked rows, or from what ``fit`` was given."""

    def _align(self, objective: Objective, rows: Tensor) -> None:
        """For objectives that know more about each row: the loop's row i is row ``rows[i]`` of the data given."""
        for part in objective.modules():
            if isinstance(part, PricedSearch) and hasattr(part.search, "select"):  # a search that knows its people
                part.search = part.search.select(rows)

    def _fit(self, source: Source, targets: Targets, steps: int | None = None) -> Self:
        """The only fit: learn the metric, draw the domain, start the network, train it."""
        self._learn_more(source)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        a_part = steps is not None  # of one fit, with the metric of its first part
        before = getattr(self, "module_", None) if self.warm_start or a_part else None
        for name in ("multipliers_", "offset_"):  # of an earlier fit: they belong to other weights
            self.__dict__.pop(name, None)
        if before is None or not a_part or not hasattr(self, "fair_metric_"):
            known = source.sensitive_features, source.sample_weight
            self.fair_metric_ = learn_metric(self.fair_metric, source.X, source.d, *known)
            self.fair_metric_.to(self.device, torch.float32)
        self.bounds_ = source.box(self.bounds, self.fair_metric_)
        self.module_ = self._network(before, source.d, targets.outputs, seed).to(self.device, torch.float32)
        self.module_ = targets.before(self.module_) if before is not None else self.module_
        objective = self._objective(torch.Generator(self.device).manual_seed(seed + 1)).to(self.device)
        lam = _lam_of(objective)
        if before is not None and lam is not None and hasattr(self, "lam_"):
            lam.fill_(self.lam_)
        history = self._train(objective, source, seed, self.steps if steps is None else steps)
        self._keep(history, objective)
        self._fine_tune(source, seed)
        self.module_ = targets.after(self.module_).eval()
        self.targets_ = targets
        return self

    def _train(self, objective: Objective, source: Source, seed: int, steps: int) -> History:
        generator = torch.Generator(self.device).manual_seed(seed)
        rows = source.rows(self.validation_fraction, self.patience, generator)
        self._align(objective, rows.order)
        given: dict[str, Any] = {
            "batch_size": self.batch_size,
            "lr": self.lr,
            "warm_up": self.warm_up,
            "optimizer": self._optimizer(),
        }
        given |= {"patience": self.patience, "validation": rows.validation, "steps": steps}
        given |= {"progress": self._progress(), **self._checkpointing(), **rows.settings}
        return train(self.module_, objective, *rows.data, generator=generator, **given)

    def _fine_tune(self, source: Source, seed: int) -> None:
        """For methods with a second stage of training."""

    def fit_stream(self, batches: Stream) -> Self:
        """Train on data larger than memory: any iterable of (X, y) batches that can be read again, such as a
        DataLoader, ``streaming.mapped_batches`` or ``streaming.arrow_batches``.

        A first pass learns the classes and each column's range; memory does not grow with the number of rows. Batches
        are taken as they come, so let them be shuffled; classes count equally by weight. ``fair_metric`` as a learner
        is given the stream of X, see ``fair_metrics.face_stream`` and ``fair_metrics.from_classifier_stream``.
        """
        if not _needs_rows_only(self):
            raise TypeError(
                f"{type(self).__name__} looks up more about each row, which a stream does not number; use fit"
            )
        check_parameters(self)
        source, targets = Streamed.of(self, batches)
        return self._fit(source, targets)

    def checkpoint_to(self, path: str | os.PathLike[str], every: int | None = None) -> Self:
        """Let ``fit`` write its whole state to a file every so many steps, and go on from it if it is there.

        A run that was stopped at any moment then ends with the same weights as one that was not. Copies made by
        ``clone`` do not share the file.
        """
        self._checkpoint, self._checkpoint_every = path, every
        return self

    def _checkpointing(self, stage: str = "") -> dict[str, Any]:
        path = getattr(self, "_checkpoint", None)
        if path is None:
            return {}
        return {"checkpoint": f"{os.fspath(path)}{stage}", "checkpoint_every": self._checkpoint_every, "resume": True}

    def _optimizer(self) -> MakeOptimizer | None:
        if self.optimizer is None and not self.weight_decay:
            return None
        make = self.optimizer if self.optimizer is not None else torch.optim.Adam
        return partial(make, weight_decay=self.weight_decay) if self.weight_decay else make

    def _progress(self) -> bool | Progress:
        if not self.callbacks:
            return self.progress
        callbacks = list(self.callbacks)

        def tell(step: int, steps: int, record: dict[str, float]) -> None:
            for callback in callbacks:
                callback(step, steps, record)

        return tell

    def _keep(self, history: History, objective: Objective) -> None:
        self.module_.eval()
        self.history_ = pd.DataFrame(history.records)
        self.n_iter_ = history.steps
        lam = _lam_of(objective)
        if lam is not None:
            self.lam_ = float(lam)

    def _network(self, before: nn.Module | None, n_features: int, n_outputs: int, seed: int) -> nn.Module:
        if before is not None:
            _check_shape(before, n_features, n_outputs, "the network of the fit before, with warm_start,")
            return before
        return self._new_module(n_features, n_outputs, seed)

    def _new_module(self, n_features: int, n_outputs: int, seed: int) -> nn.Module:
        if self.module is None:
            return self._started(mlp(n_features, self.hidden, n_outputs, torch.Generator().manual_seed(seed)))
        module = (
            copy.deepcopy(self.module) if isinstance(self.module, nn.Module) else self.module(n_features, n_outputs)
        )
        _check_shape(module, n_features, n_outputs, "module")
        return module

    def _started(self, net: nn.Sequential) -> nn.Sequential:
        """The network as training starts. A quiet start: W1 A = 0, and W1 a tenth of its usual size."""
        first = net[0]
        if self.quiet_start and isinstance(first, nn.Linear):
            with torch.no_grad():
                first.weight.copy_(0.1 * self.fair_metric_.project(first.weight.to(self.fair_metric_.directions)))
        return net

    @torch.no_grad()
    def _outputs(self, X: Any) -> np.ndarray:
        """The module's outputs (n, K) in eval mode, in chunks.

        In float64 where the layers are known to allow it: nobody's score then depends on who else is in the batch. What
        a device without float64 has trained is asked on the CPU.
        """
        check_is_fitted(self, "module_")
        values = validate_data(self, checked_table(X), dtype=np.float32, order="C", reset=False)
        x, module = tensor_of(values), self.module_.eval()
        if mode_free(module):
            home = device_of_float64(self.device)
            module, x = copy.deepcopy(module).to(home).double(), x.double().to(home)
        else:
            x = x.to(self.device)
        return torch.cat([float64_outputs(module, part) for part in torch.split(x, 65536)]).numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _lam_of(objective: Objective) -> Tensor | None:
    """The dual variable itself, if the objective has one; to fill it is to set it."""
    state = objective.state_dict()
    return state.get("regularizer.lam", state.get("priced_search.lam"))


def _needs_rows_only(estimator: NeuralEstimator) -> bool:
    """Whether a method asks for X and y alone, so that it can go on with other rows."""
    return type(estimator)._align is NeuralEstimator._align


@parameters()
class NeuralClassifier(ClassifierMixin, NeuralEstimator):  # type: ignore[misc]
    """Classification: any kind of labels, two classes or more.

    class_weight: "balanced" draws every class equally often, as the paper does; None draws rows as they come; a table
        of class: weight draws them by these weights.
    """

    class_weight: Any = "balanced"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Self:
        """Train on X (numbers; frame or array) and labels of any kind.

        sensitive_features: what a learned metric is taught from, one row for each row of X; it is no input of the
        model. In a cross-validation it is split with X: ``set_fit_request(sensitive_features=True)``.
        """
        check_parameters(self)
        self.__dict__.pop("offset_", None)  # the calibration of an earlier fit
        source = from_arrays(self, X, y, sample_weight, sensitive_features, numeric=False)
        targets = class_targets(self, source)
        return self._fit(source, targets)

    @available_if(_needs_rows_only)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, sensitive_features: Any = None
    ) -> Self:
        """A tenth of ``steps`` on these rows, from where the last call ended; the first call needs all ``classes``
        unless y holds them. The metric and the network are those of the first call, whose ``sensitive_features`` teach
        the metric; the domain is that of all of them together."""
        check_parameters(self)
        first = not hasattr(self, "module_")
        source = from_arrays(self, X, y, sample_weight, sensitive_features, numeric=False, reset=first)
        source.before = getattr(self, "bounds_", None)
        known = (np.unique(classes) if classes is not None else None) if first else self.classes_
        targets = class_targets(self, source, known)
        return self._fit(source, targets, steps=max(1, self.steps // 10))

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits: (n, K), or for two classes their difference (n,), positive for the second."""
        h = self._outputs(X)
        return h[:, 1] - h[:, 0] if h.shape[1] == 2 else h

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, K), columns in the order of ``classes_``; calibrated if ``calibrate`` was called."""
        h = self._outputs(X) + getattr(self, "offset_", 0.0)
        e = np.exp(h - h.max(axis=1, keepdims=True))
        return cast(np.ndarray, e / e.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of ``predict_proba``, finite where a probability rounds to zero."""
        return cast(np.ndarray, log_softmax(self._outputs(X) + getattr(self, "offset_", 0.0), axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest output: the most probable one while classes count equally."""
        best = self._outputs(X).argmax(axis=1)
        return cast(np.ndarray, self.classes_[best])


class NeuralRegressor(RegressorMixin, NeuralEstimator):  # type: ignore[misc]
    """Regression of one number, or of several at once with y of shape (n, K): targets are standardised for training,
    ``module_`` gives predictions in the original units, (n, 1) or (n, K).
    """

    _loss = staticmethod(squared_loss)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Self:
        """Train on X (numbers; frame or array) and numeric targets; ``sensitive_features`` as for classifiers."""
        check_parameters(self)
        source = from_arrays(self, X, y, sample_weight, sensitive_features, numeric=True)
        return self._fit(source, number_targets(source))

    @available_if(_needs_rows_only)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Self:
        """A tenth of ``steps`` on these rows, from where the last call ended. The metric, the network and the scale of
        the targets, ``targets_``, are those of the first call (or of the fit before, or of the file), so let its rows
        be like those to come. The domain is that of all calls together."""
        check_parameters(self)
        first = not hasattr(self, "module_")
        source = from_arrays(self, X, y, sample_weight, sensitive_features, numeric=True, reset=first)
        source.before = getattr(self, "bounds_", None)
        targets = number_targets(source, getattr(self, "targets_", None))
        return self._fit(source, targets, steps=max(1, self.steps // 10))

    def predict(self, X: Any) -> np.ndarray:
        """The predicted number of each row, (n,), or numbers, (n, K)."""
        h = self._outputs(X)
        return h[:, 0] if h.shape[1] == 1 else h

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions."""
        check_labels(y, numeric=True)
        return float(super().score(X, y, checked_weight(sample_weight, len(y))))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def mlp(
    n_features: int, hidden: tuple[int, ...], n_outputs: int, generator: torch.Generator | None = None
) -> nn.Sequential:
    """Linear-ReLU-...-Linear with the start of the authors' code: Glorot-uniform weights, biases 0.1."""
    sizes = [n_features, *hidden, n_outputs]
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        linear: nn.Linear = nn.utils.skip_init(nn.Linear, fan_in, fan_out)  # type: ignore[no-untyped-call]  # draws nothing
        with torch.no_grad():
            limit = (6 / (fan_in + fan_out)) ** 0.5
            linear.weight.uniform_(-limit, limit, generator=generator)
            linear.bias.fill_(0.1)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _check_shape(module: Any, n_features: int, n_outputs: int, name: str) -> None:
    if not isinstance(module, nn.Module):
        raise TypeError(f"{name} must be or make a torch.nn.Module; got {type(module).__name__}")
    with torch.no_grad():
        device = next((p.device for p in module.parameters()), torch.device("cpu"))
        dtype = next((p.dtype for p in module.parameters()), torch.float32)
        was_training = module.training
        wanted = f"{name} must map (n, {n_features}) to (n, {n_outputs}) (one column per class)"
        try:
            output = module.eval()(torch.zeros(2, n_features, device=device, dtype=dtype))
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"{wanted}; it does not take {n_features} features: {error}") from error
        finally:
            module.train(was_training)
    if not isinstance(output, Tensor):
        raise ValueError(f"{wanted}; it gave {type(output).__name__}, so return the tensor of outputs in it alone")
    if output.shape != (2, n_outputs):
        raise ValueError(f"{wanted}; for two rows it gave {tuple(output.shape)}")


Domain = Box | None  # what bounds_ is
Metric = FairMetric | Callable[..., FairMetric] | Any | None  # a metric, a function of X, or a learner with fit
