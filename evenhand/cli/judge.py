"""evenhand audit and evenhand certify: what a model does to people, and what can be proved about it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import pandas as pd
import torch
import typer
from sklearn.pipeline import Pipeline

from evenhand.audit import Audit
from evenhand.audit import audit as search_worst
from evenhand.certify.certify import certify as bound
from evenhand.cli.console import OK, REFUTED, UNDECIDED, Talk, UserError, guarded, names, print_json
from evenhand.cli.models import Opened, metric_of_pipeline, open_model, probabilities
from evenhand.cli.text import judge_text_model
from evenhand.cli.train import Decimal, Json, Seed, Separator
from evenhand.dual.pool import Pool
from evenhand.evaluation import prediction_consistency
from evenhand.tables.read import find_column, read_table
from evenhand.text.files import text_model_file
from evenhand.workflow.questions import Flip, flips

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="model.evenhand, a run folder, model.onnx, or module:object.")
]
DataArgument = Annotated[Path, typer.Argument(help="CSV, TSV or parquet with the people to look at.")]
Rows = Annotated[int, typer.Option(min=1, help="At most so many rows, drawn at random.")]


@guarded
def audit(
    model: ModelArgument,
    data: DataArgument,
    sensitive: Annotated[str | None, typer.Option(help="Sensitive columns; a model of ours knows its own.")] = None,
    eps: Annotated[float, typer.Option(min=0, help="Mean fair distance within which people count as similar.")] = 0.01,
    rows: Rows = 500,
    out: Annotated[Path | None, typer.Option(help="Write the worst-treated people to this CSV file.")] = None,
    seed: Seed = 0,
    separator: Separator = None,
    decimal: Decimal = None,
    as_json: Json = False,
) -> None:
    """Search for people whom the model treats differently from similar ones. A lower bound: it can show unfairness,
    never its absence. Works for any model, with gradients or without.

    Example: evenhand audit run/model.evenhand people.csv

    Example: evenhand audit mymodels:boosting people.csv --sensitive sex,race

    Exit codes: 0 done, 2 a mistake in the data or the options.
    """
    if text_model_file(model):
        return judge_text_model(model, data, as_json)
    with Talk(quiet=as_json) as say:
        opened = open_model(model)
        frame = _some(read_table(data, separator=separator, decimal=decimal), rows, seed)
        chosen = _sensitive(opened, frame, sensitive)
        say(f"auditing {opened.name} on {len(frame):,} people")
        clean, result = opened.clean(frame), {"model": opened.name, "n": len(frame), "eps": eps}
        result["changed"] = _changed(opened, clean, chosen)
        found: Audit | None = None
        if opened.box is not None or isinstance(opened.model, Pipeline):
            metric, box = (
                (opened.fair_metric, opened.box)
                if opened.box is not None
                else metric_of_pipeline(opened.model, clean, chosen)
            )
            inside = _inside(opened, clean, box)
            found = search_worst(opened.model, inside, metric, eps, box)
            result |= {
                "r_low": found.r_low,
                "lower": found.lower,
                "statement": str(found),
                "outside": len(clean) - len(inside),
            }
        else:
            result |= _flip_audit(opened, clean, chosen)
        people = found.pairs(20) if found is not None else None
    if out is not None and people is not None:
        people.to_csv(out)
    if as_json:
        worst = [] if people is None else [{"row": str(i), **dict(line)} for i, line in people.iterrows()]
        print_json({**result, "people": worst})
        return
    sys.stdout.write(f"{result['statement']}\n")
    for name, share in cast(dict[str, float], result["changed"]).items():
        sys.stdout.write(f"{share:.1%} of the decisions change when only {name} is altered\n")
    if people is not None and len(people):
        sys.stdout.write("\nTreated worst:\n")
        for row, line in people.head(5).iterrows():
            decision = f"{line['prediction']} -> {line['prediction_worst']} (d_Y {line['d_Y']:.3g})"
            sys.stdout.write(f"  row {row}: {decision} if {line['changed']}\n")


@guarded
def certify(
    model: ModelArgument,
    data: DataArgument,
    eps: Annotated[
        float, typer.Option(min=1e-12, help="Mean fair distance within which people count as similar.")
    ] = 0.01,
    delta: Annotated[float, typer.Option(min=0, help="The unfairness R(h) that is still accepted.")] = 0.1,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the statement.")] = 0.95,
    tuning: Annotated[
        Path | None, typer.Option(help="Other people to tune the bound on; without it a fifth of the rows is used.")
    ] = None,
    rows: Rows = 1000,
    out: Annotated[Path | None, typer.Option(help="Write the certificate to this JSON file.")] = None,
    seed: Seed = 0,
    separator: Separator = None,
    decimal: Decimal = None,
    as_json: Json = False,
) -> None:
    """Prove with a confidence that R(h) is at most delta, or that it is more. The people must not have been used for
    training.

    Example: evenhand certify run/model.evenhand new_people.csv --eps 0.01 --delta 0.05

    Exit codes: 0 certified (R <= delta), 1 refuted (R > delta), 3 undecided, 2 a mistake in the data or the options.
    """
    if text_model_file(model):
        return judge_text_model(model, data, as_json)
    with Talk(quiet=as_json) as say:
        opened = open_model(model)
        if opened.schema is None or opened.box is None:
            raise UserError(
                f"{model} cannot be certified: the proof needs the layers of a network that evenhand saved. "
                "evenhand audit works for any model and can show unfairness"
            )
        frame = opened.clean(_some(read_table(data, separator=separator, decimal=decimal), rows, seed))
        people = _inside(opened, frame, opened.box)
        if len(people) < 50:
            raise UserError(f"{len(people)} usable rows are too few to say anything with confidence; give at least 50")
        if len(people) < len(frame):
            say(f"{len(frame) - len(people)} people hold categories that training did not have; they are left out")
        x_tune = None
        if tuning is not None:
            x_tune = _inside(opened, opened.clean(read_table(tuning, separator=separator, decimal=decimal)), opened.box)
            x_tune.index = [f"tuning {i}" for i in x_tune.index]
        say("tuning and bounding")
        found = bound(
            opened.model,
            people,
            opened.fair_metric,
            eps,
            opened.box,
            x_tune,
            confidence=confidence,
            distinct_people=tuning is None,
        )
    verdict = found.is_dif(delta)
    code = {True: OK, False: REFUTED, "undecided": UNDECIDED}[verdict]
    word = {OK: "certified", REFUTED: "refuted", UNDECIDED: "undecided"}[code]
    document = {**json.loads(found.to_json()), "delta": delta, "verdict": word}
    if out is not None:
        out.write_text(json.dumps(document), "utf-8")
    if as_json:
        print_json({k: v for k, v in document.items() if k not in ("each_low", "each_high")})
    else:
        relation = {OK: "<=", REFUTED: ">", UNDECIDED: "may be on either side of"}[code]
        sys.stdout.write(f"{found}\n{word}: R(h) {relation} {delta:g}\n")
    raise typer.Exit(code)


def _some(frame: pd.DataFrame, rows: int, seed: int) -> pd.DataFrame:
    return frame if len(frame) <= rows else frame.sample(rows, random_state=seed).sort_index()


def _sensitive(opened: Opened, frame: pd.DataFrame, given: str | None) -> list[str]:
    if given:
        return [find_column(name, [str(c) for c in frame.columns], "sensitive") for name in names(given)]
    if opened.schema is not None:
        return list(opened.schema.sensitive)
    raise UserError("this model does not say which columns are sensitive; add --sensitive sex,race")


def _inside(opened: Opened, frame: pd.DataFrame, box: Any) -> pd.DataFrame:
    if opened.schema is None:
        return frame
    x = torch.from_numpy(np.asarray(opened.model[0].transform(frame), dtype=np.float64))
    inside: pd.DataFrame = frame[box.contains(x).numpy()]
    return inside


def _questions(opened: Opened, frame: pd.DataFrame, sensitive: list[str]) -> list[Flip]:
    if opened.schema is not None:
        return flips(opened.schema, frame)
    questions = []
    for name in sensitive:
        column = frame[name].dropna()
        numeric = pd.api.types.is_numeric_dtype(column) and column.nunique() > 10
        values = list(np.quantile(column, [0.1, 0.5, 0.9])) if numeric else column.value_counts().index[:8].tolist()
        questions.append(Flip(name, {name: values}))
    return questions


def _changed(opened: Opened, frame: pd.DataFrame, sensitive: list[str]) -> dict[str, float]:
    """Share of people whose decision changes with each sensitive column."""
    result = {}
    for question in _questions(opened, frame, sensitive):
        labels = np.stack([probabilities(opened.model, v).argmax(1) for v in question.versions(frame)], axis=1)
        result[question.name] = 1 - prediction_consistency(labels)
    return result


def _flip_audit(opened: Opened, frame: pd.DataFrame, sensitive: list[str]) -> dict[str, Any]:
    """A model that only takes tables: the worst of the altered versions, which all lie at fair distance 0."""
    columns = []
    for question in _questions(opened, frame, sensitive):
        logs = np.stack(
            [np.log(np.clip(probabilities(opened.model, v), 1e-12, 1)) for v in question.versions(frame)], axis=1
        )
        columns.append(np.square(logs - logs[:, :1]).mean(-1))
    d_y = np.concatenate(columns, axis=1)
    pool = Pool()
    pool.add(d_y, np.zeros_like(d_y))
    value = pool.minimise(0.0).value
    return {
        "r_low": value,
        "statement": f"R(h) >= {value:.3g} (n={len(frame):,}; only the sensitive columns were altered)",
    }
