"""certify(): bounds on R(h) from both sides, as a statement with a confidence.

The reasoning is in docs/certificates.md. In one line: for lam and a bound rbar >= r_lam fixed before the held-out
people are looked at, R(h) <= lam*eps + E rbar(X), by weak duality, and the mean of rbar over held-out people bounds
its expectation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.audit import check_inside, parts_of, shape_of, statement_of, take
from evenhand.bounds.bound import Bound, Bounding
from evenhand.bounds.forests import bound_forest
from evenhand.bounds.layers import CannotCertify, Layer, affine_layers, forward, refuse_unreadable
from evenhand.bounds.network import bound_network
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.bounds.readout import readout, squared_readout, voting_readout
from evenhand.bounds.trace import traced_layers
from evenhand.bounds.trees import bound_trees, suggestions
from evenhand.certify.certificate import Certificate, Individuals
from evenhand.certify.finite import certify_variations
from evenhand.certify.limit import TimeLimit
from evenhand.certify.people import Known, separate
from evenhand.certify.statement import (
    Prepared,
    Progress,
    Statement,
    check_order,
    pool_distances,
    rounding_of,
    say,
    searched,
)
from evenhand.domain import Box
from evenhand.dual.confidence import UpperBound, betting_upper
from evenhand.dual.order import seed_of, shuffled
from evenhand.dual.pool import Pool
from evenhand.ensembles.read import CannotRead, read_ensemble
from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import plain_table
from evenhand.judged import Judged, columns_of
from evenhand.output_distances import Described, OutputDistance
from evenhand.search.geometry import Geometry
from evenhand.search.thorough import Attack, plan
from evenhand.variations import Variations

CHUNK, HURRIED = 256, 32  # people looked at together, fewer where time is limited
TUNING_ROWS = 512  # tuning people on whom lam is chosen
NOMINAL_ROWS = 10_000  # for how many people lam is chosen when their number is not known beforehand


class _Effort(NamedTuple):
    """For how many people and at which error lam is chosen, and how hard to work."""

    n: int
    alpha: float
    tune_rows: int
    tune_steps: int
    rounds: int
    start: Multipliers | None
    limit: TimeLimit


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
    tune_steps: int = 400,
    start: Multipliers | None = None,
    rounds: int = 6,
    per_person: bool = True,
    seconds: float | None = None,
    progress: Progress = False,
    device: str | torch.device = "cpu",
) -> Certificate:
    """Bound R(h) from both sides with a confidence.

    model: an estimator of ours, a linear model or perceptron of scikit-learn, boosted trees, a Pipeline that ends in
    one, or any nn.Module of affine layers and activations (ReLU and its relatives, GELU, tanh, sigmoid and other smooth
    ones), residual additions included. x_held_out: people drawn independently, not used for training or tuning, as rows
    or as what the module takes, such as images.
    x_tune: other people, on whom the multipliers are chosen; without it a fifth of the held-out rows, drawn at random,
    is used for that and for nothing else. The order of the rows does not matter. bounds: (low, high) or a Box, in
    the units that the model, or the last step of a Pipeline, is given; every held-out row must lie inside.
    ``Variations`` in place of the rows ask for the exact worst case over these finite sets, for any model (``d_y_max``
    bounds the output distance then).

    Held-out people who do not fit in memory come as an iterable of parts, with x_tune beside it. per_person=False keeps
    nothing for each person, so that memory does not grow with their number.

    start: multipliers to tune from besides the general ones, such as those of ``certified_fine_tune``; estimators
    bring their own. They must not depend on the held-out people.

    output_distance: by default the mean squared logits, the total variation for a model that only gives probabilities,
    the squared error for a regressor. threshold: the score (second logit minus the first, or the only output) above
    which the decision is yes; 0 for classifiers.

    progress: lines on standard error, or a function that is given them. device: where a module is asked for its
    outputs, in float64; the bounds themselves are computed on the CPU.

    seconds: about how long it may take. Once half of them are over nothing more is tuned, and at the end the statement
    is about the people who were reached by then, the best sound bounds so far; as after Ctrl-C, the first part of the
    people is always looked at. Without it the same call gives the same numbers every time.

    interval is one of betting_upper, empirical_bernstein_upper and hoeffding_upper: choose it before you see a result.
    Overlap with x_tune or x_train is refused; rows count as the same person when their index labels are equal, or, for
    data without labels, their values; distinct_people=True vouches that equal values are different people.
    Of versions of texts each text counts once, however often it comes, unless distinct_people=True.
    """
    eps, confidence = statement_of(eps, confidence)
    x_held_out, x_tune = plain_table(x_held_out, "x_held_out"), plain_table(x_tune, "x_tune")
    x_train = plain_table(x_train, "x_train")
    known = [] if distinct_people else [Known(x_tune, "x_tune"), Known(x_train, "x_train")]
    if isinstance(x_held_out, Variations):
        for other in known:
            other.refuse(x_held_out)
        judged = Judged.of(model, device, columns=columns_of(x_held_out.like))
        return certify_variations(
            judged, x_held_out, fair_metric, eps, x_tune, confidence, output_distance, interval, d_y_max, threshold,
            distinct_people,
        )  # fmt: skip
    began = time.perf_counter()
    x_tune, x_held_out, held_rows = separate(x_tune, x_held_out)
    whole = hasattr(x_held_out, "__len__")
    n = len(x_held_out) if whole else NOMINAL_ROWS
    if seconds is not None and not whole:
        raise ValueError("seconds is for a table of people, who are looked at in random order; stop a stream yourself")
    if whole:
        for other in known:
            other.refuse(x_held_out)
        known = []
        _refuse_outside(model, x_held_out, bounds)
    alpha = 1 - confidence
    limit = TimeLimit(seconds)
    effort = _Effort(n, alpha / 2, tune_rows, tune_steps, rounds, start, limit)
    half = limit.half(progress)
    prepared = _prepare(model, x_tune, fair_metric, eps, bounds, output_distance, effort, half, device)
    statement = Statement(prepared, eps, interval, threshold, per_person, progress)
    statement.progress = limit.whole(progress)  # from here on it may end
    order = shuffled(n, seed_of(x_held_out)) if whole else np.zeros(0, dtype=np.intp)
    if whole:  # in random order, so that whoever is reached before Ctrl-C is a random sample
        x_held_out = take(x_held_out, order)
    try:
        each = CHUNK if seconds is None else HURRIED
        for part in parts_of(x_held_out, each):  # of one part: what is said of a person depends on that person only
            for other in known:
                other.refuse(part)
            for rows in _encoded(prepared.judged, part):
                statement.add(rows)
    except KeyboardInterrupt:
        if not whole or statement.n == 0:
            raise
        say(progress, f"stopped: a statement from the {statement.n:,} individuals seen so far")
    if statement.n == 0:
        raise ValueError("nobody is held out; a certificate needs at least one individual")
    done = order[: statement.n] if whole else np.arange(statement.n)
    places = held_rows[done] if whole else done
    certificate = statement.certificate(confidence, np.argsort(done), places if whole else None, fair_metric)
    return replace(certificate, seconds=time.perf_counter() - began)


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
    tune_steps: int = 400,
    start: Multipliers | None = None,
    rounds: int = 6,
    progress: bool = False,
    device: str | torch.device = "cpu",
) -> Individuals:
    """For each person: bounds on sup d_Y over all x' in the bounds with d_X(x, x') <= eps, and an x' that comes close.

    No sampling is involved, so there is no confidence and x may be anybody's; x_tune (default: x itself) only decides
    how tight the bounds are. device: where a module is asked for its outputs, as for ``certify``.
    """
    eps, _ = statement_of(eps, 0.5)
    x = plain_table(x, "x")
    tuning = x if x_tune is None else plain_table(x_tune, "x_tune")
    effort = _Effort(NOMINAL_ROWS, 0.025, tune_rows, tune_steps, rounds, start, TimeLimit(None))
    prepared = _prepare(model, tuning, fair_metric, eps, bounds, output_distance, effort, progress, device)
    judged, problem, read, attack, bound, _, lams = prepared
    rows = judged.encode(x)
    check_inside(problem.box, rows)
    found = bound.upper(rows)
    upper = read.up_each(torch.minimum(bound.lam * eps + found.upper, bound.near(rows, eps)).numpy())
    similar = pool_distances(attack, rows, eps, lams, found)[0]
    best = similar.d_y.argmax(1)
    at = torch.arange(len(rows))
    best_y, best_x = similar.d_y[at, best].numpy(), similar.d_x[at, best].numpy()
    witness = similar.points[at, best].numpy()
    check_order(0.0, 0.0, best_y, upper, rounding_of(attack, rows))
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
    device: str | torch.device,
) -> Prepared:
    judged = Judged.of(model, device, shape_of(x_tune))
    last = judged.behind.estimator
    if judged.ensemble is not None or hasattr(last, "evenhand_bound"):
        return _prepare_own(last, judged, x_tune, fair_metric, eps, bounds, output_distance, effort)
    _refuse_unread_trees(last)
    metric, distance = judged.metric(fair_metric), judged.distance(output_distance)
    layers = _layers(Judged.of(model, shape=judged.shape), metric.d)
    box = Box.of(bounds if bounds is not None else judged.bounds, layers[0].weight.shape[1])
    read = readout(distance, layers)
    problem = Problem(read.layers, metric, box)
    x = judged.encode(x_tune)
    check_inside(box, x)
    judged.check_function(x)
    _refuse_other_probabilities(judged, x, distance)
    x = x[torch.from_numpy(shuffled(len(x), 0))]  # the first ones are used more than the others
    _check_folding(judged, layers, x[:64])
    attack = Attack(judged.outputs_for(distance), problem, distance, True, neighbours=x[:256])
    x = x[:TUNING_ROWS]
    lams = plan(attack, x[:128], eps)
    points, d_y, d_x = searched(attack, x, eps, lams)
    if eps > 0 and (lam := _pooled(d_y, d_x).minimise(eps).lam) > 0:
        lams = [0.7 * lam, 1.4 * lam, lam]
    squares = _pooled(problem.gain(x[:, None], points, 0.0).numpy(), d_x)  # what the bound speaks of
    tell = (lambda text: say(progress, text)) if progress else None
    start = effort.start if effort.start is not None else _trained_multipliers(last)
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
        start=start,
        lam_at_least=squares.minimise(eps).lam if eps > 0 else None,
        reached=lambda lam: torch.from_numpy(squares.gains(lam)),
        progress=tell,
        over=effort.limit.half_over,
    )
    return Prepared(judged, problem, read, attack, bound, x, lams)


def _layers(judged: Judged, d: int) -> list[Layer]:
    """The layers as plain numbers, of the model on the CPU wherever it is asked."""
    module = judged.module
    if module is None:
        return affine_layers(judged.behind.estimator, d)  # which says why there are none
    refuse_unreadable(module)
    if judged.shape:
        return [layer.detached() for layer in traced_layers(module, d)]
    return affine_layers(module, d)


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
) -> Prepared:
    """Tree ensembles, and models that bring their own bound."""
    metric, distance, ensemble = judged.metric(fair_metric), judged.distance(output_distance), judged.ensemble
    x = judged.encode(x_tune)
    box = Box.of(bounds if bounds is not None else judged.bounds, x.shape[1])
    check_inside(box, x)
    _refuse_other_probabilities(judged, x, distance)
    x = x[torch.from_numpy(shuffled(len(x), 0))]
    outputs = ensemble.outputs if ensemble is not None else judged.outputs(x[:1]).shape[1]
    votes = ensemble is not None and judged.only_probabilities
    if votes:
        read, scale = voting_readout(distance, outputs), 1.0
    else:
        read, scale = squared_readout(distance, outputs, judged.classes is not None)
    geometry, suggest = Geometry(metric, box), None
    if hasattr(model, "evenhand_bound"):
        judged.check_function(x)
        bound: Bound = model.evenhand_bound(geometry, x[: effort.tune_rows], eps, scale)
    else:
        assert ensemble is not None
        few, left = x[: effort.tune_rows], effort.limit.left()
        if votes:
            bound = bound_forest(ensemble, geometry, few, eps, left)
        else:
            bound = bound_trees(ensemble, geometry, few, eps, scale, seconds=left)
        suggest = suggestions(ensemble, geometry, scale)
    attack = Attack(judged.outputs_for(distance), geometry, distance, False, x[:256], by_structure=suggest)
    return Prepared(judged, geometry, read, attack, bound, x, [bound.lam])


def _refuse_unread_trees(last: Any) -> None:
    """Trees that cannot be read are refused with the reason, which an audit does without."""
    try:
        read_ensemble(last)
    except CannotRead as reason:
        raise CannotCertify(
            f"no upper bound for this {type(last).__name__}: {reason}; audit() gives a lower bound for any model"
        ) from reason


def _refuse_other_probabilities(judged: Judged, x: Tensor, distance: Described) -> None:
    """Bounds of probabilities are made of scores whose softmax they are."""
    if judged.as_told(x, distance) is not judged:
        raise CannotCertify(
            f"predict_proba of this {type(judged.behind.estimator).__name__} is not the softmax of its scores, so "
            f"that no bound of ours speaks of its {distance.name}; mean_squared_logits is about the scores, and "
            "audit() gives a lower bound for any output distance"
        )


def _trained_multipliers(last: Any) -> Multipliers | None:
    """What certified training left behind; it has not seen the held-out people either."""
    found = getattr(last, "multipliers_", None)
    return found if isinstance(found, Multipliers) else None


def _refuse_outside(model: Any, x: Any, bounds: Any) -> None:
    """People outside the bounds are refused at once, not after the bound has been tuned."""
    judged = Judged.of(model, shape=shape_of(x))
    limits = bounds if bounds is not None else judged.bounds
    if limits is not None:
        for rows in _encoded(judged, x):
            check_inside(Box.of(limits, rows.shape[1]), rows)


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
