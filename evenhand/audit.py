"""audit(): a lower bound on R(h), with the worst-treated people. It can refute fairness; it never claims it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.bounds.trees import suggestions
from evenhand.domain import Box, FreeBox
from evenhand.dual.confidence import UpperBound, betting_upper, check_statement
from evenhand.dual.moves import choose_move
from evenhand.dual.order import Trend, seed_of, shuffled
from evenhand.dual.pool import Pool
from evenhand.dual.running import BlockMeans, StreamedPool
from evenhand.fair_metrics.metric import FairMetric, free_share
from evenhand.frames import plain_table
from evenhand.headline import STRANGERS_PART, Bracketed, Headline, percent, statement_table
from evenhand.judged import Judged, columns_of
from evenhand.output_distances import Described, OutputDistance, mean_squared_logits, squared_error
from evenhand.regularizer import number
from evenhand.search.attack import EFFORT
from evenhand.search.candidates import CandidateSearch
from evenhand.search.geometry import Geometry
from evenhand.search.thorough import Attack, candidates, leaner, plan
from evenhand.search.within import within
from evenhand.treated_worst import Worst
from evenhand.variations import Variations

MANY = 4096  # people: of more, the least effort that finds as much on the tuning rows
OFF, MOST_AGAIN = 1.25, 3  # a lam that is off by this factor is worth another search; so often at most
TUNING_ROWS = 256  # so many rows at random choose where to search and which move the confidence bound is about

_Searched = tuple[Tensor, NDArray[np.float64], NDArray[np.float64]]  # people (n, d), d_Y and d_X found for them (n, m)


@dataclass(frozen=True, repr=False)
class Audit:
    """R(h) is at least ``r_low`` on the sample and, with the stated confidence, at least ``lower`` in general.

    ``relative``, ``decisions`` and ``percentile`` say the same on scales that squeezing the scores does not change, see
    ``evenhand.headline``; each of their ``lower`` holds with the stated confidence on its own.
    """

    r_low: float
    lower: float
    lam: float  # where the dual of the found candidates has its minimum
    eps: float
    n: int
    confidence: float
    distance: str  # which d_Y
    relative: Bracketed | None  # r_low over the mean d_Y of two strangers; None: they are treated alike, or too few
    decisions: Bracketed | None  # share of people whose decision somebody similar changes; None: nothing is decided
    percentile: Bracketed | None  # percentiles of the score by which somebody similar differs, on average
    strangers: float  # mean d_Y of two strangers
    yardstick: float  # eps over the mean d_X of two strangers: the relative of a model that is proportional to d_X
    free_share: float  # how much of the difference between people the metric declares free
    tau: float
    share: float  # of individuals whose output moves by more than tau at lam
    d_y: NDArray[np.float64] = field(repr=False)  # (n,) each person's worst case at lam; (0,) with per_person=False
    d_x: NDArray[np.float64] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)  # the worst-treated within the budget, worst first
    _worst: dict[str, Any] = field(repr=False, default_factory=dict)

    def __str__(self) -> str:
        parts = [f"R(h) >= {self.r_low:.3g} at eps={self.eps:g} ({self.distance}; n={self.n:,})"]
        if self.relative is not None:
            parts.append(
                f"similar people can be treated as differently as {percent(self.relative.low)} of how strangers are"
            )
        elif np.isnan(self.strangers):
            parts.append("too few people to say how differently strangers are treated")
        else:
            parts.append("strangers are treated alike, so there is nothing to compare with")
        if self.decisions is not None and self.decisions.low > 0:
            parts.append(f"somebody similar changes the decision of at least {percent(self.decisions.low)} of people")
        elif self.decisions is not None:
            parts.append("no decision was found that somebody similar changes")
        return "; ".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return statement_table("Audit", str(self), self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("R(h), found on the sample", f"at least {self.r_low:.3g}")]
        rows += [(f"R(h), with {self.confidence:.0%} confidence", f"at least {self.lower:.3g}")]
        if self.relative is not None:
            rows += [("relative to strangers", f"at least {percent(self.relative.low)}")]
            rows += [("a model proportional to d_X would have", percent(self.yardstick))]
        if self.decisions is not None:
            rows += [("decisions somebody similar changes", f"at least {percent(self.decisions.low)}")]
        if self.percentile is not None:
            rows += [("percentiles of the score, on average", f"at least {self.percentile.low:.2g}")]
        return [*rows, ("of the difference between people, declared free", percent(self.free_share))]

    def pairs(self, k: int = 10) -> pd.DataFrame:
        """The k people whose outcome differs most from that of somebody similar (d_X <= eps), side by side with them,
        one a line, in the user's own units; whole numbers where the column holds whole numbers.

        Only columns that changed for somebody are shown; ``changed`` says what changed for whom.
        """
        k = min(k, len(self.rows))
        original, worst = self._worst["original"].iloc[:k], self._worst["worst"].iloc[:k]
        frame = pd.DataFrame(
            {
                "d_X": self._worst["d_x"][:k],
                "d_Y": self._worst["d_y"][:k],
                "prediction": self._worst["prediction"][:k],
                "prediction_worst": self._worst["prediction_worst"][:k],
            },
            index=pd.Index(self._worst["labels"][:k], name="row"),
        )
        differs = {column: _differs(original[column], worst[column]) for column in original.columns}
        frame["changed"] = [
            "; ".join(
                f"{column}: {_show(original[column].iloc[i])} -> {_show(worst[column].iloc[i])}"
                for column in original.columns
                if differs[column][i]
            )
            for i in range(k)
        ]
        shown = {}
        for column in original.columns:
            if differs[column].any():
                shown[column] = original[column].to_numpy()
                shown[f"{column} (worst)"] = worst[column].to_numpy()
        return pd.concat([frame, pd.DataFrame(shown, index=frame.index)], axis=1)  # at once: there may be hundreds


def audit(
    model: Any,
    x: Any,
    fair_metric: FairMetric | None = None,
    eps: float = 0.1,
    bounds: Any = None,
    *,
    output_distance: OutputDistance | None = None,
    confidence: float = 0.95,
    threshold: float | None = None,
    tau: float = 0.5,
    interval: UpperBound = betting_upper,
    search: CandidateSearch | None = None,
    effort: float = EFFORT,
    keep: int = 100,
    chunk: int = 1024,
    per_person: bool = True,
    progress: bool = False,
    device: str | torch.device = "cpu",
) -> Audit:
    """Search the worst case of everybody and bound R(h) from below.

    model: an estimator, a Pipeline that ends in one, an nn.Module or any function of x (n, d). With gradients where the
    model has them, by candidates otherwise. x: a frame, an array, or an iterable of such parts for data that do not fit
    in memory; images or sequences, (n, C, H, W) or (n, T, K), for a model that takes them, with metric and bounds of
    flattened ones. bounds: (low, high) or a Box, in the units that the model sees; estimators of ours bring their own,
    and their fair_metric. A few rows drawn at random (of a stream: in its first part) choose where to search, so they
    take no part in the confidence bound ``lower``; the order of a table does not matter, that of a stream must be
    random.
    search: ``CandidateSearch(variations)`` tries all versions of each person and nothing else, so that r_low is exact,
    for any model; bounds are not needed then, nor is a metric if versions are the same individual. effort: how hard to
    look otherwise, more starts and more steps; a hundred times as much finds a few percent more, and of many thousand
    people less is taken where it finds 99 % as much on the rows drawn.
    output_distance: by default the mean squared logits, the total variation for a model that only gives probabilities,
    the squared error for a regressor. threshold: the score (second logit minus the first, or the only output) above
    which the decision is yes; 0 for classifiers. per_person=False keeps nothing for each person, so that memory does
    not grow with their number; r_low may then be lower by about one part in ten thousand. device: where a module runs,
    in float64.
    """
    eps, confidence = statement_of(eps, confidence)
    if isinstance(x, Variations):
        raise TypeError(
            "x holds versions of people, whose worst case is exact: certify(model, versions, eps=0.0) bounds it; an "
            "audit takes the people themselves, and with search=CandidateSearch(versions) tries their versions only"
        )
    x = plain_table(x, "x")
    parts, tuners, whole = parts_of(x, chunk), _tuners(x), hasattr(x, "shape") or isinstance(x, list)
    first = next(parts, None)
    if first is None or len(first) == 0:
        raise ValueError("x is empty; an audit needs at least one individual")
    judged = Judged.of(model, device, shape_of(first), columns_of(first))
    head = judged.encode(first)
    if not len(tuners):
        tuners = shuffled(len(head), seed_of(head))[: min(TUNING_ROWS, max(1, len(head) // 4))]
    tuning = judged.encode(take(x, tuners)) if whole else head[torch.from_numpy(tuners)]
    judged = judged.looked_at(tuning, output_distance)
    distance = judged.distance(output_distance)
    judged = judged.as_told(tuning, distance)
    if search is None:
        attack = replace(_attack(judged, head, fair_metric, bounds, distance), effort=effort)
    else:
        attack = _versions(judged, head, fair_metric, distance, search)
    judged.check_function(tuning)
    with torch.no_grad():
        h_tuning = attack.outputs(tuning)
    decides = judged.decides(tuning, h_tuning, threshold)
    attack = attack.tuned(tuning)
    lams = plan(attack, tuning, eps, torch.from_numpy(tuners))
    ahead = _ahead(parts, _count(first))
    many = _count(first) + sum(_count(part) for part in ahead) > MANY
    if many:
        attack = leaner(attack, tuning, eps, lams)
    parts = itertools.chain(ahead, parts)
    move = choose_move(*_distances(attack, tuning, eps, lams, torch.from_numpy(tuners)), eps)
    pool = Pool() if per_person else StreamedPool(lams[-1], tau)
    few: list[_Searched] = []
    worst, moved_y, moved_x, seen = Worst(keep, judged, attack, eps), BlockMeans(), BlockMeans(), 0
    headline = Headline(distance, h_tuning, judged.threshold(h_tuning.shape[1], threshold), decides)
    trend = None if whole else Trend()
    while first is not None:
        encoded = head if seen == 0 else judged.encode(first)
        if search is None:
            check_inside(attack.geometry.box, encoded)
        _refuse_sorted(trend, encoded)
        for start in range(0, len(encoded), chunk):
            rows = encoded[start : start + chunk]
            numbers = torch.arange(seen + start, seen + start + len(rows))
            found = candidates(attack, rows, eps, lams, numbers)
            similar = within(attack, rows, found, eps)
            d_y, d_x = similar.joined(*attack.distances(rows, found))
            pool.add(d_y, d_x)
            if not many and per_person and search is None and eps > 0:
                few.append((rows, d_y, d_x))
            worst.add(seen + start, first, start, rows, similar)
            fresh = ~np.isin(numbers.numpy(), tuners)
            chosen_y, chosen_x = move(d_y, d_x)
            moved_y.add(chosen_y[fresh])
            moved_x.add(chosen_x[fresh])
            headline.add(rows[torch.from_numpy(fresh)], similar.h[torch.from_numpy(fresh)])
        seen += len(encoded)
        if progress:
            print(f"audit: {seen:,} individuals, R(h) >= {pool.minimise(eps).value:.4g}", file=sys.stderr)
        first = next(parts, None)
    pool = _at_their_lam(attack, few, eps, lams[-1], pool) if few and isinstance(pool, Pool) else pool
    value = pool.minimise(eps)
    at_y, at_x = pool.choice(value.lam) if isinstance(pool, Pool) else (np.zeros(0), np.zeros(0))
    share = float((at_y > tau).mean()) if isinstance(pool, Pool) else pool.share_above(value.lam)
    alpha = 1 - confidence

    def lower(alpha: float) -> float:
        return move.lower(moved_y.values, moved_x.values, eps, alpha, interval) if moved_y.n else 0.0

    known, pairs = headline.strangers.known, worst.frames()
    mean_d_x = headline.strangers.mean_d_x(attack.d_x) if known else 0.0
    return Audit(
        r_low=value.value,
        lower=lower(alpha),
        lam=value.lam,
        eps=eps,
        n=seen,
        confidence=confidence,
        distance=distance.name,
        relative=headline.relative(value.value, np.inf, lower((1 - STRANGERS_PART) * alpha), np.inf, alpha, interval),
        decisions=headline.decisions(alpha, None),
        percentile=headline.percentile(alpha, None, interval),
        strangers=headline.strangers.mean() if known else float("nan"),
        yardstick=eps / mean_d_x if mean_d_x > 0 else float("nan"),
        free_share=free_share(judged.metric(fair_metric), head) if search is None else 0.0,
        tau=tau,
        share=share,
        d_y=at_y,
        d_x=at_x,
        rows=pairs["numbers"],
        _worst=pairs,
    )


def statement_of(eps: Any, confidence: Any) -> tuple[float, float]:
    """eps and the confidence as the numbers of a statement that makes sense."""
    for name, value in (("eps", eps), ("confidence", confidence)):
        if np.isnan(number(value)):
            raise ValueError(f"{name} must be a number, such as 0.1; got {value!r} of type {type(value).__name__}")
    check_statement(number(eps), number(confidence))
    return number(eps), number(confidence)


def _attack(judged: Judged, head: Tensor, fair_metric: FairMetric | None, bounds: Any, distance: Described) -> Attack:
    metric = judged.metric(fair_metric)
    metric.check_width(head)
    box = Box.of(bounds if bounds is not None else judged.bounds, head.shape[1])
    geometry = Geometry(metric, box)
    suggest, summits = None, False
    if judged.ensemble is not None:
        outputs_of = judged.ensemble.outputs
        scale = 0.25 if outputs_of == 1 and judged.is_classifier else 1 / outputs_of  # logits (-f/2, f/2)
        suggest = suggestions(judged.ensemble, geometry, scale)
        summits = suggest is not None and distance.name in (mean_squared_logits.name, squared_error.name)
    outputs = judged.outputs_for(distance)
    marks = None if judged.jumps is None else tuple(torch.from_numpy(jumps) for jumps in judged.jumps)
    return Attack(
        outputs,
        geometry,
        distance,
        judged.has_slopes(head),
        thresholds=marks,
        by_structure=suggest,
        summits=summits,
    )


def _versions(
    judged: Judged,
    head: Tensor,
    fair_metric: FairMetric | None,
    distance: Described,
    search: CandidateSearch,
) -> Attack:
    """An attack that tries everybody's versions; the metric prices them unless they are the same individual."""
    metric = fair_metric if fair_metric is not None else judged.fair_metric
    if search.variations.like is not None:  # a frame, in the user's own columns and units
        search = CandidateSearch(search.variations.map(judged.encode), same_individual=search.same_individual)
    if metric is None and not search.same_individual:
        raise ValueError("fair_metric is needed to price the versions: the model does not carry one")
    values = torch.as_tensor(search.variations.values, dtype=torch.float64).reshape(-1, head.shape[1])
    everyone = torch.cat([values, head])
    box = Box(everyone.amin(0), everyone.amax(0))
    metric = metric if metric is not None else FairMetric.euclidean(head.shape[1])
    metric.check_width(head)
    outputs = judged.outputs_for(distance)
    return Attack(outputs, Geometry(metric, box), distance, judged.has_slopes(head), versions=search)


