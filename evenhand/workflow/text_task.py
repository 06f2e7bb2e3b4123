"""What `evenhand train --text` starts from: texts, or rows with a text, and labels, split into two parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.copies import firsts
from evenhand.counterfactuals import GenderSwap, TokenSwap, identity_categories, identity_tokens, names_in
from evenhand.counterfactuals.columns import swap_column
from evenhand.counterfactuals.identities import tokens_of
from evenhand.dual.order import row_keys
from evenhand.tables.errors import find_column
from evenhand.tables.kinds import USED, Column, categories_of, infer
from evenhand.tables.leaks import copies, leaks, twins
from evenhand.tables.read import TableError
from evenhand.tables.schema import Schema
from evenhand.variations import Variations

__all__ = ["Beside", "TextTask", "swaps_named", "text_task"]

SAMPLE, PASSAGE = 8, 64  # versions of a text, and the words around its token: what encoding them costs
ALL = "all"
HARMLESS = frozenset(
    [
        "ok",
        "okay",
        "keep",
        "kept",
        "harmless",
        "safe",
        "clean",
        "benign",
        "neutral",
        "good",
        "fine",
        "none",
        "no",
        "normal",
    ]
    + ["acceptable", "accepted", "allowed", "approve", "approved", "civil", "ham", "nice", "polite", "respectful"]
)
NEGATED = ("not ", "not_", "not-", "non")  # "not toxic", "non-toxic", "nontoxic"
FEWEST = 3  # texts of a class: one each to train on, to choose by and to judge
LONGEST = 30  # characters of a label that is shown


@dataclass(frozen=True)
class Beside:
    """Which columns stand beside the text. columns: features, or "all" that are not left out for a reason.

    sensitive: no features; they teach what gives them away, and judge. ignore, keep, keep_dates, missing_sensitive: as
    in a table without a text.
    """

    columns: Sequence[str] | str = ALL
    sensitive: Sequence[str] = ()
    ignore: Sequence[str] = ()
    keep: Sequence[str] = ()
    keep_dates: bool = False
    missing_sensitive: str = "error"


@dataclass(frozen=True)
class TextTask:
    """Texts and labels, split into those that train and those that judge; y is 0 or 1, or a class number.

    With columns beside the text, `table` and `table_held_out` hold both, cleaned, and `schema` says what became of each
    column; `sensitive` has the sensitive ones, which are no features.
    """

    texts: list[str]
    y: NDArray[np.intp]
    labels: list[str]
    held_out: list[str]
    y_held_out: NDArray[np.intp]
    rows_held_out: NDArray[np.intp]  # their rows in the table, from 0
    without_text: int  # rows that are left out, or count as empty where there are other columns
    without_label: int
    text: str = ""
    schema: Schema | None = None
    table: pd.DataFrame | None = None
    table_held_out: pd.DataFrame | None = None
    sensitive: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    sensitive_held_out: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def given(self) -> Any:
        """What a model trains on: texts, or rows."""
        return self.texts if self.table is None else self.table

    @property
    def judging(self) -> Any:
        """What it is judged on."""
        return self.held_out if self.table_held_out is None else self.table_held_out

    def unlabelled(self) -> TextTask:
        """The same where nobody knows what would be right."""
        return replace(self, labels=[])

    def versions(self, swaps: Any) -> Variations | None:
        """The held-out texts, or rows, with other texts; None without a swap."""
        if swaps is None:
            return None
        return swaps(self.held_out) if self.table is None else swap_column(self.table_held_out, self.text, swaps)


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
        try:
            tokens = tokens_of(_read(path), path.name)
        except ValueError as error:
            raise TableError(str(error)) from None
    largest = max(map(len, tokens.values())) if isinstance(tokens, dict) else len(tokens)
    return TokenSwap(tokens, sample=None if every or largest - 1 <= SAMPLE else SAMPLE, **options)


def _read(path: Path) -> str:
    """A list as text: UTF-8, or UTF-16 that says so."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise TableError(f"{path.name} is not a text in UTF-8, one token a line; save it as one") from None
    return text


