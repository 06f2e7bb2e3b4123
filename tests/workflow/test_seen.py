"""Rows that a run has learned from are known again, new people are not."""

import json

import numpy as np
import pandas as pd

from evenhand.workflow.seen import Seen, row_hashes


def people(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=n).astype(np.float32), "job": rng.choice(["a", "b"], n)})


def test_training_rows_are_known_again_in_any_order_and_type():
    old, new = people(500, 0), people(300, 1)
    seen = Seen.of(old, people(200, 2))
    assert seen.chance == 0
    assert seen.too_many(new) == 0
    turned = old.sample(300, random_state=0)[["job", "x"]].astype({"x": np.float64})
    assert seen.too_many(turned) == 300
    assert seen.too_many(pd.concat([new, old.iloc[[7]]])) == 1
    again = Seen.from_json(json.loads(json.dumps(seen.to_json())))
    assert again.too_many(turned) == 300
    assert (again.rows, again.chance) == (500, 0)


def test_people_who_look_alike_by_chance_are_not_refused():
    """With two columns of few values nearly everybody equals somebody: that is no sign of training rows."""
    rng = np.random.default_rng(0)
    few = [pd.DataFrame({"a": rng.integers(0, 40, n), "b": rng.integers(0, 40, n)}) for n in (600, 200, 300)]
    seen = Seen.of(few[0], few[1])
    assert 0.1 < seen.chance < 0.6
    assert seen.contains(few[2]).any()
    assert seen.too_many(few[2]) == 0
    assert seen.too_many(few[0]) == 600


def test_hashes_depend_on_values_only():
    frame = people(20, 0)
    assert (row_hashes(frame) == row_hashes(frame.set_index(np.arange(20) + 5))).all()
    assert len(set(row_hashes(frame))) == 20
