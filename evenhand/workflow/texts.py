"""What `evenhand train --text` does, without a terminal: texts and labels in, models, findings, a certificate out."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.certify.certify import certify
from evenhand.counterfactuals import GenderSwap, TokenSwap
from evenhand.counterfactuals.identities import known
from evenhand.datasets import about_people, mentions
from evenhand.dual.confidence import clopper_pearson_lower, clopper_pearson_upper
from evenhand.error_rates import ErrorRates, auc, equal_error_rate, error_rates, flags_more
from evenhand.evaluation import balanced_accuracy, ctf_std, prediction_consistency
from evenhand.output_distances import total_variation
from evenhand.tables.read import TableError
from evenhand.text import TextClassifier
from evenhand.text.levels import Levels, groups_of
from evenhand.variations import Variations
from evenhand.workflow.text_task import Beside, TextTask, swaps_named, text_task

__all__ = [
    "Beside",
    "TextRun",
    "TextTask",
    "certificate_of",
    "certificates",
    "changed_words",
    "in_the_table",
    "judge_task",
    "judge_texts",
    "named_worst",
    "swaps_named",
    "text_task",
    "train_texts",
]

Say = Callable[[str], None]
SAME = 1e-6  # a move of the probabilities that is none
BY_CONSTRUCTION = (
    " The model reads the words of the list alike, so this holds by construction wherever the rules see them, and says "
    "nothing about words that are in no list."
)


@dataclass(frozen=True)
class TextRun:
    """The fair model and what was found; `findings` is plain values, `worst` one line for each text with versions."""

    model: TextClassifier
    findings: dict[str, Any]
    worst: pd.DataFrame


def train_texts(
    task: TextTask,
    encoder: Any,
    swaps: TokenSwap | GenderSwap | None,
    say: Say,
    *,
    abuse: bool = False,
    rho: float | str = "auto",
    confidence: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> TextRun:
    """A plain and a fair model, judged on the same held-out texts, or rows with texts.

    abuse: the second class is abuse; the fair model also trains on `mentions` of the swap's tokens. swaps: None where
    sensitive columns alone say who may not be treated differently.
    """
    extra = None
    if abuse:
        if not isinstance(swaps, TokenSwap) or len(task.labels) != 2:
            raise TableError("--abuse needs two classes and a list of tokens; leave it out, or use --swap identity")
        if task.table is not None:
            raise TableError("--abuse adds texts that have no other columns; leave it out, or the columns")
        more = mentions(swaps.tokens, max(50, len(task.texts) // 20), seed=seed)
        extra = (more.texts, more.y)
    if swaps is None and not task.sensitive:
        raise TableError("a swap or sensitive columns must say who may not be treated differently")
    if swaps is not None and not task.sensitive and len(swaps(task.texts)) == 0:
        raise TableError(
            "no text says what --swap changes, so there is nothing to be fair about; `evenhand swaps` with the same "
            "options shows what it looks for"
        )
    if isinstance(swaps, TokenSwap) and 2 * sum(known(token.lower()) for token in swaps.tokens) > len(swaps.tokens):
        options["about"] = about_people(swaps.tokens)  # the list is about kinds of people, in English
    options |= {"rho": rho, "random_state": seed, "text": task.text if task.table is not None else None}
    models: dict[str, TextClassifier] = {}
    for name, method in (("plain", "plain"), ("fair", "sensei")):
        say(f"training the {name} model on {len(task.texts):,} texts")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # blind versions and the choice of rho: in the findings
            model = TextClassifier(encoder, swaps, method, mentions=extra if method != "plain" else None, **options)
            models[name] = model.fit(task.given, task.y, dict(task.sensitive) or None)
    fair = models["fair"]
    say(f"judging both on {len(task.held_out):,} held-out texts")
    versions = task.versions(swaps)
    judged = {name: judge_task(model, task, versions, swaps, fair.levels_) for name, model in models.items()}
    rates = {name: found.pop("_rates") for name, found in judged.items()}
    worst = {name: in_the_table(found.pop("_worst"), task) for name, found in judged.items()}
    warning = ""
    if rates["plain"] is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warning = flags_more(rates["plain"], rates["fair"])
    findings = {
        "models": judged,
        "labels": task.labels,
        "swap": "none" if swaps is None else repr(swaps),
        "texts": {"trained": len(task.texts), "held_out": len(task.held_out)}
        | {"without_text": task.without_text, "without_label": task.without_label},
        "versions": {
            "texts": 0 if versions is None else len(versions),
            "each": 1 if versions is None else int(versions.values.shape[1]),
            "blind": judged["fair"]["blind"],
        },
        "columns": None if task.schema is None else _columns(task, fair),
        "rho": fair.rho_,
        "choice": fair.choice_,
        "threshold": fair.threshold_,
        "warning": " ".join(said for said in (warning, _sentence(fair.chosen_because_)) if said),
        "certificate": certificates(fair, task, versions, confidence) | {"worst": named_worst(worst["fair"])},
    }
    return TextRun(fair, findings, worst["fair"])


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _columns(task: TextTask, model: TextClassifier) -> dict[str, Any]:
    """Which columns the model sees, which it does not and why, and how well it could tell the sensitive ones."""
    assert task.schema is not None
    told = {one.name: {"explained": one.explained, "groups": list(one.groups)} for one in model.levels_}
    return {
        "used": [{"name": c.name, "kind": c.kind, "note": c.note} for c in task.schema.used],
        "left_out": {c.name: c.note for c in task.schema.columns if c.kind in ("dropped", "date")},
        "sensitive": {name: told.get(name) for name in task.schema.sensitive},
    }


def judge_task(
    model: TextClassifier, task: TextTask, versions: Variations | None, swaps: Any, levels: list[Levels]
) -> dict[str, Any]:
    """The scores of a model on the held-out part, by group and with what gives a sensitive attribute away changed."""
    y = task.y_held_out if task.labels and len(task.y_held_out) else None
    found = judge_texts(model, task.judging, y, versions, swaps)
    if not task.sensitive_held_out and not levels:
        return found
    predicted = np.searchsorted(model.classes_, model.predict(task.judging))
    features = model.features_
    scaled = features.scaled(features.read(task.judging))
    found["levels"] = {}
    for one in levels:
        moved = one.versions(scaled)
        p = moved.map(lambda x: model.calibration_.probabilities(model._logits(features.shrinkage_(x)))).values
        decided = p[:, :, 1] >= model.threshold_ if len(model.classes_) == 2 else p.argmax(axis=2)
        distance = 0.5 * np.abs(p - p[:, :1]).sum(axis=-1)
        found["levels"][one.name] = {
            "consistency": prediction_consistency(decided.astype(int)),
            "worst_move": float(distance.max(axis=1).mean()),
        }
    found["groups"] = {
        name: _groups(y, predicted, groups_of(values, task.sensitive.get(name, values)), len(model.classes_) == 2)
        for name, values in task.sensitive_held_out.items()
    }
    return found


def _groups(y: NDArray[np.intp] | None, predicted: NDArray[np.intp], groups: NDArray[Any], two: bool) -> list[Any]:
    """Rates by group: of two classes how many get the second one, and the errors; of more, how many are right."""
    out = []
    for group in np.unique(groups.astype(str)):
        mine = groups.astype(str) == group
        row: dict[str, Any] = {"group": str(group), "n": int(mine.sum())}
        row |= _share("selected", predicted[mine] == 1) if two else {}
        if y is not None and two:
            row |= _share("false_positive", predicted[mine & (y == 0)] == 1)
            row |= _share("false_negative", predicted[mine & (y == 1)] == 0)
        elif y is not None:
            row |= _share("right", predicted[mine] == y[mine])
        out.append(row)
    return out


def _share(name: str, hits: NDArray[np.bool_]) -> dict[str, Any]:
    """A share with its 95 % interval; None where nobody is there to have one."""
    count, n = int(hits.sum()), len(hits)
    interval = None if n == 0 else [clopper_pearson_lower(count, n, 0.025), clopper_pearson_upper(count, n, 0.025)]
    return {name: None if n == 0 else count / n, f"{name}_interval": interval}


def judge_texts(
    model: TextClassifier, texts: Any, y: NDArray[np.intp] | None, versions: Variations | None, swaps: Any
) -> dict[str, Any]:
    """The scores of a model on held-out texts (or rows with texts) and their versions; blind versions do not count as
    consistent. y: None where nobody knows what would be right."""
    predicted = np.searchsorted(model.classes_, model.predict(texts))
    two = len(model.classes_) == 2
    found = _versions_found(model, versions, two)
    if y is not None:
        found = {"balanced_accuracy": balanced_accuracy(y, predicted)} | found
    if two and y is not None:
        said = texts if model.text is None else texts[model.text].tolist()
        score = model.predict_proba(texts)[:, 1]
        mentioned = swaps.mentioned(said) if hasattr(swaps, "mentioned") else []
        terms = sorted({token for some in mentioned for token in some})
        rates = error_rates(y, predicted, {t: np.array([t in some for some in mentioned]) for t in terms})
        found |= {
            "auc": auc(y, score),
            "equal_error_rate": equal_error_rate(y, score),
            "false_positive_rate": rates.fpr,
            "false_negative_rate": rates.fnr,
            "fped": None if np.isnan(rates.fped) else rates.fped,
            "fned": None if np.isnan(rates.fned) else rates.fned,
            "terms": _terms(rates),
            "_rates": rates,
        }
    return found


def _versions_found(model: TextClassifier, versions: Variations | None, two: bool) -> dict[str, Any]:
    """How the versions of a text are treated, and the worst of each."""
    none = pd.DataFrame(columns=["row", "text", "worst_version", "moves_by"])
    found: dict[str, Any] = {"blind": 0, "_worst": none, "_rates": None}
    if versions is None or len(versions) == 0:
        return found
    features = model.features_
    seen, found["blind"] = features.seen(versions)
    if len(seen) == 0:
        return found
    kept = np.isin(versions.rows, seen.rows)
    said = versions.values[kept]
    if versions.columns is not None:
        said = said[:, :, versions.columns.index(model.text)]
    p = seen.map(lambda x: model.calibration_.probabilities(model._logits(x))).values
    decided, distance = _decided_and_moved(model, p)
    found |= _scores_of(p, decided, distance)
    if features.alike is not None:
        some = Variations(versions.values[kept], seen.rows, versions.like)
        raw = some.map(lambda rows: features.shrinkage_(features.scaled(features.vectors(rows))))
        p_raw = raw.map(lambda x: model.calibration_.probabilities(model._logits(x))).values
        found["read_alike"] = float((distance.max(axis=1) < SAME).mean())
        found["as_they_stand"] = _scores_of(p_raw, *_decided_and_moved(model, p_raw))
    at = distance.argmax(axis=1)
    row = np.arange(len(p))
    found["_worst"] = pd.DataFrame(
        {
            "row": seen.rows,
            "text": said[:, 0],
            "worst_version": said[row, at],
            "probability": p[:, 0, 1] if two else p[:, 0].max(axis=-1),
            "probability_of_worst": p[row, at, 1] if two else p[row, at].max(axis=-1),
            "moves_by": distance[row, at],
            "decision_changes": decided[row, at] != decided[:, 0],
        }
    ).sort_values("moves_by", ascending=False, kind="stable")
    return found


def _decided_and_moved(model: TextClassifier, p: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Decisions (g, m) on the versions and how far each lies from version 0, in total variation."""
    decided = (p[:, :, 1] >= model.threshold_) if p.shape[2] == 2 else p.argmax(axis=2)
    return decided, 0.5 * np.abs(p - p[:, :1]).sum(axis=-1)


