"""What makes a run this run: everything that decides its result, in a form that a checkpoint keeps and compares."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

DEEPEST = 8  # an object inside an object inside ...: further down only its type counts
Identity = dict[str, Any]  # "objective.rho": 3.0


def identity(**parts: Any) -> Identity:
    """Every part as a flat table of names and plain values; tensors and arrays by a digest of all their bytes.

    >>> identity(steps=10, reach=(0.5, None))
    {'steps': 10, 'reach.0': 0.5, 'reach.1': None}
    """
    return {name: value for part, what in parts.items() for name, value in _facts(part, what, DEEPEST)}


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """'rho was 0.0 and is 50.0' for everything that is not the same."""
    names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    return [f"{name} was {_short(theirs.get(name))} and is {_short(ours.get(name))}" for name in names]


def digest(values: Tensor | np.ndarray[Any, Any]) -> str:
    """Shape, type and a hash of every byte."""
    if isinstance(values, Tensor):
        plain = values.detach().cpu().contiguous().reshape(-1)
        data = plain.view(torch.uint8).numpy() if plain.numel() else np.empty(0, np.uint8)
    elif values.dtype == object:
        data = np.frombuffer(repr(values.tolist()).encode(), np.uint8)
    else:
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    kind = str(values.dtype).removeprefix("torch.")
    return f"{kind}{list(values.shape)} {hashlib.blake2b(data.data, digest_size=8).hexdigest()}"


def _facts(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The facts about one value: (name, plain value) pairs that together decide what it does."""
    if value is None or isinstance(value, bool | int | float | str):
        yield name, value
    elif isinstance(value, np.generic):
        yield name, value.item()
    elif isinstance(value, Tensor | np.ndarray):
        yield name, digest(value)
    elif isinstance(value, torch.Generator):
        yield name, digest(value.get_state())  # the seed, and how much was drawn before
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _facts(f"{name}.{key}", item, depth - 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for i, item in enumerate(value):
            yield from _facts(f"{name}.{i}", item, depth - 1)
    else:
        yield name, _called(value)
        if depth > 0:
            for key, item in _inside(value):
                yield from _facts(f"{name}.{key}", item, depth - 1)


def _called(value: Any) -> str:
    """The name of a function or class, or of the object's class."""
    named = value if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType) else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object or a function holds that decides what it does."""
    if isinstance(value, types.FunctionType):
        if "<" in value.__qualname__:  # a lambda or a local function has no name to know it by
            yield "code", hashlib.blake2b(value.__code__.co_code, digest_size=8).hexdigest()
            yield "constants", [c for c in value.__code__.co_consts if not isinstance(c, types.CodeType)]
        yield "defaults", list(value.__defaults__ or ())
        yield "captured", [cell.cell_contents for cell in value.__closure__ or ()]
    elif isinstance(value, types.MethodType):
        yield "method", value.__func__.__qualname__
        yield "of", value.__self__
    elif isinstance(value, functools.partial):
        yield from (("function", value.func), ("arguments", value.args), ("keywords", value.keywords))
    elif isinstance(value, torch.optim.Optimizer):
        yield "settings", value.defaults
    elif isinstance(value, nn.Module):
        yield from value.named_parameters(recurse=False)
        yield from value.named_buffers(recurse=False)
        yield from value.named_children()
        yield from _public(vars(value), leave_out={"training", "last"})
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init)
    elif not isinstance(value, type) and hasattr(value, "__dict__"):
        yield from _public(vars(value), leave_out=set())


def _public(attributes: dict[str, Any], leave_out: set[str]) -> Iterator[tuple[str, Any]]:
    yield from ((k, v) for k, v in attributes.items() if not k.startswith("_") and k not in leave_out)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
