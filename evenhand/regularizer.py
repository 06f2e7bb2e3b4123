"""R(h) and its dual variable: the term that makes a model treat similar people similarly.

    R(h) = inf over lam >= 0 of  lam*eps + E[ sup over x' of d_Y(h(x), h(x')) - lam*d_X(x, x') ]      (Theorem 2.3)

Read this file first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.domain import Box, FreeBox
from evenhand.fair_metrics.metric import FairMetric
from evenhand.fair_metrics.tokens import TokenMetric
from evenhand.model_step import ModelStep
from evenhand.output_distances import OutputDistance, mean_squared_logits
from evenhand.search.gradient import GradientSearch
from evenhand.search.graphs import not_compiled
from evenhand.search.mode import gradients_allowed
from evenhand.search.model_view import Inputs, ModelView, Output
from evenhand.search.precision import Autocast
from evenhand.search.tokens import of_tokens, tokens_in
from evenhand.search.worst_cases import Bounds, DistanceGain, Gain, Limits, Model, Search, WorstCases, box, pair

LamRule = Callable[[Tensor, Tensor, float], Tensor]  # lam, mean d_X, eps -> new lam


@dataclass(frozen=True)
class gradient_rule:
    """Algorithm 1: lam <- max(0, lam - step * (eps - mean d_X)); the paper's step is eta * rho."""

    step: float

    def __call__(self, lam: Tensor, mean_d_x: Tensor, eps: float) -> Tensor:
        return (lam - self.step * (eps - mean_d_x)).clamp(min=0)  # project onto lam >= 0


@dataclass(frozen=True)
class ratio_rule:
    """The rule of the authors' earlier code: lam + (max(d, eps) / min(d, eps)) * (d - eps), kept within [low, high]."""

    low: float = 1e-5
    high: float = 10.0

    def __call__(self, lam: Tensor, mean_d_x: Tensor, eps: float) -> Tensor:
        large, small = mean_d_x.clamp(min=eps), mean_d_x.clamp(min=1e-12, max=max(eps, 1e-12))
        return (lam + large / small * (mean_d_x - eps)).clamp(self.low, self.high)


