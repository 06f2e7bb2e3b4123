"""Does any pair (x, x') lie above what a certificate says of x? More than a million pairs a run, over many networks.

    python experiments/soundness.py [--people 30] [--cases ...] [--data DIR] [--out DIR]

Networks: plain, SenSeI and certified-trained nets on Adult; the plain one again with every column in another unit;
made ones with a full-rank Sigma, several outputs, up to three hidden layers, wide ones, smooth activations and tiny or
huge units;
with --data, the public nets of certify_public.py. x' is drawn uniformly in Dom, at its vertices, near x, along the
moves that cost nothing, with few columns changed, with sensitive columns flipped, and searched for by an ascent of this
script's own and by the audit's search. Each pair is held against the certificate's bound of d_Y - lam * d_X and against
what is said of everybody at three lam; drawn back to d_X <= eps, it is held against the bound of d_Y there, the proven
decisions and the proven range of the score. Writes certify_soundness.csv, a case at a time, and goes on where it
stopped.
"""

import argparse
import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import certify_public
import numpy as np
import pandas as pd
import torch
from certify_adult import EPS, RESULTS, fitted, setting
from torch import Tensor, nn

from evenhand.bounds.layers import affine_layers, forward
from evenhand.bounds.network import NetworkBound
from evenhand.bounds.normal import normalised
from evenhand.bounds.problem import Problem
from evenhand.bounds.ranges import Ranges
from evenhand.bounds.readout import readout
from evenhand.certify.certify import certify
from evenhand.datasets import adult
from evenhand.domain import Box
from evenhand.fair_metrics import FairMetric
from evenhand.headline import stands
from evenhand.output_distances import mean_squared_logits
from evenhand.search.attack import Attack
from evenhand.search.thorough import candidates

EACH = 400  # pairs of each of six kinds for every person
ROUNDING = 1e-9  # of the bound itself
OUTPUTS = 2.0**-50  # of an output: what float64 leaves of the difference of two, whose square d_Y is


@dataclass(frozen=True)
class Case:
    """A network, people to tune on and to judge, and who is similar to whom."""

    model: Any
    module: nn.Module
    x_tune: Tensor
    x: Tensor
    metric: FairMetric
    box: Box
    eps: float


def on_adult(name: str, people: int) -> Case:
    train, metric, box = setting(0)
    model, _ = fitted(name, None, 0, train, metric, box)
    test = torch.tensor(adult(0).test.X.to_numpy(np.float64))
    x = test[: people + 256]
    return Case(model, model.module_, x[people:], x[:people], metric.double(), box, EPS)


def in_other_units(case: Case) -> Case:
    """Every column but the binary ones in a unit of its own, from 1e-4 to 1e4; the people, the model and d_X are the
    same."""
    d = case.x.shape[1]
    unit = 10.0 ** (8 * torch.rand(d, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 4)
    unit[list(case.box.binary)] = 1.0
    rescale = nn.Linear(d, d, bias=False).double()
    with torch.no_grad():
        rescale.weight.copy_(torch.diag(1 / unit))
    module = nn.Sequential(rescale, copy.deepcopy(case.module).double())
    sigma = case.metric.sigma / (unit[:, None] * unit)
    box = Box(case.box.low * unit, case.box.high * unit, case.box.blocks, case.box.binary)
    return Case(module, module, case.x_tune * unit, case.x * unit, FairMetric(sigma=sigma), box, case.eps)


def made(
    sizes: tuple[int, ...],
    people: int,
    *,
    free: int = 0,
    unit: float = 1.0,
    weight: float = 1.0,
    activation: type[nn.Module] = nn.ReLU,
) -> Case:
    """A random net on correlated people; ``free`` oblique directions, or a Sigma of full rank and condition 1000."""
    generator = torch.Generator().manual_seed(sum(sizes))
    d = sizes[0]
    parts: list[nn.Module] = []
    torch.manual_seed(sum(sizes))
    for a, b in itertools.pairwise(sizes):
        parts += [nn.Linear(a, b).double(), activation()]
    module = nn.Sequential(*parts[:-1])
    with torch.no_grad():
        module[0].weight.mul_(2 / unit)
        module[-1].weight.mul_(weight)
    common = torch.randn(people + 200, 1, generator=generator, dtype=torch.float64)
    x = (0.5 * common + 0.87 * torch.randn(people + 200, d, generator=generator, dtype=torch.float64)).clamp(-3, 3)
    q = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64)).Q
    prices = torch.logspace(-2, 1, d, dtype=torch.float64)
    prices[:free] = 0.0
    sigma = (q @ torch.diag(prices) @ q.T) / unit**2
    metric, box = FairMetric(sigma=(sigma + sigma.T) / 2), Box(-3.0 * unit, 3.0 * unit, d=d)
    return Case(module, module, x[people:] * unit, x[:people] * unit, metric, box, 0.02)


