"""What the commands share: progress on a terminal and plain lines in a pipe, errors without traceback, exit codes.

Nothing here, or at the top of a command's file, imports torch or pandas: --help has to answer at once.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import typer

OK, REFUTED, MISTAKE, UNDECIDED, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 70, 130

# What a library's error may be cured with -> the options that do it
CURES = {
    "separator": "for example --separator ';'",
    "header": "if the first line is data, say --no-header",
    "sensitive": "for example --sensitive sex,race",
    "missing_sensitive": "--missing-sensitive drop leaves these people out, --missing-sensitive category "
    "makes them a group",
    "overwrite": "--out names another folder, --overwrite uses this one",
    "proxy": "--proxy-for names the sensitive columns to learn it for; --see-sensitive --no-proxy learns none",
    "columns": "--columns a,b,c",
    "by": "--by COLUMN",
    "regression": "--regression",
    "keep": "--keep uses a column all the same, --keep-dates uses dates as days",
}

F = TypeVar("F", bound=Callable[..., Any])


class UserError(ValueError):
    """A mistake of the user: what, where, how to mend it."""


def guarded(command: F) -> F:
    """Run a command; mistakes end in one message and an exit code, never in a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort):  # they are RuntimeErrors
            raise
        except BrokenPipeError:  # `| head` has read enough: nobody is there to be told
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(OK) from None
        except KeyboardInterrupt:
            fail("What was finished is kept: the same command goes on from there", INTERRUPTED)
        except Exception as error:
            if os.environ.get("EVENHAND_DEBUG"):
                raise
            fail(*told(error))

    return cast(F, wrapped)


def told(error: Exception) -> tuple[str, int]:
    """An error as the user reads it, and its exit code."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error}; install what this command needs: pip install 'evenhand[cli,report,io,onnx]'", MISTAKE
    if isinstance(error, ValueError | MemoryError | ArithmeticError | RuntimeError):
        cure = CURES.get(getattr(error, "cure", None) or "")
        text = str(error) or type(error).__name__
        return (f"{text.rstrip('.')}: {cure}" if cure else text), MISTAKE
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        where = f" ({error.filename})" if error.filename else ""
        cure = "free some space and give the same command again; what was finished is kept"
        return f"the disk is full{where}: {cure}", MISTAKE
    if isinstance(error, PermissionError) or (isinstance(error, OSError) and error.errno == errno.EROFS):
        what = error.filename or "a file"
        return f"{what} may not be read or written ({error.strerror}); name another place", MISTAKE
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return str(error), MISTAKE
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), MISTAKE
    return f"internal error ({type(error).__name__}: {error}); set EVENHAND_DEBUG=1 for details", INTERNAL


def over_ranks(command: Callable[..., None]) -> Callable[..., None]:
    """A command that torchrun may start several times: one run, one folder, one voice."""

    @functools.wraps(command)
    def joined(**options: Any) -> None:
        from evenhand.ranks import over_ranks as join

        join(command)(**options)

    return joined


def fail(message: str, code: int) -> None:
    """One red word on a terminal, plain text elsewhere."""
    word = "stopped" if code == INTERRUPTED else "error"
    if sys.stderr.isatty():
        word = f"\033[1;31m{word}\033[0m"
    sys.stderr.write(f"{word}: {message}\n")
    raise typer.Exit(code)


class Talk:
    """Progress lines on standard error: with a spinner on a terminal, one line each in a pipe, silent on request."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet, self.started = quiet, time.perf_counter()
        self.status: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console

            self.console = Console(stderr=True, highlight=False)
            self.status = self.console.status("starting", spinner="dots")
            self.status.start()

    def __call__(self, text: str) -> None:
        if self.quiet:
            return
        line = f"{time.perf_counter() - self.started:5.0f} s  {text}"
        if self.status is not None:
            self.console.print(line, markup=False)
            self.status.update(text.replace("[", "\\["))
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.status is not None:
            self.status.stop()


def print_json(value: Any) -> None:
    """JSON on standard output, for machines."""
    from evenhand.workflow.folder import plain

    sys.stdout.write(json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n")


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output: rich on a terminal, aligned text in a pipe."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
        for i, name in enumerate(head):
            table.add_column(Text(name), justify="left" if i == 0 else "right")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        Console(highlight=False).print(table)
        return
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    sys.stdout.write(f"{title}\n")
    for row in [head, *rows]:
        cells = [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
