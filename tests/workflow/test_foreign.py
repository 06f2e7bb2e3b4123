"""Somebody else's model: encoded and decoded again it says the same."""

import numpy as np
import pandas as pd
import pytest
import torch

from evenhand.tables.encoder import encode
from evenhand.tables.errors import TableError
from evenhand.workflow.foreign import Foreign, make_ready

N = 300


def people(seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], N)
    return pd.DataFrame(
        {
            "pay": rng.normal(30, 8, N) + 6 * (sex == "m"),
            "code": rng.choice([1, 2, 3], N),
            "member": rng.choice([True, False], N),
            "sex": sex,
            "job": rng.choice(["a", "b", "c"], N),
        }
    )


def by_everything(frame):
    """Takes the cells as they were: numbers, codes, booleans and texts."""
    assert set(frame["member"].unique()) <= {True, False}
    z = (frame["pay"] - 30) / 8 + (frame["job"] == "b") - (frame["code"] == 2) + 0.5 * frame["member"].astype(float)
    return 1 / (1 + np.exp(-z.to_numpy(dtype=float)))


def test_decoding_is_the_inverse_of_encoding():
    frame = people()
    ready = make_ready(Foreign("mine", by_everything), frame, ["sex"])
    encoded = encode(ready.view.encoder, ready.clean[list(ready.columns)])
    p = ready.pipeline[-1].predict_proba(encoded.to_numpy())
    assert np.allclose(p[:, 1], by_everything(frame), atol=1e-5)
    assert ready.view.inside is not None


def test_a_number_with_a_unit_reaches_the_model_as_the_text_it_knows():
    frame = people().assign(term=np.random.default_rng(1).choice(["36 months", "48 months", "60 months"], N))

    def by_term(given):
        assert set(given["term"].unique()) <= {"36 months", "48 months", "60 months"}
        return 0.2 + 0.5 * (given["term"] == "60 months").to_numpy(dtype=float)

    ready = make_ready(Foreign("mine", by_term), frame, ["sex"])
    np.testing.assert_allclose(ready.probabilities(ready.clean)[:, 1], by_term(frame), atol=1e-6)


def test_a_seen_column_is_free_and_of_a_hidden_one_what_predicts_it():
    frame = people()
    seen = make_ready(Foreign("mine", by_everything), frame, ["sex"])
    assert seen.view.schema.sensitive == ("sex",)
    assert seen.proxies == ()
    assert seen.view.fair_metric.directions.shape[1] == 1

    class Hidden:
        feature_names_in_ = ("pay", "job")

        def predict_proba(self, given):
            assert list(given.columns) == ["pay", "job"]
            p = 1 / (1 + np.exp(-(given["pay"].to_numpy(dtype=float) - 30)))
            return np.stack([1 - p, p], 1)

    hidden = make_ready(Foreign("blind", Hidden()), frame, ["sex"])
    assert [proxy.name for proxy in hidden.proxies] == ["sex"]  # pay gives it away
    assert list(hidden.columns) == ["pay", "job"]
    assert "sex" in hidden.clean.columns


def test_torch_modules_take_the_named_numbers():
    frame = people()[["pay", "code"]]
    net = torch.nn.Linear(2, 2)
    p = Foreign("net", net, ("code", "pay")).probabilities(frame)
    expected = torch.softmax(net(torch.tensor(frame[["code", "pay"]].to_numpy(), dtype=torch.float32)), 1)
    assert np.allclose(p, expected.detach(), atol=1e-6)
    with pytest.raises(TableError, match="takes 2 numbers, but the table has 1 columns") as caught:
        Foreign("net", net, ("pay",)).probabilities(frame)
    assert caught.value.cure == "columns"


def test_what_gives_no_probabilities_is_refused():
    with pytest.raises(TableError, match=r"must give probabilities.*from -6 to 7"):
        Foreign("odd", lambda frame: np.full(len(frame), 7.0)).probabilities(people())


def test_margins_decisions_and_quantities():
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.svm import LinearSVC

    frame = people()
    X, y = frame[["pay", "code"]], np.where(frame["pay"] > 31, "yes", "no")
    margins = LinearSVC().fit(X, y)
    p = Foreign("svc", margins).probabilities(frame)
    assert np.allclose(p[:, 1], 1 / (1 + np.exp(-margins.decision_function(X))))

    class Decides:  # a classifier that gives nothing but its decision
        classes_ = np.array(["no", "yes"])
        feature_names_in_ = ("pay", "code")

        def predict(self, given):
            return np.where(given["pay"] > 31, "yes", "no")

    assert (Foreign("d", Decides()).probabilities(frame) == np.stack([y == "no", y == "yes"], 1)).all()

    line = LinearRegression().fit(X, 3 * frame["pay"] - frame["code"])
    assert Foreign("l", line).regression
    assert not Foreign("c", LogisticRegression().fit(X, y)).regression
    ready = make_ready(Foreign("l", line), frame, ["sex"])
    assert np.allclose(ready.codes(ready.clean), line.predict(X), atol=1e-3)
    said = Foreign("f", lambda given: given["pay"].to_numpy() * 2, ("pay",), quantities=True)
    assert np.allclose(said.predictions(frame), 2 * frame["pay"])
    with pytest.raises(TableError, match="must give a number for each of the 300 people"):
        Foreign("f", lambda given: given["pay"].to_numpy()[:5], ("pay",), quantities=True).predictions(frame)


def test_a_quantity_that_looks_like_no_probability_names_the_cure():
    with pytest.raises(TableError, match="If it predicts a quantity, say so") as caught:
        Foreign("f", lambda given: given["pay"].to_numpy() * 2, ("pay",)).probabilities(people())
    assert caught.value.cure == "regression"


def test_numbers_that_are_groups_stay_numbers():
    """Boosted trees refuse columns of objects: 0 and 1, 1 to 3, True and False come back as what they were."""
    frame = people().assign(sex=lambda f: (f["sex"] == "m").astype(int))
    seen = []

    def typed(given):
        seen.append(given.dtypes.astype(str).to_dict())
        return np.full(len(given), 0.5)

    ready = make_ready(Foreign("m", typed, ("sex", "code", "member", "job")), frame, ["sex"])
    ready.probabilities(ready.clean)
    assert seen[-1]["sex"] == "int64"
    assert seen[-1]["member"] == "bool"
    assert seen[-1]["code"] in ("int64", "float64")
