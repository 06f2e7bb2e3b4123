"""A training run on disk: written whole or not at all, read without running anything from the file.

The file is an uncompressed zip: the bytes of each tensor, and ``tree.json``, which says what they are. Writing goes to
a second file first, is forced to the disk, and replaces the old one, which stays beside it as ``.previous``.
"""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from evenhand.atomic import previous, whole_file

FORMAT = "evenhand checkpoint 1"
_DTYPES = {str(d).removeprefix("torch."): d for d in vars(torch).values() if isinstance(d, torch.dtype)}
_UNREADABLE = (
    ArithmeticError,
    EOFError,
    KeyError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class CheckpointError(ValueError):
    """A file that cannot be resumed from: damaged, of another program, or of another run."""


def save(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write a tree of dicts, lists, numbers, texts and tensors, atomically; the file before it is kept as .previous."""
    target = Path(path)
    members: dict[str, bytes] = {}
    tree = _encode({"format": FORMAT, "state": state}, members)
    try:
        with whole_file(target, keep_previous=True) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("tree.json", json.dumps(tree))
            for name, data in members.items():
                archive.writestr(name, data)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the checkpoint could not be written ({error.strerror}); the last good one, if any, was kept. "
            "Free space or choose another folder",
            os.fspath(target),
        ) from error


def load(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The newest checkpoint: the file itself, or .previous if the run was killed between two names; None if there is
    neither. A damaged file is an error that says where the last good one is; nothing is deleted."""
    data = read_bytes(path)
    return None if data is None else parse(data, path)


def read_bytes(path: str | os.PathLike[str]) -> bytes | None:
    target = Path(path)
    for candidate in (target, previous(target)):
        if candidate.exists():
            return candidate.read_bytes()
    return None


def parse(data: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The tree in the bytes of a checkpoint; ``path`` is for the message."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("a member is compressed, which no checkpoint is")
            if sum(member.file_size for member in archive.infolist()) > len(data):
                raise ValueError("its members claim to be larger than the file")
            members = {name: archive.read(name) for name in archive.namelist()}  # checks each member's CRC
        content = _decode(json.loads(members.pop("tree.json")), members)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"it does not say {FORMAT!r}")
        state = content["state"]
        if not isinstance(state, dict):
            raise ValueError("it holds no state")
        return state
    except _UNREADABLE as error:
        older = previous(Path(path))
        cure = f"remove it to go on from {older}" if older.exists() else "remove it to start anew"
        raise CheckpointError(
            f"{os.fspath(path)} is not a checkpoint of evenhand, or is damaged ({error}); it was left as it is: {cure}"
        ) from error


def remove(path: str | os.PathLike[str]) -> None:
    """Forget a run that is finished: the checkpoint and the one before it."""
    for file in (Path(path), previous(Path(path))):
        file.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Fail before the first step rather than at the first checkpoint."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} of the checkpoint {target} does not exist; make it first")
    if target.is_dir():
        raise IsADirectoryError(f"the checkpoint {target} is a folder; give the name of a file")
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}."):
            pass
    except OSError as error:
        raise OSError(
            error.errno,
            f"the checkpoint's folder cannot be written ({error.strerror}); choose another",
            os.fspath(target),
        ) from error


def _encode(value: Any, members: dict[str, bytes]) -> Any:
    if isinstance(value, Tensor):
        name = f"tensor{len(members)}"
        plain = value.detach().cpu().contiguous().reshape(-1)
        members[name] = plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""
        return {"tensor": name, "dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, members), _encode(v, members)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return [_encode(item, members) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint holds tensors, numbers and texts; got {type(value).__name__}")


def _decode(value: Any, members: dict[str, bytes]) -> Any:
    if isinstance(value, list):
        return [_decode(item, members) for item in value]
    if not isinstance(value, dict):
        return value
    if "dict" in value:
        return {_decode(k, members): _decode(v, members) for k, v in value["dict"]}
    if value["tensor"] not in members:
        raise ValueError(f"its tensor {value['tensor']!r} is not there, or is named twice")
    data, dtype = members.pop(value["tensor"]), _DTYPES[value["dtype"]]  # each once: a name costs no second copy
    plain = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return plain.reshape([int(size) for size in value["shape"]])
