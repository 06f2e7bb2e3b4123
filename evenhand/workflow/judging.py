"""Every model of a run before its judges: accuracy, groups, questions, audit, and the certificate of the fair one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from evenhand.audit import Audit, audit
from evenhand.certify.certify import certify
from evenhand.headline import Bracketed
from evenhand.output_distances import mean_squared_logits, squared_error
from evenhand.tables.encoder import encode
from evenhand.workflow.groups import group_errors, group_rates
from evenhand.workflow.measures import difference, of_classes, of_quantities, thresholds
from evenhand.workflow.prepare import Task
from evenhand.workflow.questions import broadest, changed, compared, most_changed, show
from evenhand.workflow.settings import Settings
from evenhand.workflow.trained import Ours, Trained, Trees
from evenhand.workflow.views import Part

Say = Callable[[str], None]
SCORE_ROWS = 20_000
AUDIT_BYTES = 1 << 27
WIDE = 200  # features above which the certificate is tuned with less effort


def measure(model: Trained, task: Task, settings: Settings, held_out: Part) -> dict[str, Any]:
    """Scores on the held-out part: accuracy, groups, and what changes with the sensitive columns."""
    few = held_out.head(SCORE_ROWS)
    groups, codes = task.groups(few), model.codes(few.frame)
    result: dict[str, Any]
    spread = None
    if task.schema.regression:
        spread = float(task.parts["train"].y.std())
        result = of_quantities(few.y, codes)
        result["groups"] = {name: group_errors(few.y, codes, group) for name, group in groups.items()}
    else:
        p, positive = model.probabilities(few.frame), positive_code(task, settings)
        result = of_classes(few.y, codes, p, positive)
        result["groups"] = {
            name: group_rates(few.y, codes, p, group, positive, task.schema.labels) for name, group in groups.items()
        }
        result["threshold"] = model.threshold
        if p.shape[1] == 2 and isinstance(model, Ours) and model.name == "fair":
            result["thresholds"] = thresholds(few.y, p[:, 1], groups)
    result["changed"] = {question.name: changed(model, few.frame, question, spread) for question in task.questions}
    people = most_changed(model, few.frame, broadest(task.questions, task.schema.sensitive), task.schema)
    result["people"] = as_shown(people, settings.show_people)
    result["sees"] = sorted(set(model.columns) & set(task.schema.sensitive))
    return result


def positive_code(task: Task, settings: Settings) -> int:
    """The class that counts as being selected."""
    if settings.positive is None:
        return len(task.schema.classes) - 1
    if settings.positive not in task.schema.labels:
        known = ", ".join(map(repr, task.schema.labels))
        raise ValueError(f"the class to be selected for is {settings.positive!r}, but the target has {known}")
    return task.schema.labels.index(settings.positive)


def as_shown(people: list[dict[str, Any]], show_people: str) -> list[dict[str, Any]]:
    """Single people as far as the user wants them in the report: nobody, row and difference, or the whole record."""
    if show_people == "none":
        return []
    return people if show_people == "all" else [{**person, "record": {}} for person in people]


def search(model: Trained, frame: pd.DataFrame, task: Task, settings: Settings) -> Audit:
    """The audit of a model at the certified eps, so many people at a time that their candidates fit in memory."""
    d = model.view.fair_metric.d
    at_once = max(8, AUDIT_BYTES // (8 * d * (min(d, 400) + 100)))  # so many candidates each, float64
    frame = frame[model.columns]
    parts = (frame.iloc[start : start + 4 * at_once] for start in range(0, len(frame), 4 * at_once))
    return audit(
        model.judged,
        parts,
        model.view.fair_metric,
        settings.eps_certified,
        model.view.box,
        output_distance=squared_error if task.schema.regression else mean_squared_logits,
        threshold=model.score_threshold if isinstance(model, Trees) else None,
        confidence=settings.confidence,
        keep=50,
        chunk=min(1024, at_once),
    )


def describe(found: Audit, model: Trained, frame: pd.DataFrame, task: Task, settings: Settings) -> dict[str, Any]:
    """What the report needs of an audit: numbers, the distribution of d_Y, and the worst-treated pairs within eps."""
    quantiles = np.quantile(found.d_y, np.linspace(0, 1, 101))
    return {
        "r_low": found.r_low,
        "strangers": found.strangers,
        "relative": _found(found.relative),
        "decisions": _found(found.decisions),
        "percentile": _found(found.percentile),
        "lower": found.lower,
        "eps": found.eps,
        "n": found.n,
        "confidence": found.confidence,
        "statement": str(found),
        "quantiles": quantiles.tolist(),
        "people": as_shown(pairs(found, model, frame, task), settings.show_people),
    }


def _found(number: Bracketed | None) -> float | None:
    """What a search found on the sample; None where the number has no meaning."""
    return None if number is None else number.low


def pairs(found: Audit, model: Trained, frame: pd.DataFrame, task: Task, k: int = 20) -> list[dict[str, Any]]:
    """People and similar people (d_X at most eps) with the most different results, in the user's own units.

    The other person is one who could stand in the table (whole numbers stay whole, prices keep two decimals), so d_X is
    measured again, and whoever is no longer similar is not listed."""
    listed = found.pairs(50)
    listed = listed[listed["d_X"] <= found.eps]
    own = frame.loc[listed.index, list(model.columns)]
    others = []
    for row, line in listed.iterrows():
        other = own.loc[[row]].copy()
        for name in model.columns:
            if f"{name} (worst)" in listed.columns and not _same(line[name], line[f"{name} (worst)"]):
                value = line[f"{name} (worst)"]
                other[name] = _rounded(value, task, name) if task.schema.kind(name) == "number" else str(value)
        others.append(other)
    if not others:
        return []
    other = pd.concat(others)
    d_x, people = _distances(model, own, other), compared(model, own, other, task.schema)
    shown = [
        {"row": str(row), "d_x": float(d), "d_y": float(d_y), **person}
        for row, d, d_y, person in zip(listed.index, d_x, listed["d_Y"], people)
        if person["changed"] and d <= found.eps
    ]
    return shown[:k]


def _distances(model: Trained, own: pd.DataFrame, other: pd.DataFrame) -> NDArray[np.float64]:
    """d_X of two people of the table, row by row."""
    x = torch.tensor(encode(model.view.encoder, pd.concat([own, other])).to_numpy(dtype=np.float64))
    return np.asarray(model.view.fair_metric.matching(x).cost(x[len(own) :] - x[: len(own)]).numpy())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return str(a) == str(b)
    return abs(float(a) - float(b)) <= 1e-6 * (1 + abs(float(a)))


def _rounded(value: Any, task: Task, name: str) -> np.float32:
    """A possible number: with as many decimals as the column has, at most four."""
    known = task.parts["train"].frame[name].dropna().head(2000).to_numpy(dtype=np.float64)
    for decimals in range(5):
        if np.allclose(known, known.round(decimals), rtol=1e-6, atol=0.0):
            return np.float32(round(float(value), decimals))
    return np.float32(value)


def example(
    models: Mapping[str, Trained], measured: Mapping[str, Any], reference: str, task: Task, held_out: Part
) -> Any:
    """One real person, a similar one, and what the usual model and the fair one say of both; None without a pair."""
    people = [p for p in measured[reference]["audit"]["people"] if p["decision"] != p["decision_other"]]
    people = people or measured[reference]["audit"]["people"]
    if not people:
        return None
    person = people[0]
    own = held_out.frame.loc[[int(person["row"])]]
    other = own.copy()
    for name, (_, would) in person["changed"].items():
        other[name] = np.float32(would) if task.schema.kind(name) == "number" else would
    said = {name: compared(models[name], own, other, task.schema)[0] for name in (reference, "fair")}
    return {
        "row": person["row"],
        "d_x": person["d_x"],
        "changed": person["changed"],
        "truth": _truth(own, task, held_out),
        "said": {name: {k: v for k, v in one.items() if k != "record"} for name, one in said.items()},
    }


def _truth(own: pd.DataFrame, task: Task, held_out: Part) -> str:
    y = held_out.y[held_out.frame.index.get_loc(own.index[0])]
    return show(y) if task.schema.regression else task.schema.labels[int(y)]


def comparisons(models: Mapping[str, Trained], task: Task, held_out: Part) -> dict[str, Any]:
    """By how much the fair model is more, or less, accurate than each other on the same rows."""
    few = held_out.head(SCORE_ROWS)
    ours = models["fair"].codes(few.frame)
    return {
        name: difference(few.y, ours, model.codes(few.frame), task.schema.regression)
        for name, model in models.items()
        if name != "fair"
    }


def certificate(task: Task, settings: Settings, model: Trained, held_out: Part, say: Say) -> dict[str, Any]:
    """The certificate of the fair model, or why there is none."""
    view, d = model.view, model.view.fair_metric.d
    rows = how_many(settings.certify_rows, 500, 100, d)
    wait = f"some minutes, with {d:,} features" if d > WIDE else "a minute or a few"
    say(f"certificate: tuning, then bounding the worst case of {min(rows, len(held_out.y))} people ({wait})")
    tuning = task.parts["tuning"].rows(view.inside(task.parts["tuning"]))
    gentle: dict[str, Any] = {"tune_rows": 16, "tune_steps": 200, "rounds": 3} if d > WIDE else {}
    try:
        found = certify(
            model.judged,
            held_out.head(rows).frame[view.columns],
            view.fair_metric,
            settings.eps_certified,
            view.box,
            tuning.head(64 if d > WIDE else 300).frame[view.columns],
            x_train=task.parts["train"].frame[view.columns],
            confidence=settings.confidence,
            output_distance=squared_error if task.schema.regression else mean_squared_logits,
            progress=seldom(lambda text: say(f"certificate: {text}")),
            **gentle,
        )
    except (ValueError, ArithmeticError, RuntimeError, MemoryError) as error:
        say(f"no certificate: {error}")
        return {"refused": str(error)}
    result: dict[str, Any] = json.loads(found.to_json())
    say(result["statement"])
    return result


def seldom(say: Say, seconds: float = 15.0) -> Say:
    """Say a text only if nothing was said for so many seconds: what is quick is silent, what is long shows progress."""
    last = time.monotonic()

    def told(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            say(text)

    return told


def how_many(asked: int | None, most: int, least: int, d: int) -> int:
    """How many people to look at: as many as asked for, or fewer the wider the encoded table is (d features)."""
    return asked if asked is not None else max(least, min(most, 100 * most // d))
