"""What model files are written with comes with an extra: where it is missing, how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def of_the_extra_io() -> Iterator[None]:
    """Around the import of what only ``evenhand[io]`` brings."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or "safetensors").split(".")[0]
        raise ModuleNotFoundError(
            f"saving and loading models needs {missing}: pip install 'evenhand[io]'", name=missing
        ) from error
