"""How much of the unfairness that can be found does the audit find? Against a search with a much larger budget.

    python benchmarks/audit_strength.py --out benchmarks/results/audit_strength.json      # about half an hour
    python benchmarks/audit_strength.py --only full-rank --people 16                      # a quick look

For each model the audit's r_low is divided by the best of three: its own, that of the same audit with a hundred times
the effort (its CPU seconds are given), and, for networks, what many starts of plain projected Adam find on the
network's own gradients, which a black box does not give to the audit. The budget eps is two thousandths of the mean
fair distance of two people. A family that is in the results already is not measured again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from torch import Tensor, nn

from evenhand.audit import audit
from evenhand.datasets import adult
from evenhand.domain import Box
from evenhand.dual.pool import Pool
from evenhand.fair_metrics import FairMetric, from_classifier
from evenhand.output_distances import OutputDistance, mean_squared_logits, total_variation
from evenhand.search.attack import Attack
from evenhand.search.geometry import Geometry


@dataclass(frozen=True)
class Family:
    """A model, people, and who is similar to whom. ``inside`` is the network that a black box hides."""

    model: Any
    x: Tensor
    metric: FairMetric
    box: Box
    eps: float
    inside: nn.Module | None = None
    distance: OutputDistance = mean_squared_logits


def net(*sizes: int, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def trained(model: nn.Module, x: Tensor, y: Tensor, steps: int = 400) -> nn.Module:
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        rows = torch.randint(len(x), (128,), generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return model.eval()


def labels(x: Tensor, classes: int, seed: int = 1) -> Tensor:
    """Classes that depend on the features in a curved way, with noise."""
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(x.shape[1], classes, generator=g, dtype=torch.float64) / x.shape[1] ** 0.5
    v = torch.randn(x.shape[1], classes, generator=g, dtype=torch.float64) / x.shape[1] ** 0.5
    score = x @ w + (x @ v).square() + 0.3 * torch.randn(len(x), classes, generator=g, dtype=torch.float64)
    return score.argmax(1)


def gaussian(d: int, n: int, seed: int = 2) -> Tensor:
    """Correlated columns, within three standard deviations."""
    g = torch.Generator().manual_seed(seed)
    common = torch.randn(n, 1, generator=g, dtype=torch.float64)
    own = torch.randn(n, d, generator=g, dtype=torch.float64)
    return (0.5 * common + 0.87 * own).clamp(-3, 3)


def directions(d: int, k: int, seed: int = 3) -> FairMetric:
    g = torch.Generator().manual_seed(seed)
    return FairMetric(torch.randn(d, k, generator=g, dtype=torch.float64))


def full_rank(d: int, seed: int = 4) -> FairMetric:
    """A positive definite Sigma of condition number 1000."""
    g = torch.Generator().manual_seed(seed)
    q = torch.linalg.qr(torch.randn(d, d, generator=g, dtype=torch.float64)).Q
    return FairMetric(sigma=q @ torch.diag(torch.logspace(-2, 1, d, dtype=torch.float64)) @ q.T)


def budget(metric: FairMetric, x: Tensor) -> float:
    apart = metric.double().pairwise(x[:200], x[200:400])
    return 0.002 * float(apart.mean())


def a_net(sizes: tuple[int, ...], metric: FairMetric, learns: bool, people: int, hidden: bool = False) -> Family:
    x = gaussian(sizes[0], 2000)
    model: nn.Module = net(*sizes)
    if learns:
        model = trained(model, x[people:], labels(x, sizes[-1])[people:])
    box = Box(-3.0, 3.0, d=sizes[0])
    judged = as_function(model) if hidden else model
    return Family(judged, x[:people], metric, box, budget(metric, x[people:]), model if hidden else None)


def as_function(model: nn.Module) -> Callable[[Any], Any]:
    def predict(rows: Any) -> Any:
        with torch.no_grad():
            return model(torch.as_tensor(np.asarray(rows), dtype=torch.float64)).numpy()

    return predict


def trees(model: Any, people: int) -> Family:
    x = gaussian(10, 3000)
    fitted = model.fit(x[people:].numpy(), labels(x, 2)[people:].numpy())
    metric = directions(10, 1)
    distance = mean_squared_logits if hasattr(fitted, "decision_function") else total_variation
    eps = budget(metric, x[people:])
    return Family(fitted, x[:people], metric, Box(-3.0, 3.0, d=10), eps, distance=distance)


def an_adult(people: int, hidden: bool = False) -> Family:
    train, test = adult(0)
    columns = list(train.X.columns)
    metric = from_classifier(train.X, columns=["sex", "race"], predict=["sex"])
    x = torch.tensor(train.X.to_numpy(np.float64))
    model = trained(net(41, 100, 2), x, torch.tensor(train.y), steps=1000)
    held = torch.tensor(test.X.to_numpy(np.float64))
    everyone = torch.cat([x, held])
    starts = ["workclass", "marital-status", "occupation", "relationship"]
    blocks = [[j for j, name in enumerate(columns) if name.startswith(start + "_")] for start in starts]
    box = Box(everyone.amin(0), everyone.amax(0), blocks=blocks, binary=[39, 40])
    judged = as_function(model) if hidden else model
    return Family(judged, held[:people], metric.double(), box, 0.01, model if hidden else None)


FAMILIES: dict[str, Callable[[int], Family]] = {
    "1000-50-2 random": lambda n: a_net((1000, 50, 2), directions(1000, 10), False, n),
    "1000-50-2 trained": lambda n: a_net((1000, 50, 2), directions(1000, 10), True, n),
    "384-2000-2 random": lambda n: a_net((384, 2000, 2), directions(384, 25), False, n // 2),
    "384-2000-2 trained": lambda n: a_net((384, 2000, 2), directions(384, 25), True, n // 2),
    "full-rank 6-20-3 random": lambda n: a_net((6, 20, 3), full_rank(6), False, n),
    "full-rank 6-20-3 trained": lambda n: a_net((6, 20, 3), full_rank(6), True, n),
    "full-rank 30-40-40-5 trained": lambda n: a_net((30, 40, 40, 5), full_rank(30), True, n),
    "Adult 41-100-2": an_adult,
    "black box: 6-20-3 trained": lambda n: a_net((6, 20, 3), full_rank(6), True, n, hidden=True),
    "black box: 12-50-2 trained": lambda n: a_net((12, 50, 2), directions(12, 2), True, n, hidden=True),
    "black box: 1000-50-2 trained": lambda n: a_net((1000, 50, 2), directions(1000, 10), True, n // 2, hidden=True),
    "black box: Adult 41-100-2": lambda n: an_adult(n, hidden=True),
    "boosted trees": lambda n: trees(GradientBoostingClassifier(n_estimators=60, random_state=0), n),
    "histogram boosting": lambda n: trees(HistGradientBoostingClassifier(max_iter=60, random_state=0), n),
    "random forest": lambda n: trees(RandomForestClassifier(40, max_depth=8, random_state=0), n // 2),
}


def pooled(parts: list[tuple[Tensor, Tensor]], eps: float) -> float:
    pool = Pool()
    pool.add(torch.cat([y for y, _ in parts], 1).numpy(), torch.cat([x for _, x in parts], 1).numpy())
    return pool.minimise(eps).value


def plain_adam(family: Family, attack: Attack, lams: list[float], starts: int, steps: int) -> list[Any]:
    """Projected Adam on a network's own gradients, from noise of several sizes, at every lam."""
    module = family.inside if family.inside is not None else family.model
    x, box, found = family.x, family.box, []
    span = box.high - box.low
    generator = torch.Generator().manual_seed(0)
    for lam in lams:
        for start in range(starts):
            size = 10.0 ** -(start % 4)
            noise = torch.randn(x.shape, generator=generator, dtype=torch.float64)
            point = box.project(x + size * span * noise / x.shape[1] ** 0.5)
            mean, square = torch.zeros_like(x), torch.zeros_like(x)
            h_x = module(x).detach()
            for t in range(1, steps + 1):
                point = point.detach().requires_grad_(True)
                d_y = mean_squared_logits(h_x, module(point))
                (slope,) = torch.autograd.grad(d_y.sum(), point)
                slope = (slope - 2 * lam * attack.geometry.pull(point.detach() - x)) * span
                mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope.square()
                step = mean / (1 - 0.9**t) / ((square / (1 - 0.99**t)).sqrt() + 1e-300)
                point = box.project(point.detach() + 0.02 * (1 - t / (steps + 1)) * span * step)
            found.append(attack.distances(x, box.round(point)[:, None]))
    return found


