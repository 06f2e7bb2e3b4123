"""The table of a million rows, with few of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

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
    assert "400 rows; columns that the model sees: 26 number" in done.stderr
