"""Break the package one expression at a time and see whether a test notices.

    python tools/mutants.py --out benchmarks/results/mutants.json            # goes on where it stopped
    python tools/mutants.py --module dual/confidence --most 40 --show

Each mutant changes one expression of one module: a comparison, an operator, a constant, a boolean, a min for a max, a
negation, a default. It is noticed when one of the module's tests (the mirrored file, or those in ``INSTEAD``) fails,
hangs or cannot be collected. The choice of mutants is fixed by a seed, so a run can be repeated. Survivors that change
nothing anybody could observe are listed with the reason in tools/mutants_equivalent.json; every other survivor is a
test that is missing.

Beside those, tools/mutants_by_hand.json lists breaks of a meaning that no single expression holds (a tuning row inside
a confidence bound, a model file read with pickle); they are run in the same way and counted apart.

Runs in a copy of the tree, in forked processes that have torch loaded already, so that a mutant costs its tests and
little more. Quick tests are asked before slow ones; one that takes more than ``SLOW`` CPU seconds on the unbroken code
is left out. A mutant that was noticed stays noticed as long as its
module is the same; a survivor is tried again when its tests change.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import gc
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mutations import BY_HAND, ROOT, Mutant, by_hand, chosen

EQUIVALENT = ROOT / "tools" / "mutants_equivalent.json"
# The modules that statements, files and decisions depend on, and how many mutants of each.
MODULES = {
    "dual/confidence": 25, "dual/pool": 20, "dual/moves": 12, "dual/running": 12, "audit": 25, "certify/certify": 25,
    "certify/finite": 12, "certify/people": 10, "certify/certificate": 12, "domain/box": 12, "domain/free": 10,
    "fair_metrics/metric": 15, "fair_metrics/regression": 6,
    "fair_metrics/classifier": 10, "fair_metrics/columns": 8, "search/geometry": 12, "search/candidates": 8,
    "search/gradient": 12, "evaluation": 20, "output_distances": 8, "regularizer": 12, "objectives/sensei": 6,
    "objectives/sensr": 4, "objectives/clp": 6, "training/checkpoints": 10, "training/batches": 8, "training/loop": 12,
    "files/models": 15, "files/checks": 10, "files/preprocessing": 10, "files/layers": 8, "tables/read": 12,
    "tables/schema": 12, "workflow/folder": 8, "workflow/questions": 10, "atomic": 4,
    "judged/judged": 8, "judged/answers": 6, "judged/decisions": 8, "judged/undo": 6,
    "bounds/refinement": 14, "bounds/partition": 14, "bounds/local": 14, "bounds/shells": 10, "bounds/fitted": 10,
    "bounds/steepness": 10, "bounds/parts": 12, "bounds/problem": 8, "bounds/readout": 10, "bounds/chords": 12,
    "bounds/quadratic_dual": 10, "certify/statement": 14, "headline": 14, "error_rates": 10, "treated_worst": 8,
    "tables/kinds": 12, "tables/delimited": 10, "text/levels": 10, "text/shrink": 8, "text/validation": 8,
    "datasets/mentions": 8,
}  # fmt: skip
INSTEAD = {"certify/certify": ["tests/certify/test_statement.py"]}  # of a mirrored file that takes minutes
SECONDS, TIMES = 10.0, 4.0  # CPU; a mutant whose tests take more than both (4 times the unbroken code) hangs
SLOW = 8.0  # CPU seconds of one test


def tests_of(module: str, root: Path) -> list[str]:
    """Who has to notice."""
    folder, _, name = module.rpartition("/")
    mirrored = [str(Path("tests") / folder / f"test_{name}.py")]
    wanted = INSTEAD.get(module, mirrored)
    return [path for path in wanted if (root / path).exists()]


class Ordered:
    """A pytest plugin: quick files and quick tests first, and none of the slow ones."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.spent: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        def file(item: Any) -> str:
            return str(item.nodeid.split("::")[0])

        whole: dict[str, float] = {}
        for item in items:
            whole[file(item)] = whole.get(file(item), 0.0) + self.seconds.get(item.nodeid, 0.0)
        items[:] = [item for item in items if self.seconds.get(item.nodeid, 0.0) <= SLOW]
        # whole files one after another, because a fixture of a file is built anew whenever the file is left
        items.sort(key=lambda item: (whole[file(item)], file(item), self.seconds.get(item.nodeid, 0.0)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.began = sum(os.times()[:4])  # of its own processes too

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed += [report.nodeid] if report.failed else []

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.spent[nodeid] = sum(os.times()[:4]) - self.began


@dataclass(frozen=True)
class Answer:
    """What the tests of a copy said: who failed ("" for nobody), and CPU seconds, of each test where one asks."""

    by: str
    cpu: float
    seconds: dict[str, float]


def ask(copy: Path, tests: list[str], seconds: dict[str, float], limit: float) -> Answer:
    """Run pytest in the copy, in a forked process that may use ``limit`` CPU seconds.

    ``seconds`` of each test on the unbroken code decide the order."""
    began, before = time.perf_counter(), os.times()
    said = copy.parent / "said.json"
    said.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            os._exit(_asked(copy, tests, seconds, limit, said))
        except BaseException:
            traceback.print_exc()
            os._exit(9)  # whatever happens, nothing of the parent runs twice
    status = None
    try:
        while status is None and time.perf_counter() - began < 20 * limit:  # or it waits for what never comes
            done, code = os.waitpid(child, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if done else None
            time.sleep(0.02)
    finally:
        if status is None:
            os.killpg(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    told = json.loads(said.read_text()) if said.exists() else {"failed": [], "spent": {}}
    by = "" if status == 0 else next(iter(told["failed"]), "hangs or dies" if status < 0 else "cannot be collected")
    return Answer(by, cpu, told["spent"])


def _asked(copy: Path, tests: list[str], seconds: dict[str, float], limit: float, said: Path) -> int:
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it goes with its parent, however that goes
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path.insert(0, str(copy))
    sys.dont_write_bytecode = False  # compiled once, in the copy; see change()
    used = sum(os.times()[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + limit) + 1, resource.RLIM_INFINITY))
    output = os.open(copy.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    import pytest

    plugin = Ordered(seconds)
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line", "--hypothesis-seed=0"]
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is loaded already
    code = pytest.main([*quiet, *tests], plugins=[plugin])
    said.write_text(json.dumps({"failed": plugin.failed, "spent": plugin.spent}))
    return min(int(code), 9)


def load() -> None:
    """Import once, for every forked process, what the package needs; the package itself is imported by each."""
    import hypothesis.extra.numpy  # noqa: F401
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(ROOT))
    for room in ["audit", "certify", "cli", "estimators", "files", "frontier", "report", "text", "workflow"]:
        importlib.import_module(f"evenhand.{room}")
    for name in [name for name in sys.modules if name.split(".")[0] == "evenhand"]:
        del sys.modules[name]
    sys.path.remove(str(ROOT))
    gc.freeze()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--module", action="append", help="only these, such as dual/confidence")
    options.add_argument("--most", type=int, help="so many mutants a module instead of the number in the list")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, help="a JSON file; what it holds already is not run again")
    options.add_argument("--show", action="store_true", help="print every mutant as it is judged")
    given = options.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the child goes too
    load()
    listed = [e["module"] for e in json.loads(BY_HAND.read_text())] if BY_HAND.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "repo"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "runs", "__pycache__", ".*_cache"))
        (Path(folder) / "shared").symlink_to(ROOT.parent / "shared")
        for module in given.module or dict.fromkeys([*MODULES, *listed]):
            if not (copy / "evenhand" / f"{module}.py").exists() or not tests_of(module, copy):
                print(f"{module}: no such module, or no tests of its own", file=sys.stderr)
                continue
            wanted = [
                *chosen(module, MODULES.get(module, 0) if given.most is None else given.most, given.seed, copy),
                *by_hand(module, copy),
            ]
            mine = judge(module, wanted, copy, given.out, given.show)
            print(f"{module}: {sum(bool(r['noticed']) for r in mine)} of {len(mine)}", flush=True)
    if given.out:
        print(json.dumps({k: v for k, v in kept(given.out).items() if k != "mutants"}, indent=1))


