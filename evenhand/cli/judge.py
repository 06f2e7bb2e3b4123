"""evenhand audit and evenhand certify: what a model does to people, and what can be proved about it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evenhand.cli.console import OK, REFUTED, UNDECIDED, Talk, UserError, guarded, print_json
from evenhand.cli.options import Encoder, Json, Model, Seed, Table, given, grouped

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.headline import Bracketed

Rows = Annotated[int, typer.Option(min=1, help="At most so many rows, drawn at random.")]


@guarded
@grouped
def audit(
    model: Model,
    table: Table,
    sensitive: Annotated[str | None, typer.Option(help="Sensitive columns; a model of ours knows its own.")] = None,
    proxy: Annotated[
        bool | None,
        typer.Option(
            "--proxy/--no-proxy",
            help="What predicts the sensitive columns is free; by default for those that the model does not take.",
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="The columns that the model takes, in its order.")] = None,
    regression: Annotated[
        bool | None,
        typer.Option(
            "--regression/--classes", help="What the model gives; regressors of scikit-learn say it themselves."
        ),
    ] = None,
    attributes: Annotated[
        str | None, typer.Option(help="Another file with the sensitive columns: a row for each of DATA, in its order.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="The column that says who is who in DATA and --attributes.")] = None,
    eps: Annotated[float, typer.Option(min=0, help="Mean fair distance within which people count as similar.")] = 0.01,
    rows: Rows = 500,
    out: Annotated[Path | None, typer.Option(help="Write the worst-treated people to this CSV file.")] = None,
    encoder: Encoder = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Search for people whom the model treats differently from similar ones. A lower bound: it can show unfairness,
    never its absence. Works for any model, with gradients or without, whether it sees the sensitive columns or not.

    Example: evenhand audit run/model.evenhand people.csv

    Example: evenhand audit mymodels:boosting people.csv --sensitive sex,race

    Example: evenhand audit mymodels:boosting people.csv --attributes protected.csv --by id --sensitive sex

    Exit codes: 0 done, 2 a mistake in the data or the options.
    """  # fmt: skip
    from evenhand.cli.auditing import audited
    from evenhand.cli.models import open_model
    from evenhand.cli.text_model import judge_text_model, text_model
    from evenhand.tables.beside import with_columns_of
    from evenhand.tables.errors import find_columns
    from evenhand.workflow.foreign import Foreign

    if (texts := text_model(model, encoder)) is not None:
        _not_for_texts("sensitive", "proxy", "columns", "regression", "attributes", "by", "eps")
        frame = table.read(_say, one_column=True)
        frame = _some(frame, rows, seed) if given("rows") else frame
        return judge_text_model(texts, frame, as_json, out=out, encoder=encoder)

    with Talk(quiet=as_json) as say:
        frame = table.read(say)
        own = [str(name) for name in frame.columns]
        if attributes is not None:
            frame = with_columns_of(frame, table.beside(attributes), by)
        frame = _some(frame, rows, seed)
        names = [str(name) for name in frame.columns]
        taken = tuple(find_columns(columns, names, "model")) if columns else None
        chosen = find_columns(sensitive, names, "sensitive columns") if sensitive else None
        opened = open_model(model, taken, regression)
        if attributes is not None and isinstance(opened, Foreign):
            opened = opened.of_table(own)
        say(f"auditing {opened.name} on {len(frame):,} people")
        found = audited(opened, frame, chosen, proxy, eps, say)
    if out is not None:
        from evenhand.cli.use import escaped
        from evenhand.workflow import Folder

        Folder(out.parent).write(out.name, escaped(found.pairs).to_csv().encode())
    if as_json:
        people = [{"row": str(i), **dict(line)} for i, line in found.pairs.iterrows()]
        print_json({**found.numbers, "people": people})
        return
    sys.stdout.write(f"{found.numbers['statement']}\n{found.similar}\n")
    for name, one in found.numbers["questions"].items():
        what = "predictions move by more than a tenth of their spread" if found.quantities else "decisions change"
        sys.stdout.write(
            f"{one['share']:.1%} of the {what} when only {name} is altered (tried: {one['tried']})\n"
            if one["seen"]
            else f"no {what.split()[0][:-1]} can change when only {name} is altered: the model does not take it\n"
        )
    if len(found.pairs):
        sys.stdout.write(f"\nTreated most differently from a similar person (d_X <= {eps:g}):\n")
        for row, line in found.pairs.head(5).iterrows():
            decision = f"{line['prediction']} -> {line['prediction_worst']} (d_Y {line['d_Y']:.3g})"
            sys.stdout.write(f"  row {row}: {decision} if {line['changed']}\n")


