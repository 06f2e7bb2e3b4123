"""Files that are there whole or not at all: the only way in which the package writes one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str], keep_previous: bool = False) -> Iterator[BinaryIO]:
    """A binary file that appears under its name only when the block has ended well and the bytes are on the disk.

    A crash, a full disk or two writers at once leave the old file, or the whole of a new one, never a part. With
    ``keep_previous`` the file that was there stays beside it, as ``previous(path)``.

    >>> with whole_file("answer.txt") as file:      # doctest: +SKIP
    ...     file.write(b"42")
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o666 & ~_umask())
        if keep_previous and target.exists():
            target.replace(previous(target))
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """The bytes as a file, atomically."""
    with whole_file(path) as file:
        file.write(data)


def previous(path: Path) -> Path:
    """Where the file before the newest one is kept."""
    return path.with_name(path.name + ".previous")


def _umask() -> int:
    """What the user keeps from others: a temporary file is private, the finished one is as any file of theirs."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power failure, where the system allows it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
