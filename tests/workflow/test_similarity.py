"""What gives an attribute away is free; chance is not, and a metric under which all are alike is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from evenhand.tables.errors import TableError
from evenhand.workflow.similarity import check_free, few_enough, learn_proxy, metric_of, teaches

N = 1000


def table(seed, strength=2.0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], N)
    X = pd.DataFrame(rng.normal(size=(N, 4)).astype(np.float32), columns=list("abcd"))
    X["b"] += strength * (sex == "m")
    return X, pd.Series(sex)


def proxy(strength):
    X, sex = table(0, strength)
    X_new, new = table(1, strength)
    return learn_proxy("sex", X, sex, range(4), X_new, new), X


def test_the_direction_and_its_evidence():
    found, X = proxy(2.0)
    assert found.surely
    assert 0.2 < found.explained < 0.8
    metric = metric_of(4, [], [found])
    along, across = metric.cost(torch.eye(4)).tolist()[1], metric.cost(torch.eye(4)).tolist()[0]
    assert along < 0.1 < 0.9 < across
    x = X.to_numpy(dtype=float)
    x = x - x.mean(0)
    q = metric.directions.numpy().astype(float)
    assert check_free(metric, X)[0] == pytest.approx(np.square(x @ q).sum() / np.square(x).sum(), rel=1e-4)


def test_chance_is_no_evidence():
    found, _ = proxy(0.0)
    assert not found.surely
    assert len(found.models) == 1  # without regularisation it would say even less
    assert found.explained < 0.01


def test_what_tells_most_surely_is_free_too_unless_that_is_too_much():
    """Column c tells sex for sure where it speaks, which is rare: a regularised regression hardly looks at it."""
    tables = []
    for seed in (0, 1):
        X, sex = table(seed)
        X["c"] = (X["c"] > 1.5) * np.where(sex == "m", 1.0, -1.0).astype(np.float32)
        tables += [X, sex]
    found = learn_proxy("sex", tables[0], tables[1], range(4), tables[2], tables[3])
    assert len(found.models) == 2
    rare = torch.eye(4)[2:3]
    costs = [metric_of(4, [], [replace(found, models=found.models[:k])]).cost(rare).item() for k in (1, 2)]
    assert costs[1] < 0.2 < 0.8 < costs[0]
    wide = pd.concat([tables[0] * 0.1, pd.DataFrame(np.eye(N)[:, :3] * 30.0)], axis=1)
    assert few_enough([found], [], tables[0])[0].models == found.models[:1]  # two of four columns
    padded = replace(
        found, models=tuple(replace(m, directions=np.r_[m.directions, np.zeros((3, 1))]) for m in found.models)
    )
    assert few_enough([padded], [], wide) == [padded]
    assert few_enough([padded], [4, 5, 6], wide)[0].models == padded.models[:1]  # what is free by itself does not count


def test_a_number_and_small_groups():
    X, _ = table(0)
    X_new, _ = table(1)
    age, new = (X["b"] * 10 + 40).astype(np.float32), (X_new["b"] * 10 + 40).astype(np.float32)
    found = learn_proxy("age", X, age, [1, 2], X_new, new)
    assert found.explained > 0.9
    race = pd.Series(["a"] * 500 + ["b"] * 499 + ["alone"])
    found = learn_proxy("race", X, race, range(4), X_new, race)
    assert {model.directions.shape[1] for model in found.models} == {1}  # a group of one teaches nothing


def test_one_large_group_teaches_nothing():
    assert teaches(pd.Series(["a"] * 50 + ["b"] * 50))
    assert teaches(pd.Series(np.arange(100.0)))
    assert teaches(pd.Series(["a"] * 90 + list("bcdefghijk")))  # the small ones together
    assert not teaches(pd.Series(["a"] * 99 + ["b"]))
    X, _ = table(0)
    with pytest.raises(TableError, match="has a single group of 20 rows or more"):
        learn_proxy("race", X, pd.Series(["a"] * 999 + ["b"]), range(4), X, pd.Series(["a"] * 1000))


def test_nothing_free_is_euclidean():
    assert metric_of(3, [], []).directions.shape == (3, 0)


def test_too_much_free_is_said_or_refused():
    X, _ = table(0, strength=0.0)
    shares = {k: check_free(metric_of(4, range(k), []), X) for k in range(3)}
    assert [share for share, _ in shares.values()] == pytest.approx(
        [0, 0.25, 0.5], abs=0.02
    )  # four columns of one spread
    assert [words is None for _, words in shares.values()] == [True, True, False]
    assert "% of the difference between people lies along" in shares[2][1]
    with pytest.raises(TableError, match="it makes nearly everybody alike") as caught:
        check_free(metric_of(4, range(4), []), X)
    assert caught.value.cure == "proxy"
