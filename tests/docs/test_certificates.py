"""Every measured number of docs/certificates.md comes from a committed results file, and the promises hold there."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("certify_tables", ROOT / "experiments" / "certify_tables.py")
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)
PAGE = (ROOT / "docs" / "certificates.md").read_text()


@pytest.mark.parametrize("name", list(tables.BLOCKS))
def test_the_page_shows_what_the_results_hold(name):
    assert tables.block(PAGE, name) == tables.BLOCKS[name]()


@pytest.mark.parametrize(("model", "gap"), [("linear", 1.3), ("plain", 2.5), ("SenSeI", 4.0), ("certified", 1.6)])
def test_the_bracket_is_tight(model, gap):
    runs = tables.main_runs()[tables.main_runs()["model"] == model]
    assert runs["gap"].mean() <= gap
    assert (runs["r_low"] <= runs["r_high"]).all()
    assert (runs["r_high"] <= runs["upper"]).all()
    assert (runs["lower"] <= runs["r_high"]).all()
    assert (runs["audit_seconds"].fillna(0) + runs["certify_seconds"] <= 120).all()


def test_no_pair_lies_above_the_bound():
    table = tables.pd.read_csv(tables.RESULTS / "certify_soundness.csv")
    assert table["violations"].sum() == 0
    assert table["pairs"].sum() >= 1_000_000
    assert set(table["model"]) == {"plain", "SenSeI", "certified"}


def test_coverage_is_at_least_nominal_and_betting_costs_little():
    table = tables.pd.read_csv(tables.RESULTS / "certify_coverage.csv")
    assert (table["coverage"] >= table["nominal"]).all()
    assert (table["repetitions"] >= 1000).all()
    betting = table.query("interval == 'betting' and n == 1000 and population == 'uniform'")
    assert betting["excess"].item() <= 0.03
