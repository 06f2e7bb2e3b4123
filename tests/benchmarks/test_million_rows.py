"""The table of a million rows, with few of them, and what the page says of the full run."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "benchmarks" / "million_rows.py"


def test_a_tiny_run_under_the_limit(tmp_path):
    out = tmp_path / "million.json"
    tiny = ["--rho", "5", "--steps", "5", "--no-certificate", "--audit-rows", "4", "--hidden", "4"]
    command = [sys.executable, str(SCRIPT), "--rows", "400", "--limit", "4", "--out", str(out), "--", *tiny]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert (result["rows"], result["columns"], result["options"]) == (400, 40, tiny)
    assert 0.1 < result["peak_gb"] < 4
    assert result["changed"]["project"] == 0
    assert "400 rows; columns: 26 number" in done.stderr


def test_the_page_says_what_was_measured():
    spec = importlib.util.spec_from_file_location("million_rows", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = ROOT / "benchmarks" / "results" / "million_rows.json"
    if not path.exists():
        pytest.skip("no full run yet")
    result = json.loads(path.read_text())
    assert result["rows"] == 1_000_000
    assert result["peak_gb"] < 8
    assert module.sentence(result) in (ROOT / "docs" / "benchmarks.md").read_text()
