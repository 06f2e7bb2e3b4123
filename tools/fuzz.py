"""Damaged and hostile files for everything that reads one: only the documented error may come out.

    python tools/fuzz.py --seconds 60                  # all readers, atheris where installed, plain mutations otherwise
    python tools/fuzz.py --seconds 60 --only model

Readers: checkpoints (``checkpoints.parse``), models (``files.load``), metrics (``FairMetric.load``), tables
(``tables.read_table``). atheris guides the mutations by the coverage of this package; without it bytes of sound files
are changed, cut, doubled and swapped at random.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import random
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from evenhand import ERMClassifier, FairMetric
from evenhand.files import ModelFileError, load, save
from evenhand.tables.read import TableError, read_table
from evenhand.training import checkpoints


class Reader:
    """A function of bytes that may only end well or with the given error."""

    def __init__(
        self, name: str, sound: Callable[[Path], bytes], read: Callable[[bytes, Path], object], error: type[Exception]
    ) -> None:
        self.name, self.sound, self.read, self.error = name, sound, read, error
        self.folder = Path(tempfile.mkdtemp())
        self.seen = 0

    def __call__(self, data: bytes) -> None:
        self.seen += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(self.error):
                self.read(data, self.folder)


def _through_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def run(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        return read(path)

    return run


def _model(folder: Path) -> bytes:
    x = np.random.default_rng(0).random((20, 2)).astype(np.float32)
    save(ERMClassifier(hidden=(2,), steps=1, random_state=0).fit(x, x[:, 0] > 0.5), folder / "sound")
    return (folder / "sound").read_bytes()


def _checkpoint(folder: Path) -> bytes:
    checkpoints.save(folder / "sound", {"step": 3, "weights": {"w": torch.arange(4.0)}, "list": [1.5, "text", None]})
    return (folder / "sound").read_bytes()


def _parse_checkpoint(data: bytes, folder: Path) -> object:
    return checkpoints.parse(data, folder / "file")


def _metric(folder: Path) -> bytes:
    FairMetric([[1.0], [0.0]]).save(folder / "sound")
    return (folder / "sound").read_bytes()


def readers() -> dict[str, Reader]:
    table = b"age;income;sex\n39;1,5;male\n50;2,25;female\n;3;\xe4nders\n"
    return {
        reader.name: reader
        for reader in (
            Reader("checkpoint", _checkpoint, _parse_checkpoint, checkpoints.CheckpointError),
            Reader("model", _model, _through_file("file.evenhand", load), ModelFileError),
            Reader("metric", _metric, _through_file("file.npz", FairMetric.load), ValueError),
            Reader("table", lambda folder: table, _through_file("file.csv", read_table), TableError),
        )
    }  # fmt: skip


def mutated(data: bytes, draw: random.Random) -> bytes:
    """A damaged copy of a sound file."""
    result = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        at = draw.randrange(len(result) + 1)
        how = draw.randrange(6)
        if how == 0 and at < len(result):
            result[at] ^= 1 << draw.randrange(8)
        elif how == 1 and at < len(result):
            result[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, ord('"'), ord("{"), ord(","), ord("\n")])
        elif how == 2:
            del result[at : at + draw.choice([1, 4, 64])]
        elif how == 3:
            result[at:at] = draw.randbytes(draw.choice([1, 4, 16]))
        elif how == 4:
            result[at:at] = result[at : at + draw.choice([2, 8, 64])]
        elif how == 5:
            result = result[:at] if draw.random() < 0.3 else result
    return bytes(result)


def plain(reader: Reader, seconds: float, seed: int) -> list[str]:
    """Random mutations for so many seconds; the failures."""
    draw, sound, failures = random.Random(seed), reader.sound(reader.folder), []
    reader(sound)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        data = mutated(sound, draw)
        try:
            reader(data)
        except Exception as error:
            failures.append(f"{error!r} on {data[:80].hex()}...")
            (Path(tempfile.gettempdir()) / f"fuzz-{reader.name}-{len(failures)}").write_bytes(data)
    return failures


def guided(name: str, seconds: float, count: multiprocessing.Queue) -> None:
    """atheris in a process of its own, because it ends the process; exit code 0 when nothing was found."""
    import atheris

    reader = readers()[name]
    corpus = reader.folder / "corpus"
    corpus.mkdir()
    (corpus / "sound").write_bytes(reader.sound(reader.folder))
    for function in (checkpoints.parse, checkpoints._decode, load, FairMetric.load.__func__, read_table):
        atheris.instrument_func(function)  # only these guide it: the package was imported long before

    def once(data: bytes) -> None:
        reader(data)
        if reader.seen % 200 == 0:
            count.put(200)

    atheris.Setup(
        ["fuzz", f"-max_total_time={int(seconds)}", "-verbosity=0", "-print_final_stats=0", str(corpus)], once
    )
    atheris.Fuzz()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60, help="for each reader")
    options.add_argument("--only", choices=list(readers()))
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--plain", action="store_true", help="without atheris")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    try:
        import atheris
    except ImportError:
        atheris = None
    use_atheris, results, found = atheris is not None and not given.plain, {}, False
    for name in [given.only] if given.only else readers():
        if use_atheris:
            count: multiprocessing.Queue = multiprocessing.Queue()
            process = multiprocessing.Process(target=guided, args=(name, given.seconds, count))
            process.start()
            process.join(given.seconds + 120)
            runs = 0
            while not count.empty():
                runs += count.get()
            failures = [] if process.exitcode == 0 else [f"exit code {process.exitcode}; see the output above"]
        else:
            reader = readers()[name]
            failures = plain(reader, given.seconds, given.seed)
            runs = reader.seen
        results[name] = {"files": runs, "failures": failures[:20]}
        found |= bool(failures)
        print(f"{name}: {runs} files, {len(failures)} failures {failures[:3]}")
    if given.out:
        how = "atheris" if use_atheris else "plain mutations"
        given.out.write_text(
            json.dumps({"by": how, "seconds each": given.seconds, "readers": results}, indent=2) + "\n"
        )
    raise SystemExit(found)


if __name__ == "__main__":
    main()
