"""Vectors on disk, mapped when they are asked for: what was encoded once is not encoded again."""

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
Keys = NDArray[np.uint8]
MERGED = 8  # parts of about a size that become one
LARGE = 4096  # vectors: a part of so many stays as it is


class VectorCache:
    """Vectors by key, in parts: `<name>.npy` holds the vectors, `<name>.keys` keys and checksums.

    A part is written whole, its keys last, so that a killed process leaves nothing that would be read. Only the keys
    are held in memory; a part is mapped while it is asked and no file stays open. Each vector is compared with its
    checksum when it is asked for. A part that was asked is touched; where all parts below `root` together need more
    than `limit` bytes, those that have not been asked for the longest time go first.

    Where `MERGED` parts of about a size have come together they become one, so that a million single texts are a few
    dozen files. The new part is there before the old ones go, and whoever misses a part that another process has
    merged looks into the folder again.
    """

    def __init__(self, directory: Path, dimension: int, limit: int | None = None, root: Path | None = None) -> None:
        self.directory, self.dimension, self.limit = directory, dimension, limit
        self.root = directory if root is None else root
        directory.mkdir(parents=True, exist_ok=True)
        self._look()

    def __len__(self) -> int:
        return len(self._place)

    def read(self, keys: list[bytes]) -> tuple[Vectors, NDArray[np.bool_]]:
        """The vectors (n, d) of the keys, and which of them are there; the rows of others are not set."""
        out = np.empty((len(keys), self.dimension), dtype=np.float32)
        there = np.zeros(len(keys), dtype=bool)
        if not self._read(keys, out, there):
            self._look()  # another process has merged or removed a part
            self._read(keys, out, there)
        return out, there

    def add(self, some: dict[bytes, Vectors]) -> None:
        """Keep more vectors, as one part; then make room where the limit asks for it."""
        if not some:
            return
        keys = np.frombuffer(b"".join(some), dtype=np.uint8).reshape(len(some), -1)
        self._write(keys, np.stack(list(some.values())).astype(np.float32))
        while self._merge():
            pass
        self._make_room()

    def _look(self) -> None:
        """Read the keys of all parts that are there now."""
        self._parts: dict[Path, tuple[Keys, NDArray[np.uint32]]] = {}
        self._place: dict[bytes, tuple[Path, int]] = {}
        for path in sorted(self.directory.glob("*.keys")):
            self._open(path)

    def _read(self, keys: list[bytes], out: Vectors, there: NDArray[np.bool_]) -> bool:
        """Fill in what is there; False where a part is no longer."""
        wanted: dict[Path, list[tuple[int, int]]] = {}
        for i, key in enumerate(keys):
            if key in self._place and not there[i]:
                part, row = self._place[key]
                wanted.setdefault(part, []).append((i, row))
        whole = True
        for path, places in wanted.items():
            try:
                vectors, sums = _mapped(path), self._parts[path][1]
                os.utime(path)
            except (FileNotFoundError, KeyError):
                whole = False
                continue
            for i, row in places:
                vector = vectors[row]
                if zlib.crc32(vector.tobytes()) == sums[row]:
                    out[i], there[i] = vector, True
                else:
                    _warn(path)
        return whole

    def _write(self, keys: Keys, vectors: Vectors) -> Path:
        """One part, on the disk and known; its name is the hash of what it holds."""
        sums = np.array([zlib.crc32(vector.tobytes()) for vector in vectors], dtype=np.uint32)
        name = hashlib.sha256(keys.tobytes() + vectors.tobytes()).hexdigest()[:32]
        path = self.directory / f"{name}.keys"
        if path not in self._parts or not path.exists():  # a damaged one of this name is mended by it
            write_whole(path.with_suffix(".npy"), _bytes(lambda file: np.save(file, vectors)))
            write_whole(path, _bytes(lambda file: np.savez(file, keys=keys, sums=sums)))
        self._open(path)
        return path

    def _merge(self) -> bool:
        """Where many parts of about a size are there, make one of them."""
        sizes: dict[int, list[Path]] = {}
        for path, (keys, _) in self._parts.items():
            if len(keys) < LARGE:
                sizes.setdefault(int(np.log(max(1, len(keys))) / np.log(MERGED) + 1e-9), []).append(path)
        small = next((paths for paths in sizes.values() if len(paths) >= MERGED), None)
        if small is None:
            return False
        kept: dict[bytes, Vectors] = {}
        try:
            for path in small:
                keys, sums = self._parts[path]
                for key, total, vector in zip(keys, sums, _mapped(path)):
                    if zlib.crc32(vector.tobytes()) == total:
                        kept[key.tobytes()] = np.array(vector)
        except FileNotFoundError:  # another process merges them
            self._look()
            return False
        if not kept:
            return False
        merged = self._write(np.frombuffer(b"".join(kept), np.uint8).reshape(len(kept), -1), np.stack([*kept.values()]))
        for path in small:
            if path != merged:
                del self._parts[path]
                _remove(path)
        return True

    def _open(self, path: Path) -> None:
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                keys, sums = stored["keys"], stored["sums"]
            shape = _mapped(path).shape
        except FileNotFoundError:
            return None  # another process has just merged or removed it
        except OSError as error:
            return _warn(path, f"cannot be opened ({error.strerror}) and")
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return _warn(path)
        if shape != (len(keys), self.dimension) or len(sums) != len(keys):
            return _warn(path)
        self._place |= {key.tobytes(): (path, row) for row, key in enumerate(keys)}
        self._parts[path] = (keys, sums)
        return None

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
            _remove(path)
            total -= size


def _mapped(path: Path) -> Vectors:
    """The vectors of a part, mapped for as long as the caller holds them: a mapping keeps a file open."""
    vectors: Vectors = np.load(path.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
    return vectors


def _remove(path: Path) -> None:
    """The keys first: vectors without keys are nothing, keys without vectors would be damage."""
    path.unlink(missing_ok=True)
    path.with_suffix(".npy").unlink(missing_ok=True)


def _warn(path: Path, why: str = "is damaged and") -> None:
    warnings.warn(f"{path} {why} is not read; its texts are encoded again", stacklevel=4)


def _bytes(write: Any) -> bytes:
    content = io.BytesIO()
    write(content)
    return content.getvalue()
