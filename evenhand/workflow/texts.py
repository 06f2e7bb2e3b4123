"""What `evenhand train --text` does, without a terminal: texts and labels in, models, findings, a certificate out."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.certify.certify import certify
from evenhand.counterfactuals import GenderSwap, TokenSwap, identity_categories, identity_tokens, names_in
from evenhand.datasets import mentions
from evenhand.dual.confidence import clopper_pearson_lower, clopper_pearson_upper
from evenhand.error_rates import ErrorRates, auc, equal_error_rate, error_rates, flags_more
from evenhand.evaluation import balanced_accuracy, ctf_std, prediction_consistency
from evenhand.output_distances import total_variation
from evenhand.tables.read import TableError
from evenhand.text import TextClassifier, without_blind
from evenhand.variations import Variations

__all__ = [
    "TextRun",
    "TextTask",
    "certificate_of",
    "changed_words",
    "in_the_table",
    "judge_texts",
    "named_worst",
    "swaps_named",
    "text_task",
    "train_texts",
]

Say = Callable[[str], None]
SAMPLE, PASSAGE = 8, 64  # versions of a text, and the words around its token: what encoding them costs


@dataclass(frozen=True)
class TextTask:
    """Texts and labels, split into those that train and those that judge; y is 0 or 1, or a class number."""

    texts: list[str]
    y: NDArray[np.intp]
    labels: list[str]
    held_out: list[str]
    y_held_out: NDArray[np.intp]
    rows_held_out: NDArray[np.intp]  # their rows in the table, from 0
    without_text: int  # rows that are left out
    without_label: int

    def part(self) -> tuple[list[str], NDArray[np.intp]]:
        return self.held_out, self.y_held_out


def swaps_named(name: str, texts: list[str] | None = None, every: bool = False) -> TokenSwap | GenderSwap:
    """identity, categories, gender, names (gender with given names), or the path of a file with one token a line.

    In a file, lines such as "faith: muslim, christian" are categories. every: all tokens instead of a few at random.
    """
    options: dict[str, Any] = {"passage": PASSAGE}
    if name == "gender":
        return GenderSwap(nouns=True)
    if name == "names":
        names = names_in(texts or [])
        if not all(names):
            raise TableError(
                f"--swap names draws from the given names in the texts, of which {len(names[0])} male and "
                f"{len(names[1])} female ones are known; use --swap gender, or GenderSwap(names=...) with lists"
            )
        return GenderSwap(nouns=True, names=names)
    tokens: Any = {"identity": identity_tokens, "categories": identity_categories}.get(name, lambda: None)()
    if tokens is None:
        path = Path(name)
        if not path.is_file():
            raise TableError(
                "--swap is identity, categories, gender, names, or a file with one token a line; "
                f"there is no file {name}"
            )
        lines = [line.split("#")[0].strip() for line in path.read_text("utf-8").splitlines()]
        lines = [line for line in lines if line]
        if lines and all(":" in line for line in lines):
            pairs = (line.split(":", 1) for line in lines)
            tokens = {kind.strip(): [t.strip() for t in some.split(",") if t.strip()] for kind, some in pairs}
        else:
            tokens = lines
    largest = max(map(len, tokens.values())) if isinstance(tokens, dict) else len(tokens)
    return TokenSwap(tokens, sample=None if every or largest - 1 <= SAMPLE else SAMPLE, **options)


def text_task(frame: pd.DataFrame, text: str, target: str, seed: int = 0, share: float = 0.3) -> TextTask:
    """The columns of a table as a task; a share of every class is held out to judge."""
    for name in (text, target):
        if name not in frame.columns:
            known = ", ".join(map(str, frame.columns[:12]))
            raise TableError(f"there is no column {name!r}; the table has {known}")
    said = frame[text].notna() & (frame[text].astype(str).str.strip() != "")
    labelled = frame[target].notna()
    there = np.flatnonzero((said & labelled).to_numpy())
    texts = [str(value) for value in frame[text].iloc[there]]
    labels, y = np.unique(frame[target].iloc[there].astype(str).to_numpy(), return_inverse=True)
    if len(labels) < 2 or len(labels) > 200:
        raise TableError(f"{target!r} must hold classes, between 2 and 200 of them; it holds {len(labels)}")
    held = _held_out(texts, y, seed, share)
    mine, theirs = np.flatnonzero(~held), np.flatnonzero(held)
    return TextTask(
        [texts[i] for i in mine],
        y[mine],
        [str(label) for label in labels],
        [texts[i] for i in theirs],
        y[theirs],
        there[theirs],
        int((~said).sum()),
        int((said & ~labelled).sum()),
    )


def _held_out(texts: list[str], y: NDArray[np.intp], seed: int, share: float) -> NDArray[np.bool_]:
    """Which texts judge: a share of every class, and a text that is there twice is never on both sides."""
    first: dict[str, int] = {}
    of = np.array([first.setdefault(text, row) for row, text in enumerate(texts)], dtype=np.intp)
    rng = np.random.default_rng(seed)
    held = np.zeros(len(y), dtype=bool)
    for k in np.unique(y):
        rows = rng.permutation(np.flatnonzero((y == k) & (of == np.arange(len(of)))))
        held[rows[: round(share * len(rows))]] = True
    return np.asarray(held[of])


@dataclass(frozen=True)
class TextRun:
    """The fair model and what was found; `findings` is plain values, `worst` one line for each text with versions."""

    model: TextClassifier
    findings: dict[str, Any]
    worst: pd.DataFrame


def train_texts(
    task: TextTask,
    encoder: Any,
    swaps: TokenSwap | GenderSwap,
    say: Say,
    *,
    abuse: bool = False,
    rho: float | str = "auto",
    confidence: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> TextRun:
    """A plain and a fair model, judged on the same held-out texts.

    abuse: the second class is abuse; the fair model also trains on `mentions` of the swap's tokens.
    """
    extra = None
    if abuse:
        if not isinstance(swaps, TokenSwap) or len(task.labels) != 2:
            raise TableError("--abuse needs two classes and a list of tokens; leave it out, or use --swap identity")
        more = mentions(swaps.tokens, max(50, len(task.texts) // 20), seed=seed)
        extra = (more.texts, more.y)
    models = {}
    for name, method in (("plain", "plain"), ("fair", "sensei")):
        say(f"training the {name} model on {len(task.texts):,} texts")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # blind versions: they are counted in the findings
            model = TextClassifier(
                encoder,
                swaps,
                method,
                rho=rho,
                mentions=extra if method != "plain" else None,
                random_state=seed,
                **options,
            )
            models[name] = model.fit(task.texts, task.y)
    say(f"judging both on {len(task.held_out):,} held-out texts")
    texts, y = task.part()
    versions = swaps(texts)
    judged = {name: judge_texts(model, texts, y, versions, swaps) for name, model in models.items()}
    rates = {name: found.pop("_rates") for name, found in judged.items()}
    worst = {name: in_the_table(found.pop("_worst"), task) for name, found in judged.items()}
    fair = models["fair"]
    warning = ""
    if rates["plain"] is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warning = flags_more(rates["plain"], rates["fair"])
    seen, blind = without_blind(versions.map(fair.features_.transform))
    certificate = certificate_of(fair, seen, confidence) | {"worst": named_worst(worst["fair"])}
    findings = {
        "models": judged,
        "labels": task.labels,
        "swap": repr(swaps),
        "texts": {"trained": len(task.texts), "held_out": len(task.held_out)}
        | {"without_text": task.without_text, "without_label": task.without_label},
        "versions": {"texts": len(versions), "each": int(versions.values.shape[1]), "blind": blind},
        "rho": fair.rho_,
        "choice": fair.choice_,
        "threshold": fair.threshold_,
        "warning": warning,
        "certificate": certificate,
    }
    return TextRun(fair, findings, worst["fair"])


def judge_texts(
    model: TextClassifier, texts: list[str], y: NDArray[np.intp], versions: Variations, swaps: Any
) -> dict[str, Any]:
    """The scores of a model on held-out texts and their versions; blind versions do not count as consistent."""
    predicted = np.searchsorted(model.classes_, model.predict(texts))
    found: dict[str, Any] = {"balanced_accuracy": balanced_accuracy(y, predicted)}
    two = len(model.classes_) == 2
    p = versions.map(model.predict_proba)
    vectors = versions.map(model.features_.transform)
    _, blind = without_blind(vectors)
    kept = (np.asarray(vectors.values) != vectors.values[:, :1]).reshape(len(p), -1).any(axis=1)
    p = Variations(p.values[kept], p.rows[kept])
    said = versions.values[kept]
    decided = (p.values[:, :, 1] >= model.threshold_) if two else p.values.argmax(axis=2)
    if len(p):
        distance = 0.5 * np.abs(p.values - p.values[:, :1]).sum(axis=-1)
        at = distance.argmax(axis=1)
        row = np.arange(len(p))
        found |= {
            "consistency": prediction_consistency(decided.astype(int)),
            "ctf": ctf_std(p.values[:, :, 1]) if two else float(distance.max(axis=1).mean()),
            "worst_move": float(distance.max(axis=1).mean()),
        }
        shown = 1 if two else None
        worst = pd.DataFrame(
            {
                "row": p.rows,
                "text": said[:, 0],
                "worst_version": said[row, at],
                "probability": p.values[:, 0, 1] if shown else p.values[:, 0].max(axis=-1),
                "probability_of_worst": p.values[row, at, 1] if shown else p.values[row, at].max(axis=-1),
                "moves_by": distance[row, at],
                "decision_changes": decided[row, at] != decided[:, 0],
            }
        ).sort_values("moves_by", ascending=False, kind="stable")
    else:
        worst = pd.DataFrame(columns=["row", "text", "worst_version", "moves_by"])
    found |= {"blind": blind, "_worst": worst, "_rates": None}
    if two:
        score = model.predict_proba(texts)[:, 1]
        mentioned = swaps.mentioned(texts) if hasattr(swaps, "mentioned") else []
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


def certificate_of(model: TextClassifier, vectors: Variations, confidence: float) -> dict[str, Any]:
    """The exact certificate over the versions of held-out texts, as a sentence; or why there is none."""
    if len(vectors) < 25:
        return {"refused": f"only {len(vectors)} held-out texts have versions; a certificate needs 25 or more"}
    found = certify(model.net_, vectors, eps=0.0, confidence=confidence, output_distance=total_variation)
    m = vectors.values.shape[1]
    return {
        "lower": found.lower,
        "upper": found.upper,
        "mean": found.r_low,
        "n": found.n,
        "confidence": confidence,
        "statement": (
            f"With {confidence:.0%} confidence, the worst of the {m - 1} other versions of a text moves its "
            f"probabilities by between {found.lower:.3f} and {found.upper:.3f} on average (total variation, before "
            f"calibration; exact over these versions and over nothing else; {found.n:,} held-out texts that have "
            f"versions, mean {found.r_low:.3f})."
        ),
    }


def in_the_table(worst: pd.DataFrame, task: TextTask) -> pd.DataFrame:
    """The worst versions with the rows of the table instead of those of the held-out texts."""
    return worst.assign(row=task.rows_held_out[worst["row"].to_numpy(dtype=np.intp)])


def named_worst(worst: pd.DataFrame) -> dict[str, Any]:
    """Which version is the worst of all, and which words are the worst ones most often; no text is repeated."""
    if len(worst) == 0:
        return {}
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
