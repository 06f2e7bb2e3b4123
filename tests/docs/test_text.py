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


def test_every_block_is_made_from_the_results(tables, tmp_path):
    docs = importlib.import_module("text_docs")
    assert docs.filled(GUIDE) == GUIDE, "run python experiments/text_docs.py"
    assert docs.filled("<!-- table2_bios_gains -->\nwrong\n<!-- end -->") in GUIDE
    with pytest.raises(ValueError, match="nothing fills"):
        docs.filled("<!-- other -->\n\n<!-- end -->")


def test_the_gains_are_those_of_the_tables(tables):
    """The measured gains by a formula of their own."""
    docs = importlib.import_module("text_docs")
    result = pd.DataFrame({"CTF": [0.2, 0.05], "PC": [0.5, 0.75]}, index=["Baseline", "SenSeI"])
    text = docs.gains(result, [("CTF cut", "at least 65 %", "60 %"), ("PC", "at least +.27", "+.152")])
    assert text.splitlines()[2:] == [
        "| CTF cut | at least 65 % [60 %] | 75.0 % |",
        "| PC | at least +.27 [+.152] | +0.250 |",
    ]


def test_a_lexical_swap_is_not_called_causal():
    assert "A lexical swap is not a causal counterfactual" in GUIDE
    from evenhand.counterfactuals import GenderSwap, TokenSwap

    for swap in (GenderSwap, TokenSwap):
        assert "not a causal counterfactual" in swap.__doc__
