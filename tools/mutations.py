"""What tools/mutants.py breaks: one expression of a module at a time, and a list of breaks by hand."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BY_HAND = ROOT / "tools" / "mutants_by_hand.json"


@dataclass(frozen=True)
class Mutant:
    """One change: where, what stood there, what stands there now."""

    module: str
    line: int
    kind: str
    was: str
    now: str
    text: str  # the line, so that a list of reasons survives edits elsewhere
    place: int = 1  # of those with the same line and the same change

    @property
    def key(self) -> str:
        again = f" ({self.place})" if self.place > 1 else ""
        was, now = (" ".join(text.split()) for text in (self.was, self.now))
        return f"{self.module} | {self.text} | {was} -> {now}{again}"


COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
TURNED = {"min": "max", "max": "min", "amin": "amax", "amax": "amin", "argmax": "argmin", "argmin": "argmax"}
TURNED |= {"all": "any", "any": "all", "minimum": "maximum", "maximum": "minimum", "floor": "ceil", "ceil": "floor"}


def mutants(module: str, source: str) -> list[tuple[Mutant, str]]:
    """Every mutant of a module, with the source that it is."""
    tree = ast.parse(source)
    lines = source.splitlines()
    quiet = _said(tree)
    found = []
    places: dict[str, int] = {}
    for node in ast.walk(tree):
        if node in quiet:
            continue
        for kind, other in _changes(node):
            before = ast.get_source_segment(source, node)
            if before is None or not hasattr(node, "end_col_offset"):
                continue
            after = ast.unparse(other)
            new = _replaced(
                source, node, f"({after})" if isinstance(other, ast.BinOp | ast.BoolOp | ast.Compare) else after
            )
            one = Mutant(module, node.lineno, kind, " ".join(before.split()), after, lines[node.lineno - 1].strip())
            places[one.key] = places.get(one.key, 0) + 1
            found.append((replace(one, place=places[one.key]), new))
    return found


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
        yield "compare", ast.Compare(node.left, [COMPARE[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _text(node):
        yield "arithmetic", ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        yield "boolean", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield "negation", node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "constant", ast.Constant(node.value + 1 if isinstance(node.value, int) else node.value * 2 or 1.0)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TURNED:
        yield "turned", ast.Call(ast.Name(TURNED[node.func.id]), node.args, node.keywords)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TURNED:
        yield "turned", ast.Call(ast.Attribute(node.func.value, TURNED[node.func.attr]), node.args, node.keywords)


def _said(tree: ast.AST) -> set[ast.AST]:
    """What only words, annotations and messages are made of: changing it changes no result."""
    quiet: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.JoinedStr):
            parts = [node]
        if isinstance(node, ast.Raise):
            parts = [node.exc]
        if isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        if isinstance(node, ast.FunctionDef):
            parts = [
                node.returns,
                *(a.annotation for a in [*node.args.args, *node.args.kwonlyargs]),
                *node.decorator_list,
            ]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts = [node]
        for part in parts:
            quiet |= set(ast.walk(part)) if part is not None else set()
    return quiet


def _text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


def _replaced(source: str, node: ast.expr, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    return b"".join([*lines[:first], head + text.encode() + tail, *lines[last + 1 :]]).decode()


def chosen(module: str, count: int, seed: int, root: Path = ROOT) -> list[tuple[Mutant, str]]:
    """A fixed sample, spread over the kinds of change."""
    everything = mutants(module, (root / "evenhand" / f"{module}.py").read_text())
    draw = random.Random(f"{seed} {module}")
    draw.shuffle(everything)
    kinds: dict[str, list[tuple[Mutant, str]]] = {}
    for pair in everything:
        kinds.setdefault(pair[0].kind, []).append(pair)
    picked: list[tuple[Mutant, str]] = []
    while kinds and len(picked) < count:
        for kind in sorted(kinds):
            picked.append(kinds[kind].pop())
            if not kinds[kind]:
                del kinds[kind]
    return picked[:count]


def by_hand(module: str, root: Path = ROOT) -> list[tuple[Mutant, str]]:
    """The breaks of this module that somebody wrote down: a text that stands there once, and what it becomes."""
    found = []
    for entry in json.loads(BY_HAND.read_text()) if BY_HAND.exists() else []:
        if entry["module"] != module:
            continue
        source = (root / "evenhand" / f"{module}.py").read_text()
        if source.count(entry["was"]) != 1:
            raise SystemExit(f"{BY_HAND.name}: {entry['was']!r} stands {source.count(entry['was'])} times in {module}")
        line = source[: source.index(entry["was"])].count("\n") + 1
        one = Mutant(module, line, "by hand", entry["was"], entry["now"], entry["break"])
        found.append((one, source.replace(entry["was"], entry["now"])))
    return found
