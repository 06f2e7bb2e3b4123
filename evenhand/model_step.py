"""When has a model taken a step? What belongs to one step of its optimizer, however many batches that is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

_steps: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()


def _count(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    _steps[optimizer] = _steps.get(optimizer, 0) + 1


_OF_NUMPY = (torch.float32, torch.float64)
register_optimizer_step_post_hook(_count)  # it only counts: some optimizers change parameters behind autograd's back


class ModelStep:
    """The batches of one step: lam as it was before the first of them, and the mean fair distance over all of them.

    A batch belongs to the step of the one before it when gradients are wanted and, since then, nothing that was seen
    in this step has changed: no parameter of a model, or of what its input was computed by, and no optimizer that holds
    one of them took a step. Several models may take part in a step: with one optimizer, or when all are looked at
    before the optimizers step. Where each is looked at and takes its own step in turn, each turn is a step.
    """

    def __init__(self) -> None:
        self.lam = torch.zeros(())
        self.left: float | None = None  # lam as the batches of this step have moved it
        self.total, self.count = torch.zeros(()), 0
        self.models: WeakKeyDictionary[Any, set[int]] = WeakKeyDictionary()  # in this step; their parameters
        self.seen: dict[int, _Seen] = {}  # those, and what their inputs were computed by

    def begin(self, model: Any, parameters: Sequence[Tensor], lam: Tensor, before: Sequence[Tensor] = ()) -> None:
        """A batch begins: the first of a new step, or one more of the present one.

        model: what tells it from others, such as its module; other parameters in the place of the former are a change.
        before: the leaves that the input was computed from. Those count that are trained, parameters and what an
        optimizer holds: the others may be the people themselves, new in every batch.
        """
        taken = _taken()
        trained = [*parameters, *(leaf for leaf in before if isinstance(leaf, nn.Parameter) or id(leaf) in taken)]
        tensors = {id(t): t for t in trained} if torch.is_grad_enabled() else {}
        former = [t for t in (seen.tensor() for seen in self.seen.values()) if t is not None] if tensors else []
        now = _states({id(t): t for t in former} | tensors, taken)
        own = {id(p) for p in parameters}
        known = self.models.get(model, own)
        same = own <= known or own >= known  # some may be frozen or freed meanwhile
        same = same and (self.left is None or self.left == float(lam))  # not set by hand meanwhile, or loaded
        if not (former and same and all(self.seen[id(t)].is_still(now[id(t)]) for t in former)):
            self.lam, self.total, self.count = lam.detach().clone(), torch.zeros_like(lam), 0
            self.models.clear()
            now = {i: now[i] for i in tensors}
        self.models[model], self.seen, self.left = own, now, None

    def mean(self, value: Tensor, n: int) -> Tensor:
        """The mean over the batches of this step so far, the last of which has this mean over n people."""
        first = self.count == 0
        self.total, self.count = self.total + value * n, self.count + n
        return value if first else self.total / self.count

    def leave(self, lam: Tensor, restless: Collection[int] = ()) -> None:
        """lam as the batches so far have moved it: where somebody else changes it, the next batch begins a new step.

        restless: the ids of parameters that the model itself has changed when it ran.
        """
        self.left = float(lam)
        for i in restless:
            if i in self.seen:
                self.seen[i] = self.seen[i]._replace(restless=True)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy begins with a step of its own: its models are others."""
        return ModelStep, ()


class _Seen(NamedTuple):
    """A tensor, as long as somebody else keeps it, and what changes when it does."""

    tensor: ref[Tensor]
    state: tuple[int, int, float]
    restless: bool = False  # changed by the model, as an embedding's with max_norm: only a step of an optimizer tells

    def is_still(self, now: _Seen) -> bool:
        return self.state[1] == now.state[1] if self.restless else self.state == now.state


def _states(tensors: dict[int, Tensor], taken: Counter[int]) -> dict[int, _Seen]:
    """Changes with every change in place, and with every step of an optimizer that holds the tensor; a change through
    ``.data`` has no trace but the values, of which every tensor shows one."""
    values = dict(zip(tensors, _last_values(list(tensors.values()))))
    return {i: _Seen(ref(t), (t._version, taken[i], values[i])) for i, t in tensors.items()}


def _taken() -> Counter[int]:
    """How many steps the optimizers took that hold a tensor."""
    taken: Counter[int] = Counter()
    for optimizer, n in list(_steps.items()):
        for held in {id(p) for group in optimizer.param_groups for p in group["params"]}:
            taken[held] += n
    return taken


def _last_values(tensors: list[Tensor]) -> list[float]:
    """The last number of each tensor, brought from each device at once; zeros where there are none to look at. More
    than that would cost a large model more than its search."""
    found = [0.0] * len(tensors)
    places: dict[torch.device, list[int]] = {}
    for i, t in enumerate(tensors):
        if t.numel() == 0 or t.is_meta or t.layout != torch.strided:
            continue
        if t.dtype in _OF_NUMPY and t.device.type == "cpu" and type(t) in (Tensor, nn.Parameter):  # a third of the time
            found[i] = t.detach().numpy().item(-1)
        else:
            places.setdefault(t.device, []).append(i)
    for of_device in places.values():
        flat = [torch.view_as_real(t) if t.is_complex() else t for t in (tensors[i].detach() for i in of_device)]
        last = torch.stack([t[(-1,) * t.ndim].to(torch.float32) for t in flat]).tolist()
        for i, number in zip(of_device, last):
            found[i] = number
    return found
