"""Break the package one expression at a time and see whether a test notices.

    python tools/mutants.py --out benchmarks/results/mutants.json            # goes on where it stopped
    python tools/mutants.py --module dual/confidence --most 40 --show

Each mutant changes one expression of one module: a comparison, an operator, a constant, a boolean, a min for a max, a
negation, a default. It is noticed when one of the module's tests (the mirrored file, and those in ``MORE``) fails,
hangs or cannot be collected. The choice of mutants is fixed by a seed, so a run can be repeated. Survivors that change
nothing anybody could observe are listed with the reason in tools/mutants_equivalent.json; every other survivor is a
test that is missing.

Runs in a copy of the tree, in forked processes that have torch loaded already, so that a mutant costs its tests and
little more.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tools" / "mutants_equivalent.json"
# The modules that statements, files and decisions depend on, and how many mutants of each.
MODULES = {
    "dual/confidence": 25, "dual/pool": 20, "dual/moves": 12, "dual/running": 12, "audit": 25, "certify/certify": 25,
    "certify/finite": 12, "certify/people": 10, "certify/certificate": 12, "domain": 20, "fair_metrics/metric": 15,
    "fair_metrics/classifier": 10, "fair_metrics/columns": 8, "search/geometry": 12, "search/candidates": 8,
    "search/gradient": 12, "evaluation": 20, "output_distances": 8, "regularizer": 12, "objectives/sensei": 6,
    "objectives/sensr": 4, "objectives/clp": 6, "training/checkpoints": 10, "training/batches": 8, "training/loop": 12,
    "files/models": 15, "files/checks": 10, "files/preprocessing": 10, "files/layers": 8, "tables/read": 12,
    "tables/schema": 12, "workflow/folder": 8, "workflow/questions": 10, "judged": 12, "atomic": 4,
}  # fmt: skip
MORE = {  # tests beside the mirrored file
    "dual/confidence": ["tests/dual"],
    "dual/pool": ["tests/dual"],
    "dual/running": ["tests/dual", "tests/test_audit.py"],
    "dual/moves": ["tests/dual", "tests/test_audit.py"],
    "certify/certificate": ["tests/certify"],
    "certify/finite": ["tests/certify"],
    "certify/people": ["tests/certify"],
    "search/geometry": ["tests/search", "tests/bounds/test_branch.py"],
    "files/layers": ["tests/files"],
    "files/checks": ["tests/files"],
    "training/batches": ["tests/training"],
    "workflow/folder": ["tests/workflow"],
    "judged": ["tests/test_judged.py", "tests/test_audit.py"],
}
SECONDS = 120  # of one mutant's tests, after which it counts as noticed: the unbroken code is far faster


@dataclass(frozen=True)
class Mutant:
    """One change: where, what stood there, what stands there now."""

    module: str
    line: int
    kind: str
    was: str
    now: str
    text: str  # the line, so that a list of reasons survives edits elsewhere

    @property
    def key(self) -> str:
        return f"{self.module} | {self.text} | {self.was} -> {self.now}"


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
            found.append((one, new))
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
        yield "constant", ast.Constant(node.value + 1 if isinstance(node.value, int) else node.value * 2)
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


def chosen(module: str, count: int, seed: int) -> list[tuple[Mutant, str]]:
    """A fixed sample, spread over the kinds of change."""
    everything = mutants(module, (ROOT / "evenhand" / f"{module}.py").read_text())
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


def tests_of(module: str) -> list[str]:
    folder, _, name = module.rpartition("/")
    mirrored = Path("tests") / folder / f"test_{name}.py"
    wanted = [str(mirrored)] if (ROOT / mirrored).exists() else []
    more = [path for path in MORE.get(module, []) if (ROOT / path).exists()]
    return list(dict.fromkeys([*wanted, *more]))


def noticed(copy: Path, tests: list[str]) -> tuple[bool, float]:
    """Whether pytest fails in the copy, in a forked process; and the seconds it took."""
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            import pytest

            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests])
        os._exit(min(int(code), 9))
    while time.perf_counter() - began < SECONDS:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) != 0, time.perf_counter() - began
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True, time.perf_counter() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--module", action="append", help="only these, such as dual/confidence")
    options.add_argument("--most", type=int, help="so many mutants a module instead of the number in the list")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, help="a JSON file; what it holds already is not run again")
    options.add_argument("--show", action="store_true", help="print every mutant as it is judged")
    given = options.parse_args()
    kept = json.loads(given.out.read_text()) if given.out and given.out.exists() else {"mutants": []}
    reasons = json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    done = {(r["key"], r["digest"]): r for r in kept["mutants"]}
    results: list[dict[str, object]] = []
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import pandas  # noqa: F401  loaded once, for every forked process
    import sklearn  # noqa: F401
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "repo"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "runs", "__pycache__", ".*_cache"))
        (Path(folder) / "shared").symlink_to(ROOT.parent / "shared")
        for module in given.module or MODULES:
            path, tests = copy / "evenhand" / f"{module}.py", tests_of(module)
            if not tests or not path.exists():
                print(f"{module}: no such module, or no tests of its own", file=sys.stderr)
                continue
            digest = _digest(module, tests)
            whole = path.read_text()
            broken, seconds = noticed(copy, tests) if any_new(module, given, done, digest) else (False, 0.0)
            if broken:
                raise SystemExit(f"{module}: its tests fail on the unbroken code ({', '.join(tests)})")
            for mutant, source in chosen(module, given.most or MODULES.get(module, 10), given.seed):
                record = done.get((mutant.key, digest))
                if record is None:
                    path.write_text(source)
                    seen, took = noticed(copy, tests)
                    record = {
                        **asdict(mutant),
                        "key": mutant.key,
                        "digest": digest,
                        "noticed": seen,
                        "seconds": round(took, 1),
                    }
                    path.write_text(whole)
                results.append({**record, "equivalent": reasons.get(mutant.key)})
                if given.show:
                    print("noticed " if record["noticed"] else "SURVIVED", mutant.key, flush=True)
            mine = [r for r in results if r["module"] == module]
            print(
                f"{module}: {sum(bool(r['noticed']) for r in mine)} of {len(mine)} ({seconds:.0f} s unbroken)",
                flush=True,
            )
            if given.out:
                others = [r for r in kept["mutants"] if r["module"] not in {r["module"] for r in results}]
                given.out.write_text(json.dumps(summary([*others, *results]), indent=1) + "\n")
    print(json.dumps({k: v for k, v in summary(results).items() if k != "mutants"}, indent=1))


def any_new(module: str, given: argparse.Namespace, done: dict[tuple[str, str], object], digest: str) -> bool:
    pairs = chosen(module, given.most or MODULES.get(module, 10), given.seed)
    return any((mutant.key, digest) not in done for mutant, _ in pairs)


def summary(results: list[dict[str, object]]) -> dict[str, object]:
    real = [r for r in results if r["noticed"] or not r.get("equivalent")]
    seen = [r for r in real if r["noticed"]]
    return {
        "mutants": results,
        "total": len(results),
        "equivalent": len(results) - len(real),
        "noticed": len(seen),
        "share": round(len(seen) / len(real), 4) if real else None,
        "survivors": [r["key"] for r in real if not r["noticed"]],
    }


def _digest(module: str, tests: list[str]) -> str:
    """Of the module and its tests: a result holds for these and no others."""
    files = [ROOT / "evenhand" / f"{module}.py"]
    for name in tests:
        files += sorted((ROOT / name).rglob("*.py")) if (ROOT / name).is_dir() else [ROOT / name]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


if __name__ == "__main__":
    main()
