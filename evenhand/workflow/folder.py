"""The folder of a run: every file written at once or not at all, finished stages kept, so that a run can go on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.atomic import write_whole
from evenhand.tables.errors import TableError

LOCK = ".lock"


class Folder:
    """Files of one run. ``fingerprint`` says what is being run; a folder of something else is not touched."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def open(self, fingerprint: str, overwrite: bool = False) -> bool:
        """Start the run here, or go on with it; whether it goes on. Another run's folder is refused."""
        if self.path.exists() and not self.path.is_dir():
            raise TableError(f"{self.path} is a file; name a folder to write to")
        started = self.path / "stages" / "fingerprint.json"
        if started.exists():
            same = self._read_fingerprint(started) == fingerprint
            if not same and not overwrite and not self._only_started():
                raise TableError(
                    f"{self.path} holds another run (other data or other options); name another folder", "overwrite"
                )
            if same and not overwrite:
                return True
            self._clear_stages()
        elif self.path.exists() and any(file.name != LOCK for file in self.path.iterdir()) and not overwrite:
            raise TableError(f"{self.path} is not empty and holds no run; name another folder", "overwrite")
        today = time.strftime("%Y-%m-%d")
        self.write_json("stages/fingerprint.json", {"fingerprint": fingerprint, "started": today})
        return False

    @property
    def started(self) -> str:
        """The day on which the run was begun."""
        return str(self.read_json("stages/fingerprint.json").get("started", "unknown"))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else writes to this folder meanwhile; a process that died holds nothing."""
        if self.path.exists() and not self.path.is_dir():
            raise TableError(f"{self.path} is a file; name a folder to write to")
        try:
            import fcntl
        except ImportError:  # not on this system: two runs in one folder are then the user's affair
            yield
            return
        new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                owner = file.read().strip() or "unknown"
                raise TableError(
                    f"another run is writing to {self.path} (process {owner}); wait until it is done, or name "
                    "another folder"
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                (self.path / LOCK).unlink(missing_ok=True)
                if new and not any(self.path.iterdir()):
                    self.path.rmdir()

    def stage(self, name: str, make: Callable[[], Any]) -> Any:
        """The JSON result of a stage: read if it is there, made and kept otherwise."""
        path = self.path / "stages" / f"{name}.json"
        if path.exists():
            try:
                return json.loads(path.read_text("utf-8"))
            except (ValueError, RecursionError) as error:
                raise TableError(
                    f"{path} is damaged ({error}). Delete it and run the same command again: only this stage "
                    "is done anew"
                ) from error
        result = plain(make())
        self.write_json(f"stages/{name}.json", result)
        return result

    def write_json(self, name: str, value: Any) -> None:
        self.write(name, json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")

    def write_table(self, name: str, frame: pd.DataFrame) -> None:
        self.write(name, frame.to_csv(index=False).encode())

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically: it is there whole or not at all."""
        write_whole(self.path / name, data)

    def read_json(self, name: str) -> Any:
        path = self.path / name
        if not path.exists():
            raise TableError(f"{self.path} has no {name}: it is not the folder of a finished run")
        try:
            return json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise TableError(f"{path} is damaged: {error}") from error

    def _only_started(self) -> bool:
        """Whether a run was begun here and has left nothing: it failed, and keeps nobody out."""
        files = {file for file in self.path.rglob("*") if file.is_file() and file.name != LOCK}
        return files == {self.path / "stages" / "fingerprint.json"}

    def _clear_stages(self) -> None:
        for file in sorted((self.path / "stages").rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()

    @staticmethod
    def _read_fingerprint(path: Path) -> str:
        try:
            return str(json.loads(path.read_text("utf-8"))["fingerprint"])
        except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
            return ""


def fingerprint(frame: pd.DataFrame, settings: dict[str, Any]) -> str:
    """What a run depends on: the data and the options."""
    digest = hashlib.sha256(json.dumps(plain(settings), sort_keys=True).encode())
    digest.update(json.dumps([str(name) for name in frame.columns]).encode())
    digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """The versions that made a run."""
    found = {"python": platform.python_version(), "platform": platform.system()}
    for name in ("evenhand", "torch", "numpy", "scipy", "scikit-learn", "pandas"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def plain(value: Any) -> Any:
    """The value as JSON knows it: NaN and infinities become null, arrays lists."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if value is None or isinstance(value, str | int | bool):
        return value
    return str(value)
