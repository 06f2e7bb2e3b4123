"""Figure 1 runs and shows what it is there to show."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("altair", reason="pictures need evenhand[report]")
ROOT = Path(__file__).parents[2]


def test_fig1_quick(tmp_path):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(ROOT / "experiments" / "fig1_rho.py"), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fig1_rho.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "fig1_rho.svg").read_text()
    table = pd.read_csv(tmp_path / "fig1_rho.csv")
    assert table["rho"].tolist() == [0, 0.1, 1, 3, 5]
    assert (table["equal_pairs"].diff().dropna() > -0.005).all()  # grows, up to the last few pairs in a thousand
    assert table["tilt"].iloc[0] > 0.8
    assert table["tilt"].iloc[-1] < 0.1
