"""Mixed precision: the model runs as its user runs it, what is computed about its outputs does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parametrize

_LOW = (torch.float16, torch.bfloat16)
_WITH_AUTOCAST = ("cpu", "cuda", "mps", "xpu")


def at_least_float32(t: Tensor) -> Tensor:
    """Half precision has three digits, too few for the square of a small difference: float32 instead."""
    return t.float() if t.dtype in _LOW else t


class Autocast:
    """The caller's ``torch.autocast`` on a device: ``off()`` for our own arithmetic, ``on()`` for the model."""

    def __init__(self, device: torch.device) -> None:
        self.kind = device.type
        self.dtype = _autocast_dtype(self.kind) if self.kind in _WITH_AUTOCAST else None

    def off(self) -> Any:
        return nullcontext() if self.dtype is None else torch.autocast(self.kind, enabled=False)

    @contextmanager
    def on(self) -> Iterator[None]:
        """No cache of cast weights, or of those that a parametrization computes: one made without gradients would be
        found again by a pass that needs them."""
        cast = torch.autocast(self.kind, dtype=self.dtype, cache_enabled=False) if self.dtype else nullcontext()
        with cast, _parametrizations_computed():
            yield


@contextmanager
def _parametrizations_computed() -> Iterator[None]:
    """Inside somebody's ``parametrize.cached()``, as outside of it."""
    cached = parametrize._cache_enabled
    if not cached:
        yield
        return
    parametrize._cache_enabled = 0
    try:
        yield
    finally:
        parametrize._cache_enabled = cached


def _autocast_dtype(kind: str) -> torch.dtype | None:
    """The dtype that autocast uses on this kind of device at the moment, None when it is off."""
    try:
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    except TypeError:  # torch before 2.4 asks each kind by a function of its own
        if kind == "cpu":
            return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
        return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None
