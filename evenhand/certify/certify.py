"""certify(): bounds on R(h) from both sides, as a statement with a confidence.

The reasoning is in docs/certificates.md. In one line: for lam and a bound rbar >= r_lam fixed before the held-out
people are looked at, R(h) <= lam*eps + E rbar(X), by weak duality, and the mean of rbar over held-out people bounds
its expectation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from torch import Tensor

from evenhand.audit import check_inside, parts_of, take
from evenhand.bounds.bound import Bound, Bracket
from evenhand.bounds.layers import affine_layers, forward
from evenhand.bounds.network import bound_network
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.bounds.readout import Readout, readout, tree_readout
from evenhand.bounds.trees import bound_trees, suggestions
from evenhand.certify.certificate import Certificate, Individuals
from evenhand.certify.finite import certify_variations
from evenhand.certify.people import Known
from evenhand.domain import Box
from evenhand.dual.confidence import UpperBound, betting_upper, check_statement
from evenhand.dual.moves import choose_move
from evenhand.dual.order import shuffled
from evenhand.dual.pool import Pool
from evenhand.dual.running import BlockMeans, StreamedPool
from evenhand.fair_metrics.metric import FairMetric
from evenhand.judged import Judged
from evenhand.output_distances import OutputDistance, mean_squared_logits
from evenhand.search.geometry import Geometry
from evenhand.search.thorough import Attack, candidates, plan
from evenhand.variations import Variations

CHUNK = 4096  # people looked at together
NOMINAL_ROWS = 10_000  # for how many people lam is chosen when their number is not known beforehand


class _Effort(NamedTuple):
    """For how many people and at which error lam is chosen, and how hard to work."""

    n: int
    alpha: float
    tune_rows: int
    tune_steps: int
    rounds: int
    start: Multipliers | None


class _Prepared(NamedTuple):
    judged: Judged
    problem: Geometry
    readout: Readout
    attack: Attack
    bound: Bound
    x_tune: Tensor
    lams: list[float]


def certify(
    model: Any,
    x_held_out: Any,
    fair_metric: FairMetric | None = None,
    eps: float = 0.1,
    bounds: Any = None,
    x_tune: Any = None,
    *,
    x_train: Any = None,
    confidence: float = 0.95,
    output_distance: OutputDistance = mean_squared_logits,
    interval: UpperBound = betting_upper,
    d_y_max: float | None = None,
    distinct_people: bool = False,
    tune_rows: int = 40,
    tune_steps: int = 120,
    start: Multipliers | None = None,
    rounds: int = 6,
    per_person: bool = True,
    progress: bool = False,
) -> Certificate:
    """Bound R(h) from both sides with a confidence.

    model: an estimator of ours, a Pipeline that ends in one, or an nn.Sequential of Linear, ReLU, Dropout, BatchNorm1d,
    Identity and Flatten layers. x_held_out: people drawn independently, not used for training or tuning. x_tune: other
    people, on whom the multipliers are chosen; without it a fifth of the held-out rows, drawn at random, is used for
    that and for nothing else. The order of the rows does not matter. bounds: (low, high) or a Box; every held-out row
    must lie inside. ``Variations`` in place of the rows ask for the exact worst case over these finite sets, for any
    model (``d_y_max`` bounds the output distance then).

    Held-out people who do not fit in memory come as an iterable of parts, with x_tune beside it. per_person=False keeps
    nothing for each person, so that memory does not grow with their number.

    start: multipliers to tune from besides the general ones, such as those of ``certified_fine_tune``; estimators
    bring their own. They must not depend on the held-out people.

    interval is one of betting_upper, empirical_bernstein_upper and hoeffding_upper: choose it before you see a result.
    Overlap with x_tune or x_train is refused; rows count as the same person when their index labels are equal, or, for
    data without labels, their values; distinct_people=True vouches that equal values are different people.
    """
    check_statement(eps, confidence)
    known = [] if distinct_people else [Known(x_tune, "x_tune"), Known(x_train, "x_train")]
    if isinstance(x_held_out, Variations):
        for other in known:
            other.refuse(x_held_out)
        return certify_variations(
            model, x_held_out, fair_metric, eps, x_tune, confidence, output_distance, interval, d_y_max
        )
    began = time.perf_counter()
    x_tune, x_held_out, held_rows = _separate(x_tune, x_held_out)
    n = len(x_held_out) if hasattr(x_held_out, "__len__") else NOMINAL_ROWS
    if hasattr(x_held_out, "__len__"):
        for other in known:
            other.refuse(x_held_out)
        known = []
    alpha = 1 - confidence
    effort = _Effort(n, alpha / 2, tune_rows, tune_steps, rounds, start)
    prepared = _prepare(model, x_tune, fair_metric, eps, bounds, output_distance, effort, progress)
    judged, problem, read, attack, bound, tuning, lams = prepared
    lam, largest = bound.lam, bound.largest
    _say(progress, f"the bound is tuned: lam = {lam:.4g}, range {largest:.4g}")
    move = choose_move(*_pool_distances(attack, tuning[:128], eps, lams, bound.upper(tuning[:128])), eps)
    pool = Pool() if per_person else StreamedPool(lams[-1], 0.0)
    above, moved_y, moved_x = BlockMeans(), BlockMeans(), BlockMeans()
    each_low, each_high = [], []
    for part in parts_of(x_held_out, CHUNK):  # of one part: what is said of a person depends on that person only
        for other in known:
            other.refuse(part)
        for rows in _encoded(judged, part):
            check_inside(problem.box, rows)
            found = bound.upper(rows)
            rbar = found.upper.numpy()
            d_y, d_x = _pool_distances(attack, rows, eps, lams, found)
            low, high = np.where(d_x <= eps, d_y, 0.0).max(1), read.up_each(lam * eps + rbar)
            _check_order(0.0, 0.0, low, high)
            above.add(rbar)
            pool.add(d_y, d_x)
            for means, values in zip((moved_y, moved_x), move(d_y, d_x)):
                means.add(values)
            if per_person:
                each_low.append(low)
                each_high.append(high)
        _say(progress, f"{pool.n:,} individuals, R_high = {read.up(lam * eps + above.mean):.4g}")
    if pool.n == 0:
        raise ValueError("nobody is held out; a certificate needs at least one individual")
    value, r_high = pool.minimise(eps).value, read.up(lam * eps + above.mean)
    upper = read.up(min(lam * eps + interval(above.values, largest, alpha / 2), bound.everywhere))
    lower = move.lower(moved_y.values, moved_x.values, eps, alpha / 2, interval)
    _check_order(value, r_high)
    return Certificate(
        r_low=value,
        r_high=r_high,
        lower=min(lower, upper),
        upper=upper,
        lam=lam,
        r_lam_max=largest,
        delta_everywhere=read.up(bound.everywhere),
        eps=eps,
        n=pool.n,
        confidence=confidence,
        distance=read.name,
        each_low=np.concatenate([*each_low, np.zeros(0)]),
        each_high=np.concatenate([*each_high, np.zeros(0)]),
        rows=held_rows if per_person else np.zeros(0, dtype=np.intp),
        tuning_rows=len(tuning),
        seconds=time.perf_counter() - began,
    )


def certify_individuals(
    model: Any,
    x: Any,
    fair_metric: FairMetric | None = None,
    eps: float = 0.1,
    bounds: Any = None,
    x_tune: Any = None,
    *,
    output_distance: OutputDistance = mean_squared_logits,
    tune_rows: int = 40,
    tune_steps: int = 120,
    start: Multipliers | None = None,
    rounds: int = 6,
    progress: bool = False,
) -> Individuals:
    """For each person: bounds on sup d_Y over all x' in the bounds with d_X(x, x') <= eps, and an x' that comes close.

    No sampling is involved, so there is no confidence and x may be anybody's; x_tune (default: x itself) only decides
    how tight the bounds are.
    """
    tuning = x if x_tune is None else x_tune
    effort = _Effort(NOMINAL_ROWS, 0.025, tune_rows, tune_steps, rounds, start)
    prepared = _prepare(model, tuning, fair_metric, eps, bounds, output_distance, effort, progress)
    judged, problem, read, attack, bound, _, lams = prepared
    rows = judged.encode(x)
    check_inside(problem.box, rows)
    found = bound.upper(rows)
    upper = read.up_each(torch.minimum(bound.lam * eps + found.upper, bound.near(rows, eps)).numpy())
    best_y, best_x, witness = _within(attack, rows, eps, lams, found.witness)
    _check_order(0.0, 0.0, best_y, upper)
    return Individuals(best_y, np.maximum(upper, best_y), witness, best_x, eps, read.name, judged.decode(witness, x))


def _prepare(
    model: Any,
    x_tune: Any,
    fair_metric: FairMetric | None,
    eps: float,
    bounds: Any,
    output_distance: OutputDistance,
    effort: _Effort,
    progress: bool,
) -> _Prepared:
    check_statement(eps, 0.5)
    judged = Judged.of(model)
    if judged.ensemble is not None:
        return _prepare_trees(judged, x_tune, fair_metric, eps, bounds, output_distance, effort)
    layers = affine_layers(judged.module if judged.module is not None else model)
    metric = fair_metric if fair_metric is not None else judged.fair_metric
    if metric is None:
        raise ValueError("fair_metric is needed: the model does not carry one; see evenhand.fair_metrics")
    box = Box.of(bounds if bounds is not None else judged.bounds, layers[0].weight.shape[1])
    read = readout(output_distance, layers)
    problem = Problem(read.layers, metric, box)
    x = judged.encode(x_tune)
    check_inside(box, x)
    judged.check_function(x)
    x = x[torch.from_numpy(shuffled(len(x)))]  # the first ones are used more than the others
    _check_folding(judged, layers, x[:64])
    attack = Attack(judged.outputs, problem, output_distance, differentiable=True, neighbours=x[:256])
    lams = plan(attack, x[:128], eps)
    say = (lambda text: _say(True, text)) if progress else None
    start = effort.start if effort.start is not None else _trained_multipliers(model)
    bound = bound_network(
        problem,
        layers,
        x[: effort.tune_rows],
        eps,
        n=effort.n,
        alpha=effort.alpha,
        steps=effort.tune_steps,
        rounds=effort.rounds,
        start=start,
        lam_at_least=lams[-1] / 2,
        progress=say,
    )
    return _Prepared(judged, problem, read, attack, bound, x, lams)


def _prepare_trees(
    judged: Judged,
    x_tune: Any,
    fair_metric: FairMetric | None,
    eps: float,
    bounds: Any,
    output_distance: OutputDistance,
    effort: _Effort,
) -> _Prepared:
    ensemble = judged.ensemble
    assert ensemble is not None
    metric = fair_metric if fair_metric is not None else judged.fair_metric
    if metric is None:
        raise ValueError("fair_metric is needed: the model does not carry one; see evenhand.fair_metrics")
    box = Box.of(bounds if bounds is not None else judged.bounds, ensemble.d)
    read, scale = tree_readout(output_distance, ensemble.outputs, judged.classes is not None)
    x = judged.encode(x_tune)
    check_inside(box, x)
    x = x[torch.from_numpy(shuffled(len(x)))]
    geometry = Geometry(metric, box)
    bound = bound_trees(ensemble, geometry, x[: effort.tune_rows], eps, scale)
    suggest = suggestions(ensemble, geometry)
    attack = Attack(judged.outputs, geometry, output_distance, False, x[:256], by_structure=suggest)
    return _Prepared(judged, geometry, read, attack, bound, x, [bound.lam])


def _trained_multipliers(model: Any) -> Multipliers | None:
    """What certified training left behind; it has not seen the held-out people either."""
    found = getattr(model[-1] if isinstance(model, Pipeline) else model, "multipliers_", None)
    return found if isinstance(found, Multipliers) else None


def _pool_distances(
    attack: Attack, x: Tensor, eps: float, lams: list[float], found: Bracket
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """d_Y and d_X of all candidates: (n, m) each; the branch and bound's own worst cases among them."""
    parts = []
    for start in range(0, len(x), 512):
        rows = x[start : start + 512]
        points = torch.cat([candidates(attack, rows, eps, lams), found.witness[start : start + 512, None]], 1)
        parts.append(attack.distances(rows, points))
    return torch.cat([p[0] for p in parts]).numpy(), torch.cat([p[1] for p in parts]).numpy()


