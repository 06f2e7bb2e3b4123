"""Looking at a model without leaving a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

# Layers that do the same in train and eval mode and hold no statistics.
_MODE_FREE = (
    nn.Sequential,
    nn.ModuleList,
    nn.Linear,
    nn.Identity,
    nn.Flatten,
    nn.ReLU,
    nn.LeakyReLU,
    nn.ELU,
    nn.GELU,
    nn.SiLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.LayerNorm,
)


@contextmanager
def eval_mode(model: Any) -> Iterator[None]:
    """Dropout off and BatchNorm statistics frozen inside; each submodule's mode as it was afterwards, also on error."""
    if not isinstance(model, nn.Module):
        yield
        return
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def mode_free(model: Any) -> bool:
    """Whether train and eval mode are known to give the same output."""
    return isinstance(model, nn.Module) and all(type(module) in _MODE_FREE for module in model.modules())


@contextmanager
def gradients_allowed() -> Iterator[None]:
    """Gradients work inside, whatever the caller's ``no_grad`` or ``inference_mode``."""
    with torch.inference_mode(False), torch.enable_grad():
        yield
