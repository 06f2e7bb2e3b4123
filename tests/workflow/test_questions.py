"""Counting decisions that change, against counts by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from evenhand.tables.schema import Schema
from evenhand.workflow.questions import Flip, flips, group_gaps, scores, wilson


class BySex:
    """Decides by sex for people under 30, by age for the others."""

    def predict_proba(self, frame):
        p = np.where(frame["age"] < 30, (frame["sex"] == "m") * 0.8 + 0.1, (frame["age"] > 50) * 0.8 + 0.1)
        return np.stack([1 - p, p], axis=1).astype(float)

    def predict(self, frame):
        return self.predict_proba(frame).argmax(1)


def test_scores():
    frame = pd.DataFrame({"age": np.array([20, 25, 40, 60] * 25, dtype=np.float32), "sex": ["f", "m", "m", "f"] * 25})
    y = BySex().predict(frame)
    found = scores(BySex(), frame, y, {"sex": frame["sex"].to_numpy()}, [Flip("sex", {"sex": ["f", "m"]})])
    assert found["balanced_accuracy"] == 1
    assert found["changed"]["sex"]["share"] == 0.5  # those under 30
    assert found["changed"]["sex"]["max_probability_change"] == pytest.approx(0.8)
    assert found["gaps"]["sex"]["rms"] == 0


def test_questions_of_a_schema():
    n = 60
    frame = pd.DataFrame({"age": np.arange(n), "sex": ["f", "m"] * 30, "race": ["a", "b", "c"] * 20, "y": [0, 1] * 30})
    frame["pay"] = np.random.default_rng(0).normal(size=n)
    schema = Schema.infer(frame, "y", ["sex", "race", "age"])
    questions = {q.name: q for q in flips(schema, schema.apply(frame))}
    assert set(questions) == {"sex", "race", "age", "sex or race or age"}
    assert len(questions["age"].changes["age"]) == 3
    versions = list(questions["sex or race or age"].versions(schema.apply(frame)))
    assert len(versions) == 1 + 2 * 3 * 3
    assert versions[5].dtypes.equals(versions[0].dtypes)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (123, 1000)])
def test_wilson_is_scipys(k, n):
    expected = binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k, n) == pytest.approx([expected.low, expected.high], abs=1e-6)


def test_gaps_by_hand():
    y, p = np.array([1, 1, 1, 1, 0, 0]), np.array([1, 0, 1, 1, 0, 0])
    found = group_gaps(y, p, np.array(["a", "a", "b", "b", "a", "b"]))
    assert found["per_class"] == {"0": 0.0, "1": 0.5}
    assert {(r["class"], r["group"]): (r["rate"], r["n"]) for r in found["rates"]}[(1, "a")] == (0.5, 2)
