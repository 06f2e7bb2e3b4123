"""A network to be asked: a copy of the user's in eval mode and float64, whose weights are plain numbers that stay."""

from __future__ import annotations

import copy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import prune, remove_spectral_norm, remove_weight_norm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm
from torch.optim.swa_utils import AveragedModel

from evenhand.ranks import underlying

OBSERVES = "observer_enabled"  # buffer of fake quantisation: whether it learns its range from what it sees, in any mode


def asked_copy(module: nn.Module, device: str | torch.device = "cpu") -> nn.Module:
    """The network without wrappers, pruning or normalisation of weights, copied: it answers as the user's own does.

    A quantised network computes in float32 whatever it is given, and stays as it is: see ``keeps_its_precision``. One
    that is trained for it keeps the ranges that it has.
    """
    with torch.no_grad():  # the copy of a scripted module would remember where its weights come from
        module = inner(module)
        wide = copy.deepcopy(module, _computed(module)).to(device)
        wide = (wide if keeps_its_precision(module) else wide.to(torch.float64)).eval()
        _settle(wide)
        for part in wide.modules():
            if observes(part):
                part.get_buffer(OBSERVES).zero_()
            if is_recurrent(part):
                part.training, part.dropout = True, 0.0  # type: ignore[assignment]
    for parameter in wide.parameters():
        parameter.requires_grad_(False)
    return wide


def inner(module: nn.Module) -> nn.Module:
    """The network itself, without what wraps it to be trained on several devices, averaged or compiled."""
    while True:
        found: nn.Module = underlying(module)
        if isinstance(found, nn.DataParallel | AveragedModel):
            found = found.module
        if found is module:
            return module
        module = found


def keeps_its_precision(module: nn.Module) -> bool:
    """Whether it cannot be made to compute in float64: it is quantised, or trained for it, or holds no number that says
    in what."""
    numbers = chain(module.parameters(), module.buffers())
    return (
        is_quantised(module)
        or any(map(observes, module.modules()))
        or not any(values.is_floating_point() for values in numbers)
    )


def observes(part: nn.Module) -> bool:
    """Whether a part is fake quantisation, as of networks in quantisation-aware training."""
    return isinstance(getattr(part, OBSERVES, None), Tensor)


def is_recurrent(part: nn.Module) -> bool:
    """Whether a part is one of torch's recurrent layers, and does no more. cuDNN gives slopes of these in train mode
    only; without dropout it is what eval mode computes."""
    return type(part) in (nn.RNN, nn.LSTM, nn.GRU) and not (part._forward_hooks or part._forward_pre_hooks)


def is_quantised(module: nn.Module) -> bool:
    return any(".quantized" in type(part).__module__ for part in module.modules())


def changed_by_hand(module: nn.Module) -> str | None:
    """What computes beside the layers, so that these do not say what the network does: a hook, or another forward."""
    for name, part in module.named_modules():
        where = f"its part {name!r}" if name else "it"
        if part._forward_hooks or part._forward_pre_hooks:
            return f"{where} has forward hooks"
        if "forward" in vars(part):
            return f"{where} was given another forward"
    return None


def _computed(module: nn.Module) -> dict[int, Any]:
    """For ``deepcopy``: weights that pruning or a normalisation computes from others are copied by value."""
    found = [value for part in module.modules() for value in vars(part).values()]
    return {id(t): t.detach().clone() for t in found if isinstance(t, Tensor) and not t.is_leaf}


def _settle(module: nn.Module) -> None:
    """Make such weights plain parameters, as their hooks would compute them at the next call."""
    for part in module.modules():
        for hook in list(part._forward_pre_hooks.values()):
            if isinstance(hook, prune.BasePruningMethod):
                prune.remove(part, hook._tensor_name)  # type: ignore[no-untyped-call]
            elif isinstance(hook, WeightNorm):
                remove_weight_norm(part, hook.name)
            elif isinstance(hook, SpectralNorm):
                remove_spectral_norm(part, hook.name)
