"""Results of a sweep on disk: a JSON file a model, written whole or not at all, and its weights as plain arrays."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from torch import nn

from evenhand.atomic import whole_file, write_whole
from evenhand.training import checkpoints


class Store:
    """A directory of finished models. Nothing in it is ever half written, so a killed sweep goes on from it."""

    def __init__(self, directory: str | os.PathLike[str] | None) -> None:
        self.directory = None if directory is None else Path(directory)

    def load(self, key: str) -> dict[str, Any] | None:
        """The record of a finished model, or None."""
        if self.directory is None:
            return None
        try:
            record: dict[str, Any] = json.loads((self.directory / f"{key}.json").read_text())
        except FileNotFoundError:
            return None
        except ValueError:  # not ours, or damaged: train again
            return None
        return record

    def load_weights(self, key: str) -> dict[str, torch.Tensor] | None:
        path = None if self.directory is None else self.directory / f"{key}.npz"
        if path is None or not path.exists():
            return None
        with np.load(path, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}

    def checkpoint(self, key: str) -> Path | None:
        """Where a model in flight may keep its state; None where nothing is kept."""
        if self.directory is None:
            return None
        self.directory.mkdir(parents=True, exist_ok=True)
        return self.directory / f"{key}.checkpoint"

    def save(self, key: str, record: dict[str, Any], module: nn.Module | None) -> None:
        """Weights first, the record last: a record on disk means that the model is complete."""
        if self.directory is None:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        if module is not None:
            arrays = {name: value.detach().cpu().numpy() for name, value in module.state_dict().items()}
            with whole_file(self.directory / f"{key}.npz") as file:
                np.savez(file, **arrays)
        write_whole(self.directory / f"{key}.json", json.dumps(record, indent=1, default=_plain).encode())
        checkpoints.remove(self.directory / f"{key}.checkpoint")


def _plain(value: Any) -> Any:
    """Numbers of numpy and anything else a parameter may be, for JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)


def fingerprint(value: Any) -> str:
    """A short hash of parameters and data that is the same in every process and run."""
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()[:20]


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, nn.Module):
        _feed(digest, type(value).__qualname__)
        _feed(digest, dict(value.state_dict()))
    elif isinstance(value, torch.Tensor):
        _feed(digest, value.detach().cpu().numpy())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            _feed(digest, str(key))
            _feed(digest, value[key])
    elif isinstance(value, list | tuple):
        digest.update(f"[{len(value)}]".encode())
        for item in value:
            _feed(digest, item)
    elif isinstance(value, functools.partial):
        _feed(digest, [value.func, value.args, value.keywords])
    elif hasattr(value, "__code__"):  # a function: what it does and what it holds on to, not where it lives
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        constants = [c for c in value.__code__.co_consts if not hasattr(c, "co_code")]
        _feed(digest, [value.__qualname__, value.__code__.co_code.hex(), str(constants), value.__defaults__, cells])
    elif hasattr(value, "get_params") and not isinstance(value, type):  # an estimator
        _feed(digest, [type(value).__qualname__, value.get_params(deep=False)])
    elif hasattr(value, "columns"):
        _feed(digest, [joblib.hash(value.to_numpy()), [str(c) for c in value.columns]])
    else:
        digest.update(re.sub(r" at 0x[0-9a-f]+", "", repr(value)).encode())