def _scores_of(p: NDArray[np.float64], decided: NDArray[Any], distance: NDArray[np.float64]) -> dict[str, float]:
    worst = float(distance.max(axis=1).mean())
    return {
        "consistency": prediction_consistency(decided.astype(int)),
        "ctf": ctf_std(p[:, :, 1]) if p.shape[2] == 2 else worst,
        "worst_move": worst,
    }


def certificates(
    model: TextClassifier, task: TextTask, versions: Variations | None, confidence: float
) -> dict[str, Any]:
    """The certificate over the versions of the texts and, in `attributes`, one for each sensitive attribute; without a
    swap the first of these is the certificate."""
    attributes = {}
    for one in model.levels_:
        features = model.features_
        moved = one.versions(features.scaled(features.read(task.judging)))
        moved = Variations(features.shrinkage_(moved.values), moved.rows)
        what = (
            f"setting what gives {one.name} away to the mean of each of its {len(one.groups)} groups moves a row's "
            "probabilities"
        )
        attributes[one.name] = certificate_of(model, moved, confidence, what, "rows")
    if versions is not None:
        seen, _ = model.features_.seen(versions)
        found = certificate_of(model, seen, confidence)
        if "statement" in found and model.features_.alike is not None:
            found["statement"] += BY_CONSTRUCTION
        return found | {"attributes": attributes}
    if not attributes:
        why = "nothing in text or columns tells the sensitive columns better than chance, so there are no versions"
        return {"refused": why, "attributes": {}}
    first = next(iter(attributes))
    return attributes[first] | {"attributes": {k: v for k, v in attributes.items() if k != first}}


