"""The charts hold the numbers of the run, in the colours of the page, and only those that there are numbers for."""

import copy
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("altair", reason="pictures need evenhand[report]")

from evenhand.report import charts
from evenhand.report.names import NAMES
from evenhand.workflow.folder import Folder
from evenhand.workflow.output import read_findings


@pytest.fixture
def findings(run_folder):
    return read_findings(Folder(run_folder))


def changed(findings, change):
    metrics = copy.deepcopy(findings.metrics)
    change(metrics)
    return replace(findings, metrics=metrics)


def rows_of(chart):
    """All rows of all data sets of a chart."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_all_charts_of_a_full_run(findings):
    specs = charts.charts(findings)
    assert list(specs) == ["tradeoff", "distribution", "groups", "calibration", "directions", "training"]
    assert all(spec["config"] is charts.CONFIG for spec in specs.values())
    assert {name for name, spec in specs.items() if "autosize" in spec} == {"tradeoff", "distribution", "calibration"}


def test_the_trade_off_shows_each_model_once_and_none_that_is_undefined(findings):
    rows = rows_of(charts.tradeoff(findings))
    assert {row["model"]: (row["x"], row["y"]) for row in rows} == {
        NAMES[name]: (m["audit"]["relative"], m["balanced_accuracy"]) for name, m in findings.models.items()
    }

    def change(metrics):
        metrics["models"]["plain"]["audit"]["relative"] = None
        metrics["models"]["fair"]["audit"]["relative"] = 0.0

    rows = rows_of(charts.tradeoff(changed(findings, change)))
    assert NAMES["plain"] not in {row["model"] for row in rows}
    (fair,) = (row for row in rows if row["model"] == NAMES["fair"])
    assert fair["x"] == 0
    assert fair["shown"] > 0  # a logarithmic axis has no 0

    def nothing(metrics):
        for m in metrics["models"].values():
            m["audit"]["relative"] = None

    assert charts.tradeoff(changed(findings, nothing)) is None


def test_the_distribution_falls_from_everybody_to_nobody_in_units_of_strangers(findings):
    def change(metrics):
        metrics["models"]["plain"]["audit"] |= {
            "quantiles": [4.0 * (i / 100) ** 2 for i in range(101)],
            "strangers": 4.0,
        }
        metrics["models"]["fair"]["audit"]["strangers"] = 0.0  # nobody differs: nothing to compare with

    rows = rows_of(charts.distribution(changed(findings, change)))
    assert NAMES["fair"] not in {row["model"] for row in rows}
    line = [(row["d"], row["share"]) for row in rows if row["model"] == NAMES["plain"]]
    assert line[0] == (0, 1)
    np.testing.assert_allclose(line[1:], [(i / 100, 1 - i / 100) for i in range(101)], atol=1e-9)


def test_groups_without_small_ones_for_the_usual_and_the_fair_model(findings):
    rows = rows_of(charts.groups(findings))
    assert {row["group"] for row in rows} == {"Female", "Male"}  # seven others are too few
    assert {row["model"] for row in rows} == {NAMES["boosted_blind"], NAMES["fair"]}
    rates = {(row["model"], row["group"]): row["rate"] for row in rows}
    expected = findings.models["fair"]["groups"]["sex"]["rates"][1]["selection"]["rate"]
    assert rates[NAMES["fair"], "Male"] == expected

    def all_small(metrics):
        for m in metrics["models"].values():
            for group in m["groups"].values():
                for rate in group["rates"]:
                    rate["small"] = True

    assert charts.groups(changed(findings, all_small)) is None


def test_calibration_is_what_was_said_and_what_happened(findings):
    rows = [row for row in rows_of(charts.calibration(findings)) if row.get("model") == NAMES["fair"]]
    assert [(row["said"], row["happened"]) for row in rows] == [
        (r["said"], r["happened"]) for r in findings.models["fair"]["calibration"]
    ]
    assert charts.calibration(changed(findings, lambda metrics: metrics.update(task="regression"))) is None


def test_directions_name_what_gives_an_attribute_away(findings):
    rows = rows_of(charts.directions(findings))
    assert [row["sign"] for row in rows] == ["up", "down"] * 4
    assert rows[0]["feature"] == "job = 0"
    assert charts.directions(changed(findings, lambda metrics: metrics["directions"].pop())) is None


def test_training_shows_the_series_that_were_kept(findings):
    rows = rows_of(charts.training(findings))
    assert {row["series"] for row in rows} == {"loss", "worst-case change d_Y", "price lam"}
    lam = [(row["step"], row["value"]) for row in rows if row["series"] == "price lam"]
    assert lam == [(10, 1.0), (20, 0.5), (30, 0.2)]

    def forgotten(metrics):
        metrics["models"]["fair"]["history"] = None

    assert charts.training(changed(findings, forgotten)) is None
