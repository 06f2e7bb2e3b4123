"""Several processes, one training run: what they must share so that they act as one process on the joint batch.

Nothing here is needed in a single process: every function then does nothing, without communication. Start one process
for each core, machine or GPU with ``torchrun``; ``begin()`` joins them. All ranks must then call a regularizer in train
mode, or ``train()``, together, as with any module of torch that synchronises; in eval mode nobody waits for anybody.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


class Share(NamedTuple):
    """This rank's rows among those of all ranks: ``before`` rows on lower ranks, ``own``, and ``total``."""

    before: int
    own: int
    total: int
    together: bool = False  # whether all ranks are here at once, and may ask each other


_share: ContextVar[Share | None] = ContextVar("evenhand_share", default=None)


def world() -> int:
    """Number of processes that train together; 1 when ``torch.distributed`` was not started."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def is_main() -> bool:
    """Whether this process is the one that writes files and speaks."""
    return rank() == 0


@contextmanager
def begin(timeout: float = 300.0, backend: str | None = None) -> Iterator[int]:
    """Join the processes that ``torchrun`` started, and leave them at the end; gives the rank.

    Without the environment of ``torchrun`` it does nothing. A rank that dies or hangs for ``timeout`` seconds ends the
    run of all others with an error. The backend is nccl where each process has a GPU, gloo otherwise.
    """
    if (dist.is_available() and dist.is_initialized()) or int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield rank()
        return
    backend = backend or ("nccl" if torch.cuda.is_available() else "gloo")
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
    try:
        yield rank()
    finally:
        dist.destroy_process_group()


def underlying(model: Any) -> Any:
    """The user's own model, without a wrapper whose hooks would communicate at every step of a search, or that would be
    compiled again for it."""
    while True:
        if isinstance(model, DistributedDataParallel):
            model = model.module
        elif isinstance(model, nn.Module) and "_orig_mod" in model._modules:  # torch.compile
            model = model._modules["_orig_mod"]
        else:
            return model


def gather(numbers: Sequence[float]) -> list[list[float]]:
    """The numbers of every rank, in the order of the ranks: sums over them have the same bits everywhere."""
    if world() == 1:
        return [list(numbers)]
    mine = torch.tensor(list(numbers), dtype=torch.float64, device=_device())
    everyone = [torch.empty_like(mine) for _ in range(world())]
    dist.all_gather(everyone, mine)
    return [row.tolist() for row in everyone]


def all_of_us(yes: bool) -> bool:
    """Whether every rank says yes; all ranks must ask together."""
    return yes if world() == 1 else all(row[0] == 1.0 for row in gather([float(yes)]))


def share_of(n: int) -> Share:
    """Where this rank's n rows stand among the rows of all ranks; all ranks must ask together."""
    if world() == 1:
        return Share(0, n, n)
    counts = [int(row[0]) for row in gather([n])]
    return Share(sum(counts[: rank()]), n, sum(counts), together=True)


def mean_of_all(values: Tensor) -> Tensor:
    """Mean of a vector that is spread over the ranks, uneven or empty shards included; the same bits on every rank."""
    if world() == 1:
        return values.mean()
    sums = gather([float(values.cpu().double().sum()), len(values)])
    return values.new_tensor(sum(s for s, _ in sums) / max(sum(n for _, n in sums), 1))


def whole(values: Tensor) -> tuple[Tensor, slice]:
    """A vector that is spread over the ranks as a whole, in float64, and where in it this rank's part stands."""
    if world() == 1:
        return values, slice(0, len(values))
    counts = [int(row[0]) for row in gather([len(values)])]
    rows = gather([*values.tolist(), *[0.0] * (max(counts) - len(values))])
    joint = torch.tensor([value for row, n in zip(rows, counts) for value in row[:n]], dtype=torch.float64)
    before = sum(counts[: rank()])
    return joint, slice(before, before + len(values))


def mean_over_ranks(value: float, share: float) -> float:
    """The mean over the joint batch of a mean over this rank's share of it."""
    return value if world() == 1 else sum(row[0] for row in gather([value * share]))


@contextmanager
def joint_draws(share: Share) -> Iterator[None]:
    """Inside, ``rand_rows`` draws for the rows of all ranks and keeps this rank's: the noise of one process."""
    token = _share.set(share)
    try:
        yield
    finally:
        _share.reset(token)


def drawing(n: int) -> Share:
    """The share that ``joint_draws`` set, or n rows alone."""
    share = _share.get()
    return share if share is not None and share.own == n else Share(0, n, n)


