"""Somebody else's model before a certificate: features by column, metric and domain in the model's own units."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand.certify.certify import certify
from evenhand.output_distances import squared_error
from evenhand.tables.errors import TableError
from evenhand.workflow.foreign import Foreign
from evenhand.workflow.provable import make_provable

N = 400


def people(seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], N)
    return pd.DataFrame(
        {
            "pay": rng.uniform(20_000, 60_000, N) + 20_000 * (sex == "m"),
            "age": rng.integers(18, 70, N),
            "sex": sex,
            "job": rng.choice(["a", "b", "c"], N),
        }
    )


def prepared(frame):
    columns = make_column_transformer(
        (StandardScaler(), ["pay", "age"]), (OneHotEncoder(drop="if_binary"), ["sex", "job"])
    )
    model = make_pipeline(columns, LogisticRegression())
    return model.fit(frame[["pay", "age", "sex", "job"]], (frame["pay"] > 45_000) ^ (frame["job"] == "a"))


def test_features_of_a_pipeline_are_found_by_altering_columns():
    frame = people()
    ready = make_provable(Foreign("m", prepared(frame)), people(1), people(2), ["sex"])
    assert ready.free == ("sex",)
    assert ready.box.blocks == ((3, 4, 5),)  # the jobs
    assert ready.box.binary == (2,)
    basis = ready.fair_metric.directions
    assert basis.abs().argmax(0).tolist() == [2]
    one = torch.zeros(1, 6, dtype=torch.float64)
    other = one.clone()
    other[0, 2] = 1.0
    assert float(ready.fair_metric(one, other)) == pytest.approx(0, abs=1e-12)
    sd = make_provable(Foreign("m", prepared(frame)), people(1), people(2), ["sex"]).tuning["age"].std(ddof=0)
    scaler = prepared(frame)[0].named_transformers_["standardscaler"]
    other = one.clone()
    other[0, 1] = sd / scaler.scale_[1]  # a standard deviation of the tuning people
    assert float(ready.fair_metric(one, other)) == pytest.approx(1.0, rel=1e-6)


def test_a_closed_form_in_raw_units():
    """h = a sex + c pay: sex is free and has two values, so R(h) = (|a| + |c| sd sqrt(eps))^2 but for the few at the
    ends of the range."""
    frame = people().assign(sex=lambda f: (f["sex"] == "m").astype(float))
    a, c, eps = 2.0, 1e-4, 0.01
    line = LinearRegression().fit(frame[["pay", "sex"]], a * frame["sex"] + c * frame["pay"])
    held_out, tuning = (people(s).assign(sex=lambda f: (f["sex"] == "m").astype(float)) for s in (1, 2))
    ready = make_provable(Foreign("l", line), held_out, tuning, ["sex"])
    found = certify(
        ready.model, ready.people, ready.fair_metric, eps, ready.box, ready.tuning, output_distance=squared_error,
        distinct_people=True,
    )  # fmt: skip
    exact = (a + c * tuning["pay"].std(ddof=0) * eps**0.5) ** 2
    assert found.r_low <= 1.0001 * exact
    assert 0.97 * exact <= found.r_high <= 1.03 * exact


def test_what_the_model_does_not_take_is_judged_by_what_predicts_it():
    frame = people()
    numbers = LogisticRegression(max_iter=1000).fit(frame[["pay", "age"]], frame["pay"] > 45_000)
    hidden = make_provable(Foreign("m", numbers), people(1), people(2), ["sex"])
    assert (hidden.free, [one.name for one in hidden.proxies]) == ((), ["sex"])
    direction = hidden.fair_metric.directions[:, 0] / torch.tensor(people(2)[["pay", "age"]].std().to_numpy())
    assert direction.abs().argmax() == 0  # pay gives sex away, age does not
    plain = make_provable(Foreign("m", numbers), people(1), people(2), ["sex"], proxy=False)
    assert plain.fair_metric.directions.shape[1] == 0


def test_who_is_left_out():
    frame = people()
    numbers = LogisticRegression(max_iter=1000).fit(frame[["pay", "age"]], frame["pay"] > 45_000)
    some = people(1)
    some.loc[0, "pay"] = np.nan
    some.loc[1, "pay"] = 1e9
    ready = make_provable(
        Foreign("m", numbers), some, people(2).assign(pay=lambda f: f["pay"].clip(0, 90_000)), ["sex"]
    )
    assert {0, 1}.isdisjoint(ready.people.index)
    assert ready.left_out == N - len(ready.people) >= 2


def test_a_table_that_it_cannot_read():
    with pytest.raises(TableError, match="must be numbers") as caught:
        make_provable(Foreign("m", torch.nn.Linear(4, 1)), people(1), people(2), ["sex"])
    assert caught.value.cure == "columns"
    empty = people(2).assign(pay=np.nan)
    with pytest.raises(TableError, match="only 0 tuning people"):
        make_provable(Foreign("m", torch.nn.Linear(2, 1), ("pay", "age")), people(1), empty, ["sex"])
