"""SenSeI: the mean loss plus rho times the fair regularizer."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch, Loss, Objective, mean_loss
from evenhand.regularizer import Evaluated, FairRegularizer, not_negative, number
from evenhand.search.graphs import not_compiled
from evenhand.search.mode import mode_free


class _Look(NamedTuple):
    """R(h) as it is estimated on a batch: by whom, on which rows (None: all), and what it weighs in the objective."""

    fair: FairRegularizer
    part: Tensor | None
    weight: float


class SenSeI(Objective):
    """E[loss] + rho * R(h), the paper's training problem.

    every: with every=4, R(h) is estimated on each fourth row of a batch, in the order of the targets, so that every
    class counts as it does in the batch. The search is most of the cost of a step, and a part of the rows estimates
    the same mean; every=1 looks at all rows, as the paper does. In eval mode all rows are looked at.

    free: the share of rho that is laid on R(h) at eps = 0, which is about differences that cost nothing; 0 is the
    paper's. R(h) at eps > 0 asks two things at once, that free differences do not matter and that nothing else matters
    much; with free=0.98 the first is asked for strictly and the second mildly. It is estimated on half as many rows,
    at the worst cases that the search of R(h) meets before it goes where moves cost something; where bounds cut off a
    move, by a second search.
    With eps = 0 both are one, and where no difference is free all of rho is on R(h).
    """

    def __init__(
        self, regularizer: FairRegularizer, rho: float, loss: Loss | None = None, every: int = 4, free: float = 0.0
    ) -> None:
        super().__init__(loss)
        given: Any = every
        if not isinstance(given, Integral) or int(given) < 1:
            raise ValueError(f"every must be 1 (all rows of a batch), 2 (each second) or more; got {every!r}")
        if not 0 <= number(free) <= 1:
            raise ValueError(
                f"free must be a number in [0, 1], the share of rho on what costs nothing, got {free!r}; give 0 for "
                "the paper's objective"
            )
        self.regularizer, self.every = regularizer, int(every)
        self.rho = not_negative("rho", rho, "which weighs fairness against the loss")
        one = regularizer.eps == 0 or regularizer.fair_metric.directions.shape[1] == 0
        self.free = 0.0 if one else number(free)
        self.of_free = regularizer.of_free() if self.free > 0 else None

    @not_compiled
    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        if self.rho == 0:
            loss = self.plain(model, batch)
            self.last = {"loss": loss.detach()}
            return loss
        every = self.every if self.training else 1
        weighed = [(self.regularizer, self.rho * (1 - self.free), every)]
        if self.of_free is not None:
            weighed.append((self.of_free, self.rho * self.free, 2 * every if self.training else 1))
        parts = _parts(batch.y, [every for _, _, every in weighed])
        looks = [_Look(fair, part, rho * share) for (fair, rho, _), (part, share) in zip(weighed, parts)]
        # One forward pass serves loss and regularizer unless train mode changes the output (dropout, BatchNorm).
        once = mode_free(model) and (looks[0].part is None or self.regularizer.at is None)
        fair = self._at_once(model, batch, looks) if once else self._beside(model, batch, looks)
        h = fair[0].h_x if once else model(batch.x.clone())  # which the model may overwrite
        loss = mean_loss(self.loss(h, batch.y), batch.weight)
        self.last = {"loss": loss.detach(), **fair[0].numbers(self.regularizer.lam)}
        if len(fair) > 1:
            self.last["free"] = fair[1].value.detach()
        value = loss
        for look, found in zip(looks, fair):
            value = torch.add(value, found.value, alpha=look.weight)
        return value

    def _beside(self, model: nn.Module, batch: Batch, looks: list[_Look]) -> list[Evaluated]:
        """All looks at the batch, from a view of those people alone who are looked at."""
        if self.regularizer.at is not None:
            return [self._at_once(model, _of(batch, look.part), [look._replace(part=None)])[0] for look in looks]
        part = looks[0].part
        within = [look._replace(part=None if look.part is part else _places(look.part, part)) for look in looks]
        return self._at_once(model, _of(batch, part), within)

    def _at_once(self, model: nn.Module, batch: Batch, looks: list[_Look]) -> list[Evaluated]:
        """All looks at the batch, from one view of the model; the first sees everybody whom the others see."""
        first, parts = looks[0], [look.part for look in looks]
        view = self.regularizer.look(model, batch.x)
        found = [first.fair.worst_from(view, batch.rows, first.part)]
        for look in looks[1:]:
            met = found[0].free  # at eps > 0 a search may begin with moves that cost nothing
            everywhere = ranks.all_of_us(met is not None) if self.training else met is not None
            if met is not None and everywhere:
                found.append(met(_places(look.part, first.part)))
            else:
                found.append(look.fair.worst_from(view, batch.rows, look.part))
        h_x, h_worst = view.with_worst(list(zip(found, parts)), self.regularizer.fair_metric)
        d_y = self.regularizer.distances(h_x, h_worst, parts, view.tokens)
        return [look.fair.valued(h_x, of_each, each) for look, of_each, each in zip(looks, d_y, found)]


def _parts(y: Tensor, every: Sequence[int]) -> list[tuple[Tensor | None, float]]:
    """For each of these numbers the rows that are looked at, None for all, and how much the mean over them counts.

    Batches may come in any order, classes in turn for example: each class gives its share. Over several ranks the
    part is that of the joint batch, of which a rank may have more or less than of the rows.
    """
    if max(every) == 1:
        return [(None, 1.0) for _ in every]
    joint, own = ranks.whole(y.flatten(1)[:, 0] if y.ndim > 1 else y)
    order = torch.argsort(joint, stable=True)

    def of(every: int) -> tuple[Tensor | None, float]:
        if every == 1:
            return None, 1.0
        part = order[::every].sort().values
        if ranks.world() == 1:
            return part, 1.0
        ours = (part[(part >= own.start) & (part < own.stop)] - own.start).to(y.device)
        return ours, len(ours) / len(part) * len(joint) / max(len(y), 1)

    return [of(each) for each in every]


def _of(batch: Batch, part: Tensor | None) -> Batch:
    """Some of the people of a batch."""
    return batch if part is None else Batch(*(None if given is None else given[part] for given in batch))  # type: ignore[arg-type]


def _places(rows: Tensor | None, part: Tensor | None) -> Tensor | None:
    """Where rows stand in a part that holds them, both in order; None is everybody."""
    return rows if rows is None or part is None else torch.searchsorted(part, rows)