class PricedSearch(nn.Module):
    """A search and the price lam it pays: what SenSeI and SenSR share.

    lam is a buffer: saved in ``state_dict``, moved by ``.to``, never below float32. It follows ``lam_rule`` in train
    mode and rests in eval mode, like the statistics of BatchNorm. With eps = 0 only moves that cost nothing are allowed
    and lam rests too. Under ``torch.distributed`` the mean fair distance is that of all ranks, so that every rank holds
    the same lam.

    lam steps once for each step of the model: batches whose gradients are accumulated before one step of the optimizer
    share one price, and lam follows the mean over all of them, of all models that are looked at before it. What is
    trained may also lie before the model, as in ``z = encoder(x); fair(head, z)``: the graph of z tells its parameters,
    whether the head is trained with them or not. Where there is nothing to accumulate, under ``no_grad`` or with all
    parameters frozen, every call is a step.

    vary, at, output, first_layer: how to look at the model, see ``ModelView``.
    """

    lam: Tensor

    def __init__(
        self,
        fair_metric: FairMetric,
        eps: float = 0.1,
        bounds: Bounds = None,
        search: Search | None = None,
        lam_rule: LamRule | None = None,
        lam: float = 1.0,
        generator: torch.Generator | None = None,
        *,
        vary: str | int | None = None,
        at: str | None = None,
        output: Output | None = None,
        first_layer: str | None = None,
    ) -> None:
        super().__init__()
        eps = not_negative("eps", eps, "the mean fair distance an adversary may use")
        lam = not_negative("lam", lam, "its price")
        if not isinstance(fair_metric, FairMetric):
            raise TypeError(f"fair_metric must be a FairMetric, as FairMetric(A) is; got {type(fair_metric).__name__}")
        _check_callable("search", search, "GradientSearch()")
        _check_callable("lam_rule", lam_rule, "gradient_rule(0.01)")
        if bounds is not None:
            pair(bounds)
        self.fair_metric, self.eps, self.bounds = fair_metric, eps, bounds
        self.search = of_tokens(search if search is not None else GradientSearch(), fair_metric, bounds)
        self.lam_rule = lam_rule if lam_rule is not None else gradient_rule(0.01)
        self.generator = generator
        self.vary, self.at, self.output, self.first_layer = vary, at, output, first_layer
        self.register_buffer("lam", torch.tensor(lam))
        self._step = ModelStep()

    @not_compiled
    def look(self, model: Model, x: Inputs) -> ModelView:
        """The model seen from the people x, who must lie inside the bounds."""
        view = ModelView(
            ranks.underlying(model), x, vary=self.vary, at=self.at, output=self.output, first_layer=self.first_layer
        )
        if isinstance(self.fair_metric, TokenMetric):
            view.tokens = tokens_in(x, view, self.fair_metric)
        else:
            self.fair_metric.check_width(view.x)
        if self.at is None and not view.x.requires_grad:  # what a network computed may overflow, and scalers know how
            check_finite(view.x)
        check_inside(self.bounds, view.x, max(1e-6, torch.finfo(view.dtype).eps))
        return view

    @not_compiled
    def find(self, model: Model, gain: Gain, x: Inputs, rows: Tensor | None = None) -> WorstCases:
        """Steps 1 and 2 of Algorithm 1: the worst case of each row at the present lam, then the step of lam.

        rows: which rows of the data x holds, for a search that must know whom it looks at.
        """
        return self.find_from(self.look(model, x), gain, rows)

    @not_compiled
    def find_from(self, view: ModelView, gain: Gain, rows: Tensor | None = None) -> WorstCases:
        """``find``, from a view that is there already."""
        if self.training:
            self._step.begin(view.known_as, view.parameters(), self.lam, view.before())
        price = (self._step.lam if self.training else self.lam) if self.eps > 0 else float("inf")
        n = len(view.x)
        share = ranks.share_of(n) if self.training else ranks.drawing(n)
        with ranks.joint_draws(share):
            found = self.search(view, gain, view.x, self.fair_metric, price, self.bounds, self.generator, rows)
        if self.training and self.eps > 0 and share.total:
            mean_d_x = self._step.mean(ranks.mean_of_all(found.d_x.detach()).to(self.lam), share.total)
            self.lam.copy_(self.lam_rule(self._step.lam, mean_d_x, self.eps))
            self._step.leave(self.lam, view.restless())
        return found

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        """lam moves with the module, but half precision would lose its small steps."""
        exact = self.lam
        super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        if self.lam.dtype in (torch.float16, torch.bfloat16):
            self.lam = exact.to(self.lam.device)
        return self

    def extra_repr(self) -> str:
        return f"eps={self.eps}, lam={self.lam.item():.4g}"


class Evaluated(NamedTuple):
    """The regularizer on a batch, and what it is made of."""

    value: Tensor  # lam*eps + mean(d_Y - lam*d_X)
    d_y: Tensor  # mean d_Y(h(x), h(x'))
    d_x: Tensor  # mean d_X(x, x')
    h_x: Tensor  # (n, K) in eval mode, with gradients
    found: WorstCases

    def numbers(self, lam: Tensor) -> dict[str, Tensor]:
        """What a training history keeps of it."""
        return {"regularizer": self.value.detach(), "lam": lam.clone(), "d_x": self.d_x, "d_y": self.d_y.detach()}


