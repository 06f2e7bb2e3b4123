"""Finite sets of counterfactuals: the worst case by enumeration, exact, for any model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.certify.certificate import Certificate, Worst
from evenhand.certify.people import distinct
from evenhand.counterfactuals.changes import changed_words
from evenhand.dual.confidence import UpperBound
from evenhand.dual.moves import choose_move
from evenhand.dual.order import in_own_order, seed_of, shuffled
from evenhand.dual.pool import Pool
from evenhand.fair_metrics.metric import FairMetric, free_share
from evenhand.headline import STRANGERS_PART, Headline
from evenhand.judged import Judged
from evenhand.output_distances import Described, OutputDistance, total_variation
from evenhand.search.geometry import exact_sigma
from evenhand.variations import Variations


def certify_variations(
    judged: Judged,
    held_out: Variations,
    fair_metric: FairMetric | None,
    eps: float,
    tuning: Variations | None,
    confidence: float,
    output_distance: OutputDistance | None,
    interval: UpperBound,
    d_y_max: float | None,
    threshold: float | None,
    distinct_people: bool = False,
) -> Certificate:
    """R(h) when x' must be one of a person's versions. On the sample it is exact: r_low = r_high.

    Without fair_metric all versions of a person are at distance 0. The confidence bound needs to know how large d_Y can
    be: 1 for probabilities, otherwise ``d_y_max``. Of a classifier the default distance is therefore the total
    variation of its probabilities. Copies of a text are one draw, see ``people.distinct``, unless distinct_people
    vouches that they are of different people.
    """
    began = time.perf_counter()
    few = judged.encode(held_out.flat())[:256]
    judged = judged.looked_at(few, output_distance)
    by_probabilities = output_distance is None and d_y_max is None and judged.is_classifier
    distance = judged.distance(total_variation if by_probabilities else output_distance)
    judged = judged.as_told(few, distance)
    d_y_max = min(distance.largest, np.inf if d_y_max is None else d_y_max)
    if not np.isfinite(d_y_max):
        raise ValueError(
            "the confidence bound needs the largest possible output distance: use total_variation or "
            "absolute_probability, or give d_y_max, a bound known before the data were seen"
        )
    rows = np.arange(len(held_out), dtype=np.intp) if distinct_people else distinct(held_out)
    copies, held_out = len(held_out) - len(rows), _people(held_out, rows)
    if not isinstance(tuning, Variations):
        if len(held_out) < 2:
            again = f", the {copies:,} others being copies of them" if copies else ""
            raise ValueError(
                f"a certificate needs people to tune on beside those held out; got {len(held_out)} in all{again}"
            )
        order, count = shuffled(len(held_out), seed_of(held_out.values)), max(1, len(held_out) // 5)
        chosen = np.sort(order[count:])
        tuning, held_out, rows = _people(held_out, order[:count]), _people(held_out, chosen), rows[chosen]
    h_tuning, tune_y, tune_x, tune_least, x_tuning = _distances(judged, tuning, fair_metric, distance)
    h, d_y, d_x, d_x_least, x = _distances(judged, held_out, fair_metric, distance)
    if float(d_y.max(initial=0)) > d_y_max * (1 + 1e-12):
        raise ValueError(f"a held-out output distance is {d_y.max():g}, above d_y_max = {d_y_max:g}")
    tuned, pool, widest = Pool(), Pool(), Pool()
    tuned.add(tune_y, tune_least)
    pool.add(d_y, d_x)
    widest.add(d_y, d_x_least)
    lam, each = tuned.minimise(eps).lam, (1 - confidence) / 2
    move = choose_move(tune_y, tune_x, eps)
    moved_y, moved_x = (in_own_order(values) for values in move(d_y, d_x))
    gains = in_own_order(np.minimum(widest.gains(lam), d_y_max))

    def upper(alpha: float) -> float:
        return float(min(lam * eps + interval(gains, d_y_max, alpha), d_y_max))

    def lower(alpha: float) -> float:
        return min(move.lower(moved_y, moved_x, eps, alpha, interval), upper(alpha))

    decides = judged.decides(x_tuning, h_tuning[:, 0], threshold)
    headline = Headline(distance, h_tuning[:, 0], judged.threshold(h.shape[2], threshold), decides)
    headline.add(x, h, torch.from_numpy(d_x <= eps), torch.from_numpy(d_x_least <= eps))
    r_low, r_high, for_r = pool.minimise(eps).value, widest.minimise(eps).value, (1 - STRANGERS_PART) * each
    known = headline.strangers.known
    mean_d_x = headline.strangers.mean_d_x(_price(fair_metric)) if known and fair_metric is not None else 0.0
    return Certificate(
        r_low=r_low,
        r_high=r_high,
        lower=lower(each),
        upper=upper(each),
        relative=headline.relative(r_low, r_high, lower(for_r), upper(for_r), each, interval, d_y_max),
        decisions=headline.decisions(each, each),
        percentile=headline.percentile(each, each, interval),
        strangers=headline.strangers.mean() if known else float("nan"),
        yardstick=eps / mean_d_x if mean_d_x > 0 else float("nan"),
        free_share=0.0 if fair_metric is None else free_share(fair_metric, x),
        lam=lam,
        r_lam_max=d_y_max,
        delta_everywhere=d_y_max,
        eps=eps,
        n=len(d_y),
        confidence=confidence,
        distance=distance.name,
        over=f"exact over these versions{_counted(held_out)} and over nothing else",
        copies=copies,
        worst=_worst(held_out, np.where(d_x <= eps, d_y, 0.0)),
        each_low=np.where(d_x <= eps, d_y, 0.0).max(1),
        each_high=np.where(d_x_least <= eps, d_y, 0.0).max(1),
        rows=rows,
        tuning_rows=len(tune_y),
        seconds=time.perf_counter() - began,
    )


def _people(variations: Variations, chosen: NDArray[np.intp]) -> Variations:
    return Variations(variations.values[chosen], variations.rows[chosen], variations.like)


def other_versions(texts: Variations) -> tuple[int, int]:
    """How many other versions a text has, at least and at most: one that is repeated to fill the array is one.

    >>> other_versions(Variations([["a", "b", "b"], ["c", "d", "e"]], rows=[0, 1]))
    (1, 2)
    """
    counts = [len({*row[1:]} - {row[0]}) for row in texts.values.tolist()]
    return min(counts, default=0), max(counts, default=0)


def _counted(held_out: Variations) -> str:
    if held_out.values.ndim != 2:
        return ""
    fewest, most = other_versions(held_out)
    return f" ({fewest} others of each)" if fewest == most else f" ({fewest} to {most} others of each)"


def _worst(held_out: Variations, moved: NDArray[np.float64]) -> Worst | None:
    """Whom their worst version moves most, and which it is; of texts with the words that are new in it."""
    i, version = np.unravel_index(int(moved.argmax()), moved.shape)
    if not moved[i, version] > 0:
        return None
    said = held_out.values[i]
    pairs = [(said[0], said[version])] if held_out.values.ndim == 2 else zip(np.ravel(said[0]), np.ravel(said[version]))
    words = [changed_words(old, new) for old, new in pairs if isinstance(old, str) and isinstance(new, str)]
    return Worst(int(held_out.rows[i]), int(version), float(moved[i, version]), " ".join(filter(None, words)))


def _distances(
    judged: Judged, variations: Variations, fair_metric: FairMetric | None, distance: Described
) -> tuple[Tensor, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], Tensor]:
    """Outputs (g, m, K), d_Y, d_X, the least that d_X can be, given that the metric's numbers and the versions' are
    rounded, (g, m) each, and the originals (g, d)."""
    g, m = variations.values.shape[:2]
    if g == 0:
        raise ValueError("there is nobody in the variations; the certificate needs people who have versions")
    x = judged.encode(variations.flat())
    judged.check_function(x[:256])
    with torch.no_grad():
        h = judged.outputs_for(distance)(x).reshape(g, m, -1)
        d_y = distance(h[:, :1].expand_as(h), h)
    versions = x.reshape(g, m, -1)
    if fair_metric is None:
        return h, d_y.numpy(), np.zeros((g, m)), np.zeros((g, m)), versions[:, 0]
    fair_metric.check_width(x)
    sigma, _ = exact_sigma(fair_metric)
    length = _price(fair_metric)(versions - versions[:, :1]).sqrt()
    stretch = float(torch.linalg.matrix_norm(sigma, 2)) ** 0.5
    unit = max(_rounding(fair_metric.directions.dtype), _rounding(variations.values.dtype))
    slack = 4 * unit * stretch * (versions.norm(dim=-1) + versions[:, :1].norm(dim=-1))
    free = length <= slack  # along a sensitive direction, to the precision that the direction is written in
    d_x = torch.where(free, torch.zeros_like(length), length.square())
    least = (length - slack).clamp(min=0).square()
    return h, d_y.numpy(), d_x.numpy(), least.numpy(), versions[:, 0]


def _price(fair_metric: FairMetric) -> Callable[[Tensor], Tensor]:
    """d_X of moves (..., d) in float64."""
    if fair_metric.factor is not None:
        factor = fair_metric.factor.detach().to("cpu", torch.float64)
        return lambda delta: (delta @ factor.T).square().sum(-1)
    directions = exact_sigma(fair_metric)[1]
    return lambda delta: (delta - (delta @ directions) @ directions.T).square().sum(-1)


def _rounding(dtype: torch.dtype | np.dtype[Any]) -> float:
    """Unit roundoff of numbers as they were given; float64 for anything that is not a float of fewer digits."""
    single = dtype == torch.float32 or dtype == np.float32
    return 2.0**-24 if single else 2.0**-11 if dtype in (torch.float16, np.float16) else 2.0**-53
