"""Splits, metric and domain."""

import numpy as np
import pandas as pd
import pytest
import torch

from evenhand.tables.encoder import positions
from evenhand.workflow import prepare


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    n = 500
    sex = rng.choice(["f", "m"], n)
    frame = pd.DataFrame(
        {"height": rng.normal(170, 5, n) + 12 * (sex == "m"), "noise": rng.normal(size=n), "sex": sex,
         "race": rng.choice(["a", "b", "c"], n), "y": rng.choice(["no", "yes"], n)}
    )  # fmt: skip
    return prepare(frame, "y", ["sex", "race"], proxy=["sex"], see_sensitive=True)


def test_parts_are_disjoint_and_everybody_is_somewhere(task):
    rows = [set(part.frame.index) for part in task.parts.values()]
    assert sum(map(len, rows)) == len(set().union(*rows)) == 500
    assert [len(r) for r in rows] == [300, 25, 75, 100]


def test_what_is_spelled_in_two_ways_is_said(task):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=300), "sex": rng.choice(["f", "F", "m"], 300)})
    notes = prepare(frame.assign(y=rng.choice(["no", "yes", "Yes "], 300)), "y", ["sex"]).notes
    said = [note for note in notes if "differ in capitals" in note]
    assert [note.split(" differ")[0] for note in said] == ["'Yes' and 'yes' in 'y'", "'F' and 'f' in 'sex'"]
    assert not any("differ in capitals" in note for note in task.notes)


@pytest.mark.parametrize("regression", [False, True])
def test_the_order_of_the_table_does_not_matter(regression):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"a": rng.normal(size=240), "b": rng.choice(["x", "y"], 240), "sex": rng.choice(["f", "m"], 240)}
    )
    frame["y"] = rng.normal(size=240) if regression else rng.choice(["no", "yes"], 240)
    wanted = prepare(frame, "y", ["sex"])
    for order in (np.argsort(frame["a"].to_numpy()), rng.permutation(240)):
        task = prepare(frame.iloc[order], "y", ["sex"])
        for name, part in task.parts.items():
            pd.testing.assert_frame_equal(part.frame.reset_index(drop=True),
                                          wanted.parts[name].frame.reset_index(drop=True))  # fmt: skip
            np.testing.assert_array_equal(part.y, wanted.parts[name].y)
        np.testing.assert_array_equal(task.view.fair_metric.directions, wanted.view.fair_metric.directions)
    other = prepare(frame, "y", ["sex"], seed=1)
    assert not other.parts["train"].frame.equals(wanted.parts["train"].frame)


def test_sensitive_columns_cost_nothing_and_the_proxy_nearly_nothing(task):
    metric, places = task.view.fair_metric, positions(task.view.encoder)
    X = task.view.encode(task.parts["train"])
    for name in ("sex", "race"):
        step = torch.zeros(1, X.shape[1])
        step[0, places[name]] = 1.0
        assert metric.cost(step).item() < 1e-6
    moves = torch.zeros(2, X.shape[1])
    moves[0, places["height"]], moves[1, places["noise"]] = 1.0, 1.0
    height, noise = metric.cost(moves).tolist()
    assert height < 0.1 < 0.8 < noise  # height gives sex away, noise does not


def test_an_attribute_is_learned_from_the_other_columns_only(task):
    (sex,), own = task.proxies, positions(task.view.encoder)["sex"]
    for model in sex.models:
        assert not set(own) & set(model.used)
        assert not model.directions[own].any()
    assert 0.2 < sex.explained < 0.9  # twelve centimetres at a spread of five tell much of it, not all


def test_noise_is_free_for_nobody():
    """Nothing tells race: asked for all, no direction is made free for it, and that is said; asked by name, one is."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=240), "b": rng.normal(size=240), "race": rng.choice(["x", "y"], 240)})
    frame["y"] = rng.choice(["no", "yes"], 240)
    task = prepare(frame, "y", ["race"])
    assert task.proxies == ()
    assert any("'race' cannot be told from the other columns" in note for note in task.notes)
    assert [proxy.name for proxy in prepare(frame, "y", ["race"], proxy=["race"]).proxies] == ["race"]


def test_domain_holds_everybody(task):
    for view in task.views.values():
        for part in task.parts.values():
            assert view.inside(part).all()
