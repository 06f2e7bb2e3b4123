"""When has a model taken a step? What belongs to one step of its optimizer, however many batches that is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

FEW = 4  # values by which a change is seen: of the last layers, which every step changes
_steps: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()


def _count(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    _steps[optimizer] = _steps.get(optimizer, 0) + 1


register_optimizer_step_post_hook(_count)  # it only counts: some optimizers change parameters behind autograd's back


class ModelStep:
    """The batches of one step: lam as it was before the first of them, and the mean fair distance over all of them.

    A batch belongs to the step of the one before it when gradients are wanted and, since then, no parameter of the
    model, or of what its input was computed by, was changed and no optimizer that holds one of them took a step.
    """

    def __init__(self) -> None:
        self.lam = torch.zeros(())
        self.total, self.count = torch.zeros(()), 0
        self.seen: tuple[Any, ...] | None = None

    def begin(self, parameters: Sequence[Tensor], lam: Tensor, before: Sequence[Tensor] = ()) -> None:
        """A batch begins: the first of a new step, or one more of the present one.

        before: the leaves that the input was computed from. Those count that are trained, parameters and what an
        optimizer holds: the others may be the people themselves, new in every batch.
        """
        held = _held() if before else set()
        before = [leaf for leaf in before if isinstance(leaf, nn.Parameter) or id(leaf) in held]
        now = _state(parameters, before) if (parameters or before) and torch.is_grad_enabled() else None
        if now is None or now != self.seen:
            self.lam, self.total, self.count = lam.detach().clone(), torch.zeros_like(lam), 0
        self.seen = now

    def mean(self, value: Tensor, n: int) -> Tensor:
        """The mean over the batches of this step so far, the last of which has this mean over n people."""
        first = self.count == 0
        self.total, self.count = self.total + value * n, self.count + n
        return value if first else self.total / self.count


def _state(parameters: Sequence[Tensor], before: Sequence[Tensor]) -> tuple[Any, ...]:
    """Changes with every change of a parameter in place, and with every step of an optimizer that holds one; a change
    through ``.data`` has no trace but the values, of which a few are looked at."""
    trained = [*parameters, *before]
    ours = {id(p) for p in trained}
    taken = [n for o, n in list(_steps.items()) if any(id(p) in ours for g in o.param_groups for p in g["params"])]
    values = tuple(_last_value(p) for p in (*parameters[-FEW:], *before[:FEW]))
    return (tuple(p._version for p in trained), tuple(id(p) for p in trained), sum(taken), values)


def _held() -> set[int]:
    """The tensors that optimizers hold which have taken a step."""
    return {id(p) for optimizer in list(_steps) for group in optimizer.param_groups for p in group["params"]}


def _last_value(parameter: Tensor) -> float:
    if parameter.numel() == 0 or parameter.is_meta:
        return 0.0
    return float(parameter.detach()[(-1,) * parameter.ndim])
