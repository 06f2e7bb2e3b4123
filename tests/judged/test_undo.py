"""Encoded rows become what the user knows: units and categories."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand.judged import Judged


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


def test_rare_categories_are_put_together_and_told_apart_from_the_others():
    jobs, towns = ["a"] * 8 + ["b"] * 8 + ["c", "d", "e"], ["x"] * 9 + ["y"] * 8 + ["z", "w"]
    frame = pd.DataFrame({"pay": np.arange(19.0), "job": jobs, "town": towns})
    rare = make_pipeline(OneHotEncoder(sparse_output=False, min_frequency=4))
    encode = make_column_transformer((StandardScaler(), ["pay"]), (rare, ["job", "town"]))
    judged = Judged.of(make_pipeline(encode, LogisticRegression()).fit(frame, frame["pay"] > 9))
    back = judged.decode(judged.encode(frame).numpy(), frame)
    assert back["job"].tolist() == jobs[:16] + ["infrequent_sklearn"] * 3
    assert back["town"].tolist() == towns[:17] + ["infrequent_sklearn"] * 2
    assert judged.rare_category("job") in {"c", "d", "e"}
    assert judged.rare_category("town") in {"z", "w"}
    assert judged.rare_category("pay") == "another rare category"


def test_a_filler_of_gaps_inside_a_pipeline_leaves_people_as_they_are():
    frame = pd.DataFrame({"age": [20.0, 40.0, np.nan, 30.0], "pay": [1.0, 5.0, 3.0, 9.0]})
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(frame, [0, 1, 1, 0])
    judged = Judged.of(model)
    back = judged.decode(judged.encode(frame).numpy(), frame)
    np.testing.assert_allclose(back, [[20.0, 1.0], [40.0, 5.0], [30.0, 3.0], [30.0, 9.0]])
