"""MODEL on the command line where it is a model of texts: predict, audit and certify."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from evenhand.cli.console import OK, REFUTED, UNDECIDED, UserError, print_json
from evenhand.cli.text import MODEL, PLAIN, as_frame
from evenhand.cli.text_findings import show, show_line, shown

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.text import TextClassifier
    from evenhand.workflow.texts import TextTask


def text_model(model: str | Path, encoder: str | None = None) -> Path | None:
    """The file of a text model that MODEL names: the file itself, or that in the folder of a run; None for others,
    which have no encoder."""
    from evenhand.text.files import text_model_file

    path = Path(model) / MODEL if Path(model).is_dir() else Path(model)
    if text_model_file(path):
        return path
    if encoder is not None:
        raise UserError("--encoder is for a model of texts; leave it out")
    return None


def opened_text(model: str | Path, encoder: str | None = None) -> TextClassifier:
    """The model of a file; what is wrong with it, or with its encoder, is said without a trace."""
    from evenhand.text import load_text

    try:
        return load_text(model, encoder)
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
        sys.stderr.write(
            f"the one column of the table is read as the texts; it is not called {text!r}: if its first line is a text "
            "and no name, --no-header reads it as one\n"
        )
        text = str(frame.columns[0])
    schema = Schema.from_json(about["schema"]) if about.get("schema") else None
    if target is None and schema is None:
        frame = frame.assign(**{text: frame[text].where(frame[text].notna(), "")})
        return text_task(frame, text, None, share=1.0, labels=about.get("labels"), keep_empty=True)
    return text_task(frame, text, target, share=1.0, labels=about.get("labels"), schema=schema)


def judge_text_model(
    model: Path,
    frame: pd.DataFrame,
    as_json: bool,
    delta: float | None = None,
    distinct: bool = False,
    confidence: float = 0.95,
    out: Path | None = None,
    encoder: str | None = None,
) -> None:
    """A text model on other texts: scores, rates by term and group, and the certificate over the versions; beside the
    plain model of its run, where that lies beside it.

    delta: what the certificate has to show; the exit code then says whether it does. Texts that the model has learned
    from are refused then, unless they are vouched for (distinct). out: with delta the certificate is written there,
    without it the worst versions. encoder: where that of the model is now.
    """
    from evenhand.cli.use import escaped
    from evenhand.workflow.folder import Folder
    from evenhand.workflow.seen import Seen
    from evenhand.workflow.text_judging import judge_task, named_worst, without_texts, worst_of
    from evenhand.workflow.texts import certificates, compared

    opened = opened_text(model, encoder)
    about = opened.metadata_
    target = about.get("target")
    if target not in frame.columns or frame[target].isna().all():
        target = None
    task = _task(opened, frame, target)
    if opened.swaps is None and not opened.levels_:
        raise UserError("the model was trained with a swap of one's own, which its file does not hold")
    if len(task.held_out) == 0:
        raise UserError("no row of the table has a text to look at")
    shared = Seen.from_json(about["seen"]).too_many(as_frame(task.judging)) if about.get("seen") else 0
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
    plain = _plain_beside(model, opened, encoder)
    models = {"model": opened} if plain is None else {"plain": plain, "fair": opened}
    judged = {name: judge_task(one, task, versions, opened.swaps, opened.levels_) for name, one in models.items()}
    one, warning = (None, "") if plain is None else compared(judged, task)
    worst = worst_of(judged["model" if plain is None else "fair"], judged.get("plain"), task)
    worst = worst.assign(
        row=frame.index.to_numpy()[worst["row"].to_numpy(dtype=int)]
    )  # of the file, if some were drawn
    worst = worst if about.get("show_people", "all") == "all" else without_texts(worst)
    proved = {"refused": known, "attributes": {}} if known else certificates(opened, task, versions, confidence)
    findings: dict[str, Any] = {"certificate": proved | {"worst": named_worst(worst)}, "at_one_fpr": one}
    findings |= {"worst": shown(worst, about), "warning": warning}
    verdict, code = (None, OK) if delta is None else _verdict(findings["certificate"], delta)
    if verdict is not None:
        findings["certificate"] |= {"delta": delta, "verdict": verdict}
    if out is not None and delta is not None:
        Folder(out.parent).write_json(out.name, findings["certificate"])
    elif out is not None:
        Folder(out.parent).write(out.name, escaped(worst).to_csv(index=False).encode())
    scores = {name: found.scores for name, found in judged.items()}
    if as_json:
        own = scores.pop("model" if plain is None else "fair")
        print_json(own | scores | findings)
    else:
        texts = {"held_out": len(task.held_out), "known": bool(known)}
        show({"models": scores, "texts": texts, **findings}, terms=True)
        for line in findings["worst"][:5]:
            show_line(line)
        if verdict is not None:
            sys.stdout.write(f"{verdict} at delta {delta:g}\n")
    if code != OK:
        raise typer.Exit(code)


def _plain_beside(model: Path, opened: TextClassifier, encoder: str | None) -> TextClassifier | None:
    """The plain model of the same run, if it lies beside the model."""
    path = model.with_name(PLAIN)
    if model.name == PLAIN or text_model(path) is None:
        return None
    plain = opened_text(path, encoder)
    same = all(plain.metadata_.get(key) == opened.metadata_.get(key) for key in ("seen", "labels", "text"))
    return plain if same else None


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


def predict_texts(
    model: str | Path, frame: pd.DataFrame, out: Path | None, as_json: bool, encoder: str | None = None
) -> None:
    """Decisions and probabilities for the texts of a table, one line each, in its order."""
    import pandas as pd

    from evenhand.cli.use import escaped
    from evenhand.workflow.folder import Folder

    opened = opened_text(model, encoder)
    task = _task(opened, frame, None)
    if task.without_text:
        sys.stderr.write(f"{task.without_text:,} of {len(frame):,} rows have no text; they are decided as empty ones\n")
    for name, count in ({} if task.schema is None else task.schema.imputed(frame)).items():
        said = f"{count:,} of {len(frame):,} values of {name!r} are missing or no numbers; the median was filled in"
        sys.stderr.write(f"{said}\n")
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