class FairRegularizer(PricedSearch):
    """The scalar to add to any loss: ``loss + rho * fair(model, x)``.

    >>> model = torch.nn.Linear(2, 2)
    >>> fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.1, bounds=(0.0, 1.0))
    >>> x = torch.rand(8, 2)
    >>> bool(fair(model, x) >= 0)
    True

    The value is the dual objective lam*eps + mean(d_Y - lam*d_X) at the present lam; its gradient with respect to the
    model is that of step 3 of Algorithm 1. Both outputs are taken in eval mode, so dropout is no unfairness and
    BatchNorm statistics do not move. Rows outside ``bounds`` are an error. Under DistributedDataParallel, which
    averages over the ranks, the gradient is that of the joint batch, whether the ranks hold equally many rows or not.
    """

    def __init__(
        self,
        fair_metric: FairMetric,
        eps: float = 0.1,
        bounds: Bounds = None,
        output_distance: OutputDistance = mean_squared_logits,
        search: Search | None = None,
        lam_rule: LamRule | None = None,
        lam: float = 1.0,
        generator: torch.Generator | None = None,
        *,
        vary: str | int | None = None,
        at: str | None = None,
        output: Output | None = None,
        first_layer: str | None = None,
    ) -> None:
        _check_callable("output_distance", output_distance, "mean_squared_logits")
        look: dict[str, Any] = {"vary": vary, "at": at, "output": output, "first_layer": first_layer}
        super().__init__(fair_metric, eps, bounds, search, lam_rule, lam, generator, **look)
        self.output_distance = output_distance

    def of_free(self) -> FairRegularizer:
        """The same at eps = 0: only differences that cost nothing."""
        look: dict[str, Any] = {
            "vary": self.vary,
            "at": self.at,
            "output": self.output,
            "first_layer": self.first_layer,
        }
        given = (self.fair_metric, 0.0, self.bounds, self.output_distance, self.search)
        return FairRegularizer(*given, generator=self.generator, **look)

    @not_compiled
    def forward(self, model: Model, x: Inputs, rows: Tensor | None = None) -> Tensor:
        result = self.evaluate(model, x, rows)
        if ranks.world() == 1 or not self.training:
            return result.value
        share = ranks.share_of(len(result.h_x))
        return result.value * (share.own * ranks.world() / max(share.total, 1))

    @not_compiled
    def evaluate(self, model: Model, x: Inputs, rows: Tensor | None = None, part: Tensor | None = None) -> Evaluated:
        """The dual value and what it is made of; h(x) is computed once, for the search and for the value.

        rows: (n,) which rows of the data the batch holds; ``CandidateSearch`` needs them in mini-batches. part: look
        only at these rows of a tensor x; h(x) is given of all of them.
        """
        return self.evaluate_from(self.look(model, x), rows, part)

    @not_compiled
    def evaluate_from(self, whole: ModelView, rows: Tensor | None = None, part: Tensor | None = None) -> Evaluated:
        """``evaluate``, from a view that is there already."""
        found = self.worst_from(whole, rows, part)
        h_x, h_worst = whole.with_worst([(found, part)], self.fair_metric)
        (d_y,) = self.distances(h_x, h_worst, [part], whole.tokens)
        return self.valued(h_x, d_y, found)

    @not_compiled
    def worst_from(self, whole: ModelView, rows: Tensor | None = None, part: Tensor | None = None) -> WorstCases:
        """Steps 1 and 2 of Algorithm 1, for a view or a part of its rows."""
        view = whole if part is None else whole.part(part)
        rows = rows if rows is None or part is None else rows[part]
        return self.find_from(view, DistanceGain(_outside(view.h_x()), self.output_distance, view.tokens), rows)

    def distances(
        self, h_x: Tensor, h_worst: Sequence[Tensor], rows: Sequence[Tensor | None], tokens: Tensor | None = None
    ) -> list[Tensor]:
        """d_Y(h(x), h(x')) of each person, for several looks at all of them (None) or at some; tokens: (n, T) those
        that are there."""

        def gain(part: Tensor | None) -> DistanceGain:
            if part is None:
                return DistanceGain(h_x, self.output_distance, tokens)
            here = None if tokens is None else tokens.index_select(0, part)
            return DistanceGain(h_x.index_select(0, part), self.output_distance, here)

        some = [part for part in rows if part is not None]
        with Autocast(h_x.device).off():
            if len(some) < len(rows) or len(rows) == 1:
                return [gain(part)(other) for part, other in zip(rows, h_worst)]
            joint = gain(torch.cat(some))(torch.cat(list(h_worst)))  # all in one go
            return list(torch.split(joint, [len(part) for part in some]))

    def valued(self, h_x: Tensor, d_y_each: Tensor, found: WorstCases) -> Evaluated:
        """The dual value at the worst cases found, from the d_Y of each person."""
        with Autocast(h_x.device).off():
            # A rank may have no rows.
            d_y, d_x = (each.mean() if len(each) else each.sum() for each in (d_y_each, found.d_x))
            value = d_y if self.eps == 0 else d_y + self.lam * (self.eps - d_x)
        return Evaluated(value, d_y, d_x, h_x, replace(found, free=None))  # which would keep the whole search alive