def judge(module: str, wanted: list[tuple[Mutant, str]], copy: Path, out: Path | None, show: bool) -> list[Any]:
    """Run those of a module's mutants that the results do not hold already; each result is written as it comes."""
    path, tests = copy / "evenhand" / f"{module}.py", tests_of(module, copy)
    whole = path.read_text()
    now = {"source": _digest([path]), "tests": _digest(_files(copy, tests))}
    old = {r["key"]: r for r in kept(out)["mutants"]} if out else {}
    mine = [old[m.key] for m, _ in wanted if m.key in old and holds(old[m.key], now, explained())]
    known = {r["key"] for r in mine}
    whole_run: Answer | None = None
    for mutant, source in wanted:
        if mutant.key not in known:
            if whole_run is None:
                whole_run = unbroken(module, copy, tests, now)
            change(path, source)
            answer = ask(copy, tests, whole_run.seconds, max(SECONDS, TIMES * whole_run.cpu))
            change(path, whole)
            said = {"noticed": bool(answer.by), "by": answer.by, "cpu": round(answer.cpu, 1)}
            about = {"key": mutant.key, "module": module, "line": mutant.line, "kind": mutant.kind}
            mine.append({**about, **now, **said})
            if show:
                print(f"{'noticed ' if answer.by else 'SURVIVED'} {answer.cpu:5.1f} s", mutant.key, flush=True)
        if out:
            slow = whole_run and [name for name, s in whole_run.seconds.items() if s > SLOW]
            store(out, module, mine, slow)
    return mine


