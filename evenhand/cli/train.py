"""evenhand train: from a table to a folder with a fair model, its certificate and a report."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.console import Talk, UserError, guarded, names, print_json, print_table
from evenhand.cli.text import train_text
from evenhand.ranks import over_ranks
from evenhand.tables.read import read_table
from evenhand.workflow import METHODS, Folder, Settings, fingerprint, prepare, run
from evenhand.workflow.output import summary, write_results

BIG = 200_000  # rows above which the sweep runs in this process, to save memory

Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on standard output, and nothing else there.")
]
Seed = Annotated[int, typer.Option(help="Seed of everything random: the same seed gives the same result.")]
Separator = Annotated[str | None, typer.Option(help="Field separator; found by itself when not given.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal sign, '.' or ','; found by itself when not given.")]


@guarded
@over_ranks
def train(
    data: Annotated[Path, typer.Argument(help="CSV, TSV or parquet, compressed or not.")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    sensitive: Annotated[
        str | None, typer.Option(help="Sensitive columns, separated by commas; not needed with --text.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("run"),
    proxy: Annotated[
        bool, typer.Option("--proxy/--no-proxy", help="Also neutralise what predicts the sensitive columns.")
    ] = False,
    proxy_for: Annotated[str | None, typer.Option(help="--proxy for these sensitive columns only.")] = None,
    rho: Annotated[
        str, typer.Option(help="Weight of fairness: 'auto', one number, or several to choose from.")
    ] = "auto",
    eps: Annotated[
        float, typer.Option(help="Mean fair distance within which people count as similar, in training.")
    ] = 0.1,
    eps_certified: Annotated[float, typer.Option(help="The same for the audit and the certificate.")] = 0.01,
    max_accuracy_loss: Annotated[
        float, typer.Option(help="Balanced accuracy that may be given up when rho is chosen.")
    ] = 0.03,
    missing_sensitive: Annotated[
        str, typer.Option(help="Rows without a sensitive value: 'error', 'drop', or 'category' (a group of its own).")
    ] = "error",
    keep_dates: Annotated[
        bool, typer.Option("--keep-dates", help="Use dates, as days, instead of dropping them.")
    ] = False,
    ignore: Annotated[str | None, typer.Option(help="Columns that must not be used, separated by commas.")] = None,
    hidden: Annotated[str, typer.Option(help="Widths of the hidden layers, for example 100 or 64,32.")] = "100",
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each model.")] = 800,
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

    Example: evenhand train adult.csv --target income --sensitive sex,race --proxy --out run

    Example: evenhand train comments.csv --text comment --target toxic --swap identity --abuse

    Ctrl-C leaves a folder from which the same command goes on.

    Exit codes: 0 done, 2 a mistake in the data or the options, 130 stopped by Ctrl-C.
    """
    if text is not None:
        train_text(
            data,
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
    if sensitive is None:
        raise UserError("--sensitive names the sensitive columns of a table; with --text it is not needed")
    if missing_sensitive not in ("error", "drop", "category"):
        raise UserError(f"--missing-sensitive is 'error', 'drop' or 'category', got {missing_sensitive!r}")
    if eps < 0 or eps_certified <= 0:
        raise UserError("--eps must be at least 0 and --eps-certified positive")
    settings = Settings(
        rho=_rhos(rho),
        eps=eps,
        eps_certified=eps_certified,
        max_accuracy_loss=max_accuracy_loss,
        hidden=_widths(hidden),
        steps=steps,
        seed=seed,
        certificate=certificate,
        audit_rows=audit_rows,
        certify_rows=certify_rows,
    )
    folder = Folder(out)
    with Talk(quiet=as_json) as say:
        say(f"reading {data}")
        frame = read_table(data, separator=separator, decimal=decimal)
        options: dict[str, Any] = {
            "target": target,
            "sensitive": names(sensitive),
            "proxy": names(proxy_for) or proxy,
            "missing_sensitive": missing_sensitive,
            "keep_dates": keep_dates,
            "ignore": names(ignore),
            "seed": seed,
        }
        task = prepare(frame, **options)
        _tell_columns(task, say)
        code = fingerprint(frame, {**options, "settings": settings.__dict__})
        if folder.open(code, overwrite):
            say(f"going on with the run in {out}")
        rows = len(frame)
        del frame
        results = run(task, settings, folder, say, jobs=1 if rows > BIG else jobs)
        made_by = {"command": shlex.join(["evenhand", *sys.argv[1:]]), "data": data.name, "rows": rows, "seed": seed}
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
    questions = metrics["questions"]
    rows = [
        [
            METHODS[name],
            f"{m['balanced_accuracy']:.3f}",
            *(f"{100 * m['changed'][q]['share']:.1f}" for q in questions),
            *(f"{g['rms']:.3f}" for g in m["gaps"].values()),
            f"{m['audit']['r_low']:.4f}",
        ]
        for name, m in metrics["models"].items()
    ]
    first = next(iter(metrics["models"].values()))
    head = [
        "model",
        "bal. acc.",
        *(f"% change by {q}" for q in questions),
        *(f"gap {a}" for a in first["gaps"]),
        "R found",
    ]
    print_table(f"On {first['n']:,} held-out people:", head, rows)
    sys.stdout.write(f"\nChosen: {metrics['chosen']['why']}\n")
    if certificate is not None:
        sentence = certificate.get("statement") or f"No certificate: {certificate['refused']}"
        sys.stdout.write(f"Certificate of the fair model: {sentence}\n")


def _tell_columns(task: Any, say: Any) -> None:
    for column in task.schema.columns:
        if column.kind in ("dropped", "date"):
            hint = "; --keep-dates uses it" if column.kind == "date" else ""
            say(f"column {column.name!r} is left out: {column.note}{hint}")
    for why, count in task.left_out.items():
        say(f"{count:,} rows left out: {why}")
    kinds = [column.kind for column in task.schema.used]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("number", "binary", "category") if kind in kinds)
    say(f"{sum(len(p.y) for p in task.parts.values()):,} rows; columns: {counts}")


def _rhos(text: str) -> tuple[float, ...]:
    if text == "auto":
        return Settings().rho
    try:
        values = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        raise UserError(f"--rho is 'auto' or numbers such as 5 or 1,5,20; got {text!r}") from None
    if not all(value >= 0 for value in values):
        raise UserError(f"--rho must not be negative; got {text!r}")
    return values


def _widths(text: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        widths = ()
    if not widths or min(widths) < 1:
        raise UserError(f"--hidden is one or more widths such as 100 or 64,32; got {text!r}")
    return widths
