"""The command line: ``evenhand train data.csv --target income --sensitive sex,race``."""

from __future__ import annotations

import typer

from evenhand.cli.demo import demo
from evenhand.cli.judge import audit, certify
from evenhand.cli.text import swaps
from evenhand.cli.train import train
from evenhand.cli.use import export, predict, report, reproduce

app = typer.Typer(
    name="evenhand",
    help="Train, audit and certify models that treat similar people similarly. Each command's --help has an example.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (train, audit, certify, predict, report, export, swaps, demo, reproduce):
    app.command()(command)