def _within(
    attack: Attack, x: Tensor, eps: float, lams: list[float], witness: Tensor
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The best candidate with d_X <= eps of each person; dearer ones are first moved towards x."""
    ys, xs, points = [], [], []
    for start in range(0, len(x), 512):
        rows = x[start : start + 512]
        found = torch.cat([candidates(attack, rows, eps, lams), witness[start : start + 512, None]], 1)
        base = rows[:, None].expand_as(found).clone()
        base[..., attack.geometry.pinned] = found[..., attack.geometry.pinned]
        base = torch.where((attack.d_x(base - rows[:, None]) <= eps)[..., None], base, rows[:, None])
        price = attack.d_x(found - base).clamp(min=1e-300)
        share = (0.999999 * eps / price).sqrt().clamp(max=1.0)[..., None]
        found = attack.geometry.box.round(base + share * (found - base))
        d_y, d_x = attack.distances(rows, found)
        best = torch.where(d_x <= eps, d_y, torch.zeros_like(d_y)).max(1)
        chosen = found[torch.arange(len(rows)), best.indices]
        stay = best.values <= 0
        ys.append(best.values)
        xs.append(torch.where(stay, torch.zeros_like(best.values), d_x[torch.arange(len(rows)), best.indices]))
        points.append(torch.where(stay[:, None], rows, chosen))
    return torch.cat(ys).numpy(), torch.cat(xs).numpy(), torch.cat(points).numpy()


def _separate(x_tune: Any, x_held_out: Any) -> tuple[Any, Any, NDArray[np.intp]]:
    """Tuning people, held-out people, and which rows of what was given the latter are (none for a stream)."""
    if x_tune is not None:
        n = len(x_held_out) if hasattr(x_held_out, "__len__") else 0
        return x_tune, x_held_out, np.arange(n, dtype=np.intp)
    if not hasattr(x_held_out, "__len__"):
        raise ValueError("x_tune is needed when the held-out people come in parts: give other people to tune on")
    count = len(x_held_out) // 5
    if count < 10:
        raise ValueError(
            f"x_tune is needed with only {len(x_held_out)} held-out rows: the multipliers must be chosen on other "
            "people; give x_tune, or at least 50 held-out rows, a fifth of which is then used for tuning"
        )
    order = shuffled(len(x_held_out))
    held = np.sort(order[count:])
    return take(x_held_out, order[:count]), take(x_held_out, held), held


def _encoded(judged: Judged, part: Any) -> Iterator[Tensor]:
    x = judged.encode(part)
    for start in range(0, len(x), CHUNK):
        yield x[start : start + CHUNK]


def _check_folding(judged: Judged, layers: Any, x: Tensor) -> None:
    with torch.no_grad():
        outputs = judged.outputs(x)
        gap = (outputs - forward(layers, x)).abs().max().item() if len(x) else 0.0
    if not gap <= 1e-6 * float(outputs.abs().max()):
        raise RuntimeError(f"the folded layers differ from the model by {gap:.3g}; please report this model")


def _check_order(r_low: float, r_high: float, each_low: Any = 0.0, each_high: Any = 0.0) -> None:
    slack = 1e-9 * max(abs(r_high), float(np.max(each_high, initial=0.0)))
    ordered = r_low <= r_high * (1 + 1e-7) + slack and bool(np.all(each_low <= each_high * (1 + 1e-7) + slack))
    if not ordered:  # a NaN is not ordered either
        raise RuntimeError(
            f"a lower bound ({r_low:.6g}) lies above an upper one ({r_high:.6g}): please report this model"
        )


def _say(progress: bool, text: str) -> None:
    if progress:
        print(f"certify: {text}", file=sys.stderr)