@guarded
@grouped
def certify(
    model: Model,
    table: Table,
    sensitive: Annotated[str | None, typer.Option(help="Sensitive columns, for a model that is not ours.")] = None,
    proxy: Annotated[
        bool | None,
        typer.Option(
            "--proxy/--no-proxy",
            help="For a model that is not ours: what predicts the sensitive columns is free; by default for those that "
            "it does not take.",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns that a model of numbers takes, in its order.")
    ] = None,
    regression: Annotated[
        bool | None, typer.Option("--regression/--classes", help="What a model that is not ours gives.")
    ] = None,
    eps: Annotated[
        float, typer.Option(min=1e-12, help="Mean fair distance within which people count as similar.")
    ] = 0.01,
    delta: Annotated[float, typer.Option(min=0, help="The unfairness R(h) that is still accepted.")] = 0.1,
    relative: Annotated[
        float | None,
        typer.Option(min=0, help="Instead of --delta: R(h) as a share of how differently strangers are treated."),
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the statement.")] = 0.95,
    tuning: Annotated[
        str | None, typer.Option(help="Other people to tune the bound on; without it a fifth of the rows is used.")
    ] = None,
    distinct_people: Annotated[
        bool, typer.Option("--distinct-people", help="You vouch that rows equal to training rows are other people.")
    ] = False,
    rows: Rows = 1000,
    out: Annotated[Path | None, typer.Option(help="Write the certificate to this JSON file.")] = None,
    encoder: Encoder = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Prove with a confidence that R(h) is at most delta, or that it is more. The people must be new to the model: rows
    that one of ours was trained, chosen or tuned on are refused. Other networks, linear models and trees, alone or at
    the end of a Pipeline, are certified with the sensitive columns named.

    Example: evenhand certify run/model.evenhand new_people.csv --eps 0.01 --delta 0.05

    Example: evenhand certify run/model.evenhand new_people.csv --relative 0.05

    Example: evenhand certify mymodels:network new_people.csv --sensitive sex --relative 0.05

    Exit codes: 0 certified (R <= delta), 1 refuted (R > delta), 3 undecided, 2 a mistake in the data or the options.
    """
    from evenhand.cli.models import open_model
    from evenhand.cli.proving import prove_foreign, prove_ours
    from evenhand.cli.text_model import judge_text_model, text_model
    from evenhand.tables.errors import find_columns
    from evenhand.workflow import Folder, TableModel
    from evenhand.workflow.judging import seldom

    if (texts := text_model(model, encoder)) is not None:
        if relative is not None:
            raise UserError(
                "--relative is not for texts: what is bounded is a share of probability already; use --delta"
            )
        _not_for_texts("sensitive", "proxy", "columns", "regression", "eps", "tuning")
        frame = table.read(_say, one_column=True)
        frame = _some(frame, rows, seed) if given("rows") else frame
        return judge_text_model(texts, frame, as_json, delta, distinct_people, confidence, out, encoder)

    with Talk(quiet=as_json) as say:
        frame = _some(table.read(say), rows, seed)
        names = [str(name) for name in frame.columns]
        opened = open_model(model, tuple(find_columns(columns, names, "model")) if columns else None, regression)
        others = None if tuning is None else table.beside(tuning)
        statement = (eps, confidence, seldom(say, 5.0))
        if isinstance(opened, TableModel):
            if sensitive is not None or proxy is not None:
                raise UserError(
                    "a model of ours is certified with the metric of its training; leave --sensitive and --proxy out"
                )
            found = prove_ours(opened, frame, others, distinct_people, statement, say)
        else:
            chosen = find_columns(sensitive, names, "sensitive columns") if sensitive else []
            found = prove_foreign(opened, frame, others, chosen, proxy, statement, say)
    verdict = found.is_dif(delta) if relative is None else decided(found.relative, relative)
    code = {True: OK, False: REFUTED, "undecided": UNDECIDED}[verdict]
    word = {OK: "certified", REFUTED: "refuted", UNDECIDED: "undecided"}[code]
    limit = {"delta": delta} if relative is None else {"relative_limit": relative}
    document = {**json.loads(found.to_json()), **limit, "verdict": word}
    if out is not None:
        Folder(out.parent).write(out.name, json.dumps(document).encode())
    if as_json:
        print_json({k: v for k, v in document.items() if k not in ("each_low", "each_high", "rows")})
    else:
        relation = {OK: "<=", REFUTED: ">", UNDECIDED: "may be on either side of"}[code]
        strangers = "of how differently strangers are treated"
        said = f"R(h) {relation} {delta:g}" if relative is None else f"R(h) {relation} {relative:.3g} {strangers}"
        sys.stdout.write(f"{found.headline}.\n{found}\n{word}: {said}\n")
    raise typer.Exit(code)


def decided(share: Bracketed | None, limit: float) -> bool | Literal["undecided"]:
    """Whether a number is at most ``limit``, by its bounds; where strangers are treated alike there is none."""
    if share is None or share.lower <= limit < share.upper:
        return "undecided"
    return share.upper <= limit


def _some(frame: pd.DataFrame, rows: int, seed: int) -> pd.DataFrame:
    """So many rows in random order: statements must not depend on how a table was sorted."""
    from evenhand.dual.order import own_order

    return frame.iloc[own_order(frame, seed)[:rows]]


def _not_for_texts(*options: str) -> None:
    """The model of texts knows its own versions, and they are all that is looked at."""
    for option in options:
        if given(option):
            raise UserError(
                f"--{option.replace('_', '-')} is not for a model of texts, whose versions say who is similar; "
                "leave it out"
            )


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
