"""What the committed results of the text experiments show."""

from pathlib import Path

import pandas as pd
import pytest

RESULTS = Path(__file__).resolve().parents[2] / "experiments" / "results"


def read(name):
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        pytest.fail(f"{path.name} is not committed")
    return pd.read_csv(path)


@pytest.mark.parametrize("name", ["table1_toxicity", "table2_bios"])
def test_sensei_is_the_most_consistent_and_cuts_the_ctf_score_most(name):
    table = read(name).set_index("method")
    assert table["CTF"].idxmin() == "SenSeI"
    assert table.loc["SenSeI", "PC"] >= table.loc[["SenSR", "CLP"], "PC"].max() - 0.005  # equal to rounding
    assert table.loc["SenSeI", "CTF"] < 0.5 * table.loc["Baseline", "CTF"]


def test_occupations_cost_no_accuracy():
    table = read("table2_bios").set_index("method")
    assert table.loc["SenSeI", "BA"] >= table.loc["Baseline", "BA"]
    assert table.loc["SenSeI", "CTF"] < 0.03 * table.loc["Baseline", "CTF"]
    assert table.loc["SenSeI", "Gap RMS"] < table.loc["Baseline", "Gap RMS"]


def test_figure_2_shows_the_trade_off():
    """A larger rho lowers the CTF score of SenSeI; Baseline is rho = 0."""
    curves = read("fig2_tradeoff")
    for data in ("Toxicity", "Bios"):
        mine = curves[curves["data"] == data]
        line = mine[mine["method"].isin(["Baseline", "SenSeI"])].sort_values("rho")["CTF"]
        assert len(line) >= 4
        assert line.is_monotonic_decreasing
        assert set(mine["method"]) == {"Baseline", "SenSeI", "CLP"}
