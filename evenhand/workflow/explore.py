"""A page of one's own machine to ask what-if questions of one person: loopback only, nothing is loaded or sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pandas as pd
import torch

from evenhand.audit import audit
from evenhand.output_distances import mean_squared_logits, squared_error
from evenhand.report.names import NAMES
from evenhand.tables.encoder import encode
from evenhand.tables.errors import TableError
from evenhand.tables.kinds import MISSING_CATEGORY
from evenhand.workflow.folder import Folder, plain
from evenhand.workflow.opened import TableModel, load_model
from evenhand.workflow.questions import show

NEAREST = 5000  # people of the table that the nearest counterpart is looked for among
LARGEST = 1 << 16  # bytes of a question


class Answers(Protocol):
    """What a page asks: what can be filled in, a row of the table, and what a model says."""

    page: ClassVar[str]  # a file of workflow/templates

    def form(self) -> dict[str, Any]: ...
    def row(self, number: int) -> dict[str, Any]: ...
    def ask(self, person: dict[str, Any], name: str) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Explorer:
    """The networks of a run and, if given, a table of people to start from and to compare with."""

    page: ClassVar[str] = "explore.html"
    models: dict[str, TableModel]
    people: pd.DataFrame | None
    eps: float

    @classmethod
    def of(cls, run: str | Path, frame: pd.DataFrame | None = None) -> Self:
        """From the folder of a finished run."""
        folder = Folder(run)
        if not folder.path.is_dir():
            raise TableError(f"{run} is not a folder; give the folder that a run was written to")
        try:
            eps = float(folder.read_json("metrics.json")["settings"]["eps_certified"])
        except (KeyError, TypeError, ValueError) as error:
            raise TableError(f"{folder.path / 'metrics.json'} does not say how near people were compared") from error
        if not 0 < eps < np.inf:
            raise TableError(f"{folder.path / 'metrics.json'} says eps_certified = {eps:g}, which must be positive")
        paths = {name: folder.path / "stages" / f"{name}.evenhand" for name in NAMES}
        models = {name: load_model(path) for name, path in paths.items() if path.exists()}
        models.setdefault("fair", load_model(folder.path))
        people = None
        if frame is not None:
            schema = next(iter(models.values())).schema.seeing(True)
            known = {c.name for model in models.values() for c in model.schema.used}
            people = schema.apply(frame) if known <= set(frame.columns) else models["fair"].schema.apply(frame)
            people = people.reset_index(drop=True)
        return cls(models, people, eps)

    def form(self) -> dict[str, Any]:
        """The columns to fill in: kind, choices or range, and a person to start from."""
        columns: dict[str, Any] = {}
        for model in self.models.values():
            for part, transformer, names in model.pipeline[0].transformers_:
                for j, name in enumerate(names):
                    columns.setdefault(name, _field(part, transformer, j))
        return {
            "columns": columns,
            "models": {name: NAMES[name] for name in sorted(self.models, key=lambda name: name != "fair")},
            "sensitive": list(self.models["fair"].schema.sensitive),
            "target": self.models["fair"].schema.target,
            "labels": list(self.models["fair"].schema.labels),
            "regression": self.models["fair"].schema.regression,
            "eps": self.eps,
            "rows": 0 if self.people is None else len(self.people),
        }

    def row(self, number: int) -> dict[str, Any]:
        """A person of the table."""
        if self.people is None or not 0 <= number < len(self.people):
            raise TableError(f"there is no row {number}")
        cells = {str(name): self.people[name].iloc[number] for name in self.people.columns}
        return {
            name: None if pd.isna(v) else _short(v) if isinstance(v, np.floating) else v for name, v in cells.items()
        }

    def ask(self, person: dict[str, Any], name: str) -> dict[str, Any]:
        """What one model says of a person, of the nearest one decided otherwise, and of the worst counterpart."""
        if name not in self.models:
            raise TableError(f"there is no model {name!r} in this run")
        model = self.models[name]
        own = self._clean(person, model)
        return {
            "model": NAMES[name],
            **self._said(model, own),
            "nearest": self._nearest(model, own),
            "worst": self._worst(model, own),
            "sees": list(model.columns),
            "threshold": model.threshold,
        }

    def _clean(self, person: dict[str, Any], model: TableModel) -> pd.DataFrame:
        cells = {
            c.name: [np.nan if person.get(c.name) in (None, "") else person[c.name]]
            if c.kind == "number"
            else [person.get(c.name, MISSING_CATEGORY)]
            for c in model.schema.used
        }
        return model.schema.apply(pd.DataFrame(cells))

    def _said(self, model: TableModel, clean: pd.DataFrame) -> dict[str, Any]:
        code = model.codes(clean)[0]
        if model.schema.regression:
            return {"decision": show(float(code)), "scores": {model.schema.target: float(code)}}
        p = model.probabilities(clean)[0]
        return {
            "decision": model.schema.labels[int(code)],
            "scores": {label: float(p[k]) for k, label in enumerate(model.schema.labels)},
        }

    def _nearest(self, model: TableModel, own: pd.DataFrame) -> dict[str, Any] | None:
        """The person of the table with the smallest fair distance among those with another decision."""
        if self.people is None or model.schema.regression or not set(model.columns) <= set(self.people.columns):
            return None
        others = self.people[list(model.columns)].iloc[:NEAREST]
        different = model.codes(others) != model.codes(own)[0]
        if not different.any():
            return None
        x = torch.tensor(encode(model.pipeline[0], pd.concat([own, others[different]])).to_numpy(dtype=np.float64))
        distance = model.fair_metric.matching(x).cost(x[1:] - x[:1])
        best = int(distance.argmin())
        row = others[different].iloc[[best]]
        return {"row": int(row.index[0]), "d_x": float(distance[best]), "changed": _differences(own, row),
                **self._said(model, row)}  # fmt: skip

    def _worst(self, model: TableModel, own: pd.DataFrame) -> dict[str, Any] | None:
        """The similar person (within eps) with the most different score that the audit's search finds."""
        people = model.inside(own)
        if model.box is None or len(people) == 0:
            return None
        distance = squared_error if model.schema.regression else mean_squared_logits
        found = audit(model.pipeline, people, model.fair_metric, self.eps, model.box, output_distance=distance, keep=5)
        pairs = found.pairs(5)
        pairs = pairs[pairs["d_X"] <= self.eps]
        if len(pairs) == 0:
            return None
        line, other = pairs.iloc[0], own.copy()
        for column in model.columns:
            if f"{column} (worst)" in pairs.columns:
                value = line[f"{column} (worst)"]
                other[column] = np.float32(value) if model.schema.kind(column) == "number" else str(value)
        return {"d_x": float(line["d_X"]), "changed": _differences(own, other), **self._said(model, other)}


