"""The state of a training run: all that changes while training, and how it goes to a checkpoint and back."""

from __future__ import annotations

import copy
import inspect
import math
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from evenhand import ranks
from evenhand.objectives.batch import Objective
from evenhand.training import checkpoints
from evenhand.training.identity import Identity, differences, digest, identity
from evenhand.training.streams import Stream

MakeOptimizer = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]  # groups of parameters, each with its lr
Weights = tuple[dict[str, Any], dict[str, Any]]  # state of the model, state of the objective


@dataclass
class History:
    """What happened during training: one record per evaluation, and how it ended."""

    records: list[dict[str, float]] = field(default_factory=list)
    steps: int = 0
    best_step: int | None = None
    stopped_early: bool = False


@dataclass
class Run:
    """All that changes while training: what a checkpoint must hold."""

    model: nn.Module
    objective: Objective
    optimizer: torch.optim.Optimizer
    generator: torch.Generator | None
    good: Weights  # of the last evaluation
    best: Weights
    best_value: float = math.inf
    waited: int = 0  # evaluations since the best one
    step: int = 0
    finished: bool = False
    history: History = field(default_factory=History)

    @classmethod
    def start(
        cls,
        model: nn.Module,
        objective: Objective,
        lr: float,
        generator: torch.Generator | None,
        make: MakeOptimizer | None = None,
    ) -> Run:
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        if ranks.world() > 1:  # all ranks start alike, whatever their seeds
            generator = generator or torch.Generator(device).manual_seed(torch.initial_seed())
            ranks.agree(model, objective, generator, *_parts(objective, torch.Generator).values())
        groups = [{"params": list(model.parameters()), "lr": lr}, *objective.groups()]
        groups = [{**group, "initial_lr": group["lr"]} for group in groups if group["params"]]
        _check_closure(make)
        make = make or partial(torch.optim.Adam, fused=device.type == "cpu" and _fusable(model))
        optimizer = make(groups)
        _check_closure(type(optimizer))
        now = weights(model, objective)
        return cls(model, objective, optimizer, generator, now, now)

    def keep_best(self, value: float) -> None:
        self.waited += 1
        if value < self.best_value:
            self.best_value, self.best, self.waited, self.history.best_step = value, self.good, 0, self.step

    def save(self, path: str | os.PathLike[str], identity: Identity) -> None:
        if not ranks.is_main():
            return
        history = vars(self.history) | {"records": self.history.records}
        checkpoints.save(
            path,
            {
                "identity": identity,
                "step": self.step,
                "finished": self.finished,
                "waited": self.waited,
                "best_value": self.best_value,
                "history": history,
                "weights": weights(self.model, self.objective),
                "good": self.good,
                "best": self.best if self.history.best_step is not None else None,
                "optimizer": self.optimizer.state_dict(),
                "inner": {name: inner.state_dict() for name, inner in _optimizers(self.objective).items()},
                "random": {name: generator.get_state() for name, generator in self._generators().items()},
                "global_random": torch.get_rng_state(),
            },
        )

    def resume(self, path: str | os.PathLike[str], identity: Identity) -> None:
        """Go on from the file, if there is one; it must be of this very run."""
        data = ranks.broadcast_bytes(checkpoints.read_bytes(path) if ranks.is_main() else None)
        if data is None:
            return
        state = checkpoints.parse(data, path)
        other = differences(state.get("identity", {}), identity)
        if other:
            raise checkpoints.CheckpointError(
                f"{os.fspath(path)} is the checkpoint of another run: {', '.join(other[:5])}"
                + (f" and {len(other) - 5} more" if len(other) > 5 else "")
                + "; give this run a file of its own"
            )
        self.step, self.finished = state["step"], state["finished"]
        self.waited, self.best_value = state["waited"], state["best_value"]
        self.history = History(**state["history"])
        restore(self.model, self.objective, tuple(state["weights"]))
        self.good = tuple(state["good"])
        self.best = self.good if state["best"] is None else tuple(state["best"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name, inner in _optimizers(self.objective).items():
            inner.load_state_dict(state["inner"][name])
        for name, generator in self._generators().items():
            generator.set_state(state["random"][name])
        torch.set_rng_state(state["global_random"])

    def _generators(self) -> dict[str, torch.Generator]:
        own = {} if self.generator is None else {"batches": self.generator}
        return own | _parts(self.objective, torch.Generator)


@torch.no_grad()
def weights(model: nn.Module, objective: nn.Module) -> Weights:
    return copy.deepcopy(model.state_dict()), copy.deepcopy(objective.state_dict())


def restore(model: nn.Module, objective: nn.Module, weights: Weights) -> None:
    model.load_state_dict(weights[0])
    objective.load_state_dict(weights[1])


def _parts(objective: nn.Module, kind: type[Any]) -> dict[str, Any]:
    """Generators or optimizers that an objective or its parts hold, by name: state that ``state_dict`` leaves out."""
    return {
        f"{name}.{key}": value
        for name, module in objective.named_modules()
        for key, value in vars(module).items()
        if isinstance(value, kind)
    }


def _optimizers(objective: nn.Module) -> dict[str, torch.optim.Optimizer]:
    return _parts(objective, torch.optim.Optimizer)


def identity_of(
    run: Run, x: Tensor | Stream, y: Tensor | None, weight: Tensor | None, settings: dict[str, Any]
) -> Identity:
    """Settings, data, the weights that training starts from, the objective with all it holds, and the seeds."""
    data: Any = [x, y, weight] if isinstance(x, Tensor) else "stream"
    model = dict(run.model.state_dict())
    return identity(**settings, data=data, model=model, objective=run.objective, batches=run.generator)


def agree_on_data(*tensors: Tensor | None) -> None:
    """Over several ranks: an error unless all of them hold the same tensors."""
    if ranks.world() == 1:
        return
    told = repr([None if t is None else digest(t) for t in tensors])
    if len({row[0] for row in ranks.gather([zlib.crc32(told.encode())])}) > 1:
        raise ValueError("the ranks hold different data; give every rank the same x and y, or each its own stream")


def _check_closure(make: Any) -> None:
    """Optimizers that evaluate the loss several times a step are refused, before they are made where make is a class:
    lam would step each time."""
    while isinstance(make, partial):
        make = make.func
    step = inspect.signature(make.step).parameters if hasattr(make, "step") else {}
    if "closure" in step and step["closure"].default is inspect.Parameter.empty:
        raise ValueError(
            f"optimizer {make.__name__} needs a closure, to evaluate the loss several times a step, and the loop "
            "evaluates it once; give one that steps along a gradient, such as torch.optim.AdamW"
        )


def _fusable(model: nn.Module) -> bool:
    return all(p.is_floating_point() and p.dtype in (torch.float32, torch.float64) for p in model.parameters())
