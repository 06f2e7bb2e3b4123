"""What the estimators share: from a frame to tensors, to a trained module, and back to labels."""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor, nn

from evenhand.domain import Box
from evenhand.estimators.inputs import check_frame, data_bounds, given_bounds, learn_metric
from evenhand.fair_metrics.metric import FairMetric
from evenhand.objectives.batch import Objective
from evenhand.search.mode import mode_free
from evenhand.training.loop import History, train
from evenhand.training.streams import Stream

ModuleFactory = Callable[[int, int], nn.Module]  # features, outputs -> module


class NeuralEstimator(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator around ``train()``. Subclasses say what to minimise in ``_objective``."""

    # Parameters that every subclass lists in its own __init__, as scikit-learn asks.
    hidden: tuple[int, ...]
    module: nn.Module | ModuleFactory | None
    steps: int
    batch_size: int
    lr: float
    validation_fraction: float
    patience: int | None
    device: str
    progress: bool
    random_state: Any

    # Parameters of the fair methods; the plain ones do without.
    fair_metric: FairMetric | Callable[[Any], FairMetric] | None = None
    bounds: Any = "data"
    warm_up: float = 0.0
    quiet_start: bool = False

    def _objective(self, search_generator: torch.Generator) -> Objective:
        raise NotImplementedError

    def _align(self, objective: Objective, rows: Tensor) -> None:
        """For objectives that know more about each row: the loop's row i is row ``rows[i]`` of the data given."""

    def _fit(self, X: Any, x: Tensor, y: Tensor, n_outputs: int, weight: Tensor | None, balanced: bool) -> Self:
        """Train on tensors; X is what the user gave, for learners of a metric that want column names."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        generator = torch.Generator(self.device).manual_seed(seed)
        self.fair_metric_ = learn_metric(self.fair_metric, X, x.shape[1]).to(x.device, x.dtype)
        self.bounds_ = self._bounds(x)
        self.module_ = self._new_module(x.shape[1], n_outputs, seed).to(x.device, x.dtype)
        objective = self._objective(torch.Generator(self.device).manual_seed(seed + 1)).to(x.device)
        order = canonical_order(x, y)
        x, y, weight = x[order], y[order], None if weight is None else weight[order]
        train_rows, validation = self._validation(x, y, weight, generator)
        self._align(objective, order[train_rows])
        history = train(
            self.module_,
            objective,
            x[train_rows],
            y[train_rows],
            steps=self.steps,
            batch_size=self.batch_size,
            lr=self.lr,
            balanced=balanced,
            sample_weight=None if weight is None else weight[train_rows],
            warm_up=self.warm_up,
            validation=validation,
            patience=self.patience,
            generator=generator,
            progress=self.progress,
            **self._checkpointing(),
        )
        self._keep(history, objective)
        return self

    def fit_stream(self, batches: Stream) -> Self:
        """Train on data larger than memory: any iterable of (X, y) batches that can be read again, such as a
        DataLoader, ``streaming.mapped_batches`` or ``streaming.arrow_batches``.

        A first pass learns the classes and each column's range; memory does not grow with the number of rows. Batches
        are taken as they come, so let them be shuffled; classes count equally by weight. ``fair_metric`` as a learner
        is given the stream of X, see ``fair_metrics.face_stream`` and ``fair_metrics.from_classifier_stream``.
        """
        if type(self)._align is not NeuralEstimator._align:
            raise TypeError(
                f"{type(self).__name__} looks up more about each row, which a stream does not number; use fit"
            )
        from evenhand.estimators.source import fit_stream

        fit_stream(self, batches)
        return self

    def checkpoint_to(self, path: str | os.PathLike[str], every: int | None = None) -> Self:
        """Let ``fit`` write its whole state to a file every so many steps, and go on from it if it is there.

        A run that was stopped at any moment then ends with the same weights as one that was not. Copies made by
        ``clone`` do not share the file.
        """
        self._checkpoint, self._checkpoint_every = path, every
        return self

    def _checkpointing(self) -> dict[str, Any]:
        path = getattr(self, "_checkpoint", None)
        return {} if path is None else {"checkpoint": path, "checkpoint_every": self._checkpoint_every, "resume": True}

    def _keep(self, history: History, objective: Objective) -> None:
        self.module_.eval()
        self.history_ = pd.DataFrame(history.records)
        self.n_iter_ = history.steps
        lam = objective.state_dict().get("regularizer.lam", objective.state_dict().get("priced_search.lam"))
        if lam is not None:
            self.lam_ = float(lam)

    def _bounds(self, x: Tensor) -> Box | None:
        if self.bounds is None:
            return None
        if isinstance(self.bounds, str):
            if self.bounds != "data":
                raise ValueError(f"bounds must be 'data', None or (low, high); got {self.bounds!r}")
            return data_bounds(x, self.fair_metric_)
        names = getattr(self, "feature_names_in_", None)
        return given_bounds(self.bounds, x, None if names is None else list(names))

    def _new_module(self, n_features: int, n_outputs: int, seed: int) -> nn.Module:
        generator = torch.Generator().manual_seed(seed)
        if self.module is None:
            return self._started(mlp(n_features, self.hidden, n_outputs, generator))
        module = (
            copy.deepcopy(self.module) if isinstance(self.module, nn.Module) else self.module(n_features, n_outputs)
        )
        with torch.no_grad():
            device = next((p.device for p in module.parameters()), torch.device("cpu"))
            dtype = next((p.dtype for p in module.parameters()), torch.float32)
            was_training = module.training
            output = module.eval()(torch.zeros(2, n_features, device=device, dtype=dtype))
            module.train(was_training)
        if output.shape != (2, n_outputs):
            raise ValueError(
                f"module must map (n, {n_features}) to (n, {n_outputs}) (one column per class); "
                f"for two rows it gave {tuple(output.shape)}"
            )
        return module

    def _started(self, net: nn.Sequential) -> nn.Sequential:
        """The network as training starts. A quiet start: W1 A = 0, and W1 a tenth of its usual size."""
        first = net[0]
        if self.quiet_start and isinstance(first, nn.Linear):
            with torch.no_grad():
                first.weight.copy_(0.1 * self.fair_metric_.project(first.weight.to(self.fair_metric_.directions)))
        return net

    def _validation(
        self, x: Tensor, y: Tensor, weight: Tensor | None, generator: torch.Generator
    ) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie in [0, 1); got {self.validation_fraction}")
        held = round(self.validation_fraction * len(x))
        if held == 0:
            if self.patience is not None:
                raise ValueError("patience needs validation data; set validation_fraction, for example to 0.1")
            return torch.arange(len(x), device=x.device), None
        order = torch.randperm(len(x), generator=generator, device=x.device)
        return order[held:], (x[order[:held]], y[order[:held]])

    def _tensor(self, X: Any) -> Tensor:
        """Checked features of ``predict`` as a tensor."""
        check_is_fitted(self, "module_")
        check_frame(X)
        values = validate_data(self, X, dtype=np.float32, order="C", reset=False)
        return torch.as_tensor(values, device=self.device)

    @torch.no_grad()
    def _outputs(self, X: Any) -> np.ndarray:
        """The module's outputs (n, K) in eval mode, in chunks.

        In float64 where the layers are known to allow it: nobody's score then depends on who else is in the batch.
        """
        x = self._tensor(X)
        module = self.module_.eval()
        if mode_free(module):
            module, x = copy.deepcopy(module).double(), x.double()
        return torch.cat([module(part) for part in torch.split(x, 65536)]).cpu().numpy().astype(np.float64)


class NeuralClassifier(ClassifierMixin, NeuralEstimator):  # type: ignore[misc]
    """Classification: any kind of labels, two classes or more."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (numbers; frame or array) and labels of any kind."""
        check_frame(X)
        values, labels = validate_data(self, X, y, dtype=np.float32, order="C")
        check_classification_targets(labels)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, values, dtype=np.float64)
        if weight is not None:
            if (weight < 0).any():
                raise ValueError("sample_weight must not be negative")
            kept = weight > 0
            X, values, labels, weight = select_rows(X, kept), values[kept], labels[kept], weight[kept]
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"a classifier needs two classes or more; y holds one class only: {self.classes_[0]!r}")
        x = torch.as_tensor(values, device=self.device)
        y_codes = torch.as_tensor(codes, dtype=torch.long, device=self.device)
        w = None if weight is None else torch.as_tensor(weight, device=self.device)
        return self._fit(X, x, y_codes, len(self.classes_), w, balanced=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits: (n, K), or for two classes their difference (n,), positive for the second."""
        h = self._outputs(X)
        return h[:, 1] - h[:, 0] if h.shape[1] == 2 else h

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, K), columns in the order of ``classes_``."""
        h = self._outputs(X)
        e = np.exp(h - h.max(axis=1, keepdims=True))
        return cast(np.ndarray, e / e.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        best = self._outputs(X).argmax(axis=1)
        return cast(np.ndarray, self.classes_[best])


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


def canonical_order(x: Tensor, y: Tensor) -> Tensor:
    """An order of the rows that depends on their values only: with it a fit does not depend on the order of the data,
    and a row of weight two counts like the row given twice."""
    mix = torch.rand(x.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    keys = np.concatenate(
        [(part.double() * mix.to(x.device)).cpu().numpy().sum(axis=1) for part in torch.split(x, 65536)]
    )
    return torch.as_tensor(np.lexsort((keys, y.cpu().numpy())), device=x.device)


def select_rows(X: Any, kept: np.ndarray) -> Any:
    """The rows of a frame or array where ``kept`` is true."""
    if hasattr(X, "loc"):
        return X.loc[kept]
    return X.filter(kept) if hasattr(X, "filter") else np.asarray(X)[kept]
