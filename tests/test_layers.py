"""Imports go downwards only, and optional dependencies stay optional."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "evenhand"

# Each layer may import itself and those below it.
LAYERS = [
    {"variations"},
    {"counterfactuals", "evaluation", "datasets"},
    {"output_distances", "fair_metrics", "search", "distributed"},
    {"regularizer"},
    {"objectives", "bounds"},
    {"batches", "training_state", "checkpoints", "train", "certified", "streaming"},
    {"text", "estimators", "postprocess", "ranking"},
    {"subject", "enumeration", "overlap", "certificate", "tables", "schema"},
    {"audit", "certify", "persistence", "plots"},
    {"frontier"},
    {"run", "report", "model_card", "reproduce"},
    {"cli", "__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
NEVER_TORCH = {"variations", "counterfactuals", "evaluation", "datasets"}


def imports(path: Path) -> set[str]:
    """Modules imported when the module is loaded; imports inside functions do not count."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "evenhand" else {node.module}
            )
    return found


def unit(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if unit(path) != "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path):
    rank = RANK[unit(path)]
    for name in imports(path):
        if name.startswith("evenhand."):
            other = name.split(".")[1]
            assert other == unit(path) or RANK[other] <= rank, f"{path.name} must not import {name}"
        if unit(path) in NEVER_TORCH:
            assert not name.startswith("torch"), f"{unit(path)} knows strings, arrays and frames only"


def test_import_loads_no_optional_dependency():
    optional = "typer jinja2 altair vl_convert sentence_transformers transformers safetensors skops onnx onnxruntime"
    program = f"import sys, evenhand; print([m for m in {optional.split()!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
