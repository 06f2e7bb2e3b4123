"""evenhand train: from a table to a folder with a fair model, its certificate and a report."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import Talk, UserError, guarded, over_ranks, print_json, print_table
from evenhand.cli.options import STDIN, Json, Seed, Table, given, grouped, without_passwords

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.workflow import Folder, Results, Settings, Task

NOT_FOR_TEXTS = ("see_sensitive", "proxy", "proxy_for", "regression", "model", "trees", "mlflow", "jobs") + (
    "eps_certified",
    "audit_rows",
    "certify_rows",
)
BIG = 200_000  # rows above which the sweep runs in this process, to save memory


@dataclass(frozen=True)
class Columns:
    """What is predicted, who may not be treated differently, and which columns are used for it."""

    TITLE = "Columns"

    target: Annotated[str, typer.Option(help="The column to predict: a class, or a number.")] = ""
    sensitive: Annotated[str, typer.Option(help="Sensitive columns, separated by commas.")] = ""
    see_sensitive: Annotated[
        bool, typer.Option("--see-sensitive", help="Let the model use the sensitive columns as features, too.")
    ] = False
    proxy: Annotated[
        bool | None,
        typer.Option(
            "--proxy/--no-proxy",
            help="Neutralise what predicts the sensitive columns; by default, unless --see-sensitive.",
        ),
    ] = None
    proxy_for: Annotated[str | None, typer.Option(help="--proxy for these sensitive columns only.")] = None
    regression: Annotated[
        bool | None,
        typer.Option(
            "--regression/--classes", help="What the target is; by default a number of over 20 values is one."
        ),
    ] = None
    missing_sensitive: Annotated[
        str, typer.Option(help="Rows without a sensitive value: 'error', 'drop', or 'category' (a group of its own).")
    ] = "error"
    keep: Annotated[str | None, typer.Option(help="Use these columns, though they look like leaks or identifiers.")] = (
        None
    )
    keep_dates: Annotated[bool, typer.Option("--keep-dates", help="Use dates, as days, instead of dropping them.")] = (
        False
    )
    ignore: Annotated[str | None, typer.Option(help="Columns that must not be used, separated by commas.")] = None

    def check(self) -> None:
        if not self.target or not self.sensitive:
            raise UserError(
                "say what to predict and who may not be treated differently: --target COLUMN --sensitive COLUMN,..."
            )
        _one_of("--missing-sensitive", self.missing_sensitive, "error", "drop", "category")

    def of(self, frame: pd.DataFrame) -> dict[str, Any]:
        """The columns of this table that the options name (a name may hold commas), as ``prepare`` takes them."""
        from evenhand.tables.errors import find_column, find_columns

        names = [str(name) for name in frame.columns]
        proxies = find_columns(self.proxy_for, names, "proxies") if self.proxy_for else self.proxy
        return {
            "target": find_column(self.target, names, "target"),
            "sensitive": find_columns(self.sensitive, names, "sensitive columns"),
            "ignore": find_columns(self.ignore or "", names, "columns to ignore"),
            "keep": find_columns(self.keep or "", names, "columns to keep"),
            "proxy": proxies,
            "see_sensitive": self.see_sensitive,
            "missing_sensitive": self.missing_sensitive,
            "keep_dates": self.keep_dates,
            "regression": self.regression,
        }


@dataclass(frozen=True)
class Training:
    """How fair, how large and how long."""

    TITLE = "Training"

    rho: Annotated[str, typer.Option(help="Weight of fairness: 'auto', one number, or several to choose from.")] = (
        "auto"
    )
    eps: Annotated[float, typer.Option(help="Mean fair distance within which people are similar, in training.")] = 0.1
    max_accuracy_loss: Annotated[
        float, typer.Option(help="Balanced accuracy (or R2) that may be given up against the best other model.")
    ] = 0.03
    hidden: Annotated[str, typer.Option(help="Widths of the hidden layers, for example 100 or 64,32.")] = "100"
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each network.")] = 1150
    trees: Annotated[int, typer.Option(min=1, help="Most boosting rounds of boosted trees.")] = 200
    model: Annotated[
        str, typer.Option(help="Kind of the fair model: 'network', 'trees', or 'both', to choose between them.")
    ] = "network"
    seed: Seed = 0
    jobs: Annotated[int, typer.Option(min=1, help="Processes for the sweep over rho.")] = min(2, os.cpu_count() or 1)


@dataclass(frozen=True)
class Judging:
    """How the models decide, and how they are judged."""

    TITLE = "Decisions, audit and certificate"

    threshold: Annotated[
        str, typer.Option(help="Probability from which on to decide for the second class, or 'balanced'.")
    ] = "balanced"
    positive: Annotated[
        str | None,
        typer.Option(help="The class that counts as being selected, of texts as flagged; by default the last."),
    ] = None
    eps_certified: Annotated[float, typer.Option(help="--eps of the audit and the certificate.")] = 0.01
    certificate: Annotated[bool, typer.Option(help="Certify the model (about a minute).")] = True
    audit_rows: Annotated[
        int | None,
        typer.Option(min=1, help="Held-out people whose worst case is searched; by default 400, fewer in wide tables."),
    ] = None
    certify_rows: Annotated[
        int | None,
        typer.Option(min=20, help="Held-out people that the certificate looks at; by default 500, or fewer."),
    ] = None
    show_people: Annotated[
        str,
        typer.Option(
            help="Single people in the report: 'id' (row and difference), 'all' (whole record; of texts the default), "
            "'none'."
        ),
    ] = "id"


@dataclass(frozen=True)
class Texts:
    """For a table of texts."""

    TITLE = "Texts, alone or beside columns"

    text: Annotated[
        str | None,
        typer.Option(help="The column of texts: trains a classifier of texts; see --swap, --beside and --sensitive."),
    ] = None
    beside: Annotated[
        str | None,
        typer.Option(
            help="With --text: other columns that are features, too, or 'all'; by default all with --sensitive, "
            "none without."
        ),
    ] = None
    swap: Annotated[
        str | None,
        typer.Option(help="With --text: identity, categories, gender, names, or a file with one token a line."),
    ] = None
    encoder: Annotated[str | None, typer.Option(help="With --text: a sentence-transformers model.")] = None
    abuse: Annotated[
        bool,
        typer.Option(
            "--abuse", help="With --text: what is flagged is abuse (--positive); train on plain mentions too."
        ),
    ] = False


@dataclass(frozen=True)
class Place:
    """Where the results go."""

    TITLE = "Results"

    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("run")
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Use a folder that holds something else.")] = False
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Also log the run to MLflow (pip install mlflow).")] = False
    as_json: Json = False


@guarded
@over_ranks
@grouped
def train(columns: Columns, training: Training, judging: Judging, texts: Texts, place: Place, table: Table) -> None:
    """Train a model that treats similar people similarly, and write one folder: model, metric, metrics.json,
    certificate.json, frontier.csv, report.html, model_card.md.

    Example: evenhand train adult.csv --target income --sensitive sex,race --out run

    Example: evenhand train comments.csv --text comment --target toxic --swap identity --abuse

    Example: evenhand train people.csv --text letter --target hired --swap gender --sensitive sex

    The sensitive columns are no features: they teach who counts as similar, and judge the result. Ctrl-C leaves a
    folder from which the same command goes on.

    Exit codes: 0 done, 2 a mistake in the data or the options, 130 stopped by Ctrl-C.
    """
    if texts.text is not None:
        return _train_texts(table, columns, training, judging, texts, place)
    columns.check()
    settings = settings_of(training, judging)
    with Talk(quiet=place.as_json) as say:
        say(f"reading {table.data or 'the database'}")
        frame = table.read(say)
        folder, results = _run(frame, table, columns.of(frame), settings, training.jobs, place, say)
        if place.mlflow:
            from evenhand.workflow.mlflow_log import log_run

            log_run(folder)
    if place.as_json:
        from evenhand.workflow.output import summary

        return print_json(summary(folder))
    show(results.metrics, results.certificate)
    sys.stdout.write(f"\nReport: {place.out / 'report.html'}   model: {place.out / 'model.evenhand'}\n")


def _run(
    frame: pd.DataFrame, table: Table, columns: dict[str, Any], settings: Settings, jobs: int, place: Place, say: Talk
) -> tuple[Folder, Results]:
    """Prepare the table, say what became of it, open the folder, run the stages there, write the results."""
    from evenhand.workflow import Folder, fingerprint, prepare, run
    from evenhand.workflow.output import data_hash, write_results

    task = prepare(frame, **columns, seed=settings.seed)
    _tell(task, settings, say)
    code = fingerprint(frame, {**columns, "settings": settings.__dict__})
    made_by = {
        "command": without_passwords(shlex.join(["evenhand", *sys.argv[1:]])),
        "data": table.shown,
        "path": None if table.data == STDIN else table.data,
        "read": table.how,
        "out": str(place.out),
        "rows": len(frame),
        "seed": settings.seed,
        "sha256": data_hash(table.data, frame),
    }
    jobs = 1 if len(frame) > BIG else jobs
    del frame
    folder = Folder(place.out)
    with folder.alone():
        if folder.open(code, place.overwrite):
            say(f"going on with the run in {place.out}")
        results = run(task, settings, folder, say, jobs)
        write_results(folder, task, results, made_by)
    return folder, results


def _train_texts(
    table: Table, columns: Columns, training: Training, judging: Judging, texts: Texts, place: Place
) -> None:
    from evenhand.cli.text import MODEL, train_text
    from evenhand.cli.text_findings import show
    from evenhand.tables.errors import find_columns
    from evenhand.workflow.texts import Beside

    if not columns.target or texts.text is None:
        raise UserError("--text needs --target")
    _one_of("--missing-sensitive", columns.missing_sensitive, "error", "drop", "category")
    _one_of("--show-people", judging.show_people, "id", "all", "none")
    for option in NOT_FOR_TEXTS:
        if given(option):
            raise UserError(f"--{option.replace('_', '-')} is not for texts; leave it out")
    for option in ("keep", "keep_dates", "ignore"):
        if given(option) and texts.beside is None and not columns.sensitive:
            raise UserError(f"--{option.replace('_', '-')} is about columns beside the text; name them with --beside")
    settings: dict[str, Any] = {"threshold": _threshold(judging.threshold), "certificate": judging.certificate}
    if given("hidden"):
        settings["hidden"] = _widths(training.hidden)
    settings |= {name: getattr(training, name) for name in ("eps", "max_accuracy_loss", "steps") if given(name)}
    with Talk(quiet=place.as_json) as say:
        say(f"reading {table.data or 'the database'}")
        frame = table.read(say)
        names = [str(name) for name in frame.columns]
        beside = None
        if texts.beside is not None or columns.sensitive:
            some = "all" if texts.beside in (None, "all") else find_columns(texts.beside, names, "beside the text")
            beside = Beside(
                some,
                find_columns(columns.sensitive, names, "sensitive columns"),
                find_columns(columns.ignore or "", names, "columns to ignore"),
                find_columns(columns.keep or "", names, "columns to keep"),
                columns.keep_dates,
                columns.missing_sensitive,
            )
        run = train_text(
            frame, table.shown, texts.text, columns.target, texts.swap, texts.encoder, place.out, say, beside=beside,
            rho=training.rho, seed=training.seed, abuse=texts.abuse, overwrite=place.overwrite,
            positive=judging.positive, show_people=judging.show_people if given("show_people") else "all", **settings,
        )  # fmt: skip
    if place.as_json:
        return print_json(run.findings)
    show(run.findings)
    sys.stdout.write(f"\nReport: {place.out / 'report.html'}   model: {place.out / MODEL}\n")


def show(metrics: dict[str, Any], certificate: dict[str, Any] | None) -> None:
    """The result in a few lines."""
    from evenhand.report.findings import collapsed, line_of
    from evenhand.workflow import NAMES

    lines = {NAMES[name]: line_of(m) for name, m in metrics["models"].items()}
    head = ["model", *next(iter(lines.values()))]
    first = next(iter(metrics["models"].values()))
    print_table(f"On {first['n']:,} held-out people:", head, [[name, *line.values()] for name, line in lines.items()])
    sys.stdout.write(f"\nChosen: {metrics['chosen']['why']}\n")
    for name in dict.fromkeys([metrics["reference"]["name"], "fair"]):
        if collapsed(metrics["models"][name]):
            sys.stdout.write(
                f"{NAMES[name]}: its scores hardly tell people apart, so how fair they are means nothing.\n"
            )
    if certificate is not None:
        said = [certificate[part] for part in ("headline", "statement") if certificate.get(part)]
        sentence = ". ".join(said) or f"none, because {certificate['refused']}"
        sys.stdout.write(f"Certificate of the fair model: {sentence}\n")


def _tell(task: Task, settings: Settings, say: Talk) -> None:
    """What became of the table."""
    from evenhand.workflow.judging import positive_code

    for column in task.schema.columns:
        if column.kind in ("dropped", "date"):
            keep = "--keep-dates" if column.kind == "date" else "--keep" if column.doubtful else ""
            hint = f"; {keep} uses it" if keep else ""
            say(f"column {column.name!r} is left out: {column.note}{hint}")
    for why, count in task.left_out.items():
        say(f"{count:,} rows left out: {why}")
    for note in task.notes:
        say(note)
    if not task.schema.regression:
        positive = task.schema.labels[positive_code(task, settings)]
        say(f"where groups are compared, selected means {task.schema.target} = {positive}; --positive names another")
    kinds = [column.kind for column in task.schema.used]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("number", "binary", "category") if kind in kinds)
    say(f"{sum(len(p.y) for p in task.parts.values()):,} rows; columns that the model sees: {counts}")
    for proxy in task.proxies:
        say(f"the other columns take away {proxy.explained:.0%} of the uncertainty about {proxy.name}; what does "
            "is free")  # fmt: skip


def settings_of(training: Training, judging: Judging) -> Settings:
    """The options that change the results, checked."""
    from evenhand.workflow import Settings

    _one_of("--show-people", judging.show_people, "id", "all", "none")
    _one_of("--model", training.model, "network", "trees", "both")
    if training.eps < 0 or judging.eps_certified <= 0:
        raise UserError("--eps must be at least 0 and --eps-certified positive")
    return Settings(
        **_rhos(training.rho),
        model=training.model,
        eps=training.eps,
        eps_certified=judging.eps_certified,
        max_accuracy_loss=training.max_accuracy_loss,
        hidden=_widths(training.hidden),
        steps=training.steps,
        trees=training.trees,
        seed=training.seed,
        certificate=judging.certificate,
        audit_rows=judging.audit_rows,
        certify_rows=judging.certify_rows,
        threshold=_threshold(judging.threshold),
        positive=judging.positive,
        show_people=judging.show_people,
    )


def _one_of(option: str, given: str, *allowed: str) -> None:
    if given not in allowed:
        *first, last = (repr(word) for word in allowed)
        raise UserError(f"{option} is {', '.join(first)} or {last}, got {given!r}")


def _rhos(text: str) -> dict[str, Any]:
    """The weights to try: each kind's own, or the given ones for both."""
    if text == "auto":
        return {}
    try:
        values = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        raise UserError(f"--rho is 'auto' or numbers such as 5 or 1,5,20; got {text!r}") from None
    if not all(0 <= value < float("inf") for value in values):
        raise UserError(f"--rho must not be negative or infinite; got {text!r}")
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
