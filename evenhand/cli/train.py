"""evenhand train: from a table to a folder with a fair model, its certificate and a report."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import Talk, UserError, guarded, over_ranks, print_json, print_table
from evenhand.cli.options import Data, Decimal, Json, NoHeader, Seed, Separator, Sql, Url, read

if TYPE_CHECKING:
    from evenhand.workflow import Task

BIG = 200_000  # rows above which the sweep runs in this process, to save memory


@guarded
@over_ranks
def train(
    data: Data = None,
    target: Annotated[str, typer.Option(help="The column to predict: a class, or a number.")] = "",
    sensitive: Annotated[str, typer.Option(help="Sensitive columns, separated by commas.")] = "",
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("run"),
    see_sensitive: Annotated[
        bool, typer.Option("--see-sensitive", help="Let the model use the sensitive columns as features, too.")
    ] = False,
    proxy: Annotated[
        bool | None,
        typer.Option(
            "--proxy/--no-proxy",
            help="Neutralise what predicts the sensitive columns; by default, unless --see-sensitive.",
        ),
    ] = None,
    proxy_for: Annotated[str | None, typer.Option(help="--proxy for these sensitive columns only.")] = None,
    rho: Annotated[
        str, typer.Option(help="Weight of fairness: 'auto', one number, or several to choose from.")
    ] = "auto",
    eps: Annotated[
        float, typer.Option(help="Mean fair distance within which people count as similar, in training.")
    ] = 0.1,
    eps_certified: Annotated[float, typer.Option(help="The same for the audit and the certificate.")] = 0.01,
    max_accuracy_loss: Annotated[
        float, typer.Option(help="Balanced accuracy (or R2) that may be given up against the best other model.")
    ] = 0.03,
    threshold: Annotated[
        str, typer.Option(help="Probability from which on to decide for the second class, or 'balanced'.")
    ] = "balanced",
    positive: Annotated[
        str | None, typer.Option(help="The class that counts as being selected; by default the last.")
    ] = None,
    regression: Annotated[
        bool | None,
        typer.Option(
            "--regression/--classes", help="What the target is; by default a number of over 20 values is one."
        ),
    ] = None,
    missing_sensitive: Annotated[
        str, typer.Option(help="Rows without a sensitive value: 'error', 'drop', or 'category' (a group of its own).")
    ] = "error",
    show_people: Annotated[
        str, typer.Option(help="Single people in the report: 'id' (row and difference), 'all' (whole record), 'none'.")
    ] = "id",
    keep: Annotated[
        str | None, typer.Option(help="Use these columns, though they look like leaks or identifiers.")
    ] = None,
    keep_dates: Annotated[
        bool, typer.Option("--keep-dates", help="Use dates, as days, instead of dropping them.")
    ] = False,
    ignore: Annotated[str | None, typer.Option(help="Columns that must not be used, separated by commas.")] = None,
    hidden: Annotated[str, typer.Option(help="Widths of the hidden layers, for example 100 or 64,32.")] = "100",
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each network.")] = 800,
    trees: Annotated[int, typer.Option(min=1, help="Most boosting rounds of boosted trees.")] = 200,
    model: Annotated[
        str, typer.Option(help="Kind of the fair model: 'network', 'trees', or 'both', to choose between them.")
    ] = "network",
    certificate: Annotated[bool, typer.Option(help="Certify the model (about a minute).")] = True,
    audit_rows: Annotated[
        int | None,
        typer.Option(min=1, help="Held-out people whose worst case is searched; by default 400, fewer in wide tables."),
    ] = None,
    certify_rows: Annotated[
        int | None,
        typer.Option(min=20, help="Held-out people that the certificate looks at; by default 500, or fewer."),
    ] = None,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes for the sweep over rho.")] = min(2, os.cpu_count() or 1),
    separator: Separator = None,
    decimal: Decimal = None,
    no_header: NoHeader = False,
    sql: Sql = None,
    url: Url = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Use a folder that holds something else.")] = False,
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Also log the run to MLflow (pip install mlflow).")] = False,
    as_json: Json = False,
    text: Annotated[
        str | None, typer.Option(help="The column of texts: trains a classifier of texts instead; see --swap.")
    ] = None,
    swap: Annotated[
        str | None,
        typer.Option(help="With --text: identity, categories, gender, names, or a file with one token a line."),
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="With --text: a sentence-transformers model.")] = None,
    abuse: Annotated[
        bool, typer.Option("--abuse", help="With --text: the second class is abuse; train on plain mentions too.")
    ] = False,
) -> None:
    """Train a model that treats similar people similarly, and write one folder: model, metric, metrics.json,
    certificate.json, frontier.csv, report.html, model_card.md.

    Example: evenhand train adult.csv --target income --sensitive sex,race --out run

    Example: evenhand train comments.csv --text comment --target toxic --swap identity --abuse

    The sensitive columns are no features: they teach who counts as similar, and judge the result. Ctrl-C leaves a
    folder from which the same command goes on.

    Exit codes: 0 done, 2 a mistake in the data or the options, 130 stopped by Ctrl-C.
    """
    if text is not None:
        from evenhand.cli.text import train_text

        if data is None or not target:
            raise UserError("--text needs DATA and --target")
        train_text(
            Path(data),
            text,
            target,
            swap,
            encoder,
            out,
            rho=rho,
            seed=seed,
            abuse=abuse,
            overwrite=overwrite,
            as_json=as_json,
            separator=separator,
            decimal=decimal,
        )
        return
    if not target or not sensitive:
        raise UserError(
            "say what to predict and who may not be treated differently: --target COLUMN --sensitive COLUMN,..."
        )
    if missing_sensitive not in ("error", "drop", "category"):
        raise UserError(f"--missing-sensitive is 'error', 'drop' or 'category', got {missing_sensitive!r}")
    if show_people not in ("id", "all", "none"):
        raise UserError(f"--show-people is 'id', 'all' or 'none', got {show_people!r}")
    if model not in ("network", "trees", "both"):
        raise UserError(f"--model is 'network', 'trees' or 'both', got {model!r}")
    if eps < 0 or eps_certified <= 0:
        raise UserError("--eps must be at least 0 and --eps-certified positive")
    with Talk(quiet=as_json) as say:
        say(f"reading {data or 'the database'}")
        frame = read(data, separator, decimal, no_header, sql, url, say)
        options = {
            **_columns(frame, target, sensitive, proxy_for, ignore, keep),
            "see_sensitive": see_sensitive,
            "missing_sensitive": missing_sensitive,
            "keep_dates": keep_dates,
            "regression": regression,
            "seed": seed,
        }
        options.setdefault("proxy", proxy)
        from evenhand.workflow import Folder, Settings, fingerprint, prepare, run
        from evenhand.workflow.output import data_hash, summary, write_results

        settings = Settings(
            **_rhos(rho), model=model, eps=eps, eps_certified=eps_certified, max_accuracy_loss=max_accuracy_loss,
            hidden=_widths(hidden), steps=steps, trees=trees, seed=seed, certificate=certificate, audit_rows=audit_rows,
            certify_rows=certify_rows, threshold=_threshold(threshold), positive=positive, show_people=show_people,
        )  # fmt: skip
        task = prepare(frame, **options)
        _tell(task, say)
        code = fingerprint(frame, {**options, "settings": settings.__dict__})
        made_by = {
            "command": shlex.join(["evenhand", *sys.argv[1:]]),
            "data": _shown(data),
            "path": data,
            "out": str(out),
            "rows": len(frame),
            "seed": seed,
            "sha256": data_hash(data, frame),
        }
        folder = Folder(out)
        with folder.alone():
            if folder.open(code, overwrite):
                say(f"going on with the run in {out}")
            jobs = 1 if len(frame) > BIG else jobs
            del frame
            results = run(task, settings, folder, say, jobs)
            write_results(folder, task, results, made_by)
        if mlflow:
            from evenhand.workflow.mlflow_log import log_run

            log_run(folder)
    if as_json:
        print_json(summary(folder))
        return
    show(results.metrics, results.certificate)
    sys.stdout.write(f"\nReport: {out / 'report.html'}   model: {out / 'model.evenhand'}\n")


def show(metrics: dict[str, Any], certificate: dict[str, Any] | None) -> None:
    """The result in a few lines."""
    from evenhand.report.findings import line_of
    from evenhand.workflow import NAMES

    lines = {NAMES[name]: line_of(m) for name, m in metrics["models"].items()}
    head = ["model", *next(iter(lines.values()))]
    first = next(iter(metrics["models"].values()))
    print_table(f"On {first['n']:,} held-out people:", head, [[name, *line.values()] for name, line in lines.items()])
    sys.stdout.write(f"\nChosen: {metrics['chosen']['why']}\n")
    if certificate is not None:
        sentence = certificate.get("statement") or f"No certificate: {certificate['refused']}"
        sys.stdout.write(f"Certificate of the fair model: {sentence}\n")


def _columns(
    frame: Any, target: str, sensitive: str, proxy_for: str | None, ignore: str | None, keep: str | None
) -> dict[str, Any]:
    """The columns that the options name; a name may hold commas."""
    from evenhand.tables.errors import find_column, find_columns

    names = [str(name) for name in frame.columns]
    found: dict[str, Any] = {
        "target": find_column(target, names, "target"),
        "sensitive": find_columns(sensitive, names, "sensitive columns"),
        "ignore": find_columns(ignore or "", names, "columns to ignore"),
        "keep": find_columns(keep or "", names, "columns to keep"),
    }
    if proxy_for:
        found["proxy"] = find_columns(proxy_for, names, "proxies")
    return found


def _tell(task: Task, say: Any) -> None:
    """What became of the table."""
    for column in task.schema.columns:
        if column.kind in ("dropped", "date"):
            hint = (
                "; --keep-dates uses it"
                if column.kind == "date"
                else "; --keep uses it"
                if "alone" in column.note
                else ""
            )
            say(f"column {column.name!r} is left out: {column.note}{hint}")
    for why, count in task.left_out.items():
        say(f"{count:,} rows left out: {why}")
    for note in task.notes:
        say(note)
    kinds = [column.kind for column in task.schema.used]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("number", "binary", "category") if kind in kinds)
    say(f"{sum(len(p.y) for p in task.parts.values()):,} rows; columns that the model sees: {counts}")
    for proxy in task.proxies:
        say(
            f"the other columns take away {proxy.explained:.0%} of the uncertainty about {proxy.name}; what "
            "does is free"
        )


def _rhos(text: str) -> dict[str, Any]:
    """The weights to try: each kind's own, or the given ones for both."""
    if text == "auto":
        return {}
    try:
        values = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        raise UserError(f"--rho is 'auto' or numbers such as 5 or 1,5,20; got {text!r}") from None
    if not all(value >= 0 for value in values):
        raise UserError(f"--rho must not be negative; got {text!r}")
    return {"rho": values, "tree_rho": values}


def _threshold(text: str) -> float | None:
    if text == "balanced":
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UserError(f"--threshold is 'balanced' or a probability between 0 and 1; got {text!r}")
    return value


def _widths(text: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        widths = ()
    if not widths or min(widths) < 1:
        raise UserError(f"--hidden is one or more widths such as 100 or 64,32; got {text!r}")
    return widths


def _shown(data: str | None) -> str:
    return "a database" if data is None else "standard input" if data == "-" else Path(data).name
