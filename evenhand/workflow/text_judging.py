"""What a text model does to held-out texts: errors, by term, class and group, and how it treats versions of a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.copies import first_of_each
from evenhand.counterfactuals.changes import changed_words
from evenhand.error_rates import ErrorRates, auc, equal_error_rate, error_rates, rate_interval, threshold_at
from evenhand.evaluation import balanced_accuracy, ctf_squared, ctf_std, prediction_consistency
from evenhand.text import TextClassifier
from evenhand.text.levels import Levels, groups_of
from evenhand.text.validation import one_against_rest
from evenhand.variations import Variations
from evenhand.workflow.text_task import TextTask

__all__ = ["Judged", "at_one_fpr", "judge_task", "misses_more", "named_worst", "without_texts", "worst_of"]

SAME = 1e-6  # a move of the probabilities that is none
MISSES_MORE = 0.05  # how many more harmful texts a fair model may miss before that is said
AS_THEY_STAND, PLAIN = "as_they_stand_", "plain_"  # the worst versions of another reading, and of another model
OTHERS = {AS_THEY_STAND: "Read as they stand", PLAIN: "Of the plain model"}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """What was found of a model: `scores` are plain values; `score` the probability of the second class of two.

    worst: a line for each text with versions, in the order of the texts. `text` is what the versions are of, a passage
    where `passage` says so; `probability` that of the whole text, as `predict` gives it; `compared_with` that of
    `text`, which the worst version is compared with.
    """

    scores: dict[str, Any]
    worst: pd.DataFrame
    rates: ErrorRates | None = None
    score: Floats = field(default_factory=lambda: np.empty(0))


def judge_task(
    model: TextClassifier, task: TextTask, versions: Variations | None, swaps: Any, levels: list[Levels]
) -> Judged:
    """The scores of a model on the held-out part, by group and with what gives a sensitive attribute away changed;
    blind versions do not count as consistent. Scores of all rows are shares of the rows; those by term, class and group
    count each text once, because a text that was pasted five times is no five observations."""
    y = task.y_held_out if task.labels and len(task.y_held_out) else None
    p = model.predict_proba(task.judging)
    decided = _decided(model, p)
    scores, worst = _versions_found(model, versions, p, task.held_out)
    rates, two = None, len(model.classes_) == 2
    said = _said(task)
    scores["copies"] = len(p) - len(first_of_each(zip(*said, *([] if y is None else [y]))))
    if y is not None:
        scores = {"balanced_accuracy": balanced_accuracy(y, decided)} | scores
    if y is not None and two:
        mentioned = swaps.mentioned(task.held_out) if hasattr(swaps, "mentioned") else []
        terms = sorted({token for some in mentioned for token in some})
        masks = {t: np.array([t in some for some in mentioned]) for t in terms}
        rates, by_term = error_rates(y, decided, {}), error_rates(y, decided, masks, texts=list(zip(*said)))
        scores |= {
            "auc": auc(y, p[:, 1]),
            "equal_error_rate": equal_error_rate(y, p[:, 1]),
            "false_positive_rate": rates.fpr,
            "false_negative_rate": rates.fnr,
            "fped": None if np.isnan(by_term.fped) else by_term.fped,
            "fned": None if np.isnan(by_term.fned) else by_term.fned,
            "terms": _terms(by_term),
        }
    elif y is not None:
        scores |= {"auc": one_against_rest(y, p), "classes": _classes(y, decided, task.labels, said)}
    if task.sensitive_held_out or levels:
        scores |= _attributes(model, task, y, decided, levels, said)
    return Judged(scores, worst, rates, p[:, 1] if two else np.empty(0))


def at_one_fpr(judged: Mapping[str, Judged], y: NDArray[np.intp], fpr: float) -> dict[str, Any]:
    """What each model misses where all flag the same share of harmless texts; the thresholds are read off these very
    texts, of every model alike, because thresholds of other texts flag other shares here."""
    thresholds = {name: threshold_at(y, one.score, fpr) for name, one in judged.items()}
    missed = {name: float((one.score[y == 1] < thresholds[name]).mean()) for name, one in judged.items()}
    return {"fpr": fpr, "missed": missed, "thresholds": thresholds}


def misses_more(plain: Mapping[str, Any], fair: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """A sentence where the fair model misses many more harmful texts than the plain one, "" where not; `one`: what
    both miss at one false positive rate."""
    if not fair["false_negative_rate"] > plain["false_negative_rate"] + MISSES_MORE:
        return ""
    return (
        f"At its threshold the fair model misses {fair['false_negative_rate']:.1%} of harmful texts, the plain one "
        f"{plain['false_negative_rate']:.1%}; where both flag {one['fpr']:.1%} of harmless texts they miss "
        f"{one['missed']['fair']:.1%} and {one['missed']['plain']:.1%}."
    )


def _versions_found(
    model: TextClassifier, versions: Variations | None, p_whole: Floats, texts: list[str]
) -> tuple[dict[str, Any], pd.DataFrame]:
    """How the versions of a text are treated, and the worst of each."""
    none = pd.DataFrame(columns=["row", "passage", "text", "probability", "worst_version", "words", "moves_by"])
    if versions is None or len(versions) == 0:
        return {"blind": 0}, none
    features = model.features_
    seen, blind = features.seen(versions)
    if len(seen) == 0:
        return {"blind": blind}, none
    kept = np.isin(versions.rows, seen.rows)
    said = versions.values[kept]
    if versions.columns is not None:
        said = said[:, :, versions.columns.index(model.text)]
    p = seen.map(lambda x: model.calibration_.probabilities(model._logits(x))).values
    found: dict[str, Any] = {"blind": blind, "compared": len(seen)} | _scores_of(model, p)
    whole = p_whole[seen.rows]
    worst = {
        "row": seen.rows,
        "passage": [texts[row] != text for row, text in zip(seen.rows, said[:, 0])],
        "text": said[:, 0],
        "probability": whole[:, 1] if whole.shape[1] == 2 else whole.max(axis=1),
    } | _worst_versions(model, p, said)
    if features.alike is not None:
        some = Variations(versions.values[kept], seen.rows, versions.like)
        raw = some.map(lambda rows: features.shrinkage_(features.scaled(features.vectors(rows))))
        p_raw = raw.map(lambda x: model.calibration_.probabilities(model._logits(x))).values
        found["read_alike"] = float((_moved(p).max(axis=1) < SAME).mean())
        found["as_they_stand"] = _scores_of(model, p_raw)
        stand = _worst_versions(model, p_raw, said)
        worst |= {f"{AS_THEY_STAND}{name}": values for name, values in stand.items()}
    return found, pd.DataFrame(worst)


def _worst_versions(model: TextClassifier, p: Floats, said: NDArray[Any]) -> dict[str, Any]:
    """The version of each text that lies farthest from it; the text itself where none is told from it. Probabilities
    are of the second class of two, of more classes of the one that the text is in."""
    moved, decided, row = _moved(p), _decided(model, p), np.arange(len(p))
    at = np.where(moved.max(axis=1) < SAME, 0, moved.argmax(axis=1))
    k = np.ones(len(p), dtype=int) if p.shape[2] == 2 else p[:, 0].argmax(axis=1)
    return {
        "worst_version": said[row, at],
        "words": [changed_words(text, version) for text, version in zip(said[:, 0], said[row, at])],
        "compared_with": p[row, 0, k],
        "probability_of_worst": p[row, at, k],
        "moves_by": moved[row, at],
        "decision_changes": decided[row, at] != decided[:, 0],
    }


def _decided(model: TextClassifier, p: Floats) -> NDArray[np.intp]:
    """The class numbers of probabilities (..., K), as `predict` gives them."""
    return (p[..., 1] >= model.threshold_).astype(np.intp) if p.shape[-1] == 2 else p.argmax(axis=-1)


def _moved(p: Floats) -> Floats:
    """How far each version (g, m) lies from version 0, in total variation."""
    return np.asarray(0.5 * np.abs(p - p[:, :1]).sum(axis=-1))


def _scores_of(model: TextClassifier, p: Floats) -> dict[str, float]:
    return {
        "consistency": prediction_consistency(_decided(model, p)),
        "ctf": _ctf(p),
        "worst_move": float(_moved(p).max(axis=1).mean()),
    }


def _ctf(p: Floats) -> float:
    """The CTF score of the paper's tables; of several classes and versions the sum of that of each class, which is what
    chooses rho."""
    if p.shape[2] == 2:
        return ctf_std(p[:, :, 1])
    return ctf_squared(p) if p.shape[1] == 2 else sum(ctf_std(p[:, :, k]) for k in range(p.shape[2]))


def _said(task: TextTask) -> list[Any]:
    """The held-out rows as the model reads them, column by column: the texts, and what stands beside them."""
    table = task.table_held_out
    return [task.held_out] if table is None else [table[name].tolist() for name in table]


def _attributes(
    model: TextClassifier,
    task: TextTask,
    y: NDArray[np.intp] | None,
    decided: NDArray[np.intp],
    levels: list[Levels],
    said: list[Any],
) -> dict[str, Any]:
    """By sensitive attribute: rows decided alike whatever gives it away, and rates by group."""
    features, found = model.features_, {}
    scaled = features.scaled(features.read(task.judging))
    for one in levels:
        moved = one.versions(scaled)
        p = moved.map(lambda x: model.calibration_.probabilities(model._logits(features.shrinkage_(x)))).values
        scores = _scores_of(model, p)
        found[one.name] = {name: scores[name] for name in ("consistency", "worst_move")}
    groups = {}
    for name, values in task.sensitive_held_out.items():
        group = groups_of(values, task.sensitive.get(name, values)).astype(str)
        once = first_of_each(zip(*said, group, *([] if y is None else [y])))
        mine = None if y is None else y[once]
        groups[name] = _groups(mine, decided[once], group[once], len(model.classes_) == 2)
    return {"levels": found, "groups": groups}


def _groups(y: NDArray[np.intp] | None, decided: NDArray[np.intp], groups: NDArray[Any], two: bool) -> list[Any]:
    """Rates by group: of two classes how many get the second one, and the errors; of more, how many are right."""
    out = []
    for group in np.unique(groups):
        mine = groups == group
        row: dict[str, Any] = {"group": str(group), "n": int(mine.sum())}
        row |= _share("selected", decided[mine] == 1) if two else {}
        if y is not None and two:
            row |= _share("false_positive", decided[mine & (y == 0)] == 1)
            row |= _share("false_negative", decided[mine & (y == 1)] == 0)
        elif y is not None:
            row |= _share("right", decided[mine] == y[mine])
        out.append(row)
    return out


def _classes(y: NDArray[np.intp], decided: NDArray[np.intp], labels: list[str], said: list[Any]) -> list[Any]:
    """Of each class of several: how many of its texts are missed, and how many others are taken for it."""
    once = first_of_each(zip(*said, y))
    y, decided = y[once], decided[once]
    return [
        {"class": label, "n": int((y == k).sum())}
        | _share("false_positive", decided[y != k] == k)
        | _share("false_negative", decided[y == k] != k)
        for k, label in enumerate(labels)
    ]


def _terms(rates: ErrorRates) -> list[dict[str, Any]]:
    """The rates of each term, those with most texts first; None where no text is there to have one."""
    out = []
    for term, (negatives, positives) in rates.counts.items():
        row: dict[str, Any] = {"term": term, "harmless": negatives, "harmful": positives}
        row |= _of("false_positive", rates.fpr_of[term], rates.fpr_interval_of[term])
        row |= _of("false_negative", rates.fnr_of[term], rates.fnr_interval_of[term])
        out.append(row)
    return sorted(out, key=lambda row: -(row["harmless"] + row["harmful"]))


def _share(name: str, hits: NDArray[np.bool_]) -> dict[str, Any]:
    rate = float(hits.mean()) if len(hits) else float("nan")
    return _of(name, rate, rate_interval(int(hits.sum()), len(hits)))


def _of(name: str, rate: float, interval: tuple[float, float]) -> dict[str, Any]:
    """A share with its 95 % interval; None where nobody is there to have one."""
    nobody = np.isnan(rate)
    return {name: None if nobody else rate, f"{name}_interval": None if nobody else list(interval)}


def worst_of(fair: Judged, plain: Judged | None, task: TextTask) -> pd.DataFrame:
    """The worst versions of a model beside those of the plain one, by the rows of the table; the worst come first."""
    worst = fair.worst
    if plain is not None and len(plain.worst) and len(worst):
        other = plain.worst.drop(columns=["text", "passage"]).set_index("row").add_prefix(PLAIN)
        worst = worst.join(other, on="row")
    worst = worst.assign(row=task.rows_held_out[worst["row"].to_numpy(dtype=np.intp)])
    moves = [name for name in ("moves_by", f"{AS_THEY_STAND}moves_by", f"{PLAIN}moves_by") if name in worst]
    worst = worst.assign(**{moves[0]: worst[moves[0]].where(worst[moves[0]] >= SAME, 0.0)})
    return worst.sort_values(moves, ascending=False, kind="stable")


def without_texts(worst: pd.DataFrame) -> pd.DataFrame:
    """The worst versions by row and changed word; nobody's text is in it."""
    return worst.drop(columns=[name for name in worst if name == "text" or str(name).endswith("worst_version")])


