"""The command line: ``evenhand train data.csv --target income --sensitive sex,race``."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli.demo import demo
from evenhand.cli.explore import explore
from evenhand.cli.judge import audit, certify
from evenhand.cli.options import Command
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
for command in (train, audit, certify, predict, explore, report, export, swaps, demo, reproduce):
    app.command(cls=Command)(command)


def _version(asked: bool) -> None:
    if asked:
        import evenhand

        typer.echo(f"evenhand {evenhand.__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Train, audit and certify models that treat similar people similarly. Each command's --help has an example."""