def rand_rows(n: int, width: int, generator: torch.Generator | None, like: Tensor) -> Tensor:
    """Uniform random numbers (n, width) on the device of ``like``, see ``joint_draws``; always drawn in float32, which
    makes them the same in every precision."""
    share, there = drawing(n), home(generator, like.device)
    drawn = torch.rand(share.total, width, generator=generator, dtype=torch.float32, device=there).to(like.device)
    return drawn if share.total == n else drawn[share.before : share.before + n]


def largest_of_all(n: int, number: int) -> int:
    """The largest of the ranks' numbers where they draw together for their n rows, see ``joint_draws``."""
    return int(max(row[0] for row in gather([number]))) if drawing(n).together else number


def home(generator: torch.Generator | None, otherwise: torch.device) -> torch.device:
    """Where a generator can draw: on its own device only."""
    return otherwise if generator is None else generator.device


def own_part(rows: Tensor) -> Tensor:
    """This rank's part of rows that every rank has drawn alike: no overlap, sizes differ by one at most."""
    return rows if world() == 1 else rows.tensor_split(world())[rank()]


def part_of(n: int) -> tuple[Share, float]:
    """This rank's part of n rows that every rank holds, and how much it counts in a sum over the ranks: fewer rows than
    ranks are looked at by all."""
    if world() == 1 or n < world():
        return Share(0, n, n), 1 / world()
    sizes = [n // world() + (r < n % world()) for r in range(world())]
    return Share(sum(sizes[: rank()]), sizes[rank()], n), 1.0


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Add up the gradients of all ranks, in one message; a parameter without gradient counts as zero."""
    trained = [p for p in parameters if p.requires_grad]
    if world() == 1 or not trained:
        return
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in trained])
    dist.all_reduce(flat)
    start = 0
    for p in trained:
        p.grad = flat[start : start + p.numel()].view_as(p).to(p.dtype)
        start += p.numel()


@torch.no_grad()
def agree(*things: nn.Module | torch.Generator) -> None:
    """Give every rank the parameters, buffers and random states of rank 0."""
    if world() == 1:
        return
    for thing in things:
        if isinstance(thing, torch.Generator):
            state = thing.get_state().to(_device())
            dist.broadcast(state, src=0)
            thing.set_state(state.cpu())
            continue
        for tensor in thing.state_dict().values():
            if isinstance(tensor, Tensor):
                sent = tensor.detach().to(_device()).contiguous()
                dist.broadcast(sent, src=0)
                tensor.copy_(sent)


def agree_on_buffers(model: nn.Module) -> None:
    """Statistics such as those of BatchNorm, which each rank gathers from its own rows: those of rank 0."""
    if world() > 1:
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)


def broadcast_bytes(data: bytes | None) -> bytes | None:
    """The bytes of rank 0 on every rank; None stays None."""
    if world() == 1:
        return data
    size = torch.tensor([-1 if data is None else len(data)], device=_device())
    dist.broadcast(size, src=0)
    if int(size) < 1:
        return None if int(size) < 0 else b""
    buffer = torch.empty(int(size), dtype=torch.uint8, device=_device())
    if is_main() and data is not None:
        buffer.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    dist.broadcast(buffer, src=0)
    return bytes(buffer.cpu().numpy())


def gather_text(text: str) -> list[str]:
    """The text of every rank, in the order of the ranks; for what is small."""
    if world() == 1:
        return [text]
    mine = text.encode()
    sizes = [int(row[0]) for row in gather([len(mine)])]
    padded = torch.zeros(max(sizes), dtype=torch.uint8, device=_device())
    padded[: len(mine)] = torch.tensor(list(mine), dtype=torch.uint8)
    everyone = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(everyone, padded)
    return [bytes(row[:size].cpu().numpy()).decode() for row, size in zip(everyone, sizes)]


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


@contextmanager
def own_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The folder itself on rank 0; elsewhere a copy of it that is thrown away: all see the same, and one writes."""
    folder = Path(path)
    if world() == 1:
        yield folder
        return
    packed = io.BytesIO()
    if is_main() and folder.is_dir():
        with zipfile.ZipFile(packed, "w") as archive:
            for file in sorted(f for f in folder.rglob("*") if f.is_file()):
                archive.write(file, file.relative_to(folder))
    data = broadcast_bytes(packed.getvalue())
    if is_main():
        yield folder
        return
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / (folder.name or "run")
        if data:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                archive.extractall(copy)
        yield copy


def over_ranks(command: Callable[..., None]) -> Callable[..., None]:
    """A command with ``out``, ``jobs`` and ``as_json`` that ``torchrun`` may start several times: one run, one folder,
    one voice."""

    @wraps(command)
    def joined(**options: Any) -> None:
        with begin(), own_folder(options["out"]) as out:
            if world() == 1:
                command(**options)
                return
            options |= {"out": out, "jobs": 1}  # the processes are the ranks
            if is_main():
                command(**options)
                return
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
                command(**(options | {"as_json": True}))

    return joined