def named_worst(worst: pd.DataFrame) -> dict[str, Any]:
    """Which version is the worst of all, and which words are the worst ones most often; no text is repeated.

    Where the model reads words of the list alike, also the worst when texts are read as they stand, and that of the
    plain model.
    """
    if len(worst) == 0:
        return {}
    found = _named(worst, "") or {"statement": "No version of a text moves its probabilities after calibration."}
    for prefix, whose in OTHERS.items():
        other = _named(worst, prefix) if f"{prefix}moves_by" in worst else None
        if other is not None:
            found[prefix.rstrip("_")] = other | {"statement": f"{whose}: {other['statement']}"}
    return found


def _named(worst: pd.DataFrame, prefix: str) -> dict[str, Any] | None:
    moves = worst[f"{prefix}moves_by"]
    worst = worst[moves >= SAME].sort_values(f"{prefix}moves_by", ascending=False, kind="stable")
    if len(worst) == 0:
        return None
    words, first = worst[f"{prefix}words"].tolist(), worst.iloc[0]
    often = Counter(word.lower() for word in words if word).most_common(3)
    sentence = (
        f"The worst version of all is that of row {int(first['row'])} with {words[0]!r}: it moves the probabilities "
        f"by {first[f'{prefix}moves_by']:.3f} after calibration"
        f"{' and changes the decision' if first[f'{prefix}decision_changes'] else ''}."
    )
    if often:
        sentence += " Most often the worst is " + ", ".join(f"{w!r} ({n} of {len(words)})" for w, n in often) + "."
    return {
        "row": int(first["row"]),
        "words": words[0],
        "moves_by": float(first[f"{prefix}moves_by"]),
        "often": dict(often),
        "statement": sentence,
    }
