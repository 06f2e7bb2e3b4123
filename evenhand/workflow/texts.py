"""What `evenhand train --text` does, without a terminal: texts and labels in, models, findings, a certificate out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.certify.certify import certify
from evenhand.certify.finite import other_versions
from evenhand.certify.people import without_copies
from evenhand.counterfactuals import GenderSwap, TokenSwap
from evenhand.counterfactuals.identities import known
from evenhand.datasets import about_people, mentions
from evenhand.error_rates import ErrorRates, flags_more
from evenhand.output_distances import total_variation
from evenhand.tables.read import TableError
from evenhand.text import TextClassifier
from evenhand.variations import Variations
from evenhand.workflow.text_judging import Judged, at_one_fpr, judge_task, misses_more, named_worst, worst_of
from evenhand.workflow.text_task import Beside, TextTask, swaps_named, text_task

__all__ = [
    "Beside",
    "TextRun",
    "TextTask",
    "certificate_of",
    "certificates",
    "compared",
    "swaps_named",
    "text_task",
    "train_texts",
]

Say = Callable[[str], None]
NOT_ASKED = "none was asked for"
BY_CONSTRUCTION = (
    " The model reads the words of the list alike, so this holds by construction wherever the rules see them, and says "
    "nothing about words that are in no list."
)


@dataclass(frozen=True)
class TextRun:
    """Both models and what was found; `findings` is plain values, `worst` one line for each text with versions."""

    model: TextClassifier
    plain: TextClassifier
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
    threshold: float | None = None,
    certificate: bool = True,
    **options: Any,
) -> TextRun:
    """A plain and a fair model, judged on the same held-out texts, or rows with texts.

    abuse: the second class is abuse; the fair model also trains on `mentions` of the swap's tokens. swaps: None where
    sensitive columns alone say who may not be treated differently. threshold: the probability of the second class from
    which on both models decide for it; by default each has one of validation texts. certificate: whether to prove.
    """
    extra = None
    if threshold is not None and len(task.labels) != 2:
        raise TableError(
            f"a threshold of {threshold:g} needs two classes, the target has {len(task.labels)}; leave it out"
        )
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
            if threshold is not None:
                model.threshold_ = threshold
    fair = models["fair"]
    say(f"judging both on {len(task.held_out):,} held-out texts")
    versions = task.versions(swaps)
    judged = {name: judge_task(model, task, versions, swaps, fair.levels_) for name, model in models.items()}
    worst = worst_of(judged["fair"], judged["plain"], task)
    one, warning = compared(judged, task)
    proved = certificates(fair, task, versions, confidence) if certificate else {"refused": NOT_ASKED, "attributes": {}}
    findings = {
        "models": {name: found.scores for name, found in judged.items()},
        "at_one_fpr": one,
        "labels": task.labels,
        "swap": "none" if swaps is None else repr(swaps),
        "texts": {"trained": len(task.texts), "held_out": len(task.held_out)}
        | {"without_text": task.without_text, "without_label": task.without_label},
        "versions": {
            "texts": 0 if versions is None else len(versions),
            "each": 1 if versions is None else int(versions.values.shape[1]),
            "blind": judged["fair"].scores["blind"],
        },
        "columns": None if task.schema is None else _columns(task, fair),
        "rho": fair.rho_,
        "choice": fair.choice_,
        "threshold": fair.threshold_,
        "thresholds": {name: model.threshold_ for name, model in models.items()},
        "threshold_asked_for": threshold is not None,
        "warning": " ".join(said for said in (warning, _sentence(fair.chosen_because_)) if said),
        "certificate": proved | {"worst": named_worst(worst)},
    }
    return TextRun(fair, models["plain"], findings, worst)


def compared(judged: dict[str, Judged], task: TextTask) -> tuple[dict[str, Any] | None, str]:
    """What the plain and the fair model miss at one false positive rate, that of the plain one on these texts, and a
    warning where the fair one flags or misses many more; None and "" where nobody knows what would be right."""
    plain, fair = judged["plain"], judged["fair"]
    if plain.rates is None or fair.rates is None or not 0 < task.y_held_out.sum() < len(task.y_held_out):
        return None, ""
    one = at_one_fpr(judged, task.y_held_out, plain.rates.fpr)
    said = [_flags_more(plain.rates, fair.rates), misses_more(plain.scores, fair.scores, one)]
    return one, " ".join(filter(None, said))


def _flags_more(plain: ErrorRates, fair: ErrorRates) -> str:
    """Without the advice of `flags_more`, which is for a program of one's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is in the findings
        more = flags_more(plain, fair)
    return more and (
        f"At its threshold the fair model flags {fair.fpr:.1%} of harmless texts, the plain one {plain.fpr:.1%}: part "
        "of its consistency is that more is flagged. Judge them by what they miss where both flag the same share."
    )


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


def certificates(
    model: TextClassifier, task: TextTask, versions: Variations | None, confidence: float
) -> dict[str, Any]:
    """The certificate over the versions of the texts and, in `attributes`, one for each sensitive attribute; without a
    swap the first of these is the certificate."""
    attributes = {}
    for one in model.levels_:
        features = model.features_
        moved = one.versions(features.scaled(features.read(task.judging)))
        once = np.sort(np.unique(moved.values[:, 0], axis=0, return_index=True)[1])  # a row that was copied is one row
        moved = Variations(features.shrinkage_(moved.values[once]), moved.rows[once])
        what = (
            f"setting what gives {one.name} away to the mean of each of its {len(one.groups)} groups moves a row's "
            "probabilities"
        )
        attributes[one.name] = certificate_of(model, moved, confidence, what, "rows")
    if versions is not None:
        texts = without_copies(versions)  # a text that was copied is one text
        seen, _ = model.features_.seen(texts)
        copies = len(versions) - len(texts)
        found = certificate_of(model, seen, confidence, other=_other_versions(texts), copies=copies)
        if "statement" in found and model.features_.alike is not None:
            found["statement"] += BY_CONSTRUCTION
        return found | {"attributes": attributes}
    if not attributes:
        why = "nothing in text or columns tells the sensitive columns better than chance, so there are no versions"
        return {"refused": why, "attributes": {}}
    first = next(iter(attributes))
    return attributes[first] | {"attributes": {k: v for k, v in attributes.items() if k != first}}


def _other_versions(texts: Variations) -> str:
    least, most = other_versions(texts) if texts.values.ndim == 2 else (texts.values.shape[1] - 1,) * 2
    if most == 1:
        return "the other version"
    return f"the worst of the {most if least == most else f'{least} to {most}'} other versions"


def certificate_of(
    model: TextClassifier,
    vectors: Variations,
    confidence: float,
    what: str = "",
    rows: str = "texts that have versions",
    other: str = "the worst of the other versions",
    copies: int = 0,
) -> dict[str, Any]:
    """The exact certificate over versions of held-out rows, as a sentence; or why there is none."""
    if len(vectors) < 25:
        return {"refused": f"only {len(vectors)} held-out texts have versions; a certificate needs 25 or more"}
    found = certify(model.net_, vectors, eps=0.0, confidence=confidence, output_distance=total_variation)
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
            f"held-out {rows}, mean {found.r_low:.3f}; {len(vectors) - found.n:,} others tuned the bound"
            + (f"; {copies:,} copies of a text were left out)." if copies else ").")
        ),
    }
