"""Time to fairness: the summary on made-up curves and a tiny run of ours."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("time_to_fairness")


def points(*rows):
    names = ("step", "cpu_seconds", "ba", "r_0.01", "r_0.1")
    return [dict(zip(names, row)) for row in rows]


def test_summary_is_the_first_step_that_is_as_fair_and_as_accurate(bench):
    runs = [
        {"method": "inFairness", "seed": 0, "points": points((1, 50.0, 0.7, 0.2, 2.0), (2, 100.0, 0.75, 0.1, 1.0))},
        {
            "method": "evenhand",
            "seed": 0,
            "points": points((1, 1.0, 0.74, 0.05, 0.5), (2, 2.0, 0.76, 0.2, 0.9), (3, 4.0, 0.76, 0.1, 0.5)),
        },
    ]
    small, large = bench.summary(runs)
    assert (small["eps"], small["cpu_seconds"], small["ratio"]) == (0.01, 4.0, 25.0)  # step 1 is fair, not accurate
    assert (large["eps"], large["cpu_seconds"], large["ratio"]) == (0.1, 2.0, 50.0)
    assert bench.summary(runs[1:]) == []  # nothing to compare with


def test_squeezing_earns_nothing_on_the_relative_scale(bench):
    def point(r, relative):
        judged = {"r_0.01": r, "r_0.1": r, "relative_0.01": relative, "relative_0.1": relative}
        return [{"step": 1, "cpu_seconds": 1.0, "ba": 0.7, **judged}]

    runs = [
        {"method": "inFairness", "seed": 0, "points": point(0.1, 0.2)},
        {"method": "evenhand", "seed": 0, "points": point(0.01, 0.3)},
    ]
    assert bench.summary(runs)[0]["ratio"] == 1.0
    assert bench.summary(runs, "relative")[0]["ratio"] is None


def test_tiny_run_keeps_weights_and_resumes(bench, monkeypatch, tmp_path):
    monkeypatch.setitem(bench.OURS, "steps", 4)
    monkeypatch.setattr(bench, "OURS_EVERY", 2)
    monkeypatch.setattr(bench, "BATCH", 50)
    problem = bench.Problem(0)
    path = bench.train_one("evenhand", problem, tmp_path, rho=1.0)
    made = path.stat().st_mtime_ns
    assert bench.train_one("evenhand", problem, tmp_path, rho=1.0).stat().st_mtime_ns == made
    judged = bench.judge("evenhand", problem, path, 8)
    assert [point["step"] for point in judged["points"]] == [2, 4]
    assert all(0 <= point["r_0.01"] <= point["r_0.1"] for point in judged["points"])
    assert all(point["relative_0.01"] > point["r_0.01"] for point in judged["points"])  # strangers are near each other
