"""Data larger than memory: batches from memory-mapped arrays, from parquet or Arrow data sets, from anything iterable.

A stream is any iterable of ``(x, y)`` or ``(x, y, weight)``: a torch DataLoader, a list, one of the functions below.
One that can be iterated again (not a bare generator) is started anew when it ends.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evenhand.objectives.batch import Batch

Stream = Iterable[Any]  # of (x, y) or (x, y, weight), tensors or arrays
DROP_EVERY = 64  # batches between two hints to the system that mapped pages are no longer needed


class Repeated:
    """A stream from a function that starts it: iterating again starts again."""

    def __init__(self, start: Callable[[], Iterator[Any]]) -> None:
        self.start = start

    def __iter__(self) -> Iterator[Any]:
        return self.start()


def mapped_batches(x: Any, y: Any, batch_size: int, *, generator: torch.Generator | None = None) -> Repeated:
    """Shuffled passes over arrays on disk (``np.load(..., mmap_mode="r")`` or ``np.memmap``) in bounded memory.

    Each pass visits blocks of ``batch_size`` neighbouring rows in random order: reading stays sequential inside a
    block, so store the rows shuffled. Pages that were read are given back to the system, which an ordinary map would
    keep as long as there is memory.
    """
    if len(x) != len(y) or len(x) == 0:
        raise ValueError(f"x and y must have the same, positive number of rows; got {len(x)} and {len(y)}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")

    def start() -> Iterator[tuple[Tensor, Tensor]]:
        for block in torch.randperm(-(-len(x) // batch_size), generator=generator).tolist():
            rows = slice(block * batch_size, (block + 1) * batch_size)
            yield _copied(x, rows), _copied(y, rows)
            if block % DROP_EVERY == 0:
                drop_pages(x)
                drop_pages(y)

    return Repeated(start)


def chunks(x: Any, rows: int = 65536) -> Iterator[np.ndarray]:
    """An array on disk, piece by piece, in order and in bounded memory."""
    for start in range(0, len(x), rows):
        yield np.array(x[start : start + rows])
        drop_pages(x)


def arrow_batches(data: Any, target: str, columns: Sequence[str] | None = None, batch_size: int = 1000) -> Repeated:
    """Batches of a parquet file or folder, given by its path, or of a pyarrow ``Dataset``; all columns are numbers."""
    try:
        import pyarrow.dataset
    except ImportError as error:
        raise ImportError("parquet and Arrow data need pyarrow: pip install pyarrow") from error
    source = data if isinstance(data, pyarrow.dataset.Dataset) else pyarrow.dataset.dataset(data, format="parquet")
    names = list(columns) if columns is not None else [name for name in source.schema.names if name != target]
    missing = [name for name in [*names, target] if name not in source.schema.names]
    if missing:
        raise ValueError(f"column(s) {missing} do not exist; the data have {source.schema.names[:20]}")

    def start() -> Iterator[tuple[Tensor, Tensor]]:
        for table in source.to_batches(columns=[*names, target], batch_size=batch_size):
            if table.num_rows == 0:
                continue
            features = [table.column(name).to_numpy(zero_copy_only=False) for name in names]
            values = np.stack(features, axis=1).astype(np.float32)
            yield torch.from_numpy(values), torch.as_tensor(table.column(target).to_numpy(zero_copy_only=False).copy())

    return Repeated(start)


def drop_pages(array: Any) -> None:
    """Tell the system that the pages read so far from a mapped array are not needed; nothing for other arrays."""
    base = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "_mmap", None) if hasattr(base, "_mmap") else getattr(base, "base", None)
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def as_batch(item: Any, device: torch.device | str, dtype: torch.dtype) -> Batch:
    """What a stream gave, as a batch; or a clear error."""
    if isinstance(item, Batch):
        item = (item.x, item.y, item.weight)
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        raise TypeError(f"a stream must give (x, y) or (x, y, weight) for each batch; got {type(item).__name__}")
    x, y = _tensor(item[0], device, dtype), _tensor(item[1], device, dtype)
    weight = _tensor(item[2], device, dtype).to(dtype) if len(item) == 3 and item[2] is not None else None
    if x.ndim < 2 or len(x) == 0 or len(x) != len(y) or (weight is not None and weight.shape != y.shape):
        raise ValueError(
            f"each batch of a stream needs x (n, d) and y (n,) with the same, positive n; "
            f"got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if not torch.isfinite(x).all():
        raise ValueError("a batch of the stream holds NaN or infinite features; clean them first")
    return Batch(x.to(dtype), y, weight, None)


def endless(stream: Stream) -> Iterator[Any]:
    """The stream, started anew whenever it ends; a bare iterator ends once."""
    while True:
        empty = True
        for item in stream:
            empty = False
            yield item
        if empty:
            raise ValueError("the stream gave no batch; is its file or loader empty, or was it read before?")
        if one_shot(stream):
            return


def one_shot(stream: Stream) -> bool:
    """Whether the stream can be read only once."""
    return isinstance(stream, Iterator)


def _tensor(values: Any, device: torch.device | str, dtype: torch.dtype) -> Tensor:
    """The values on the device, in float64 only where the CPU or the model has it too."""
    tensor = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    away = tensor.dtype == torch.float64 and torch.device(device).type != "cpu"
    return (tensor.to(dtype) if away else tensor).to(device)


def _copied(array: Any, rows: slice) -> Tensor:
    return array[rows].clone() if isinstance(array, Tensor) else torch.from_numpy(np.array(array[rows]))
