"""A model of a run gives decisions and calibrated probabilities, chunk by chunk."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline

from evenhand.workflow import trained
from evenhand.workflow.trained import in_chunks


def test_decisions_are_made_at_the_threshold(small):
    for model in small.models.values():
        frame = small.task.parts["held_out"].frame
        p = model.probabilities(frame)
        np.testing.assert_allclose(p.sum(1), 1)
        np.testing.assert_array_equal(model.codes(frame), p[:, 1] >= model.threshold)


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_a_boosted_model_decides_where_it_is_judged(small, threshold):
    """Calibrated probabilities, decisions from the stated one on (or the class's share), and the same decisions by the
    score that the audit looks at."""
    view, validation = small.models["fair"].view, small.task.parts["validation"]
    frame = small.task.parts["held_out"].frame
    forest = HistGradientBoostingClassifier(class_weight={0: 1, 1: 9}, max_iter=15, random_state=0)
    forest.fit(view.encode(validation), validation.y)
    pipeline = Pipeline([("encode", view.encoder), ("model", forest)])
    model = trained.Trees.calibrated("boosted", pipeline, view, validation, threshold)
    p = model.probabilities(frame)
    assert abs(model.probabilities(validation.frame)[:, 1].mean() - validation.y.mean()) < 0.05
    assert model.threshold == pytest.approx(threshold if threshold else validation.y.mean(), abs=0.01)
    np.testing.assert_array_equal(model.codes(frame), p[:, 1] >= model.threshold)
    shift = model.offset[1] - model.offset[0]
    assert 1 / (1 + np.exp(-model.slope * model.score_threshold - shift)) == pytest.approx(model.threshold)
    raw = np.log(pipeline.predict_proba(frame[view.columns]))
    np.testing.assert_array_equal(model.codes(frame), raw[:, 1] - raw[:, 0] >= model.score_threshold)


def test_probabilities_are_calibrated_where_they_were_fitted(small):
    part = small.task.parts["validation"]
    p = small.models["fair"].probabilities(part.frame)[:, 1]
    assert abs(p.mean() - part.y.mean()) < 0.01  # the offset makes the means equal, but for a light prior


def test_chunks(monkeypatch):
    monkeypatch.setattr(trained, "CHUNK", 3)
    frame, seen = pd.DataFrame({"a": np.arange(8)}), []

    def double(part):
        seen.append(len(part))
        return 2 * part["a"].to_numpy()

    np.testing.assert_array_equal(in_chunks(double, frame), 2 * np.arange(8))
    assert seen == [3, 3, 2]
    assert len(in_chunks(double, frame.iloc[:0])) == 0
