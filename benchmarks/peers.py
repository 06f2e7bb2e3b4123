"""Facts for the README's comparison: the same small trials on evenhand and on inFairness, side by side.

    make bench        (installs inFairness, which is never a dependency)

Each trial answers yes or no for both libraries; the answers go to results/peers.json.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand import FairMetric, FairRegularizer

RESULTS = Path(__file__).parent / "results" / "peers.json"
A = torch.eye(6)[:, :2]
X = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
Y = (X.sum(1) > 0).long()


def net(*middle: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), *middle, nn.ReLU(), nn.Linear(16, 2))


class Ours:
    """loss + rho * fair(model, x)"""

    def __init__(self, model: nn.Module, directions: Tensor = A, eps: float = 0.1) -> None:
        self.model = model
        self.fair = FairRegularizer(FairMetric(directions), eps=eps)

    def loss(self, x: Tensor = X, y: Tensor = Y) -> Tensor:
        return F.cross_entropy(self.model(x), y) + 5.0 * self.fair(self.model, x)

    def lam(self) -> float:
        return float(self.fair.lam)

    def state(self) -> dict[str, Tensor]:
        return dict(self.fair.state_dict())

    def distance(self, x: Tensor, x_other: Tensor) -> Tensor:
        return self.fair.fair_metric(x, x_other)


class Theirs:
    """inFairness's SenSeI with the same ingredients"""

    def __init__(self, model: nn.Module, directions: Tensor = A, eps: float = 0.1) -> None:
        from inFairness.distances import SensitiveSubspaceDistance, SquaredEuclideanDistance
        from inFairness.fairalgo import SenSeI

        self.model, distance_x, distance_y = model, SensitiveSubspaceDistance(), SquaredEuclideanDistance()
        distance_x.fit(directions)
        distance_y.fit(num_dims=2)
        self.distance_x = distance_x
        self.fair = SenSeI(model, distance_x, distance_y, F.cross_entropy, 5.0, eps, 20, 0.05)
        self.fair.train()

    def loss(self, x: Tensor = X, y: Tensor = Y) -> Tensor:
        return self.fair(x, y).loss

    def lam(self) -> float:
        return float(self.fair.lamb)

    def state(self) -> dict[str, Tensor]:
        return dict(self.fair.state_dict())

    def distance(self, x: Tensor, x_other: Tensor) -> Tensor:
        return self.distance_x(x, x_other).reshape(len(x))


Library = Callable[..., "Ours | Theirs"]


def control(library: Library) -> bool:
    """The plain case, which must work in both: an exception below then means the trial, not the set-up."""
    trial = library(net())
    return all(bool(torch.isfinite(trial.loss())) for _ in range(3)) and trial.lam() > 0


def stays_finite_at_eps_zero(library: Library) -> bool:
    """The paper's Toxicity setting."""
    trial = library(net(), eps=0.0)
    return all(bool(torch.isfinite(trial.loss())) for _ in range(3))


def takes_an_integer_eps(library: Library) -> bool:
    trial = library(net(), eps=1)
    trial.loss()
    return True


def takes_collinear_directions(library: Library) -> bool:
    trial = library(net(), directions=torch.cat([A, A[:, :1]], dim=1))
    return bool(torch.isfinite(trial.loss()))


def takes_nearly_collinear_directions(library: Library) -> bool:
    """Distances stay finite and not negative while a second direction closes in on the first."""
    g = torch.Generator().manual_seed(1)
    first, other, others = (
        torch.randn(6, 1, generator=g),
        torch.randn(6, 1, generator=g),
        torch.randn(64, 6, generator=g),
    )
    for angle in (1e-2, 1e-3, 1e-4, 1e-5):
        distance = library(net(), directions=torch.cat([first, first + angle * other], dim=1)).distance(X, others)
        if not (torch.isfinite(distance) & (distance >= 0)).all():
            return False
    return True


def keeps_frozen_layers_frozen(library: Library) -> bool:
    model = net()
    model[0].weight.requires_grad_(False)
    library(model).loss()
    return not model[0].weight.requires_grad


def leaves_the_model_usable_after_an_error(library: Library) -> bool:
    class Fails(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            if self.calls > 3:
                raise RuntimeError("out of memory, say")
            return x

    model = net(Fails())
    with contextlib.suppress(RuntimeError):
        library(model).loss()
    return all(p.requires_grad for p in model.parameters())


def moves_batchnorm_at_most_once_a_step(library: Library) -> bool:
    model = net(nn.BatchNorm1d(16))
    library(model).loss()
    return int(model[1].num_batches_tracked) <= 1


def works_under_no_grad(library: Library) -> bool:
    with torch.no_grad():
        library(net()).loss()
    return True


def works_in_float64(library: Library) -> bool:
    library(net().double(), directions=A.double()).loss(X.double())
    return True


def saves_lam(library: Library) -> bool:
    trial = library(net())
    trial.loss()
    return any("lam" in name for name in trial.state())


TRIALS = [
    stays_finite_at_eps_zero,
    takes_an_integer_eps,
    takes_collinear_directions,
    takes_nearly_collinear_directions,
    keeps_frozen_layers_frozen,
    leaves_the_model_usable_after_an_error,
    moves_batchnorm_at_most_once_a_step,
    works_under_no_grad,
    works_in_float64,
    saves_lam,
]


def answer(trial: Callable[[Library], bool], library: Library) -> bool:
    """What the trial says; an exception is a no, and is shown."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(trial(library))
    except Exception as error:
        print(f"  {trial.__name__}, {library.__name__}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
        return False


def main() -> None:
    libraries: dict[str, Library] = {"evenhand": Ours}
    try:
        libraries[f"inFairness {version('inFairness')}"] = Theirs
    except ImportError:
        print("inFairness is not installed: only our own column is run, nothing is written (make bench installs it)")
    for name, library in libraries.items():
        if not control(library):
            raise SystemExit(f"{name} does not even run the plain case here: no comparison is possible")
    table = {trial.__name__: {name: answer(trial, library) for name, library in libraries.items()} for trial in TRIALS}
    for name, row in table.items():
        print(f"{name:45s}", *(f"{library}: {'yes' if yes else 'no '}" for library, yes in row.items()), sep="  ")
    if len(libraries) == 2:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
