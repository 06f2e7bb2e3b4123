"""Outside of compiled graphs: a search asks its tensors questions at every step, and cannot be part of one."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import CodeType
from typing import Any, TypeVar, cast

import torch

Called = TypeVar("Called", bound=Callable[..., Any])

_thread = threading.local()  # whether it is outside of compiled graphs already


def not_compiled(function: Called) -> Called:
    """The function, which a step that ``torch.compile`` compiles calls as it is, in one break of its graph.

    ``torch.compiler.disable`` does this, but imports the compiler, which takes longer than all of torch. So it is asked
    only when somebody else has imported it: nothing is compiled before.
    """
    disabled: list[Any] = []

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if "torch._dynamo" not in sys.modules or getattr(_thread, "outside", False):
            return function(*args, **kwargs)
        if not disabled:
            disable: Any = torch.compiler.disable
            disabled.append(disable(function))
        _thread.outside = True  # and so is whatever the function calls
        try:
            return disabled[0](*args, **kwargs)
        finally:
            _thread.outside = False

    marked: Any = called
    marked._torchdynamo_disable = True  # no part of the graph of who calls it, ...
    _skip(marked.__code__)  # ... nor a graph of its own
    return cast(Called, called)


def _skip(code: CodeType) -> None:
    """The compiler passes by frames of this code, whose calls it still looks at. A torch that has no such thing, or has
    it elsewhere, breaks its graph once more."""
    frames: Any = torch._C._dynamo.eval_frame
    with suppress(AttributeError):
        if hasattr(frames, "skip_code"):
            frames.skip_code(code)
        else:
            action = frames._FrameAction
            frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))
