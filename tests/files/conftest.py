import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import FairMetric, SenSeIClassifier


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "job": rng.choice(["baker", "doctor", "clerk"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    frame.loc[3, "age"] = np.nan
    y = np.where(frame["age"].fillna(40) + 5 * (frame["sex"] == "m") > 42, "yes", "no")
    return frame, y


@pytest.fixture(scope="session")
def fitted():
    """A Pipeline on a mixed frame, and the frame."""
    frame, y = people()
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (OneHotEncoder(sparse_output=False), ["job", "sex"]),
    )
    metric = FairMetric(np.eye(6)[:, 4:])
    model = Pipeline([("encode", encode), ("model", SenSeIClassifier(metric, hidden=(8,), steps=15, random_state=0))])
    return model.fit(frame, y), frame