def certificate_of(
    model: TextClassifier,
    vectors: Variations,
    confidence: float,
    what: str = "",
    rows: str = "texts that have versions",
) -> dict[str, Any]:
    """The exact certificate over versions of held-out rows, as a sentence; or why there is none."""
    if len(vectors) < 25:
        return {"refused": f"only {len(vectors)} held-out texts have versions; a certificate needs 25 or more"}
    found = certify(model.net_, vectors, eps=0.0, confidence=confidence, output_distance=total_variation)
    m = vectors.values.shape[1]
    other = "the other version" if m == 2 else f"the worst of the {m - 1} other versions"
    what = what or f"{other} of a text moves its probabilities"
    return {
        "lower": found.lower,
        "upper": found.upper,
        "mean": found.r_low,
        "n": found.n,
        "confidence": confidence,
        "statement": (
            f"With {confidence:.0%} confidence, {what} by between {found.lower:.3f} and {found.upper:.3f} on average "
            f"(total variation, before calibration; exact over these versions and over nothing else; {found.n:,} "
            f"held-out {rows}, mean {found.r_low:.3f}; {len(vectors) - found.n:,} others tuned the bound)."
        ),
    }


def in_the_table(worst: pd.DataFrame, task: TextTask) -> pd.DataFrame:
    """The worst versions with the rows of the table instead of those of the held-out texts."""
    return worst.assign(row=task.rows_held_out[worst["row"].to_numpy(dtype=np.intp)])