def public(folder: Path, name: str, people: int) -> Case:
    data = f"{'adult' if name.startswith('ac') else 'german'}_encoded.npz"
    rows, metric, box = certify_public.people(folder / data)
    module, x = certify_public.network(folder / f"{name}.npz"), torch.from_numpy(rows)
    return Case(module, module, x[:300], x[300 : 300 + people], metric, box, EPS)


def cases(people: int, data: Path | None) -> dict[str, Callable[[], Case]]:
    found: dict[str, Callable[[], Case]] = {
        **{f"Adult, {name}": partial(on_adult, name, people) for name in ("plain", "SenSeI", "certified")},
        "Adult, other units": lambda: in_other_units(on_adult("plain", people)),
        "full rank 6-20-3": partial(made, (6, 20, 3), people),
        "full rank 12-16-16-5": partial(made, (12, 16, 16, 5), people),
        "one free 8-30-1": partial(made, (8, 30, 1), people, free=1),
        "two free 10-20-20-2": partial(made, (10, 20, 20, 2), people, free=2),
        "three layers 7-10-10-10-2": partial(made, (7, 10, 10, 10, 2), people, free=1),
        "inputs of 1e-7, 6-20-2": partial(made, (6, 20, 2), people, free=1, unit=1e-7),
        "inputs of 1e5, 9-15-4": partial(made, (9, 15, 4), people, unit=1e5),
        "weights of 1e3, 5-12-2": partial(made, (5, 12, 2), people, free=1, weight=1e3),
        "GELU 8-14-2": partial(made, (8, 14, 2), people, free=1, activation=nn.GELU),
        "tanh 6-10-10-1": partial(made, (6, 10, 10, 1), people, free=1, activation=nn.Tanh),
        "sigmoid, full rank 7-12-3": partial(made, (7, 12, 3), people, activation=nn.Sigmoid),
        "wide 40-500-2, three free": partial(made, (40, 500, 2), people, free=3),
        "wide 25-450-3, one free": partial(made, (25, 450, 3), people, free=1),
    }
    names = certify_public.NETS if data is not None else []
    return {**found, **{name: partial(public, data, name, people) for name in names}}


def others(case: Case, problem: Problem, lam: float, generator: torch.Generator) -> dict[str, Tensor]:
    """x' of each kind, all of them possible people: (n, m, d)."""
    (low, high), x = case.box, case.x
    shape, span = (len(x), EACH, len(low)), high - low

    def noise() -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    uniform = low + span * torch.rand(shape, generator=generator, dtype=torch.float64)
    vertices = torch.where(torch.rand(shape, generator=generator) < 0.5, low, high)
    near = x[:, None] + 0.02 * span * noise()
    values, vectors = torch.linalg.eigh(problem.sigma * span * span[:, None])  # in shares of the span
    free = vectors[:, values < 1e-6 * values[-1]] if bool((values < 1e-6 * values[-1]).any()) else vectors[:, :1]
    along = torch.randn(len(x), EACH, free.shape[1], generator=generator, dtype=torch.float64)
    fibre = x[:, None] + span * (along @ free.T)
    few = torch.where(torch.rand(shape, generator=generator) < 0.1, uniform, x[:, None])
    flips = x[:, None] + 0.002 * span * noise()
    pins = problem.pin_values[torch.randint(len(problem.pin_values), shape[:2], generator=generator)]
    flips[..., problem.pinned] = pins
    attack = Attack(problem.f, problem, mean_squared_logits, True, neighbours=case.x_tune[:256], effort=4.0)
    kinds = {
        "uniform": uniform,
        "vertices": vertices,
        "near": near,
        "free moves": fibre,
        "few columns": few,
        "flips": flips,
        "own ascent": ascent(case, problem, lam, torch.cat([flips[:, :4], near[:, :2], uniform[:, :2]], 1)),
        "audit's search": candidates(attack, x, case.eps, [0.5 * lam, lam, 2 * lam]),
    }
    return {kind: problem.box.round(points) for kind, points in kinds.items()}


def ascent(case: Case, problem: Problem, lam: float, starts: Tensor, steps: int = 120) -> Tensor:
    """Projected Adam on |f(x) - f(x')|^2 - lam * d_X, in shares of the span, from each start; the path's best points
    are its ends."""
    span, x = case.box.high - case.box.low, case.x[:, None]
    point, mean, square = starts.clone(), torch.zeros_like(starts), torch.zeros_like(starts)
    for t in range(1, steps + 1):
        point = point.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(problem.gain(x, point, lam).sum(), point)
        slope = slope * span
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope.square()
        step = mean / (1 - 0.9**t) / ((square / (1 - 0.99**t)).sqrt() + 1e-300)
        moved = point.detach() + 0.05 * (1 - t / (steps + 1)) * span * step
        point = problem.box.project(moved.reshape(-1, moved.shape[-1])).reshape(moved.shape)
    return point.detach()