def text_task(
    frame: pd.DataFrame,
    text: str,
    target: str | None,
    seed: int = 0,
    share: float = 0.3,
    beside: Beside | None = None,
    labels: Sequence[str] | None = None,
    schema: Schema | None = None,
    keep_empty: bool = False,
    positive: str | None = None,
) -> TextTask:
    """The columns of a table as a task; a share of every class is held out to judge.

    target: None where nothing is known but the texts. labels, schema: those of a model, which other tables have to fit.
    keep_empty: rows without a text stay, as they do where there are other columns.
    positive: of two classes the one that is flagged, and comes second; by default the last in order, unless it says of
    itself that it is harmless.
    """
    names = [str(name) for name in frame.columns]
    text = find_column(text, names, "texts")
    if target is not None:
        target = find_column(target, names, "target")
        if target == text:
            raise TableError(f"{text!r} cannot be both the text and the target")
    said = frame[text].notna() & (frame[text].astype(str).str.strip() != "")
    usable = frame[target].notna() if target is not None else pd.Series(True, index=frame.index)
    without_label = int((~usable).sum()) if beside or schema else int((said & ~usable).sum())
    if beside is None and schema is None and not keep_empty:
        usable &= said
    notes: list[str] = []
    if beside is not None:
        schema = _schema(frame, text, target, beside)
        usable &= _known(frame, schema, beside.missing_sensitive, usable, notes)
    there = np.flatnonzero(usable.to_numpy())
    rows = frame.iloc[there]
    texts = [str(value) if ok else "" for value, ok in zip(rows[text], said.iloc[there])]
    of = _first_of(rows, texts, text, schema)
    y, labels = _labels(rows, target, labels, positive, of)
    held = _held_out(of, y, seed, share)
    mine, theirs = np.flatnonzero(~held), np.flatnonzero(held)
    task = TextTask(
        [texts[i] for i in mine],
        y[mine],
        list(labels),
        [texts[i] for i in theirs],
        y[theirs],
        there[theirs],
        int((~said).sum()),
        without_label,
        text,
        notes=tuple(notes),
    )
    if schema is None:
        return task
    return _with_columns(
        task, replace(schema, classes=tuple(labels)), rows.assign(**{text: texts}), mine, theirs, beside
    )


def _labels(
    rows: pd.DataFrame,
    target: str | None,
    known: Sequence[str] | None,
    positive: str | None,
    of: NDArray[np.intp],
) -> tuple[NDArray[np.intp], Sequence[str]]:
    if target is None:
        return np.zeros(len(rows), dtype=np.intp), list(known or [])
    said = categories_of(rows[target]).to_numpy(dtype=str)
    if known is None:
        found, y = np.unique(said, return_inverse=True)
        if len(found) < 2 or len(found) > 200:
            raise TableError(
                f"{target!r} must hold classes, between 2 and 200 of them; it holds {len(found)}: name another target, "
                "or add rows of another class"
            )
        own = np.bincount(y[of == np.arange(len(of))], minlength=len(found))
        few = [str(label) for label, count in zip(found, own) if count < FEWEST]
        if few:
            raise TableError(
                f"{target!r} has classes with fewer than {FEWEST} texts, too few to train and judge by: {_named(few)}; "
                "leave these rows out or join the classes (what is there several times counts once, for the class it "
                "has first)"
            )
        order = _flagged_last([str(label) for label in found], positive, target)
        return np.argsort(order)[y], [str(found[k]) for k in order]
    place = {label: code for code, label in enumerate(known)}
    strange = sorted(set(said.tolist()) - set(place))
    if strange:
        raise TableError(f"{target!r} holds {_named(strange)}; the model knows {', '.join(known)}")
    return np.array([place[label] for label in said.tolist()], dtype=np.intp), known


def _named(labels: list[str]) -> str:
    """A few of the labels; a long one is a text rather than a label, and no error repeats a text."""
    short = [repr(label) for label in labels[:5] if len(label) <= LONGEST]
    more = len(labels) - len(short)
    return ", ".join([*short, f"{more:,} more" if short else f"{more:,} long ones"] if more else short)


def _flagged_last(labels: list[str], positive: str | None, target: str) -> list[int]:
    """The order of two classes in which the one that is flagged comes second."""
    order = list(range(len(labels)))
    if positive is not None:
        if len(labels) != 2 or positive not in labels:
            raise TableError(
                f"the class that is flagged must be one of two; {positive!r} was named, {target!r} holds "
                f"{', '.join(labels[:8])}"
            )
        return order if labels[1] == positive else order[::-1]
    harmless = [label.strip().casefold() in HARMLESS or label.casefold().startswith(NEGATED) for label in labels]
    return order[::-1] if harmless == [False, True] else order