def named_worst(worst: pd.DataFrame) -> dict[str, Any]:
    """Which version is the worst of all, and which words are the worst ones most often; no text is repeated."""
    if len(worst) == 0:
        return {}
    worst = worst[worst["moves_by"] >= SAME]
    if len(worst) == 0:
        return {"statement": "No version of a text moves its probabilities."}
    words = [changed_words(text, version) for text, version in zip(worst["text"], worst["worst_version"])]
    often = Counter(word.lower() for word in words if word).most_common(3)
    first = worst.iloc[0]
    sentence = (
        f"The worst version of all is that of row {int(first['row'])} with {words[0]!r}: it moves the probabilities "
        f"by {first['moves_by']:.3f} after calibration"
        f"{' and changes the decision' if first['decision_changes'] else ''}."
    )
    if often:
        sentence += " Most often the worst is " + ", ".join(f"{w!r} ({n} of {len(words)})" for w, n in often) + "."
    return {
        "row": int(first["row"]),
        "words": words[0],
        "moves_by": float(first["moves_by"]),
        "often": dict(often),
        "statement": sentence,
    }


def _terms(rates: ErrorRates) -> list[dict[str, Any]]:
    """The rates of each term with 95 % intervals; None where no text is there to have one."""
    out = []
    for term, (negatives, positives) in rates.counts.items():
        row: dict[str, Any] = {"term": term, "harmless": negatives, "harmful": positives}
        for name, n, rate in (
            ("false_positive", negatives, rates.fpr_of[term]),
            ("false_negative", positives, rates.fnr_of[term]),
        ):
            count = 0 if n == 0 else round(rate * n)
            row[name] = None if n == 0 else rate
            row[f"{name}_interval"] = (
                None if n == 0 else [clopper_pearson_lower(count, n, 0.025), clopper_pearson_upper(count, n, 0.025)]
            )
        out.append(row)
    return sorted(out, key=lambda row: -(row["harmless"] + row["harmful"]))


def changed_words(text: str, version: str) -> str:
    """The words of a version that its text does not have, in their order.

    >>> changed_words("my gay friend", "my deaf friend")
    'deaf'
    """
    ours = set(text.split())
    return " ".join(dict.fromkeys(word.strip(".,;:!?()\"'“”’") for word in version.split() if word not in ours))