def _field(part: str, transformer: Any, j: int) -> dict[str, Any]:
    """What may be filled in for a column: a number of the range seen in training, or one of the categories."""
    if part == "number":
        seen, fill = transformer.named_steps["clip"], transformer.named_steps["fill"]
        low, high, start = (_short(values[j]) for values in (seen.data_min_, seen.data_max_, fill.statistics_))
        return {"kind": "number", "low": low, "high": high, "start": start}
    choices = [str(category) for category in transformer.categories_[j]]
    return {"kind": "choice", "choices": choices, "start": choices[0]}


def _short(value: Any) -> float:
    """A float32 as it was written: 30.1, not 30.100000381."""
    return float(str(np.float32(value)))


def _differences(own: pd.DataFrame, other: pd.DataFrame) -> dict[str, list[str]]:
    pairs = {str(c): [show(own[c].iloc[0]), show(other[c].iloc[0])] for c in own.columns}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def serve(explorer: Answers, port: int = 0) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 that answers questions; call ``serve_forever`` on it."""
    lock = Lock()
    page = files("evenhand.workflow").joinpath("templates", explorer.page).read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/":
                self._send(200, page, "text/html; charset=utf-8")
            elif self.path == "/form":
                self._answer(lambda _: explorer.form(), {})
            else:
                self._send(404, b"", "text/plain")

        def do_POST(self) -> None:
            said = self.headers.get("Content-Length") or "0"
            length = int(said) if said.isdecimal() else LARGEST + 1
            own = self.headers.get("Host", "").split(":")[0] in ("127.0.0.1", "localhost")  # no page elsewhere may ask
            if not own or length > LARGEST or self.headers.get("Content-Type") != "application/json":
                self._send(400, b"{}", "application/json")
                return
            try:
                given = json.loads(self.rfile.read(length))
                given = given if isinstance(given, dict) else {}
            except ValueError:
                given = {}
            if self.path == "/row":
                self._answer(lambda g: explorer.row(int(g["row"])), given)
            elif self.path == "/ask":
                self._answer(lambda g: explorer.ask(dict(g["person"]), str(g["model"])), given)
            else:
                self._send(404, b"", "text/plain")

        def _answer(self, make: Any, given: dict[str, Any]) -> None:
            try:
                with lock:
                    body, code = make(given), 200
            except (ValueError, KeyError, TypeError) as error:
                body, code = {"error": str(error)}, 400
            self._send(code, json.dumps(plain(body)).encode(), "application/json")

        def _send(self, code: int, body: bytes, kind: str) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header(
                "Content-Security-Policy",
                "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
                "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            )
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Questions about people are not logged."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
