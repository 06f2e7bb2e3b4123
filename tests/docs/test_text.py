"""Every number in docs/text.md is one of the committed results."""

import importlib
import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "text.md").read_text(encoding="utf-8")
RESULTS = ROOT / "experiments" / "results"


def block(name):
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", GUIDE, re.S)
    assert found, f"docs/text.md has no block {name}"
    return found.group(1).strip()


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    return importlib.import_module("text_tables")


@pytest.mark.parametrize("name", ["table1_toxicity", "table2_bios"])
def test_the_tables_are_the_committed_ones(tables, name):
    experiment = importlib.import_module(name)
    result = pd.read_csv(RESULTS / f"{name}.csv")
    assert block(name) == tables.markdown(result, experiment.SCORES)
    runs = pd.read_csv(RESULTS / f"{name}_runs.csv", keep_default_na=False, na_values=[""])
    again = tables.table(runs, experiment.SCORES, experiment.PUBLISHED)
    for column in again.columns:
        assert again[column].astype(object).fillna("").tolist() == result[column].astype(object).fillna("").tolist(), (
            column
        )
    assert result["runs"].nunique() == 1
    assert set(result["method"]) == {"Baseline", "Project", "SenSeI", "SenSR", "CLP"}


@pytest.mark.parametrize("name", ["table1_toxicity", "table2_bios"])
def test_the_settings_of_the_script_are_those_of_the_results(tables, name):
    experiment = importlib.import_module(name)
    result = pd.read_csv(RESULTS / f"{name}.csv", keep_default_na=False).set_index("method")["setting"]
    for method, setting in experiment.SETTINGS.items():
        assert result[method] == " ".join(f"{key}={value:g}" for key, value in setting.items())


@pytest.mark.parametrize("name", ["table1_toxicity", "table2_bios"])
def test_the_gains_are_those_of_the_tables(name):
    """The sentence of each gain: asked, measured; the measured one follows from the committed table."""
    result = pd.read_csv(RESULTS / f"{name}.csv").set_index("method")
    plain, fair = result.loc["Baseline"], result.loc["SenSeI"]
    gains = {
        "CTF cut": f"{100 * (1 - fair['CTF'] / plain['CTF']):.1f} %",
        "PC": f"{fair['PC'] - plain['PC']:+.3f}",
        "BA": f"{fair['BA'] - plain['BA']:+.3f}",
    }
    if name == "table2_bios":
        gains["Gap RMS cut"] = f"{100 * (1 - fair['Gap RMS'] / plain['Gap RMS']):.1f} %"
    text = block(f"{name}_gains")
    for gain, value in gains.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| {gain} |"))
        assert row.split("|")[3].strip() == value, row


def test_the_groups_are_the_committed_ones():
    groups = pd.read_csv(RESULTS / "table1_toxicity_groups.csv")
    rows = block("table1_toxicity_groups").splitlines()[2:]
    assert rows == [
        f"| {row['group']} | {row['comments']:,} | {100 * row['toxic share']:.1f} % |" for _, row in groups.iterrows()
    ]


def test_a_lexical_swap_is_not_called_causal():
    assert "A lexical swap is not a causal counterfactual" in GUIDE
    from evenhand.counterfactuals import GenderSwap, TokenSwap

    for swap in (GenderSwap, TokenSwap):
        assert "not a causal counterfactual" in swap.__doc__