def drawn_back(case: Case, problem: Problem, points: Tensor) -> Tensor:
    """Along the straight line to x until d_X <= eps; pinned columns stay, they cost nothing or are left out below."""
    base = case.x[:, None].expand_as(points).clone()
    base[..., problem.pinned] = points[..., problem.pinned]
    price = problem.d_x(points - base)
    share = torch.where(price > case.eps, (0.999 * case.eps / price).sqrt(), torch.ones_like(price))
    return problem.box.round(base + share[..., None] * (points - base))


def judge(name: str, case: Case, seed: int) -> list[dict[str, object]]:
    module = copy.deepcopy(case.module).double().eval()
    layers = affine_layers(module)
    problem = Problem(readout(mean_squared_logits, layers).layers, case.metric, case.box)
    cert = certify(
        case.model, case.x.numpy(), case.metric, case.eps, case.box, case.x_tune.numpy(), distinct_people=True
    )
    rbar = torch.from_numpy(cert.each_high) - cert.lam * case.eps
    local = NetworkBound(problem, normalised(problem), layers, 0, 0, 0, 0, (0, 0), 0, 0.0, None, None)
    near, (low, high) = local.near(case.x, case.eps), local.score_range(case.x, case.eps)
    decided = stands(forward(layers, case.x), low, high, 0.0)
    normal = normalised(problem)
    ranges, square = Ranges(normal.problem, case.eps, 60), normal.scale**2
    prices = [(c * cert.lam, ranges.largest(c * cert.lam / square) * square) for c in (0.3, 1.0, 10.0)]
    rows = []
    alike = (OUTPUTS * float(problem.f(case.x).abs().max())) ** 2
    for kind, points in others(case, problem, cert.lam, torch.Generator().manual_seed(seed)).items():
        gain = problem.gain(case.x[:, None], points, cert.lam)
        above = gain > (rbar + ROUNDING * torch.from_numpy(cert.each_high))[:, None] + alike
        capped = [problem.gain(case.x[:, None], points, lam) > (1 + ROUNDING) * most + alike for lam, most in prices]
        points = drawn_back(case, problem, points)
        similar = problem.d_x(points - case.x[:, None]) <= case.eps
        d_y, score = problem.gain(case.x[:, None], points, 0.0), _score(module, case.x, points)
        edge = ROUNDING * (low.abs() + high.abs())[:, None]
        outside = (score < low[:, None] - edge) | (score > high[:, None] + edge)
        turned = decided[:, None] & (_decision(module, points) != _decision(module, case.x)[:, None])
        rows.append(
            {
                "model": name,
                "kind": kind,
                "pairs": gain.numel(),
                "violations": int(above.sum()),
                "everybody_violations": int(torch.stack(capped).any(0).sum()),
                "closest": float((gain.amax(1) / rbar.clamp(min=1e-300)).max()),
                "similar": int(similar.sum()),
                "d_y_violations": int((similar & (d_y > (near * (1 + ROUNDING))[:, None])).sum()),
                "decision_violations": int((similar & turned).sum()),
                "range_violations": int((similar & outside).sum()),
                "decided": float(decided.double().mean()),
            }
        )
    return rows


def _outputs(module: nn.Module, x: Tensor) -> Tensor:
    """Of the network itself, not of what the bound has read from it: (..., d) -> (..., K)."""
    with torch.no_grad():
        h = module(x.reshape(-1, x.shape[-1]))
    return h.reshape(*x.shape[:-1], -1)


def _decision(module: nn.Module, x: Tensor) -> Tensor:
    h = _outputs(module, x)
    return (h[..., 0] > 0).long() if h.shape[-1] == 1 else h.argmax(-1)


def _score(module: nn.Module, x: Tensor, points: Tensor) -> Tensor:
    """The logit, the second minus the first, or the own class's minus the largest other one."""
    h = _outputs(module, points)
    if h.shape[-1] <= 2:
        return h[..., -1] - (h[..., 0] if h.shape[-1] == 2 else 0.0)
    own = _outputs(module, x).argmax(-1)[:, None, None].expand(*h.shape[:2], 1)
    return h.gather(-1, own)[..., 0] - h.scatter(-1, own, -torch.inf).amax(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--cases", nargs="+", help="only these")
    parser.add_argument("--data", type=Path, help="where the public nets are")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    path = given.out / "certify_soundness.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    known = {row["model"] for row in rows}
    for name, make in cases(given.people, given.data).items():
        if name in known or (given.cases is not None and name not in given.cases):
            continue
        rows += judge(name, make(), given.seed)
        given.out.mkdir(parents=True, exist_ok=True)
        table = pd.DataFrame(rows)
        table.to_csv(path, index=False, float_format="%.6g")
        bad = table.filter(like="violations").sum().sum()
        print(
            f"{name}: {table['pairs'].sum():,} pairs and {table['similar'].sum():,} similar ones, {bad} violations",
            flush=True,
        )


if __name__ == "__main__":
    main()
