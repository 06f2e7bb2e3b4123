import re
import sys

import numpy as np
import pandas as pd
import pytest

alt = pytest.importorskip("altair", reason="charts need evenhand[report]")

from evenhand.report import plots  # noqa: E402


def table(name="rho"):
    frame = pd.DataFrame({name: [0, 1, 5], "accuracy": [0.8, 0.78, 0.7], "unfairness": [1.0, 0.1, 0.2], "folds": 3})
    for score in ("accuracy", "unfairness"):
        frame[f"{score}_low"], frame[f"{score}_high"] = frame[score] - 0.01, frame[score] + 0.01
    return frame.assign(front=[True, True, False])


def records():
    return pd.DataFrame({"step": [1.0, 2, 3], "loss": [3.0, 2, 1], "lam": [1.0, 2, 2], "d_y": [1.0, 0.5, 0.2]})


def charts():
    pairs = pd.DataFrame({"who": ["a", "b"], "p": [0.2, 0.9], "p_worst": [0.8, 0.3], "changed": ["sex", "race"]})
    return {
        "trade_off": plots.trade_off({"SenSeI": table(), "SenSR": table("eps")}, log=True),
        "history": plots.history({"one": records(), "two": records()}),
        "distribution": plots.distribution({"plain": [0.0, 1.0, 2.0], "fair": [0.0, 0.0, 0.1]}, tau=0.5),
        "surfaces": plots.surfaces(
            {"up": lambda z: 1 / (1 + np.exp(-9 * z[:, 1]))}, np.zeros((2, 2)), [0, 1], pixels=8
        ),
        "worst_pairs": plots.worst_pairs(pairs, label="who", changed="changed"),
    }


@pytest.mark.parametrize("name", ["trade_off", "history", "distribution", "surfaces", "worst_pairs"])
def test_each_chart_is_a_valid_picture(name, tmp_path):
    chart = charts()[name]
    assert "<svg" in plots.save(chart, tmp_path / "new" / f"{name}.svg").read_text()
    assert plots.save(chart, tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_html_needs_no_network(tmp_path):
    page = plots.save(charts()["trade_off"], tmp_path / "chart.html").read_text()
    assert not re.search(r"<(script|link)[^>]+(src|href)\s*=\s*[\"']?https?:", page)
    assert len(page) > 500_000  # the JavaScript is inside


def test_trade_off_says_the_parameters_and_what_is_on_the_front():
    data = next(iter(plots.trade_off(table()).to_dict()["datasets"].values()))
    assert [row["parameters"] for row in data] == ["rho=0", "rho=1", "rho=5"]
    both = plots.trade_off({"SenSeI": table(), "SenSR": table("eps")}).to_dict()
    points = max(both["datasets"].values(), key=len)
    assert {row["parameters"] for row in points if row["method"] == "SenSR"} == {"eps=0", "eps=1", "eps=5"}


def test_distribution_is_the_survival_function():
    values = np.random.default_rng(0).exponential(size=1000)
    data = next(iter(plots.distribution(values).to_dict()["datasets"].values()))
    for row in data[:: len(data) // 20]:
        assert row["share"] == pytest.approx(np.mean(values > row["d_y"]), abs=1e-9)


def test_boundary_is_where_the_surface_crosses_one_half():
    middle = np.linspace(-1, 1, 21)
    p = np.broadcast_to(0.5 + 0.3 * (middle - 0.33)[None, :], (21, 21))  # depends on the height only
    lines = plots._level(p, middle)
    np.testing.assert_allclose(lines[["y", "y2"]], 0.33, atol=1e-3)
    assert len(lines) == 20


def test_worst_pairs_keeps_the_order_and_scores_that_are_no_probabilities():
    pairs = pd.DataFrame({"p": [3.0, -1.0], "p_worst": [5.0, 2.0]}, index=["x", "x"])
    spec = plots.worst_pairs(pairs).to_dict()
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["x (1)", "x (2)"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.history(records(), quantities=["nothing"]), "has no"),
        (lambda: plots.distribution([np.nan]), "finite"),
        (lambda: plots.trade_off({}), "nothing to draw"),
        (lambda: plots.save(None, "chart.gif"), r"\.html"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_says_how_to_get_altair(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ImportError, match=r"evenhand\[report\]"):
        plots.distribution([1.0])


def test_labels_cover_neither_points_nor_each_other():
    places = plots._label_places(
        np.array([[100.0, 100.0], [100.0, 101.0], [101.0, 100.0], [300.0, 10.0]]), ["rho=1"] * 4
    )
    assert len({place for place in places if place is not None}) == len([p for p in places[:3] if p is not None])
    assert places[3] == ("left", "top")
    assert plots._label_places(np.zeros((9, 2)), ["a long label"] * 9).count(None) >= 5
    assert plots._label_places(np.zeros((1, 2)), [""]) == [None]


def test_ticks_of_a_logarithmic_axis():
    assert plots._one_two_five(pd.Series([0.03, 2.0])) == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]
