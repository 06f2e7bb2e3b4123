"""The command line: ``evenhand train data.csv --target income --sensitive sex,race``."""

from __future__ import annotations

import typer

from evenhand.cli.demo import demo
from evenhand.cli.train import train

app = typer.Typer(
    name="evenhand",
    help="Train, audit and certify models that treat similar people similarly.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(train)
app.command()(demo)
