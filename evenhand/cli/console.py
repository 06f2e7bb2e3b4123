"""What the commands share: progress on a terminal and plain lines in a pipe, errors without traceback, exit codes."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import typer

from evenhand.files import ModelFileError
from evenhand.tables.read import TableError
from evenhand.workflow.folder import plain

OK, REFUTED, MISTAKE, UNDECIDED, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 70, 130
EXIT_CODES = "Exit codes: 0 done, 2 a mistake in the data or the options, 130 stopped by Ctrl-C."

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
        except (TableError, ModelFileError, UserError, FileNotFoundError, PermissionError, NotADirectoryError) as error:
            fail(str(error), MISTAKE)
        except ModuleNotFoundError as error:
            fail(f"{error}; install what this command needs: pip install 'evenhand[cli,report,io,onnx]'", MISTAKE)
        except KeyboardInterrupt:
            fail("stopped. What was finished is kept: the same command goes on from there", INTERRUPTED)
        except (ValueError, MemoryError, ArithmeticError, RuntimeError) as error:
            if os.environ.get("EVENHAND_DEBUG"):
                raise
            fail(str(error) or type(error).__name__, MISTAKE)
        except OSError as error:
            fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), MISTAKE)
        except Exception as error:
            if os.environ.get("EVENHAND_DEBUG"):
                raise
            fail(f"internal error ({type(error).__name__}: {error}); set EVENHAND_DEBUG=1 for details", INTERNAL)

    return cast(F, wrapped)


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


def names(value: str | None) -> list[str]:
    """ "The comma-separated names, 'sex,race', as a list."""
    return [part.strip() for part in (value or "").split(",") if part.strip()]
