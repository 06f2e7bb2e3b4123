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


def test_gains_over_the_baseline():
    import pandas as pd
    from shown.texts import gains

    result = pd.DataFrame({"CTF": [0.2, 0.05], "PC": [0.5, 0.75]}, index=["Baseline", "SenSeI"])
    assert gains(result, {"CTF cut": "60 %", "PC": "+.152"}).splitlines()[2:] == [
        "| CTF cut | 60 % | 75.0 % |",
        "| PC | +.152 | +0.250 |",
    ]
