"""Options in groups: a dataclass of options is so many options of the command, each under its group's title."""

import sqlite3
from dataclasses import dataclass
from typing import Annotated

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from evenhand.cli.console import UserError
from evenhand.cli.options import Command, Seed, Table, grouped, without_passwords


@dataclass(frozen=True)
class Size:
    TITLE = "How large"

    width: Annotated[int, typer.Option(min=1)]
    seed: Seed = 3


def test_every_field_is_an_option(monkeypatch):
    seen = []

    @grouped
    def draw(name: Annotated[str, typer.Argument()], size: Size, loud: Annotated[bool, typer.Option("--loud")] = False):
        """Draws."""
        seen.append((name, size, loud))

    @grouped
    def plain(seed: Seed = 0):
        """Has --seed outside of any group."""

    app = typer.Typer()
    app.command()(draw)
    app.command()(plain)
    run = CliRunner().invoke
    assert run(app, ["draw", "box", "--width", "4"]).exit_code == 0
    assert run(app, ["draw", "box", "--width", "5", "--seed", "1", "--loud"]).exit_code == 0
    assert seen == [("box", Size(4, 3), False), ("box", Size(5, 1), True)]
    assert run(app, ["draw", "box"]).exit_code == 2  # --width has no default
    assert run(app, ["draw", "box", "--width", "0"]).exit_code == 2
    assert "How large" in run(app, ["draw", "--help"]).output
    assert "How large" not in run(app, ["plain", "--help"]).output  # a shared option keeps no title of another's


def test_tables_from_files_and_databases(tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    frame.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    table = Table(str(tmp_path / "t.csv"))
    pd.testing.assert_frame_equal(table.read(), frame)
    assert table.shown == "t.csv"
    headless = Table(str(tmp_path / "t.csv"), no_header=True).read()
    assert headless.columns.tolist() == ["column 1", "column 2"]
    with sqlite3.connect(tmp_path / "t.db") as connection:
        frame.to_sql("people", connection, index=False)
    connection.close()
    query = Table(sql="select a, a from people", url=f"sqlite:///{tmp_path / 't.db'}")
    notes = []
    assert query.read(notes.append).columns.tolist() == ["a", "a (2)"]
    assert "more than one column 'a'" in notes[0]
    assert (query.shown, Table("-").shown) == ("a database", "standard input")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (Table(), "give either DATA or --sql"),
        (Table("a.csv", sql="select 1", url="sqlite:///x"), "give either DATA or --sql"),
        (Table(sql="select 1"), "--sql needs --url"),
    ],
)
def test_mistakes(table, message):
    with pytest.raises(UserError, match=message):
        table.read()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgresql://me:s3cret@db.example/people", "postgresql://me:***@db.example/people"),
        ("mysql+pymysql://me:p@ss:w@db/people", "mysql+pymysql://me:***@db/people"),
        ("--url 'mssql://db/people?user=me&password=s3cret&x=1'", "--url 'mssql://db/people?user=me&password=***&x=1'"),
        ("sqlite:///hr.db", "sqlite:///hr.db"),
        ("people.csv --target a@b", "people.csv --target a@b"),
    ],
)
def test_no_password_is_passed_on(text, kept):
    assert without_passwords(text) == kept


def test_how_a_table_was_read():
    assert Table("people.csv").how == {}
    assert Table("p.data", separator=" ", no_header=True).how == {"separator": " ", "header": False}
    assert Table(sql="select 1", url="x://me:s@db").how == {"sql": "select 1", "url": "x://me:***@db"}


def parsed(args):
    """What a command makes of these arguments."""
    app, seen = typer.Typer(), {}

    @app.command(cls=Command)
    def one(data: str, sensitive: str = "", seed: int = 0, quiet: bool = False) -> None:
        seen.update(data=data, sensitive=sensitive, seed=seed, quiet=quiet)

    return CliRunner().invoke(app, args), seen


def test_lists_given_in_pieces_are_joined():
    done, seen = parsed(["t.csv", "--sensitive", "sex", "--quiet", "--sensitive=race,age", "--seed", "3"])
    assert done.exit_code == 0
    assert seen == {"data": "t.csv", "sensitive": "sex,race,age", "seed": 3, "quiet": True}
    assert parsed(["--seed=4", "--", "--sensitive"])[1]["data"] == "--sensitive"  # after -- nothing is an option


def test_nothing_else_is_given_twice():
    done, seen = parsed(["t.csv", "--seed", "3", "--seed", "4"])
    assert (done.exit_code, seen) == (2, {})
    assert "given twice" in done.output
    assert parsed(["t.csv", "--seed"])[0].exit_code == 2
