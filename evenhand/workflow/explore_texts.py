"""What-if questions of one text: what the model says of it and of every version."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from evenhand.counterfactuals import TokenSwap
from evenhand.tables.errors import TableError
from evenhand.text import TextClassifier, load_text
from evenhand.text.frames import FrameFeatures
from evenhand.workflow.texts import changed_words

__all__ = ["TextExplorer"]

MODEL = "model.text"
NAME = "fair"


@dataclass(frozen=True)
class TextExplorer:
    """The model of a run on texts and, if given, texts to start from."""

    page: ClassVar[str] = "explore_texts.html"
    model: TextClassifier
    texts: list[str]

    @classmethod
    def of(cls, run: str | Path, frame: pd.DataFrame | None = None) -> Self | None:
        """From the folder of a finished run; None if it is not a run on texts."""
        path = Path(run) / MODEL
        if not path.exists():
            return None
        model = load_text(path)
        column = model.metadata_.get("text")
        texts = [] if frame is None or column not in frame else [str(text) for text in frame[column].fillna("")]
        return cls(model, texts)

    def form(self) -> dict[str, Any]:
        about = self.model.metadata_
        return {"models": {NAME: NAME}, "target": about.get("target", ""), "rows": len(self.texts)}

    def row(self, number: int) -> dict[str, Any]:
        if not 0 <= number < len(self.texts):
            raise TableError(f"there is no row {number}")
        return {"text": self.texts[number]}

    def ask(self, person: dict[str, Any], name: str = NAME) -> dict[str, Any]:
        """What the model says of a text and of all its versions, the one that moves most first."""
        text = str(person.get("text", ""))
        if not text.strip():
            raise TableError("write a text first")
        found = self._swaps()([text]).values if self.model.swaps is not None else np.empty((0, 1), dtype=object)
        versions = [str(version) for version in found[0][1:]] if len(found) else []
        beside = self._beside(person)
        p = self.model.predict_proba(self._rows([text, *versions], beside))
        moves = 0.5 * np.abs(p - p[:1]).sum(axis=1)
        said = [self._said(each, text if i == 0 else versions[i - 1], text) for i, each in enumerate(p)]
        order = sorted(range(1, len(p)), key=lambda i: -moves[i])
        whole = str(found[0][0]) if len(found) else text
        return {
            **said[0],
            "versions": [said[i] | {"moves_by": float(moves[i])} for i in order],
            "passage": whole != text,
            "read_alike": bool(versions) and self.model.features_.alike is not None,
            "left": self._left(text),
            "beside": beside,
        }

    def _beside(self, person: dict[str, Any]) -> dict[str, Any]:
        """The columns beside the text: as given, otherwise the median or the first kind."""
        features = self.model.features_
        if not isinstance(features, FrameFeatures):
            return {}
        usual = {name: measured[0] for name, measured in features.numbers_.items()}
        usual |= {name: kinds[0] for name, kinds in features.kinds_.items()}
        return {str(name): person.get(str(name), value) for name, value in usual.items()}

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

    def _said(self, p: Any, version: str, text: str) -> dict[str, Any]:
        labels = self.model.metadata_.get("labels", [str(c) for c in self.model.classes_])
        code = int(p[1] >= self.model.threshold_) if len(labels) == 2 else int(p.argmax())
        scores = {str(label): float(p[k]) for k, label in enumerate(labels)}
        return {"text": version, "decision": str(labels[code]), "scores": scores, "words": changed_words(text, version)}
