"""certify(): bounds on R(h) from both sides, as a statement with a confidence.

The reasoning is in docs/certificates.md. In one line: for lam and a bound rbar >= r_lam fixed before the held-out
people are looked at, R(h) <= lam*eps + E rbar(X), by weak duality, and the mean of rbar over held-out people bounds
its expectation.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from torch import Tensor

from evenhand.audit import check_inside, parts_of, take
from evenhand.bounds.bound import Bound, Bounding, Bracket, Priced
from evenhand.bounds.crown import output_range
from evenhand.bounds.layers import affine_layers, forward
from evenhand.bounds.network import bound_network
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.bounds.readout import Readout, readout, squared_readout
from evenhand.bounds.trees import bound_trees, suggestions
from evenhand.certify.certificate import Certificate, Individuals
from evenhand.certify.finite import certify_variations
from evenhand.certify.people import Known, separate
from evenhand.domain import Box
from evenhand.dual.confidence import UpperBound, betting_upper, check_statement
from evenhand.dual.moves import choose_move
from evenhand.dual.order import seed_of, shuffled
from evenhand.dual.pool import Pool
from evenhand.dual.running import BlockMeans, StreamedPool
from evenhand.fair_metrics.metric import FairMetric, free_share
from evenhand.headline import STRANGERS_PART, Headline
from evenhand.judged import Judged
from evenhand.output_distances import OutputDistance, described
from evenhand.search.geometry import Geometry
from evenhand.search.thorough import Attack, candidates, plan
from evenhand.search.within import Similar, within
from evenhand.variations import Variations

CHUNK = 256  # people looked at together
TUNING_ROWS = 512  # tuning people on whom lam is chosen
ANOTHER_LAM = 0.02  # a lam at which what was found is lower by this share is worth another pass
Progress = bool | Callable[[str], None]
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
    output_distance: OutputDistance | None = None,
    interval: UpperBound = betting_upper,
    threshold: float | None = None,
    d_y_max: float | None = None,
    distinct_people: bool = False,
    tune_rows: int = 40,
    tune_steps: int = 120,
    start: Multipliers | None = None,
    rounds: int = 6,
    per_person: bool = True,
    progress: Progress = False,
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

    output_distance: by default the mean squared logits, or the total variation for a model that only gives
    probabilities. threshold: the score (second logit minus the first, or the only output) above which the decision is
    yes; 0 for classifiers.

    progress: lines on standard error, or a function that is given them.

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
            model, x_held_out, fair_metric, eps, x_tune, confidence, output_distance, interval, d_y_max, threshold
        )
    began = time.perf_counter()
    x_tune, x_held_out, held_rows = separate(x_tune, x_held_out)
    n = len(x_held_out) if hasattr(x_held_out, "__len__") else NOMINAL_ROWS
    if hasattr(x_held_out, "__len__"):
        for other in known:
            other.refuse(x_held_out)
        known = []
        _refuse_outside(model, x_held_out, bounds)
    alpha = 1 - confidence
    effort = _Effort(n, alpha / 2, tune_rows, tune_steps, rounds, start)
    prepared = _prepare(model, x_tune, fair_metric, eps, bounds, output_distance, effort, progress, threshold)
    judged, problem, read, attack, bound, tuning, lams = prepared
    lam, largest = bound.lam, bound.largest
    with torch.no_grad():
        h_tuning = attack.outputs(tuning)
    headline = Headline(described(attack.output_distance), h_tuning, judged.threshold(h_tuning.shape[1], threshold))
    _say(progress, f"the bound is tuned: lam = {lam:.4g}, range {largest:.4g}")
    move = choose_move(*_tuning_moves(attack, tuning[:128], eps, lams), eps)
    pool = Pool() if per_person else StreamedPool(lams[-1], 0.0)
    cap_lam, cap = bound.confident if isinstance(bound, Priced) else (lam, largest)
    above, capped, moved_y, moved_x = BlockMeans(), BlockMeans(), BlockMeans(), BlockMeans()
    each_low, each_high, seen = [], [], []
    whole = hasattr(x_held_out, "__len__")
    order = shuffled(n, seed_of(x_held_out)) if whole else np.zeros(0, dtype=np.intp)
    if whole:  # in random order, so that whoever is reached before Ctrl-C is a random sample
        x_held_out = take(x_held_out, order)
    try:
        for part in parts_of(x_held_out, CHUNK):  # of one part: what is said of a person depends on that person only
            for other in known:
                other.refuse(part)
            for rows in _encoded(judged, part):
                check_inside(problem.box, rows)
                points, d_y, d_x = _searched(attack, rows, eps, lams)
                found = _upper(bound, problem, rows, points)
                similar, d_y, d_x = _with_witness(attack, rows, points, d_y, d_x, found, eps)
                decided, ranges = bound.decided(rows, eps), bound.score_range(rows, eps)
                rbar = found.upper.numpy()
                low, high = similar.d_y.max(1).values.numpy(), read.up_each(lam * eps + rbar)
                _check_order(0.0, 0.0, low, high)
                headline.add_bounded(rows, similar.h, decided, *ranges)
                above.add(rbar)
                capped.add(np.minimum(rbar, cap))
                pool.add(d_y, d_x)
                for means, values in zip((moved_y, moved_x), move(d_y, d_x)):
                    means.add(values)
                if per_person:
                    each_low.append(low)
                    each_high.append(high)
                    seen.append(rows)
                _say(progress, f"{pool.n:,} individuals, R_high = {read.up(lam * eps + above.mean):.4g}")
    except KeyboardInterrupt:
        if not whole or pool.n == 0:
            raise
        _say(progress, f"stopped: a statement from the {pool.n:,} individuals seen so far")
    if pool.n == 0:
        raise ValueError("nobody is held out; a certificate needs at least one individual")
    value, r_high = pool.minimise(eps).value, read.up(lam * eps + above.mean)
    _check_order(value, r_high)
    low_of, high_of = (np.concatenate([*each, np.zeros(0)]) for each in (each_low, each_high))
    if isinstance(pool, Pool) and isinstance(bound, Priced) and read.g is None:  # squares are what d_Y is
        r_high = min(r_high, read.up(_at_their_own_lam(bound, pool, eps, torch.cat(seen), lams[-1], progress)))
    done = order[: pool.n] if whole else np.arange(pool.n)
    back = np.argsort(done) if per_person else np.zeros(0, dtype=np.intp)

    def upper(alpha: float) -> float:
        return read.up(min(cap_lam * eps + interval(capped.values, cap, alpha), bound.everywhere))

    def lower(alpha: float) -> float:
        return min(move.lower(moved_y.values, moved_x.values, eps, alpha, interval), upper(alpha))

    each = alpha / 2  # two sides, at once
    for_r = (1 - STRANGERS_PART) * each
    ceiling = output_range(problem) if isinstance(problem, Problem) else np.inf
    widest = read.up(min(largest + lam * most_d_x(problem), ceiling))  # d_Y <= r_lam + lam * d_X
    mean_d_x = headline.strangers.mean_d_x(problem.d_x) if headline.strangers.known else 0.0
    return Certificate(
        r_low=value,
        r_high=r_high,
        lower=lower(each),
        upper=upper(each),
        relative=headline.relative(value, r_high, lower(for_r), upper(for_r), each, interval, widest),
        decisions=headline.decisions(each, each),
        percentile=headline.percentile(each, each, interval),
        strangers=headline.strangers.mean() if headline.strangers.known else float("nan"),
        yardstick=eps / mean_d_x if mean_d_x > 0 else float("nan"),
        free_share=free_share(judged.metric(fair_metric), tuning),
        lam=lam,
        r_lam_max=largest,
        delta_everywhere=read.up(bound.everywhere),
        eps=eps,
        n=pool.n,
        confidence=confidence,
        distance=read.name,
        each_low=low_of[back],
        each_high=high_of[back],
        rows=held_rows[done[back]] if per_person and whole else np.zeros(0, dtype=np.intp),
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
    output_distance: OutputDistance | None = None,
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
    similar = _pool_distances(attack, rows, eps, lams, found)[0]
    best = similar.d_y.argmax(1)
    at = torch.arange(len(rows))
    best_y, best_x = similar.d_y[at, best].numpy(), similar.d_x[at, best].numpy()
    witness = similar.points[at, best].numpy()
    _check_order(0.0, 0.0, best_y, upper)
    return Individuals(best_y, np.maximum(upper, best_y), witness, best_x, eps, read.name, judged.decode(witness, x))


def _prepare(
    model: Any,
    x_tune: Any,
    fair_metric: FairMetric | None,
    eps: float,
    bounds: Any,
    output_distance: OutputDistance | None,
    effort: _Effort,
    progress: Progress,
    threshold: float | None = None,
) -> _Prepared:
    check_statement(eps, 0.5)
    judged = Judged.of(model)
    if judged.ensemble is not None or hasattr(model, "evenhand_bound"):
        return _prepare_own(model, judged, x_tune, fair_metric, eps, bounds, output_distance, effort)
    layers = affine_layers(judged.module if judged.module is not None else model)
    metric, distance = judged.metric(fair_metric), judged.distance(output_distance)
    box = Box.of(bounds if bounds is not None else judged.bounds, layers[0].weight.shape[1])
    read = readout(distance, layers)
    problem = Problem(read.layers, metric, box)
    x = judged.encode(x_tune)
    check_inside(box, x)
    judged.check_function(x)
    x = x[torch.from_numpy(shuffled(len(x), 0))]  # the first ones are used more than the others
    _check_folding(judged, layers, x[:64])
    attack = Attack(judged.outputs_for(distance), problem, distance, True, neighbours=x[:256])
    x = x[:TUNING_ROWS]
    lams = plan(attack, x[:128], eps)
    points, d_y, d_x = _searched(attack, x, eps, lams)
    if eps > 0 and (lam := _pooled(d_y, d_x).minimise(eps).lam) > 0:
        lams = [0.7 * lam, 1.4 * lam, lam]
    squares = _pooled(problem.gain(x[:, None], points, 0.0).numpy(), d_x)  # what the bound speaks of
    say = (lambda text: _say(progress, text)) if progress else None
    start = effort.start if effort.start is not None else _trained_multipliers(model)
    bound = bound_network(
        problem,
        layers,
        x,
        eps,
        n=effort.n,
        alpha=effort.alpha,
        tune_rows=effort.tune_rows,
        steps=effort.tune_steps,
        rounds=effort.rounds,
        threshold=threshold if threshold is not None else 0.0,
        start=start,
        lam_at_least=squares.minimise(eps).lam if eps > 0 else None,
        reached=lambda lam: torch.from_numpy(squares.gains(lam)),
        progress=say,
    )
    return _Prepared(judged, problem, read, attack, bound, x, lams)


def _pooled(d_y: NDArray[Any], d_x: NDArray[Any]) -> Pool:
    pool = Pool()
    pool.add(d_y, d_x)
    return pool


def _prepare_own(
    model: Bounding | Any,
    judged: Judged,
    x_tune: Any,
    fair_metric: FairMetric | None,
    eps: float,
    bounds: Any,
    output_distance: OutputDistance | None,
    effort: _Effort,
) -> _Prepared:
    """Tree ensembles, and models that bring their own bound."""
    metric, distance, ensemble = judged.metric(fair_metric), judged.distance(output_distance), judged.ensemble
    x = judged.encode(x_tune)
    box = Box.of(bounds if bounds is not None else judged.bounds, x.shape[1])
    check_inside(box, x)
    x = x[torch.from_numpy(shuffled(len(x), 0))]
    outputs = ensemble.outputs if ensemble is not None else judged.outputs(x[:1]).shape[1]
    read, scale = squared_readout(distance, outputs, judged.classes is not None)
    geometry, suggest = Geometry(metric, box), None
    if hasattr(model, "evenhand_bound"):
        judged.check_function(x)
        bound: Bound = model.evenhand_bound(geometry, x[: effort.tune_rows], eps, scale)
    else:
        assert ensemble is not None
        bound = bound_trees(ensemble, geometry, x[: effort.tune_rows], eps, scale)
        suggest = suggestions(ensemble, geometry)
    attack = Attack(judged.outputs_for(distance), geometry, distance, False, x[:256], by_structure=suggest)
    return _Prepared(judged, geometry, read, attack, bound, x, [bound.lam])


def _trained_multipliers(model: Any) -> Multipliers | None:
    """What certified training left behind; it has not seen the held-out people either."""
    found = getattr(model[-1] if isinstance(model, Pipeline) else model, "multipliers_", None)
    return found if isinstance(found, Multipliers) else None


Searched = tuple[Tensor, NDArray[np.float64], NDArray[np.float64]]  # points (n, m, d), their d_Y and d_X (n, m)


def _searched(attack: Attack, x: Tensor, eps: float, lams: list[float]) -> Searched:
    """All that a search finds for each person."""
    parts = []
    for rows in torch.split(x, 512):
        points = candidates(attack, rows, eps, lams)
        parts.append((points, *attack.distances(rows, points)))
    points, d_y, d_x = (torch.cat(each) for each in zip(*parts, strict=True))
    return points, d_y.numpy(), d_x.numpy()


def _with_witness(
    attack: Attack, x: Tensor, points: Tensor, d_y: NDArray[Any], d_x: NDArray[Any], found: Bracket, eps: float
) -> tuple[Similar, NDArray[np.float64], NDArray[np.float64]]:
    """Who is within eps, and d_Y and d_X of all candidates (n, m), the branch and bound's own among them."""
    more = found.witness[:, None]
    more_y, more_x = attack.distances(x, more)
    all_y, all_x = (torch.cat([torch.from_numpy(a), b], 1) for a, b in ((d_y, more_y), (d_x, more_x)))
    similar = within(attack, x, torch.cat([points, more], 1), eps)
    return similar, *similar.joined(all_y, all_x)


