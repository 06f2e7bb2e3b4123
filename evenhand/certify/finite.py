"""Finite sets of counterfactuals: the worst case by enumeration, exact, for any model."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand.certify.certificate import Certificate
from evenhand.dual.confidence import UpperBound
from evenhand.dual.moves import choose_move
from evenhand.dual.pool import Pool
from evenhand.fair_metrics.metric import FairMetric
from evenhand.judged import Judged
from evenhand.output_distances import OutputDistance, absolute_probability, total_variation
from evenhand.variations import Variations


def certify_variations(
    model: Any,
    held_out: Variations,
    fair_metric: FairMetric | None,
    eps: float,
    tuning: Variations | None,
    confidence: float,
    output_distance: OutputDistance,
    interval: UpperBound,
    d_y_max: float | None,
) -> Certificate:
    """R(h) when x' must be one of a person's versions. On the sample it is exact: r_low = r_high.

    Without fair_metric all versions of a person are at distance 0. The confidence bound needs to know how large d_Y can
    be: 1 for probabilities, otherwise ``d_y_max``.
    """
    began = time.perf_counter()
    if output_distance in (absolute_probability, total_variation):
        d_y_max = 1.0
    if d_y_max is None:
        raise ValueError(
            "the confidence bound needs the largest possible output distance: use total_variation or "
            "absolute_probability, or give d_y_max, a bound known before the data were seen"
        )
    if not isinstance(tuning, Variations):
        half = max(1, len(held_out) // 5)
        order = np.arange(len(held_out))
        tuning = Variations(held_out.values[:half], order[:half], held_out.like)
        held_out = Variations(held_out.values[half:], order[half:] - half, held_out.like)
    judged = Judged.of(model)
    tune_y, tune_x = _distances(judged, tuning, fair_metric, output_distance)
    d_y, d_x = _distances(judged, held_out, fair_metric, output_distance)
    if float(d_y.max(initial=0)) > d_y_max:
        raise ValueError(f"a held-out output distance is {d_y.max():g}, above d_y_max = {d_y_max:g}")
    tuned, pool = Pool(), Pool()
    tuned.add(tune_y, tune_x)
    pool.add(d_y, d_x)
    lam = 0.0 if not (d_x > 0).any() and not (tune_x > 0).any() else tuned.minimise(eps).lam
    exact = pool.minimise(eps).value
    gains, alpha = pool.gains(lam), (1 - confidence) / 2
    move = choose_move(tune_y, tune_x, eps)
    upper = min(lam * eps + interval(gains, d_y_max, alpha), d_y_max)
    each = np.where(d_x <= eps, d_y, 0.0).max(1)
    return Certificate(
        r_low=exact,
        r_high=exact,
        lower=min(move.lower(*move(d_y, d_x), eps, alpha, interval), upper),
        upper=upper,
        lam=lam,
        r_lam_max=d_y_max,
        delta_everywhere=d_y_max,
        eps=eps,
        n=len(d_y),
        confidence=confidence,
        distance=f"{getattr(output_distance, '__name__', 'd_Y').replace('_', ' ')}, finite sets",
        each_low=each,
        each_high=each,
        tuning_rows=len(tune_y),
        seconds=time.perf_counter() - began,
    )


def _distances(
    judged: Judged, variations: Variations, fair_metric: FairMetric | None, output_distance: OutputDistance
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    g, m = variations.values.shape[:2]
    if g == 0:
        raise ValueError("there is nobody in the variations; the certificate needs people who have versions")
    x = judged.encode(variations.flat())
    with torch.no_grad():
        h = judged.outputs(x)
        d_y = output_distance(h.reshape(g, m, -1)[:, :1].expand(g, m, h.shape[1]), h.reshape(g, m, -1))
    if fair_metric is None:
        return d_y.numpy(), np.zeros((g, m))
    d_x = fair_metric(x.reshape(g, m, -1)[:, :1].expand(g, m, x.shape[1]).reshape(g * m, -1), x)
    return d_y.numpy(), d_x.double().reshape(g, m).numpy()
