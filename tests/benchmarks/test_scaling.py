"""The scaling benchmark runs end to end on a tiny shape."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_scaling_runs_and_writes_slopes(tmp_path):
    out = tmp_path / "scaling.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "scaling.py"), "--tiny", "--no-chart", "--out", str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert set(written["slopes"]) == {"B", "d", "H", "k", "subspace steps", "full steps", "n"}
    assert written["sampling_ms"] > 0
    assert "peak memory" in done.stdout