def _pool_distances(
    attack: Attack, x: Tensor, eps: float, lams: list[float], found: Bracket
) -> tuple[Similar, NDArray[np.float64], NDArray[np.float64]]:
    return _with_witness(attack, x, *_searched(attack, x, eps, lams), found, eps)


def _tuning_moves(
    attack: Attack, x: Tensor, eps: float, lams: list[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """d_Y and d_X of what is found for tuning people, those within eps among it."""
    points, d_y, d_x = _searched(attack, x, eps, lams)
    return within(attack, x, points, eps).joined(torch.from_numpy(d_y), torch.from_numpy(d_x))


def _upper(bound: Bound, problem: Geometry, x: Tensor, points: Tensor) -> Bracket:
    """r_lam of each person from both sides; no work is spent on what a search has reached already."""
    if not (isinstance(bound, Priced) and isinstance(problem, Problem)):
        return bound.upper(x)
    return bound.upper(x, problem.gain(x[:, None], points, bound.lam).amax(1).clamp(min=0))


def _at_their_own_lam(bound: Priced, pool: Pool, eps: float, x: Tensor, tuned: float, progress: Progress) -> float:
    """lam*eps + mean bound at the lam that suits these people, as far above the minimiser of what was found for them as
    the bound's lam is above that of the tuning people. It is about the sample: no confidence may rest on it."""
    lam = pool.minimise(eps).lam * max(1.0, bound.lam / tuned)

    def found(lam: float) -> float:
        return lam * eps + float(pool.gains(lam).mean())

    if not (eps > 0 and 0 < lam < np.inf and found(bound.lam) > (1 + ANOTHER_LAM) * found(lam)):
        return np.inf
    _say(progress, f"once more at lam = {lam:.4g}, which suits these people; Ctrl-C leaves it out")
    try:
        return lam * eps + float(bound.at(lam).upper(x, torch.from_numpy(pool.gains(lam))).upper.mean())
    except KeyboardInterrupt:
        return np.inf


def _refuse_outside(model: Any, x: Any, bounds: Any) -> None:
    """People outside the bounds are refused at once, not after the bound has been tuned."""
    judged = Judged.of(model)
    limits = bounds if bounds is not None else judged.bounds
    if limits is not None:
        for rows in _encoded(judged, x):
            check_inside(Box.of(limits, rows.shape[1]), rows)


def most_d_x(problem: Geometry) -> float:
    """At least the largest d_X of two people in Dom."""
    span = problem.box.high - problem.box.low
    return float(torch.linalg.eigvalsh(problem.sigma)[-1].clamp(min=0) * span.square().sum())


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


def _say(progress: Progress, text: str) -> None:
    if callable(progress):
        progress(text)
    elif progress:
        print(f"certify: {text}", file=sys.stderr)
