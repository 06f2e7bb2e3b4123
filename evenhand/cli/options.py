"""Options that several commands share, in groups, and reading the table that they name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from typer import BadParameter
from typer.core import TyperCommand, TyperOption
from typer.models import OptionInfo

from evenhand.cli.console import UserError

if TYPE_CHECKING:
    import pandas as pd

KEYWORD_ONLY = Parameter.KEYWORD_ONLY
STDIN = "-"
LISTS = ("sensitive", "proxy_for", "keep", "ignore", "columns", "beside")  # columns separated by commas
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on standard output, and nothing else there.")
]
Seed = Annotated[int, typer.Option(help="Seed of everything random: the same seed gives the same result.")]
Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", help="CSV, TSV, parquet, Excel or JSON lines, compressed or not; - is standard input."
    ),
]
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="model.evenhand, model.text, a run folder, model.onnx, or module:object.")
]

Encoder = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="The folder of the encoder of a model of texts, where it has moved."),
]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters may be dataclasses of options: each field becomes an option of its own, in the order
    of the parameters, and --help shows them under the dataclass's ``TITLE``."""
    hints = get_type_hints(command, include_extras=True)
    parts: dict[str, list[Parameter]] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        options = _options(kind) if is_dataclass(kind) else [parameter.replace(annotation=kind)]
        parts[parameter.name] = [one.replace(kind=KEYWORD_ONLY) for one in options]

    @wraps(command)
    def flat(**given: Any) -> None:
        taken: dict[str, Any] = {}
        for name, options in parts.items():
            values = {one.name: given[one.name] for one in options if one.name in given}
            taken |= {name: hints[name](**values)} if is_dataclass(hints[name]) else values
        command(**taken)

    every = [one for options in parts.values() for one in options]
    flat.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    flat.__annotations__ = {one.name: one.annotation for one in every}
    return flat


def given(name: str) -> bool:
    """Whether the running command was told this option, and does not use its default."""
    home = typer.Context.__mro__[1].__module__.rpartition(".")[0]  # click, or the copy of it that newer typer brings
    context = import_module(f"{home}.globals").get_current_context(silent=True)
    source = None if context is None else context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


class Command(TyperCommand):
    """A command that takes no option twice: lists of columns are joined, and of anything else the last would silently
    win."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._once(ctx, args))

    def _once(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = {
            flag: option
            for option in self.params
            if isinstance(option, TyperOption) and not option.is_flag and not option.multiple
            for flag in option.opts
        }
        kept: list[str] = []
        place: dict[str, int] = {}  # where the value of an option stands
        rest = iter(args)
        for arg in rest:
            flag, equals, value = arg.partition("=")
            option = takes_value.get(flag)
            if arg == "--" or option is None:
                kept += [arg, *rest] if arg == "--" else [arg]
                continue
            given = value if equals else next(rest, None)
            name = str(option.name)
            if given is None:  # without a value: the parser says so
                kept.append(arg)
            elif name not in place:
                kept += [flag, given]
                place[name] = len(kept) - 1
            elif name in LISTS:
                kept[place[name]] += f",{given}"
            else:
                raise BadParameter("it is given twice; give it once", ctx, option)
        return kept


def without_passwords(text: str) -> str:
    """The same without what stands between name and server in postgresql://me:secret@server/people, and in
    ?password=secret: reports are passed on."""
    text = re.sub(r"(://[^\s:/@]*):[^\s@/]*(?:@[^\s@/]*)*@", r"\1:***@", text)
    return re.sub(r"(?i)([?&](?:password|passwd|pwd|token|sslpassword)=)[^&\s'\"]*", r"\1***", text)


def _options(group: Any) -> list[Parameter]:
    """The fields of a dataclass as parameters of a function."""
    hints = get_type_hints(group, include_extras=True)
    found = []
    for field in fields(group):
        kind, said = get_args(hints[field.name])
        said = copy(said)  # options such as --seed are in several groups
        if isinstance(said, OptionInfo):
            said.rich_help_panel = group.TITLE
        default = Parameter.empty if field.default is MISSING else field.default
        found.append(Parameter(field.name, KEYWORD_ONLY, default=default, annotation=Annotated[kind, said]))
    return found


@dataclass(frozen=True)
class Table:
    """The table of people: a file, standard input or a query."""

    TITLE = "Reading the table"

    data: Data = None
    separator: Annotated[str | None, typer.Option(help="Field separator; found by itself when not given.")] = None
    decimal: Annotated[str | None, typer.Option(help="Decimal sign, '.' or ','; found by itself when not given.")] = (
        None
    )
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The first line is data; columns are called 'column 1', 'column 2', ...")
    ] = False
    sql: Annotated[str | None, typer.Option(help="A query to read the table from, instead of DATA; with --url.")] = None
    url: Annotated[str | None, typer.Option(help="The database of --sql, such as sqlite:///people.db.")] = None

    @property
    def shown(self) -> str:
        """What the report calls it; the folder that it lay in is nobody's business."""
        return (
            "a database" if self.data is None else "standard input" if self.data == STDIN else PurePath(self.data).name
        )

    @property
    def how(self) -> dict[str, Any]:
        """How to read it again, where that is not what the reader finds by itself; no password is kept."""
        if self.sql is not None:
            return {"sql": self.sql, "url": without_passwords(self.url or "")}
        given = {"separator": self.separator, "decimal": self.decimal, "header": False if self.no_header else None}
        return {name: value for name, value in given.items() if value is not None}

    def read(self, say: Callable[[str], None] | None = None, *, one_column: bool = False) -> pd.DataFrame:
        """The table that the options name; what was altered on the way is said. one_column: it may have but one."""
        from evenhand.tables import read_sql

        if (self.sql is None) == (self.data is None):
            raise UserError("give either DATA or --sql with --url")
        if self.sql is not None:
            if self.url is None:
                raise UserError("--sql needs --url, such as sqlite:///people.db")
            frame = read_sql(self.sql, self.url)
        else:
            frame = self.beside(str(self.data), one_column=one_column)
        if say is not None:
            for note in frame.attrs.get("notes", []):
                say(note)
        return frame

    def beside(self, path: str, *, one_column: bool = False) -> pd.DataFrame:
        """Another file in the same form."""
        from evenhand.tables import read_table

        return read_table(
            path, separator=self.separator, decimal=self.decimal, header=not self.no_header, one_column=one_column
        )
