"""Figure 4 runs and shows what it is there to show."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("altair", reason="pictures need evenhand[report]")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_fig4_quick(tmp_path):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(ROOT / "experiments" / "fig4_sensr_eps.py"), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fig4_sensr_eps.png").read_bytes().startswith(b"\x89PNG")
    table = pd.read_csv(tmp_path / "fig4_sensr_eps.csv")
    assert table["eps"].tolist() == [0, 0.001, 0.01, 0.1]
    assert (table["tilt"] < 0.25).all()
