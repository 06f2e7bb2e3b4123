"""Mini-batches: rows drawn from tensors, class by class, or what a stream gives; over several ranks, each its part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch
from evenhand.training.streams import Stream, as_batch, endless


def balanced_batches(
    y: Tensor, batch_size: int, steps: int, weight: Tensor | None = None, generator: torch.Generator | None = None
) -> Iterator[Tensor]:
    """Rows of each mini-batch, every class equally often; within a class drawn with replacement, by weight if given.

    Vectorised: one random number a row, looked up in the cumulated weights of the row's class. A remainder of
    batch_size over the classes goes to classes chosen at random, so a batch may be smaller than the number of classes.
    Worked out on the CPU, in float64, which not every device has; the rows are given where y is.
    """
    labels, device = y.cpu(), y.device
    order = torch.argsort(labels, stable=True)
    counts = torch.unique_consecutive(labels[order], return_counts=True)[1]
    k, ends = len(counts), counts.cumsum(0)
    mass = torch.ones(len(labels), dtype=torch.float64) if weight is None else weight.cpu().double()[order]
    cumulated = mass.cumsum(0)
    high = cumulated[ends - 1]
    low = torch.cat([high.new_zeros(1), high[:-1]])
    classes = torch.arange(k).repeat_interleave(batch_size // k)
    for _ in range(steps):
        extra = torch.randperm(k, generator=generator, device=_home(generator))[: batch_size % k].cpu()
        c = torch.cat([classes, extra])
        draw = uniform(len(c), generator)
        if weight is None:  # equal weights: the row is a product, not a look-up
            position = (low[c] + draw * (high[c] - low[c])).long()
        else:
            position = torch.searchsorted(cumulated, low[c] + draw * (high[c] - low[c]), right=True)
        yield order[torch.minimum(position, ends[c] - 1)].to(device)


def uniform(n: int, generator: torch.Generator | None) -> Tensor:
    """n numbers in [0, 1), float64 on the CPU, drawn where the generator lives: elsewhere in two halves of float32."""
    if _home(generator).type == "cpu":
        return torch.rand(n, generator=generator, dtype=torch.float64)
    parts = torch.rand(2, n, generator=generator, device=_home(generator)).cpu().double()
    return parts[0] + parts[1] * 2.0**-24


def _home(generator: torch.Generator | None) -> torch.device:
    return torch.device("cpu") if generator is None else generator.device


def uniform_batches(
    y: Tensor, batch_size: int, steps: int, weight: Tensor | None = None, generator: torch.Generator | None = None
) -> Iterator[Tensor]:
    """Rows of each mini-batch, drawn with replacement from all rows, by weight if given."""
    return balanced_batches(torch.zeros(len(y), device=y.device), batch_size, steps, weight, generator)


def sampled(x: Tensor, y: Tensor, drawn: Iterator[Tensor]) -> Iterator[tuple[Batch, float]]:
    """Batches of rows drawn alike on every rank, each rank taking its own part, and its share of the joint batch."""
    for rows in drawn:
        own = ranks.own_part(rows)
        yield Batch(x[own], y[own], None, own), len(own) / len(rows)


def streamed(stream: Stream, model: nn.Module, done: int) -> Iterator[tuple[Batch, float]]:
    """Batches of a stream, behind those already done; over several ranks until the first of them has no more."""
    p = next(model.parameters())
    items = islice(endless(stream), done, None)
    while True:
        item = next(items, None)
        batch = None if item is None else as_batch(item, p.device, p.dtype)
        counts = [row[0] for row in ranks.gather([0 if batch is None else len(batch.x)])]
        if batch is None or 0 in counts:
            return
        yield batch, len(batch.x) / sum(counts)
