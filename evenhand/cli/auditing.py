"""What evenhand audit does, once the table and the model are open."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.audit import audit as search_worst
from evenhand.cli.console import UserError
from evenhand.output_distances import mean_squared_logits, squared_error
from evenhand.tables.encoder import encode
from evenhand.tables.kinds import Column, infer
from evenhand.tables.schema import Schema
from evenhand.workflow.foreign import Foreign, make_ready
from evenhand.workflow.opened import TableModel
from evenhand.workflow.questions import changed, flips
from evenhand.workflow.similarity import check_free

Say = Callable[[str], None]
COLLAPSED = 0.02  # the probabilities of nine tenths of the people lie within it


@dataclass(frozen=True)
class Audited:
    """The numbers, who counted as similar, and the pairs of similar people that are treated most differently."""

    numbers: dict[str, Any]
    similar: str
    pairs: pd.DataFrame
    quantities: bool = False  # of a model that predicts a quantity


def audited(
    opened: TableModel | Foreign, frame: pd.DataFrame, sensitive: Sequence[str] | None, proxy: bool | None, eps: float,
    say: Say,
) -> Audited:  # fmt: skip
    """A model of ours before its own metric; any other, or ours with other sensitive columns, before one made here."""
    if isinstance(opened, TableModel) and sensitive is None and proxy is None:
        return _ours(opened, frame, eps, say)
    if isinstance(opened, TableModel):
        sensitive = sensitive if sensitive is not None else opened.schema.sensitive
        opened = Foreign(opened.name, opened, tuple(opened.columns), opened.schema.regression)
    if sensitive is None:
        raise UserError("this model does not say which columns are sensitive; add --sensitive sex,race")
    return _foreign(opened, frame, sensitive, proxy, eps, say)


def _ours(opened: TableModel, frame: pd.DataFrame, eps: float, say: Say) -> Audited:
    if opened.box is None:
        raise UserError(f"{opened.name} says nothing about possible people; give --sensitive to judge it on this table")
    clean = opened.schema.apply(frame)
    people = opened.inside(clean)
    if len(people) == 0:
        where = ", ".join(map(repr, opened.strangers(frame)))
        raise UserError(f"every row holds a category that training did not have, in {where}; nobody is left to look at")
    if opened.seen is not None and (shared := opened.seen.too_many(clean)):
        say(
            f"{shared:,} of {len(clean):,} rows are among those the model has learned from: what is found "
            "holds for them only"
        )
    _, warning = check_free(opened.fair_metric, encode(opened.pipeline[0], people))
    for words in (warning, same_of_everybody(opened, people)):
        if words:
            say(words)
    distance = squared_error if opened.schema.regression else mean_squared_logits
    found = search_worst(opened.pipeline, people, opened.fair_metric, eps, opened.box, output_distance=distance)
    known = [name for name in opened.schema.sensitive if name in frame.columns]
    asked = opened.schema.apply_known(frame) if len(known) == len(opened.schema.sensitive) else clean
    questions = flips(opened.schema, asked) if len(known) == len(opened.schema.sensitive) else []
    metric = opened.fair_metric
    learned = list(dict.fromkeys(model.name for model in metric.attribute_models))
    free = [name for name in opened.schema.sensitive if opened.schema.see_sensitive]
    spread = None
    if opened.schema.regression:
        known_truth = opened.schema.target in frame
        spread = float((opened.schema.truth(frame) if known_truth else opened.codes(people)).std())
    numbers = {
        "model": opened.name,
        "n": len(people),
        "outside": len(clean) - len(people),
        "eps": eps,
        **_numbers(found),
        "questions": {q.name: changed(opened, asked, q, spread) for q in questions},
    }
    similar = similar_words(free, learned, metric.directions.shape[1])
    return Audited(numbers, similar, _within(found, eps), opened.schema.regression)


def _foreign(
    opened: Foreign, frame: pd.DataFrame, sensitive: Sequence[str], proxy: bool | None, eps: float, say: Say
) -> Audited:
    ready = make_ready(opened, frame, sensitive, proxy)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.filterwarnings("ignore", message="X has feature names")
        for words in (ready.warning, same_of_everybody(ready, ready.clean)):
            if words:
                say(words)
        found = search_worst(
            ready.pipeline, ready.clean[list(ready.columns)], ready.view.fair_metric, eps, ready.view.box,
            output_distance=squared_error if opened.regression else None,
        )  # fmt: skip
        kinds = tuple(infer(frame[name], name, sensitive=True) for name in sensitive)
        schema = Schema(tuple(Column(c.name, c.kind) for c in kinds), "", tuple(sensitive), (0, 1))
        spread = float(ready.codes(ready.clean).std()) if opened.regression else None
        questions = {q.name: changed(ready, ready.clean, q, spread) for q in flips(schema, ready.clean)}
    learned = [one.name for one in ready.proxies]
    metric = ready.view.fair_metric
    numbers = {
        "model": opened.name,
        "n": len(frame),
        "outside": 0,
        "eps": eps,
        "free_share": ready.free_share,
        **_numbers(found),
        "questions": questions,
    }
    similar = similar_words(ready.view.schema.sensitive, learned, metric.directions.shape[1])
    return Audited(numbers, similar, _within(found, eps), opened.regression)


def same_of_everybody(model: Any, people: pd.DataFrame) -> str | None:
    """A word about scores that have collapsed: where a model says the same of everybody, fairness means nothing."""
    if getattr(model, "regression", False) or getattr(getattr(model, "schema", None), "regression", False):
        values = np.asarray(model.codes(people), dtype=np.float64)
        alike = float(np.ptp(values)) <= 1e-3 * max(float(np.abs(values).mean()), 1e-300)
    else:
        p = model.probabilities(people)
        low, high = np.quantile(p, [0.05, 0.95], axis=0)
        alike = float((high - low).max()) < COLLAPSED
    if not alike:
        return None
    return "the model says nearly the same of everybody: it is fair by saying nothing, and of no use"


def similar_words(free: Sequence[str], learned: Sequence[str], directions: int) -> str:
    """Who counted as similar, in a sentence."""
    parts = [f"{name} costs nothing" for name in free] + [f"what predicts {name} costs nothing" for name in learned]
    if directions == 0:
        parts = ["every difference counts: nothing in the table tells the sensitive columns better than chance"]
    return f"Similar: {'; '.join(parts)}; other differences are measured in standard deviations."


def _numbers(found: Any) -> dict[str, Any]:
    return {"r_low": found.r_low, "lower": found.lower, "statement": str(found)}


def _within(found: Any, eps: float) -> pd.DataFrame:
    """Pairs that are about the statement: similar people only."""
    pairs: pd.DataFrame = found.pairs(20)
    return pairs[pairs["d_X"] <= eps]
