"""train(): the only training loop."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Batch, Objective
from evenhand.training import checkpoints
from evenhand.training.batches import balanced_batches, sampled, streamed, uniform_batches
from evenhand.training.identity import Identity
from evenhand.training.state import History, MakeOptimizer, Run, agree_on_data, identity_of, restore, weights
from evenhand.training.streams import Stream

__all__ = ["History", "TrainingDiverged", "balanced_batches", "threads_for", "train", "uniform_batches"]

Progress = Callable[[int, int, dict[str, float]], None]  # step, steps, numbers of the last evaluation


class TrainingDiverged(ArithmeticError):
    """The objective became NaN or infinite; the model holds the last good weights."""


def train(
    model: nn.Module,
    objective: Objective,
    x: Tensor | Stream,
    y: Tensor | None = None,
    *,
    steps: int = 3000,
    batch_size: int = 1000,
    lr: float = 1e-3,
    balanced: bool = True,
    sample_weight: Tensor | None = None,
    warm_up: float = 0.0,
    decay: bool = True,
    optimizer: MakeOptimizer | None = None,
    validation: tuple[Tensor, Tensor] | None = None,
    patience: int | None = None,
    evaluate_every: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool | Progress = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    known_as: Any = None,
) -> History:
    """Minimise ``objective(model, batch)`` with Adam on class-balanced mini-batches; the model is changed in place.

    The learning rate decays to zero along a cosine (``decay``). ``optimizer`` makes another optimizer than Adam from
    the parameters, for example ``partial(torch.optim.SGD, momentum=0.9)``; parameters that the objective itself has are
    among them. The first ``warm_up`` share of the steps is plain
    training. With ``validation`` the *whole* objective, fairness included, is evaluated on it every
    ``evaluate_every`` steps; the best weights are kept, and ``patience`` evaluations without improvement end the run.
    Labels are class numbers when ``balanced``, anything the loss takes otherwise. A non-finite value stops with
    ``TrainingDiverged``, naming the step, and the last good weights restored.

    Without y, x is a stream: any iterable of ``(x, y)`` or ``(x, y, weight)`` batches, taken as they come and started
    anew when it ends (see evenhand/training/streams.py).

    ``checkpoint`` names a file that holds the whole run, written every ``checkpoint_every`` steps; with ``resume`` a
    run goes on from it, to the same bits as if it had never stopped, or starts where there is none. The file must be of
    this very run: settings, data, start weights, objective and seeds are compared; seed the model that is built, so
    that a program started anew begins alike. What a stream holds cannot be compared: say it with ``known_as``.

    Under ``torchrun`` (see evenhand/ranks.py) each rank takes its part of every batch, and all ranks hold the
    same weights and the same lam.
    """
    model = ranks.underlying(model)
    _check(steps, batch_size, lr, warm_up, x, y, checkpoint, checkpoint_every, resume)
    evaluate_every = evaluate_every or max(1, steps // 20)
    checkpoint_every = checkpoint_every or evaluate_every
    warm_up_steps = round(warm_up * steps)
    run = Run.start(model, objective, lr, generator, optimizer)
    identity: Identity = {}
    if checkpoint is not None:
        settings: dict[str, Any] = {
            "steps": steps,
            "batch_size": batch_size,
            "lr": lr,
            "balanced": balanced,
            "warm_up": warm_up,
        }
        settings |= {"decay": decay, "patience": patience, "evaluate_every": evaluate_every, "validation": validation}
        settings |= {"optimizer": optimizer, "known_as": known_as}
        identity = identity_of(run, x, y, sample_weight, settings)
    if resume and checkpoint is not None:
        run.resume(checkpoint, identity)
    if y is None:
        batches = streamed(x, model, run.step)
    else:
        assert isinstance(x, Tensor)
        agree_on_data(x, y, sample_weight)
        draw = balanced_batches if balanced else uniform_batches
        batches = sampled(x, y, draw(y, batch_size, steps - run.step, sample_weight, run.generator))
    report = _reporter(progress)
    history = run.history
    with _modes_kept(model, objective), threads_for(batch_size * _largest_product(model)):
        for step, (batch, share) in zip(range(run.step, steps if not run.finished else 0), batches):
            _to_train(model, objective)
            for group in run.optimizer.param_groups:
                group["lr"] = group["initial_lr"] * (_cosine(step, steps) if decay else 1.0)
            value = objective.plain(model, batch) if step < warm_up_steps else objective(model, batch)
            reached = ranks.mean_over_ranks(value.item(), share)
            if not math.isfinite(reached):
                restore(model, objective, run.good)
                raise TrainingDiverged(_why(batch, reached, step + 1, steps, history.steps))
            run.optimizer.zero_grad(set_to_none=True)
            (value if share == 1.0 else value * share).backward()  # type: ignore[no-untyped-call]
            ranks.sum_gradients(p for group in run.optimizer.param_groups for p in group["params"])
            run.optimizer.step()
            run.step = step + 1
            if run.step % evaluate_every == 0 or run.step == steps:
                record = {"step": float(run.step), "objective": reached}
                record |= {name: float(number) for name, number in objective.last.items()}
                ranks.agree_on_buffers(model)
                run.good, history.steps = weights(model, objective), run.step
                if validation is not None and step >= warm_up_steps:
                    record["validation"] = _evaluate(model, objective, validation, batch_size)
                    run.keep_best(record["validation"])
                history.records.append(record)
                report(run.step, steps, record)
                history.stopped_early = patience is not None and run.waited >= patience
                run.finished = history.stopped_early or run.step == steps
            if checkpoint is not None and (run.step % checkpoint_every == 0 or run.finished):
                run.save(checkpoint, identity)
            if run.finished:
                break
        if not run.finished:
            raise ValueError(
                f"the stream ended after {run.step} of {steps} steps; give one that can be iterated again, "
                "or ask for fewer steps"
            )
        if history.best_step is not None:
            restore(model, objective, run.best)
        elif not all(torch.isfinite(p).all() for p in model.parameters()):
            raise TrainingDiverged(f"the last of {steps} steps left non-finite weights; lower lr or rho")
    return history


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


def _cosine(step: int, steps: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps))


def _to_train(*modules: nn.Module) -> None:
    """Train mode for all, which is set only where it is not: each call sets every attribute anew."""
    for top in modules:
        if not all(module.training for module in top.modules()):
            top.train()


@contextmanager
def _modes_kept(*modules: nn.Module) -> Iterator[None]:
    """Each submodule's train or eval mode as it was, also after an exception."""
    modes = [(module, module.training) for top in modules for module in top.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _evaluate(model: nn.Module, objective: Objective, validation: tuple[Tensor, Tensor], chunk: int) -> float:
    """The objective on held-out data, in chunks, in eval mode: lam rests. Each rank evaluates its part."""
    x, y = validation
    model.eval()
    objective.eval()
    last, total = objective.last, 0.0
    with torch.no_grad():
        for start in range(0, len(x), chunk):
            end = min(start + chunk, len(x))
            share, counted = ranks.part_of(end - start)
            own = slice(start + share.before, start + share.before + share.own)
            with ranks.joint_draws(share):
                total += objective(model, Batch(x[own], y[own])).item() * share.own * counted
    objective.last = last
    return sum(row[0] for row in ranks.gather([total])) / len(x)


def _why(batch: Batch, value: float, step: int, steps: int, good: int) -> str:
    cure = "Lower lr or rho, or scale the features"
    if batch.x.is_floating_point() and not torch.isfinite(batch.x).all():
        cure = "The features of this batch hold NaN or infinite values: clean them first"
    elif batch.y.is_floating_point() and not torch.isfinite(batch.y).all():
        cure = "The targets of this batch hold NaN or infinite values: clean them first"
    return (
        f"the objective became {value} at step {step} of {steps}; the weights of the last good "
        f"evaluation (step {good}) were restored. {cure}"
    )


def _check(
    steps: int,
    batch_size: int,
    lr: float,
    warm_up: float,
    x: Tensor | Stream,
    y: Tensor | None,
    checkpoint: str | os.PathLike[str] | None,
    checkpoint_every: int | None,
    resume: bool,
) -> None:
    if steps < 1 or batch_size < 1:
        raise ValueError(f"steps and batch_size must be at least 1; got steps={steps}, batch_size={batch_size}")
    if not lr > 0:
        raise ValueError(f"lr must be positive, got {lr}")
    if not 0 <= warm_up <= 1:
        raise ValueError(f"warm_up is a share of the steps, between 0 and 1; got {warm_up}")
    if y is not None:
        if not isinstance(x, Tensor) or not isinstance(y, Tensor):
            raise TypeError(
                f"x and y must be tensors, got {type(x).__name__} and {type(y).__name__}; "
                "use torch.as_tensor, or streaming.mapped_batches for arrays on disk"
            )
        if len(x) == 0 or len(x) != len(y):
            raise ValueError(f"x and y must have the same, positive number of rows; got {len(x)} and {len(y)}")
        if batch_size < ranks.world():
            raise ValueError(f"batch_size {batch_size} is less than the number of processes, {ranks.world()}")
    elif isinstance(x, Tensor) or not hasattr(x, "__iter__"):
        raise TypeError("y is missing: give x and y as tensors, or one stream of (x, y) batches")
    if (resume or checkpoint_every is not None) and checkpoint is None:
        raise ValueError("resume and checkpoint_every need checkpoint=, the file to go on from")
    if checkpoint_every is not None and checkpoint_every < 1:
        raise ValueError(f"checkpoint_every must be at least 1, got {checkpoint_every}")
    if checkpoint is not None and ranks.is_main():
        checkpoints.check_writable(checkpoint)


def _reporter(progress: bool | Progress) -> Progress:
    if callable(progress):
        return progress
    if not progress or not ranks.is_main():
        return lambda step, steps, record: None

    def line(step: int, steps: int, record: dict[str, float]) -> None:
        numbers = "  ".join(f"{name} {value:.4g}" for name, value in record.items() if name != "step")
        end = "\n" if step == steps or not sys.stderr.isatty() else "\r"
        sys.stderr.write(f"step {step}/{steps}  {numbers}{end}")
        sys.stderr.flush()

    return line