def _schema(frame: pd.DataFrame, text: str, target: str | None, beside: Beside) -> Schema:
    """Kinds by looking at the values; what cannot help or was not asked for is dropped, with a reason."""
    names = [str(name) for name in frame.columns]
    find = {
        role: [find_column(name, names, f"columns {role}") for name in given]
        for role, given in (
            ("that are sensitive", beside.sensitive),
            ("to ignore", beside.ignore),
            ("to keep", beside.keep),
        )
    }
    wanted = None
    if beside.columns != ALL:
        wanted = {find_column(name, names, "columns beside the text") for name in beside.columns}
        find["to keep"] += sorted(wanted)
    for role in ("that are sensitive", "to ignore", "to keep"):
        for name in {text, target} & set(find[role]):
            what = "text" if name == text else "target"
            raise TableError(f"{name!r} is the {what}; it cannot be among the columns {role} as well")
    columns = []
    for name in names:
        if name in (text, target):
            continue
        sensitive = name in find["that are sensitive"]
        if name in find["to ignore"]:
            column = Column(name, "dropped", "you asked for it")
        elif wanted is not None and name not in wanted and not sensitive:
            column = Column(name, "dropped", "it was not named beside the text")
        else:
            column = infer(frame[name], name, sensitive, beside.keep_dates, name in find["to keep"])
        if sensitive and column.kind not in USED:
            raise TableError(f"the sensitive column {name!r} cannot be used: {column.note}")
        columns.append(column)
    return Schema(tuple(columns), target or "", tuple(dict.fromkeys(find["that are sensitive"])), ())


def _known(frame: pd.DataFrame, schema: Schema, missing: str, usable: pd.Series, notes: list[str]) -> pd.Series:
    """Which rows have all sensitive values, or may do without."""
    lacking = frame[list(schema.sensitive)].isna().any(axis=1) & usable
    if not lacking.any() or missing == "category":
        return pd.Series(True, index=frame.index)
    counts = ", ".join(f"{n:,} in {name!r}" for name, n in schema.missing_sensitive(frame[usable]).items())
    if missing == "error":
        raise TableError(
            f"sensitive values are missing: {counts}. Fairness towards these people cannot be judged. Fill them in, "
            f"leave these {int(lacking.sum()):,} rows out, or make them a group of their own",
            "missing_sensitive",
        )
    notes.append(f"{int(lacking.sum()):,} rows left out: a sensitive value is missing ({counts})")
    return ~lacking


def _with_columns(
    task: TextTask,
    schema: Schema,
    rows: pd.DataFrame,
    mine: NDArray[np.intp],
    theirs: NDArray[np.intp],
    beside: Beside | None,
) -> TextTask:
    """The task with its columns; those that give the target or a sensitive column away are found in training rows."""
    lacking = {name for name in schema.sensitive if name not in rows}  # another table need not say who is who
    present = tuple(column for column in schema.columns if column.name not in lacking)
    clean = replace(schema, columns=present).apply_known(rows)
    notes = list(task.notes)
    if beside is not None:
        train, asked = clean.iloc[mine], {*beside.keep, *(beside.columns if beside.columns != ALL else ())}
        reasons = {**copies(schema, train, tuple(asked)), **twins(schema, train, tuple(asked))}
        for name, score in leaks(schema, train, task.y).items():
            if name in asked:
                notes.append(f"column {name!r} alone predicts the target; it was kept because you asked for it")
            else:
                reasons[name] = f"it alone predicts the target (balanced accuracy {score:.3f}): probably recorded later"
        columns = (replace(c, kind="dropped", note=reasons[c.name]) if c.name in reasons else c for c in schema.columns)
        schema = replace(schema, columns=tuple(columns))
    table = clean[[column.name for column in schema.used]].assign(**{task.text: rows[task.text]})
    known = {name: clean[name].to_numpy() for name in schema.sensitive if name in clean}
    return replace(
        task,
        schema=schema,
        table=table.iloc[mine].reset_index(drop=True),
        table_held_out=table.iloc[theirs].reset_index(drop=True),
        sensitive={name: values[mine] for name, values in known.items()},
        sensitive_held_out={name: values[theirs] for name, values in known.items()},
        notes=tuple(notes),
    )


def _first_of(rows: pd.DataFrame, texts: list[str], text: str, schema: Schema | None) -> NDArray[np.intp]:
    """For each row the first that says the same: the same text, or where there are other columns the same in all of
    them, because many rows without a text are no copies of each other."""
    if schema is None:
        return firsts(texts)
    return firsts(row_keys(rows[[c.name for c in schema.used if c.name in rows]].assign(**{text: texts})))


def _held_out(of: NDArray[np.intp], y: NDArray[np.intp], seed: int, share: float) -> NDArray[np.bool_]:
    """Which rows judge: a share of every class, and what is there twice is never on both sides."""
    rng = np.random.default_rng(seed)
    held = np.zeros(len(y), dtype=bool)
    for k in np.unique(y):
        rows = rng.permutation(np.flatnonzero((y == k) & (of == np.arange(len(of)))))
        held[rows[: round(share * len(rows))]] = True
    return np.asarray(held[of])
