"""train(): the only training loop."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from evenhand.objectives.batch import Batch, Objective

Progress = Callable[[int, int, dict[str, float]], None]  # step, steps, numbers of the last evaluation


class TrainingDiverged(ArithmeticError):
    """The objective became NaN or infinite; the model holds the last good weights."""


@dataclass
class History:
    """What happened during training: one record per evaluation, and how it ended."""

    records: list[dict[str, float]] = field(default_factory=list)
    steps: int = 0
    best_step: int | None = None
    stopped_early: bool = False


def train(
    model: nn.Module,
    objective: Objective,
    x: Tensor,
    y: Tensor,
    *,
    steps: int = 3000,
    batch_size: int = 1000,
    lr: float = 1e-3,
    balanced: bool = True,
    sample_weight: Tensor | None = None,
    warm_up: float = 0.0,
    decay: bool = True,
    validation: tuple[Tensor, Tensor] | None = None,
    patience: int | None = None,
    evaluate_every: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool | Progress = False,
) -> History:
    """Minimise ``objective(model, batch)`` with Adam on class-balanced mini-batches; the model is changed in place.

    The learning rate decays to zero along a cosine (``decay``). The first ``warm_up`` share of the steps is plain
    training. With ``validation`` the *whole* objective, fairness included, is evaluated on it every
    ``evaluate_every`` steps; the best weights are kept, and ``patience`` evaluations without improvement end the run.
    Labels are class numbers when ``balanced``, anything the loss takes otherwise. A non-finite value stops with
    ``TrainingDiverged``, naming the step, and the last good weights restored.
    """
    _check(steps, batch_size, lr, warm_up, x, y)
    sampler = balanced_batches if balanced else uniform_batches
    evaluate_every = evaluate_every or max(1, steps // 20)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=x.device.type == "cpu" and _fusable(model))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: _cosine(t, steps) if decay else 1.0)
    warm_up_steps = round(warm_up * steps)
    history, good, waited = History(), _weights(model, objective), 0
    best = (math.inf, good)
    report = _reporter(progress)
    was_training = model.training, objective.training
    with threads_for(batch_size * _largest_product(model)):
        for step, rows in enumerate(sampler(y, batch_size, steps, sample_weight, generator)):
            model.train()
            objective.train()
            batch = Batch(x[rows], y[rows], None, rows)
            value = objective.plain(model, batch) if step < warm_up_steps else objective(model, batch)
            if not math.isfinite(value.item()):
                _restore(model, objective, good)
                raise TrainingDiverged(
                    f"the objective became {value.item()} at step {step + 1} of {steps}; the weights of the last good "
                    f"evaluation (step {history.steps}) were restored. Lower lr or rho, or scale the features"
                )
            optimizer.zero_grad(set_to_none=True)
            value.backward()
            optimizer.step()
            schedule.step()
            if (step + 1) % evaluate_every and step + 1 != steps:
                continue
            record = {"step": float(step + 1), "objective": value.item()}
            record |= {name: float(number) for name, number in objective.last.items()}
            good, history.steps = _weights(model, objective), step + 1
            if validation is not None and step >= warm_up_steps:
                record["validation"] = _evaluate(model, objective, validation, batch_size)
                waited += 1
                if record["validation"] < best[0]:
                    best, history.best_step, waited = (record["validation"], good), step + 1, 0
            history.records.append(record)
            report(step + 1, steps, record)
            if patience is not None and waited >= patience:
                history.stopped_early = True
                break
    if history.best_step is not None:
        _restore(model, objective, best[1])
    elif not all(torch.isfinite(p).all() for p in model.parameters()):
        raise TrainingDiverged(f"the last of {steps} steps left non-finite weights; lower lr or rho")
    model.train(was_training[0])
    objective.train(was_training[1])
    return history


def balanced_batches(
    y: Tensor, batch_size: int, steps: int, weight: Tensor | None = None, generator: torch.Generator | None = None
) -> Iterator[Tensor]:
    """Rows of each mini-batch, every class equally often; within a class drawn with replacement, by weight if given.

    Vectorised: one random number a row, looked up in the cumulated weights of the row's class. A remainder of
    batch_size over the classes goes to classes chosen at random, so a batch may be smaller than the number of classes.
    """
    order = torch.argsort(y, stable=True)
    counts = torch.unique_consecutive(y[order], return_counts=True)[1]
    k, ends = len(counts), counts.cumsum(0)
    mass = torch.ones(len(y), dtype=torch.float64, device=y.device) if weight is None else weight.to(torch.float64)[order]
    cumulated = mass.cumsum(0)
    high = cumulated[ends - 1]
    low = torch.cat([high.new_zeros(1), high[:-1]])
    classes = torch.arange(k, device=y.device).repeat_interleave(batch_size // k)
    for _ in range(steps):
        extra = torch.randperm(k, generator=generator, device=y.device)[: batch_size % k]
        c = torch.cat([classes, extra])
        draw = torch.rand(len(c), generator=generator, dtype=torch.float64, device=y.device)
        if weight is None:  # equal weights: the row is a product, not a look-up
            position = (low[c] + draw * (high[c] - low[c])).long()
        else:
            position = torch.searchsorted(cumulated, low[c] + draw * (high[c] - low[c]), right=True)
        yield order[torch.minimum(position, ends[c] - 1)]


def uniform_batches(
    y: Tensor, batch_size: int, steps: int, weight: Tensor | None = None, generator: torch.Generator | None = None
) -> Iterator[Tensor]:
    """Rows of each mini-batch, drawn with replacement from all rows, by weight if given."""
    return balanced_batches(torch.zeros(len(y), device=y.device), batch_size, steps, weight, generator)


@contextmanager
def threads_for(work: int) -> Iterator[None]:
    """One thread where a product is too small to share, the caller's number otherwise; restored afterwards."""
    threads = torch.get_num_threads()
    if work < 2**24:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _largest_product(model: nn.Module) -> int:
    return max((p.numel() for p in model.parameters()), default=0)


