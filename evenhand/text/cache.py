"""Vectors on disk, mapped into memory and never all read: what was encoded once is not encoded again."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.atomic import write_whole

__all__ = ["VectorCache"]

Vectors = NDArray[np.float32]


class VectorCache:
    """Vectors by key, in parts of a few thousand: `<name>.npy` holds the vectors, `<name>.keys` keys and checksums.

    A part is written whole, its keys last, so that a killed process leaves nothing that would be read. Only the keys
    are held in memory; the vectors are mapped, and each is compared with its checksum when it is asked for. A part that
    was asked is touched; where all parts below `root` together need more than `limit` bytes, those that have not been
    asked for the longest time go first.
    """

    def __init__(self, directory: Path, dimension: int, limit: int | None = None, root: Path | None = None) -> None:
        self.directory, self.dimension, self.limit = directory, dimension, limit
        self.root = directory if root is None else root
        self._parts: list[tuple[Path, Vectors, NDArray[np.uint32]]] = []
        self._place: dict[bytes, tuple[int, int]] = {}
        directory.mkdir(parents=True, exist_ok=True)
        for path in sorted(directory.glob("*.keys")):
            self._open(path)

    def __len__(self) -> int:
        return len(self._place)

    def read(self, keys: list[bytes]) -> tuple[Vectors, NDArray[np.bool_]]:
        """The vectors (n, d) of the keys, and which of them are there; the rows of others are not set."""
        out = np.empty((len(keys), self.dimension), dtype=np.float32)
        there = np.zeros(len(keys), dtype=bool)
        wanted: dict[int, list[tuple[int, int]]] = {}
        for i, key in enumerate(keys):
            if key in self._place:
                part, row = self._place[key]
                wanted.setdefault(part, []).append((i, row))
        for part, places in wanted.items():
            path, vectors, sums = self._parts[part]
            for i, row in places:
                vector = vectors[row]
                if zlib.crc32(vector.tobytes()) == sums[row]:
                    out[i], there[i] = vector, True
                else:
                    _warn(path)
            if path.exists():
                os.utime(path)
        return out, there

    def add(self, some: dict[bytes, Vectors]) -> None:
        """Keep more vectors, as one part; then make room where the limit asks for it."""
        if not some:
            return
        keys = np.frombuffer(b"".join(some), dtype=np.uint8).reshape(len(some), -1)
        vectors = np.stack(list(some.values())).astype(np.float32)
        sums = np.array([zlib.crc32(vector.tobytes()) for vector in vectors], dtype=np.uint32)
        name = hashlib.sha256(keys.tobytes() + vectors.tobytes()).hexdigest()[:32]
        path = self.directory / f"{name}.keys"
        if not path.exists():
            write_whole(path.with_suffix(".npy"), _bytes(lambda file: np.save(file, vectors)))
            write_whole(path, _bytes(lambda file: np.savez(file, keys=keys, sums=sums)))
            self._open(path)
        self._make_room()

    def _open(self, path: Path) -> None:
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                keys, sums = stored["keys"], stored["sums"]
            vectors = np.load(path.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return _warn(path)
        if vectors.shape != (len(keys), self.dimension) or len(sums) != len(keys):
            return _warn(path)
        self._place |= {key.tobytes(): (len(self._parts), row) for row, key in enumerate(keys)}
        self._parts.append((path, vectors, sums))

    def _make_room(self) -> None:
        if self.limit is None:
            return
        parts = []
        for path in self.root.rglob("*.keys"):
            try:
                about = path.stat()
                parts.append((about.st_mtime_ns, path, about.st_size + path.with_suffix(".npy").stat().st_size))
            except FileNotFoundError:
                continue  # another process has just removed it
        total = sum(size for _, _, size in parts)
        newest = max((age for age, _, _ in parts), default=0)
        for age, path, size in sorted(parts):
            if total <= self.limit or age == newest:
                return
            path.unlink(missing_ok=True)  # whoever has mapped the vectors keeps them until it ends
            path.with_suffix(".npy").unlink(missing_ok=True)
            total -= size


def _warn(path: Path) -> None:
    warnings.warn(f"{path} is damaged and is not read; its texts are encoded again", stacklevel=4)


def _bytes(write: Any) -> bytes:
    content = io.BytesIO()
    write(content)
    return content.getvalue()
