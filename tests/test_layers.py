"""Imports go downwards only, without cycles; optional dependencies stay optional; tests mirror the package."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "evenhand"

# Rooms from the ground up. A room may import rooms that stand before it, and nothing else: not its neighbours after it,
# not even inside a function. So there is no cycle, and a reader knows what a line may touch.
ROOMS = [
    "atomic",
    "ranks",
    "module_copy",
    "devices",
    "variations",
    "domain",
    "output_distances",
    "evaluation",
    "copies",
    "counterfactuals",
    "datasets",
    "tables",
    "frames",
    "ensembles",
    "dual",
    "error_rates",
    "fair_metrics",
    "search",
    "bounds",
    "model_step",
    "regularizer",
    "judged",
    "headline",  # numbers that audits and certificates share
    "treated_worst",
    "objectives",
    "training",
    "estimators",
    "text",
    "postprocess",
    "audit",
    "certify",
    "frontier",
    "integrations",
    "files",
    "report",
    "workflow",
    "cli",
    "__main__",
]
RANK = {name: rank for rank, name in enumerate(ROOMS)}
NEVER_TORCH = {"variations", "copies", "counterfactuals", "evaluation", "error_rates", "datasets", "tables", "frames"}
NEVER_TORCH |= {"report"}


def imports(path: Path) -> set[str]:
    """Every module that the file imports, also inside functions and under TYPE_CHECKING."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if room(path) != "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path):
    own = room(path)
    for name in imports(path):
        if name.startswith("evenhand."):
            other = name.split(".")[1]
            assert other in RANK, f"{path.name} imports {name}: from which room?"
            assert other == own or RANK[other] < RANK[own], f"{own} must not import {name}"
        if own in NEVER_TORCH:
            assert not name.startswith("torch"), f"{own} knows strings, arrays and frames only"


def test_every_room_is_there():
    assert {room(path) for path in MODULES} == set(ROOMS)


def test_every_module_has_its_test():
    """evenhand/a/b.py is tested by tests/a/test_b.py."""
    modules = (path.relative_to(PACKAGE) for path in MODULES if not path.name.startswith("__"))
    missing = [str(path) for path in modules if not (TESTS / path.parent / f"test_{path.name}").exists()]
    assert missing == []


def test_import_loads_no_optional_dependency():
    optional = "typer jinja2 altair vl_convert sentence_transformers transformers safetensors skops onnx onnxruntime"
    program = f"import sys, evenhand; print([m for m in {optional.split()!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_loop_of_ones_own_waits_for_torch_only():
    """scikit-learn, with scipy and pandas, takes as long to import as torch: who needs no estimator does not wait."""
    program = "import sys; from evenhand import FairMetric, FairRegularizer, GradientSearch, train; "
    program += "print([m for m in ('sklearn', 'scipy', 'pandas') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_an_estimator_waits_for_what_it_is_made_of_only():
    program = "import sys, evenhand.estimators as e; assert 'torch' not in sys.modules; e.SenSeIClassifier; "
    program += "print([m for m in ('sklearn.linear_model', 'sklearn.model_selection') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
