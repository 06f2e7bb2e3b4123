"""Tables from results files, and a check that sees a changed number."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from shown import results, table  # noqa: E402


def test_means_and_columns(tmp_path):
    (tmp_path / "a.csv").write_text("rho,seed,x\n1,0,0.5\n1,1,0.25\n2,0,0.125\n")
    found = results("a.csv", columns=["rho", "x"], mean=["rho"], folders=(tmp_path,))
    assert found == "| rho | x |\n| --- | --- |\n| 1 | 0.375 |\n| 2 | 0.125 |"
    assert results("a.csv", where={"rho": 2}, folders=(tmp_path,)).splitlines()[2:] == ["| 2 | 0 | 0.125 |"]


def test_two_files_make_one_table(tmp_path):
    (tmp_path / "a.csv").write_text("method,x\nA,0.5\n")
    (tmp_path / "b.json").write_text('[{"method": "B", "x": 0.25}]')
    assert "| A | 0.500 |\n| B | 0.250 |" in results("a.csv", "b.json", folders=(tmp_path,))
    with pytest.raises(FileNotFoundError, match=r"c\.csv; run the script that makes it"):
        results("a.csv", "c.csv", folders=(tmp_path,))


def test_a_changed_number_is_noticed(tmp_path):
    """Through cog itself, as make verify-results does."""
    page = tmp_path / "page.md"
    page.write_text('<!-- [[[cog show(table(["a"], [["1"]])) ]]] -->\n<!-- [[[end]]] -->\n')
    command = [sys.executable, "-m", "cogapp", "-I", str(ROOT / "tools"), "-p", "from shown import *"]
    subprocess.run([*command, "-r", str(page)], check=True, capture_output=True)
    assert table(["a"], [["1"]]) in page.read_text()
    assert subprocess.run([*command, "--check", str(page)], capture_output=True).returncode == 0
    page.write_text(page.read_text().replace("| 1 |", "| 2 |"))
    assert subprocess.run([*command, "--check", str(page)], capture_output=True).returncode != 0


def test_the_committed_coverage_is_at_least_nominal_in_every_order():
    import pandas as pd

    runs = pd.read_csv(ROOT / "experiments" / "results" / "certify_coverage.csv")
    assert len(runs) == 2 * 3 * 2 * 3  # populations, orders, splits, intervals
    assert (runs["repetitions"] >= 1000).all()
    assert (runs["coverage_R"] >= runs["nominal"]).all()
    assert (runs["coverage_relative"] >= runs["nominal"]).all()
    noise = 3 * (0.95 * 0.05 / 1000) ** 0.5  # Clopper-Pearson is exact: .952 here, give or take the repetitions
    assert (runs["coverage_decisions"] >= runs["nominal"] - noise).all()
