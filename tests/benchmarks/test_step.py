"""The benchmark runs end to end on tiny shapes; its committed results are read by the documentation."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def run(script, out, *options):
    command = [sys.executable, str(ROOT / "benchmarks" / script), "--tiny", "--no-chart", "--out", str(out), *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(out.read_text())


def test_step_runs_and_writes_its_numbers(tmp_path):
    printed, written = run("step.py", tmp_path / "step.json")
    assert set(written["results"]) == {"tiny", "tiny, LayerNorm first", "tiny, tanh first"}
    for result in written["results"].values():
        assert all(ms > 0 for ms in result["ms"].values())
        assert result["erm_steps"]["erm"] == 1
        assert ("infairness" in result["ms"]) == (written["settings"]["infairness"] is not None)
    if written["settings"]["infairness"] is None:
        assert "inFairness is not installed: its column is skipped" in printed
    assert "CPU ms per step" in printed
