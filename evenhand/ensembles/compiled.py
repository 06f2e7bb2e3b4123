"""numba where it is installed; plain Python, the same results and slower, where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

try:
    import numba
except ImportError:  # the kernels are ordinary Python functions
    numba = None


def compiled(function: F) -> F:
    """The function as machine code, compiled at its first call and kept on disk."""
    return function if numba is None else numba.njit(cache=True)(function)
