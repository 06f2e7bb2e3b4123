"""Anything can be audited; what the preprocessing did is undone for the reader."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from evenhand.judged import Judged


def test_every_kind_of_model_gives_outputs_in_float64():
    x = torch.tensor([[0.5, 1.0], [2.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    y = np.array([0, 1, 0])
    logistic = LogisticRegression().fit(x.numpy(), y)
    linear = LinearRegression().fit(x.numpy(), y)
    for model, width in [
        (nn.Linear(2, 3), 3),
        (logistic, 2),
        (linear, 1),
        (lambda rows: rows.sum(1), 1),
        (lambda rows: np.asarray(rows)[:, :1], 1),
    ]:
        h = Judged.of(model).outputs(x)
        assert h.shape == (3, width)
        assert h.dtype == torch.float64
    judged = Judged.of(logistic)
    torch.testing.assert_close(judged.outputs(x).softmax(1).numpy(), logistic.predict_proba(x.numpy()))
    assert (judged.predictions(x) == logistic.predict(x.numpy())).all()


def test_a_pipeline_is_undone():
    frame = pd.DataFrame({"age": [20.0, 40.0, 60.0], "job": ["a", "b", "a"], "flag": [0, 1, 1]})
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job"]), (StandardScaler(), ["age"]), ("passthrough", ["flag"])
    )
    model = make_pipeline(encode, LogisticRegression()).fit(frame, [0, 1, 1])
    judged = Judged.of(model)
    encoded = judged.encode(frame)
    back = judged.decode(encoded.numpy(), frame)
    assert list(back.columns) == ["age", "job", "flag"]
    assert list(back["job"]) == ["a", "b", "a"]
    np.testing.assert_allclose(back["age"], frame["age"])
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[["age", "flag"]], [0, 1, 1])
    back = Judged.of(scaled).decode(Judged.of(scaled).encode(frame[["age", "flag"]]).numpy(), frame)
    np.testing.assert_allclose(back["age"], frame["age"])


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="one output a row"):
        Judged.of(lambda rows: np.zeros(1)).outputs(torch.zeros(3, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match="1 of 2 rows hold NaN"):
        Judged.of(nn.Linear(1, 1)).encode(np.array([[1.0], [np.nan]]))
