"""What-if questions of one text: what the model says of it and of every version."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from evenhand.counterfactuals import TokenSwap
from evenhand.counterfactuals.changes import changed_words
from evenhand.tables.errors import TableError
from evenhand.tables.schema import Schema
from evenhand.text import TextClassifier
from evenhand.text.frames import FrameFeatures

__all__ = ["TextExplorer"]

NAME = "fair"


@dataclass(frozen=True)
class TextExplorer:
    """The model of a run on texts and, if given, texts to start from, with the columns beside them."""

    page: ClassVar[str] = "explore_texts.html"
    model: TextClassifier
    texts: list[str]
    columns: pd.DataFrame | None = None

    @classmethod
    def of(cls, model: TextClassifier, frame: pd.DataFrame | None = None) -> Self:
        """With the texts of a table, where one is given."""
        if frame is None:
            return cls(model, [])
        column = model.metadata_.get("text")
        if column not in frame:
            if len(frame.columns) != 1:
                known = ", ".join(map(str, frame.columns[:12]))
                raise TableError(f"the model reads its texts from the column {column!r}; the table has {known}")
            column = frame.columns[0]
        about = model.metadata_.get("schema")
        columns = None if about is None else Schema.from_json(about).apply(frame)
        return cls(model, [str(text) for text in frame[column].fillna("")], columns)

    def form(self) -> dict[str, Any]:
        """What can be filled in: a text, the columns beside it with their usual values, the number of a row. Of two
        classes also which one is flagged, and from which probability on."""
        about = self.model.metadata_
        fields: dict[str, Any] = {}
        features = self.model.features_
        if isinstance(features, FrameFeatures):
            for name, (start, low, high) in features.numbers_.items():
                fields[str(name)] = {"kind": "number", "low": low, "high": high, "start": start}
            for name, kinds in features.kinds_.items():
                choices = ["(another)" if kind is None else kind for kind in kinds]
                fields[str(name)] = {"kind": "choice", "choices": choices, "start": choices[0]}
        labels = self._labels()
        flagged = {"label": labels[1], "threshold": self.model.threshold_} if len(labels) == 2 else None
        found = {"models": {NAME: NAME}, "target": about.get("target", ""), "rows": len(self.texts)}
        return found | {"columns": fields, "flagged": flagged}

    def row(self, number: int) -> dict[str, Any]:
        """A text of the table and what stands beside it; a missing number is the usual one."""
        if not 0 <= number < len(self.texts):
            raise TableError(f"there is no row {number}; the table has rows 0 to {len(self.texts) - 1}")
        cells = {} if self.columns is None else {str(name): self.columns[name].iloc[number] for name in self.columns}
        plain = {name: float(str(v)) if isinstance(v, np.floating) else v for name, v in cells.items() if pd.notna(v)}
        return {"text": self.texts[number], **plain}

    def ask(self, person: dict[str, Any], name: str = NAME) -> dict[str, Any]:
        """What the model says of a text, as `predict` does, and of all its versions, the one that moves most first.

        The versions of a long text are of a passage of it; then what is said of the passage is what they are compared
        with.
        """
        text = str(person.get("text", ""))
        if not text.strip():
            raise TableError("write a text first")
        found = self._swaps()([text]).values if self.model.swaps is not None else np.empty((0, 1), dtype=object)
        original, *versions = map(str, found[0]) if len(found) else [text]
        beside = self._beside(person)
        p = self.model.predict_proba(self._rows([text, original, *versions], beside))
        moves = 0.5 * np.abs(p - p[1:2]).sum(axis=1)
        said = [self._said(each, version, original) for each, version in zip(p, [text, original, *versions])]
        order = sorted(range(2, len(p)), key=lambda i: -moves[i])
        return {
            **said[0],
            "versions": [said[i] | {"moves_by": float(moves[i])} for i in order],
            "passage": None if original == text else said[1],
            "read_alike": bool(versions) and self.model.features_.alike is not None,
            "left": self._left(text),
            "beside": beside,
        }

    def _beside(self, person: dict[str, Any]) -> dict[str, Any]:
        """The columns beside the text: as given, otherwise the median or the first kind."""
        beside: dict[str, Any] = {}
        for name, about in self.form()["columns"].items():
            value = person.get(name)
            value = about["start"] if value is None or (value == "" and "" not in about.get("choices", ())) else value
            if about["kind"] == "number":
                try:
                    value = float(value)
                except (TypeError, ValueError):
                    raise TableError(f"{name!r} is a number; write one, or leave it empty for the usual one") from None
            beside[name] = value
        return beside

    def _rows(self, texts: list[str], beside: dict[str, Any]) -> Any:
        return texts if self.model.text is None else pd.DataFrame({self.model.text: texts, **beside})

    def _swaps(self) -> Any:
        """All versions, also where training drew a few."""
        swaps = self.model.swaps
        if not isinstance(swaps, TokenSwap):
            return swaps
        options = {name: getattr(swaps, name) for name in ("plurals", "everywhere", "insults", "passage")}
        kinds = swaps.categories
        return TokenSwap(kinds[""] if list(kinds) == [""] else copy.deepcopy(kinds), **options)

    def _left(self, text: str) -> list[dict[str, str]]:
        preview = getattr(self.model.swaps, "preview", None)
        return [] if preview is None else [{"word": c.said, "why": c.left} for c in preview([text]).left]

    def _labels(self) -> list[str]:
        return [str(label) for label in self.model.metadata_.get("labels", self.model.classes_)]

    def _said(self, p: Any, version: str, text: str) -> dict[str, Any]:
        labels = self._labels()
        code = int(p[1] >= self.model.threshold_) if len(labels) == 2 else int(p.argmax())
        scores = {label: float(p[k]) for k, label in enumerate(labels)}
        return {"text": version, "decision": labels[code], "scores": scores, "words": changed_words(text, version)}