def measure(name: str, people: int, harder: float = 100.0, starts: int = 12) -> dict[str, Any]:
    torch.set_num_threads(1)
    family = FAMILIES[name](people)
    given = (family.model, family.x, family.metric, family.eps, family.box)
    began = time.process_time()
    found = audit(*given, output_distance=family.distance)
    seconds = time.process_time() - began
    hard = audit(*given, output_distance=family.distance, effort=harder)
    hard_seconds = time.process_time() - began - seconds
    adam = None
    if isinstance(family.model, nn.Module) or family.inside is not None:
        module = family.inside if family.inside is not None else family.model
        attack = Attack(module, Geometry(family.metric, family.box), mean_squared_logits, True)
        adam = pooled(plain_adam(family, attack, [0.8 * found.lam, 1.25 * found.lam], starts, steps=150), family.eps)
    best = max(found.r_low, hard.r_low, adam or 0.0)
    return {
        "model": name,
        "people": len(family.x),
        "eps": family.eps,
        "r_low": found.r_low,
        "harder": hard.r_low,
        "adam": adam,
        "ratio": round(found.r_low / best, 4),
        "cpu_seconds": round(seconds, 1),
        "harder_cpu_seconds": round(hard_seconds, 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="families whose name holds this")
    options.add_argument("--people", type=int, default=128)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    results = json.loads(given.out.read_text()) if given.out is not None and given.out.exists() else []
    known = {result["model"] for result in results}
    for name in FAMILIES:
        if given.only in name and name not in known:
            results.append(measure(name, given.people))
            print(results[-1], flush=True)
            if given.out is not None:
                given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
