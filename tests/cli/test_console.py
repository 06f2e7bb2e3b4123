"""What the commands share: errors as sentences and exit codes, progress in a pipe and on a terminal."""

import errno
import io
import json

import pytest
import typer

from evenhand.cli import console
from evenhand.cli.console import CURES, INTERNAL, INTERRUPTED, MISTAKE, Talk, UserError, guarded, print_json, told
from evenhand.tables.errors import TableError


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        (UserError("--rho must not be negative"), "--rho must not be negative", MISTAKE),
        (TableError("values are missing", "missing_sensitive"), "--missing-sensitive drop", MISTAKE),
        (ModuleNotFoundError("no module named 'altair'"), "pip install 'evenhand[", MISTAKE),
        (OSError(errno.ENOSPC, "No space left", "run/a"), "the disk is full (run/a): free some space", MISTAKE),
        (OSError(errno.EDQUOT, "Quota exceeded"), "the disk is full: free", MISTAKE),
        (PermissionError(errno.EACCES, "Permission denied", "run"), "run may not be read or written", MISTAKE),
        (OSError(errno.EROFS, "Read-only file system", "run"), "run may not be read or written", MISTAKE),
        (OSError(errno.EIO, "Input/output error", "run"), "Input/output error: run", MISTAKE),
        (MemoryError(), "MemoryError", MISTAKE),
        (AttributeError("'x'"), "internal error (AttributeError: 'x'); set EVENHAND_DEBUG=1", INTERNAL),
    ],
)  # fmt: skip
def test_errors_as_the_user_reads_them(error, text, code):
    said, given = told(error)
    assert text in said
    assert given == code


def test_every_cure_that_an_error_names_is_known():
    """A TableError's cure is a key of CURES: otherwise the user gets no option to mend it with."""
    import re
    from pathlib import Path

    package = Path(console.__file__).parents[1]
    named = {
        cure
        for path in package.rglob("*.py")
        for cure in re.findall(r'TableError\((?:[^()]|\([^()]*\))*,\s*"(\w+)",?\s*\)', path.read_text(), flags=re.S)
    }
    assert named >= {"separator", "overwrite", "proxy"}
    assert named <= set(CURES)


def test_guarded(capsys, monkeypatch):
    @guarded
    def stop():
        raise KeyboardInterrupt

    @guarded
    def fail():
        raise ValueError("no such thing")

    @guarded
    def leave():
        raise typer.Exit(3)

    for command, code, text in (
        (stop, INTERRUPTED, "stopped: What was"),
        (fail, MISTAKE, "error: no such"),
        (leave, 3, ""),
    ):
        with pytest.raises(typer.Exit) as left:
            command()
        assert left.value.exit_code == code
        assert capsys.readouterr().err.startswith(text)
    monkeypatch.setenv("EVENHAND_DEBUG", "1")
    with pytest.raises(ValueError, match="no such thing"):
        fail()


def test_progress_is_one_line_each_in_a_pipe_and_nothing_when_quiet(capsys):
    with Talk() as say:
        say("reading")
    assert capsys.readouterr().err.endswith(" s  reading\n")
    with Talk(quiet=True) as say:
        say("reading")
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_keeps_brackets(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with Talk() as say:
        say("column [x] is left out")
    assert "column [x] is left out" in screen.getvalue()


def test_json_and_tables(capsys):
    print_json({"a": float("nan"), "b": (1, 2)})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1, 2]}
    console.print_table("Title", ["name", "n"], [["long name", "1"], ["b", "22"]])
    assert capsys.readouterr().out == "Title\nname        n\nlong name   1\nb          22\n"