def _fusable(model: nn.Module) -> bool:
    return all(p.is_floating_point() and p.dtype in (torch.float32, torch.float64) for p in model.parameters())


def _cosine(step: int, steps: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps))


@torch.no_grad()
def _weights(model: nn.Module, objective: nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    return copy.deepcopy(model.state_dict()), copy.deepcopy(objective.state_dict())


def _restore(model: nn.Module, objective: nn.Module, weights: tuple[dict[str, Any], dict[str, Any]]) -> None:
    model.load_state_dict(weights[0])
    objective.load_state_dict(weights[1])


def _evaluate(model: nn.Module, objective: Objective, validation: tuple[Tensor, Tensor], chunk: int) -> float:
    """The objective on held-out data, in chunks, in eval mode: lam rests."""
    x, y = validation
    model.eval()
    objective.eval()
    last, total = objective.last, 0.0
    with torch.no_grad():
        for start in range(0, len(x), chunk):
            rows = slice(start, start + chunk)
            total += objective(model, Batch(x[rows], y[rows])).item() * len(x[rows])
    objective.last = last
    return total / len(x)


def _check(steps: int, batch_size: int, lr: float, warm_up: float, x: Tensor, y: Tensor) -> None:
    if steps < 1 or batch_size < 1:
        raise ValueError(f"steps and batch_size must be at least 1; got steps={steps}, batch_size={batch_size}")
    if not lr > 0:
        raise ValueError(f"lr must be positive, got {lr}")
    if not 0 <= warm_up <= 1:
        raise ValueError(f"warm_up is a share of the steps, between 0 and 1; got {warm_up}")
    if len(x) == 0 or len(x) != len(y):
        raise ValueError(f"x and y must have the same, positive number of rows; got {len(x)} and {len(y)}")


def _reporter(progress: bool | Progress) -> Progress:
    if callable(progress):
        return progress
    if not progress:
        return lambda step, steps, record: None

    def line(step: int, steps: int, record: dict[str, float]) -> None:
        numbers = "  ".join(f"{name} {value:.4g}" for name, value in record.items() if name != "step")
        end = "\n" if step == steps or not sys.stderr.isatty() else "\r"
        sys.stderr.write(f"step {step}/{steps}  {numbers}{end}")
        sys.stderr.flush()

    return line
