"""What a run starts from: a table in four parts, what a model sees of it, and the questions to ask of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from evenhand.dual.order import own_order
from evenhand.tables.encoder import encode, positions
from evenhand.tables.errors import TableError
from evenhand.tables.leaks import copies, leaks, twins
from evenhand.tables.schema import Schema
from evenhand.workflow.questions import Flip, flips
from evenhand.workflow.similarity import Proxy, check_free, few_enough, learn_proxy, teaches
from evenhand.workflow.views import Part, View, carry_over, fit_encoder, make_view

MIN_ROWS = 200
PARTS = ("train", "tuning", "validation", "held_out")


@dataclass(frozen=True)
class Task:
    """A table ready for training: parts, what models see, and the questions to ask of them.

    ``views``: "seeing" with the sensitive columns as features, "blind" without. ``own`` is the one that the fair model
    gets; the other is for comparison.
    """

    schema: Schema
    parts: dict[str, Part]
    views: dict[str, View]
    own: str
    proxies: tuple[Proxy, ...]
    free_share: float  # of the differences between people, in what the fair model sees
    questions: list[Flip]
    left_out: dict[str, int] = field(default_factory=dict)  # why -> how many rows
    notes: tuple[str, ...] = ()

    @property
    def view(self) -> View:
        return self.views[self.own]

    def groups(self, part: Part) -> dict[str, NDArray[Any]]:
        """The sensitive attributes as groups: categories, or a number cut at its quartiles."""
        groups: dict[str, NDArray[Any]] = {}
        for name in self.schema.sensitive:
            values = part.frame[name]
            if self.schema.kind(name) == "number":
                cuts = np.unique(np.nanquantile(self.parts["train"].frame[name], [0, 0.25, 0.5, 0.75, 1]))
                shown = [f"{low:g} to {high:g}" for low, high in pairwise(cuts)]
                cuts[0], cuts[-1] = -np.inf, np.inf
                values = pd.cut(values, cuts.tolist(), labels=shown).astype(object).fillna("(missing)")
            groups[name] = values.to_numpy(dtype=str)
        return groups


def prepare(
    frame: pd.DataFrame,
    target: str,
    sensitive: Sequence[str],
    *,
    see_sensitive: bool = False,
    proxy: bool | Sequence[str] | None = None,
    missing_sensitive: str = "error",
    keep_dates: bool = False,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    regression: bool | None = None,
    seed: int = 0,
    held_out: NDArray[np.bool_] | None = None,
    extra_questions: Sequence[Flip] = (),
) -> Task:
    """Kinds, split, leaks, encoding and metric; every decision is made on the train part only.

    The sensitive columns teach the metric and judge the model; they are features only with see_sensitive. proxy: make
    free what predicts the sensitive columns: all of them that can be told from the other columns (True), those named,
    or none; by default all, unless the model sees the sensitive columns. ignore, keep: columns that must not, or must,
    be used. held_out: which rows to hold out, where a published split asks for it; by default a stratified fifth.
    """
    schema = Schema.infer(
        frame, target, sensitive, keep_dates=keep_dates, ignore=ignore, keep=keep, see_sensitive=see_sensitive,
        regression=regression,
    )  # fmt: skip
    frame, left_out = _usable(frame, schema, missing_sensitive)
    clean, y = schema.apply_known(frame), schema.truth(frame)
    rows = _split(frame, y, schema, seed, None if held_out is None else held_out[frame.index.to_numpy()])
    parts = {name: Part(clean.iloc[rows[name]], y[rows[name]]) for name in PARTS}
    schema = schema.without(copies(schema, parts["train"].frame, keep))
    schema = schema.without(twins(schema, parts["train"].frame, keep))
    schema, notes = _without_leaks(schema, parts["train"], keep)
    encoders = {name: fit_encoder(schema.seeing(name == "seeing"), parts["train"]) for name in ("seeing", "blind")}
    own = "seeing" if see_sensitive else "blind"
    wanted = _wanted(proxy, schema, see_sensitive)
    proxies = _proxies(schema, encoders[own], parts, wanted, by_evidence=proxy in (None, True))
    views = {
        name: make_view(
            schema.seeing(name == "seeing"),
            encoder,
            parts["train"],
            proxies if name == own else carry_over(proxies, encoders[own], encoder),
        )
        for name, encoder in encoders.items()
    }
    share, warning = check_free(views[own].fair_metric, views[own].encode(parts["train"].head(20_000)))
    notes += [warning] if warning else []
    notes += _spelled_twice(schema, parts["train"].frame)
    notes += _unpredicted(parts["train"].head(50_000).frame, proxies, wanted)
    questions = [*flips(schema, parts["train"].frame), *extra_questions]
    return Task(schema, parts, views, own, tuple(proxies), share, questions, left_out, tuple(notes))


def _wanted(proxy: bool | Sequence[str] | None, schema: Schema, see_sensitive: bool) -> list[str]:
    proxy = not see_sensitive if proxy is None else proxy
    if isinstance(proxy, bool):
        return list(schema.sensitive) if proxy else []
    unknown = set(proxy) - set(schema.sensitive)
    if unknown:
        raise TableError(
            f"proxies are asked for {', '.join(map(repr, sorted(unknown)))}, which is not sensitive", "proxy"
        )
    return list(proxy)


def _proxies(
    schema: Schema, encoder: Any, parts: Mapping[str, Part], wanted: Sequence[str], by_evidence: bool
) -> list[Proxy]:
    """What predicts each attribute, among those columns of the own view that are not the attribute itself.

    Asked for all, only those count that predict their attribute on the validation part: noise must not be free.
    """
    columns = [column.name for column in schema.used]
    X, X_new = (encode(encoder, parts[name].head(50_000).frame[columns]) for name in ("train", "validation"))
    places = positions(encoder)
    found = []
    for name in wanted:
        if by_evidence and not teaches(parts["train"].head(50_000).frame[name]):
            continue
        others = [p for p in range(X.shape[1]) if p not in places.get(name, [])]
        frames = parts["train"].head(50_000).frame, parts["validation"].head(50_000).frame
        one = learn_proxy(name, X, frames[0][name], others, X_new, frames[1][name])
        if one.surely or not by_evidence:
            found.append(one)
    return few_enough(found, [p for name in schema.sensitive for p in places.get(name, [])], X)


def _unpredicted(train: pd.DataFrame, proxies: Sequence[Proxy], wanted: Sequence[str]) -> list[str]:
    learned = {proxy.name for proxy in proxies}
    return [
        f"{name!r} cannot be told from the other columns better than by chance, so no difference in them is free for it"
        if teaches(train[name])
        else f"{name!r} has one large group only, so nothing can be learned about what gives it away"
        for name in wanted
        if name not in learned
    ]


def _spelled_twice(schema: Schema, train: pd.DataFrame) -> list[str]:
    """Classes and groups such as "yes" and "Yes", which somebody may have meant to be one."""
    groups = {name: train[name].unique().tolist() for name in schema.sensitive if schema.kind(name) != "number"}
    notes = []
    for name, labels in {schema.target: list(schema.labels), **groups}.items():
        spelled: dict[str, list[str]] = {}
        for label in sorted(labels):
            spelled.setdefault(" ".join(label.casefold().split()), []).append(label)
        notes += [
            f"{' and '.join(map(repr, one))} in {name!r} differ in capitals or spaces only and count as different; "
            "write them alike if they mean the same"
            for one in spelled.values()
            if len(one) > 1
        ]
    return notes


def _without_leaks(schema: Schema, train: Part, keep: Sequence[str]) -> tuple[Schema, list[str]]:
    found = leaks(schema, train.frame, train.y)
    score = "R2" if schema.regression else "balanced accuracy"
    reasons = {
        name: f"it alone predicts the target ({score} {value:.3f}): probably recorded after the outcome"
        for name, value in found.items()
        if name not in keep
    }
    notes = [f"column {name!r} alone predicts the target; it was kept because you asked for it" for name in found
             if name in keep]  # fmt: skip
    return schema.without(reasons), notes


def _usable(frame: pd.DataFrame, schema: Schema, missing_sensitive: str) -> tuple[pd.DataFrame, dict[str, int]]:
    """Rows that can be used; what is left out is counted."""
    left_out: dict[str, int] = {}
    frame = frame.reset_index(drop=True)
    without = frame[schema.target].isna()
    if schema.regression:
        without = pd.Series(~np.isfinite(schema.truth(frame)), index=frame.index)
    if without.any():
        left_out[f"no value in the target {schema.target!r}"] = int(without.sum())
        frame = frame[~without]
    missing = schema.missing_sensitive(frame)
    if missing:
        counts = ", ".join(f"{count:,} in {name!r}" for name, count in missing.items())
        lacking = frame[list(schema.sensitive)].isna().any(axis=1)
        if missing_sensitive == "error":
            rows = (frame.index[lacking.to_numpy()][:5] + 2).tolist()
            raise TableError(
                f"sensitive values are missing: {counts} (lines {', '.join(map(str, rows))}"
                f"{' ...' if lacking.sum() > 5 else ''}). Fairness towards these people cannot be judged. "
                "Fill them in, "
                f"leave these {int(lacking.sum()):,} of {len(frame):,} rows out, or make them a group of their own",
                "missing_sensitive",
            )
        if missing_sensitive == "drop":
            left_out[f"a sensitive value is missing ({counts})"] = int(lacking.sum())
            frame = frame[~lacking]
    if len(frame) < MIN_ROWS:
        raise TableError(f"only {len(frame)} usable rows; training, choosing and certifying need at least {MIN_ROWS}")
    return frame, left_out


def _split(
    frame: pd.DataFrame, y: NDArray[Any], schema: Schema, seed: int, held_out: NDArray[np.bool_] | None
) -> Mapping[str, NDArray[np.intp]]:
    """60 % train, 5 % tuning (for the certificate), 15 % validation (to choose), 20 % held out (for the report); each
    part in random order. What is drawn depends on the rows and the seed, not on how the table was sorted: the same
    people in another order are split in the same way."""
    if not schema.regression:
        counts = np.bincount(y, minlength=len(schema.classes))
        if counts.min() < 10:
            label = schema.labels[int(counts.argmin())]
            raise TableError(
                f"class {label!r} of the target has {counts.min()} rows; each class needs at least 10, so that every "
                "part of the split holds some. Merge or leave out such classes"
            )
    layers = np.zeros(len(y), dtype=np.int64) if schema.regression else y
    if held_out is None:
        every = own_order(frame, seed)
        rest, held = train_test_split(every, test_size=0.2, stratify=layers[every], random_state=seed)
    else:  # a published split speaks of row numbers
        rest, held = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    train, other = train_test_split(rest, test_size=0.25, stratify=layers[rest], random_state=seed)
    validation, tuning = train_test_split(other, test_size=0.25, random_state=seed)
    rng = np.random.default_rng(seed)
    return {name: rng.permutation(rows) for name, rows in zip(PARTS, (train, tuning, validation, held))}