def check_inside(bounds: Bounds, x: Tensor, tolerance: float = 1e-6) -> None:
    """Rows outside the bounds are an error that counts them and names the columns: from there x' would jump inside.

    Whether a row is outside is for the domain to say, which is asked where a few passes over x leave a doubt.
    """
    limits = box(bounds, x)
    if limits is None or len(x) == 0 or not bool(_in_doubt(bounds, limits, x, tolerance)):
        return
    domain = bounds if isinstance(bounds, Box) else None
    low, high = limits[:2] if domain is None else (side.to(x.dtype).to(x.device) for side in domain)
    rounding = tolerance * torch.maximum(low.abs(), high.abs())
    beyond = (x < low - rounding) | (x > high + rounding)
    outside = beyond.any(1) if domain is None else ~domain.contains(x, tolerance) & ~x.isnan().any(1)
    if bool(outside.any()):
        columns = beyond.any(0).nonzero()[:, 0].tolist()
        where = f"{len(columns)} of {x.shape[1]} columns: {columns[:10]}{' ...' if len(columns) > 10 else ''}"
        cure = "give the range that the features take after scaling, for example bounds=(x_train.amin(0), "
        cure += "x_train.amax(0))"
        if not columns:
            where = "their binary or one-hot columns, or along the free directions"
            cure = "give the bounds of the people themselves; where mixtures of people are wanted, bounds.hull()"
        raise ValueError(
            f"{int(outside.sum())} of {len(x)} rows lie outside bounds, in {where}; people must be possible people: "
            f"{cure}"
        )


def _in_doubt(bounds: Bounds, limits: Limits, x: Tensor, tolerance: float) -> Tensor:
    """False where all rows are clearly inside, as they are in almost every batch."""
    rounding = tolerance * torch.maximum(limits.low.abs(), limits.high.abs())
    inside = ((x.amin(0) >= limits.low - rounding) & (x.amax(0) <= limits.high + rounding)).all()
    if not isinstance(bounds, Box):
        return ~inside
    if bounds.binary:
        two = bounds.two_valued.to(x.device)
        inside &= (((x == limits.low) | (x == limits.high)).all(0) | ~two).all()
    if bounds.blocks:
        inside &= (bounds.box if isinstance(bounds, FreeBox) else bounds).contains(x, tolerance).all()
    if limits.free is not None and limits.free_low is not None and limits.free_high is not None:
        z, z_rounding = x @ limits.free, rounding @ limits.free.abs()
        inside &= ((z.amin(0) >= limits.free_low - z_rounding) & (z.amax(0) <= limits.free_high + z_rounding)).all()
    return ~inside


def check_finite(x: Tensor) -> None:
    """Rows that hold NaN or infinity are an error that counts them: a loss of NaN would not say where it comes from."""
    if math.isfinite(x.sum()):  # one pass; a sum that overflows only means a closer look
        return
    bad = ~torch.isfinite(x)
    if bool(bad.any()):
        raise ValueError(
            f"{int(bad.any(1).sum())} of {len(x)} rows hold NaN or infinite values, in {int(bad.any(0).sum())} of "
            f"{x.shape[1]} columns; impute or drop them first"
        )


def number(value: Any) -> float:
    """A number as a float, NaN for what is none."""
    try:
        return float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError):
        return math.nan


def not_negative(name: str, value: Any, what: str) -> float:
    if not 0 <= number(value) < math.inf:
        raise ValueError(f"{name} must be zero or positive, got {value!r}; it is a number, {what}")
    return number(value)


def _check_callable(name: str, value: Any, example: str) -> None:
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function, such as {example}, got {value!r}")


def _outside(h_x: Tensor) -> Tensor:
    """h(x) as a constant that the search may use also under inference mode."""
    with gradients_allowed():
        return h_x.detach().clone() if h_x.is_inference() else h_x.detach()