def _distances(
    attack: Attack, x: Tensor, eps: float, lams: list[float], rows: Tensor
) -> tuple[NDArray[Any], NDArray[Any]]:
    found = candidates(attack, x, eps, lams, rows)
    return within(attack, x, found, eps).joined(*attack.distances(x, found))


def _at_their_lam(attack: Attack, few: list[_Searched], eps: float, searched_at: float, pool: Pool) -> Pool:
    """The pool after another search where these people's own lam turned out to be far from the one that was planned on
    a few of them. It is about the sample: the confidence bound does not see it."""
    for _ in range(MOST_AGAIN):
        lam = pool.minimise(eps).lam
        if lam <= 0 or searched_at / OFF <= lam <= OFF * searched_at:
            break
        searched_at, lams, pool = lam, [0.7 * lam, 1.4 * lam, lam], Pool()
        for i, (rows, d_y, d_x) in enumerate(few):
            more_y, more_x = (part.numpy() for part in attack.distances(rows, candidates(attack, rows, eps, lams)))
            few[i] = rows, np.concatenate([d_y, more_y], 1), np.concatenate([d_x, more_x], 1)
            pool.add(*few[i][1:])
    return pool


def _tuners(x: Any) -> NDArray[np.intp]:
    """Which rows of a table choose where to search: a random few. Of a stream: not known yet."""
    if not (hasattr(x, "shape") or isinstance(x, list)):
        return np.zeros(0, dtype=np.intp)
    n = _count(x)
    return shuffled(n, seed_of(x))[: min(TUNING_ROWS, max(1, n // 4))]


def _ahead(parts: Iterator[Any], seen: int) -> list[Any]:
    """The next parts, until it is clear whether there are many people: everybody is searched for equally hard."""
    ahead = []
    while seen <= MANY and (part := next(parts, None)) is not None:
        ahead.append(part)
        seen += _count(part)
    return ahead


def _count(x: Any) -> int:
    return len(x) if isinstance(x, list) else int(x.shape[0])


def _refuse_sorted(trend: Trend | None, x: Tensor) -> None:
    if trend is None:
        return
    trend.add(x.numpy())
    column = trend.column()
    if column is not None:
        raise ValueError(
            f"the parts of x come in a visible order: column {column} follows the row number over {trend.n:,} rows. "
            "The first part chooses where to search, so its people must be like the others: shuffle the rows, or give "
            "them as one table"
        )


def shape_of(people: Any) -> tuple[int, ...]:
    """The shape of each of them, (d,) of rows."""
    shape = np.shape(people) if isinstance(people, list) else getattr(people, "shape", ())
    return tuple(int(size) for size in shape[1:])


def take(x: Any, rows: NDArray[np.intp]) -> Any:
    """These rows of a frame, an array, a tensor or a list."""
    if hasattr(x, "iloc"):
        return x.iloc[rows]
    return [x[i] for i in rows] if isinstance(x, list) else x[rows]


def check_inside(box: Box, x: Tensor) -> None:
    outside = ~box.contains(x)
    if outside.any():
        slack = 1e-6 * box.low.abs().maximum(box.high.abs())
        off = ((x < box.low - slack) | (x > box.high + slack)).any(0).nonzero()[:, 0].tolist()
        free = " or along the free directions" if isinstance(box, FreeBox) else ""
        where = f"in column(s) {off[:10]}" if off else f"in their binary or one-hot columns{free}"
        units = "; bounds and fair_metric are in the units that the last step of a Pipeline is given"
        raise ValueError(
            f"{int(outside.sum())} of {len(x)} rows lie outside the bounds, {where}; widen the bounds, or leave these "
            "individuals out, which bounds.contains(x) finds, and say so"
            f"{units if 2 * int(outside.sum()) > len(x) else ''}"
        )


def parts_of(x: Any, chunk: int) -> Iterator[Any]:
    """Parts of a frame or array, or the parts that an iterable gives."""
    if hasattr(x, "shape") or isinstance(x, list):
        whole = np.asarray(x) if isinstance(x, list) else x
        for start in range(0, whole.shape[0], chunk):
            yield whole.iloc[start : start + chunk] if hasattr(whole, "iloc") else whole[start : start + chunk]
    else:
        yield from (plain_table(part, "a part of x") for part in x)


def _differs(original: pd.Series, worst: pd.Series) -> NDArray[np.bool_]:
    if pd.api.types.is_numeric_dtype(original) and pd.api.types.is_numeric_dtype(worst):
        a, b = original.to_numpy(dtype=np.float64), worst.to_numpy(dtype=np.float64)
        return np.asarray(np.abs(a - b) > 1e-6 * max(np.abs(a).max(initial=0), np.abs(b).max(initial=0)))
    return np.asarray(original.astype(str).to_numpy() != worst.astype(str).to_numpy())


def _show(value: Any) -> str:
    if not isinstance(value, float | np.floating):
        return str(value)
    number = float(value)
    return f"{number:.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"