def unbroken(module: str, copy: Path, tests: list[str], now: dict[str, str]) -> Answer:
    """What the tests say and cost as things are; a run that was stopped does not ask again."""
    known = Path(tempfile.gettempdir()) / f"evenhand-mutants-{now['source']}-{now['tests']}.json"
    if known.exists():
        return Answer(**json.loads(known.read_text()))
    answer = ask(copy, tests, {}, 3600.0)
    if answer.by:
        said = (copy.parent / "output.txt").read_text()[-2000:]
        raise SystemExit(f"{module}: {answer.by} fails on the unbroken code\n{said}")
    print(f"{module}: {answer.cpu:.0f} CPU s unbroken", flush=True)
    known.write_text(json.dumps(asdict(answer)))
    return answer


def change(path: Path, source: str) -> None:
    """Write a module, and remove what Python has compiled of it: within a second, that would count as fresh."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
    path.write_text(source)


def holds(record: dict[str, Any], now: dict[str, str], reasons: dict[str, str]) -> bool:
    """Whether a result still says something: what was noticed is noticed by more tests too, what is equivalent by none;
    any other survivor may be noticed by other tests."""
    settled = record["noticed"] or record["key"] in reasons or record["tests"] == now["tests"]
    return bool(record["source"] == now["source"] and settled)


def explained() -> dict[str, str]:
    """Key of each equivalent mutant -> why it is."""
    return dict(json.loads(EQUIVALENT.read_text())) if EQUIVALENT.exists() else {}


def kept(out: Path) -> dict[str, Any]:
    return json.loads(out.read_text()) if out.exists() else {"mutants": [], "left_out": {}}


def store(out: Path, module: str, mine: list[Any], left_out: list[str] | None) -> None:
    """Put a module's results in the place of those that the file holds; runs over other modules may write to it too."""
    reasons = explained()
    folder = os.open(out.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        old = kept(out)
        slow = old.get("left_out", {}) | ({module: left_out} if left_out is not None else {})
        others = [r for r in old["mutants"] if r["module"] != module and r["source"] == _source(r["module"])]
        every = [{**r, "equivalent": reasons.get(r["key"])} for r in [*others, *mine]]
        order = list(MODULES)
        every.sort(key=lambda r: (order.index(r["module"]) if r["module"] in order else 99, r["line"], r["key"]))
        found = {**summary(every), "left_out": {name: tests for name, tests in slow.items() if tests}}
        new = out.with_suffix(".partial")
        new.write_text(_lines(found))
        new.replace(out)
    finally:
        os.close(folder)


def _lines(found: dict[str, Any]) -> str:
    """As JSON, a mutant a line."""
    head = json.dumps({name: value for name, value in found.items() if name != "mutants"}, indent=1)
    mutants = ",\n  ".join(json.dumps(record) for record in found["mutants"])
    return f'{head[:-2]},\n "mutants": [\n  {mutants}\n ]\n}}\n'


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbers of the drawn mutants and of those by hand, and which survived without a reason."""
    drawn = [r for r in results if r.get("kind") != "by hand"]
    hand = [r for r in results if r.get("kind") == "by hand"]
    real = [r for r in drawn if r["noticed"] or not r.get("equivalent")]
    seen = [r for r in real if r["noticed"]]
    return {
        "total": len(drawn),
        "modules": len({r.get("module") for r in drawn}),
        "equivalent": len(drawn) - len(real),
        "noticed": len(seen),
        "share": round(len(seen) / len(real), 4) if real else None,
        "by_hand": {"total": len(hand), "noticed": sum(bool(r["noticed"]) for r in hand)},
        "survivors": [r["key"] for r in [*real, *hand] if not r["noticed"]],
        "mutants": results,
    }


def _source(module: str) -> str:
    path = ROOT / "evenhand" / f"{module}.py"
    return _digest([path]) if path.exists() else ""


def _files(root: Path, tests: list[str]) -> list[Path]:
    return [f for t in tests for f in (sorted((root / t).rglob("*.py")) if (root / t).is_dir() else [root / t])]


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


if __name__ == "__main__":
    main()
