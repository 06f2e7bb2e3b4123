"""Figures 1 and 4 run, and show what they are there to show; so do the committed results."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("altair", reason="pictures need evenhand[report]")
ROOT = Path(__file__).parents[2]


def run_quick(name: str, folder: Path) -> pd.DataFrame:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(ROOT / "experiments" / f"{name}.py"), "--quick", "--out", str(folder)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / f"{name}.svg").read_text()
    return pd.read_csv(folder / f"{name}.csv")


def test_fig1_quick(tmp_path):
    table = run_quick("fig1_rho", tmp_path)
    assert table["rho"].tolist() == [0, 0.1, 1, 3, 5]
    assert table["equal_pairs"].is_monotonic_increasing
    assert table["tilt"].iloc[0] > 0.8
    assert table["tilt"].iloc[-1] < 0.1


def test_committed_figure_1():
    """The share of horizontal pairs with equal prediction grows with rho; at rho = 5 the boundary is horizontal."""
    table = pd.read_csv(ROOT / "experiments" / "results" / "fig1_rho.csv")
    mean = table.groupby("rho").mean()
    assert mean["equal_pairs"].is_monotonic_increasing
    assert (table[table["rho"] == 5]["tilt"] < 0.05).all()
    assert (table[table["rho"] == 0]["tilt"] > 0.8).all()


def test_committed_figure_4():
    table = pd.read_csv(ROOT / "experiments" / "results" / "fig4_sensr_eps.csv")
    assert (table[table["eps"] == 0]["tilt"] < 0.05).all()
    assert (table["equal_pairs"] > 0.95).all()
