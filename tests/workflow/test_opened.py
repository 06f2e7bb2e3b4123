"""A model file opened for use: tables as they come in, the table's own values out."""

import numpy as np
import pytest

from evenhand.files import ModelFileError, save
from evenhand.tables.errors import TableError
from evenhand.workflow import load_model


@pytest.fixture(scope="module")
def model(small):
    return load_model(small.folder.path / "stages" / "fair.evenhand")


def test_it_says_what_the_trained_one_says(model, small):
    part = small.task.parts["held_out"]
    raw = small.frame.loc[part.frame.index]
    np.testing.assert_allclose(model.predict_proba(raw), small.models["fair"].probabilities(part.frame))
    np.testing.assert_array_equal(model.predict(raw), small.models["fair"].codes(part.frame) + 1)  # 1 and 2
    np.testing.assert_array_equal(model.predict(raw[["town", "pay"]]), model.predict(raw))  # no more than it uses
    assert model.threshold == small.models["fair"].threshold


def test_numbers_as_text_missing_values_and_missing_columns(model, small):
    raw = small.frame.head(20)
    np.testing.assert_allclose(model.predict_proba(raw.assign(pay=raw["pay"].map(str))), model.predict_proba(raw))
    median = small.frame.loc[small.task.parts["train"].frame.index, "pay"].median()
    empty, filled = (model.predict_proba(raw.assign(pay=value)) for value in (np.nan, median))
    np.testing.assert_allclose(empty, filled, atol=1e-6)
    with pytest.raises(TableError, match="'town'"):
        model.predict(raw.drop(columns="town"))
    with pytest.raises(TableError, match="'pay' held numbers in training but holds text"):
        model.predict(raw.assign(pay="much"))


def test_people_outside_and_rows_it_has_seen(model, small):
    clean = model.schema.apply(small.frame)
    assert len(model.inside(clean)) == len(clean)
    assert len(model.inside(clean.assign(town="elsewhere"))) == 0
    assert model.seen.contains(clean.loc[small.task.parts["train"].frame.index]).all()
    assert not model.seen.contains(clean.dropna().assign(pay=lambda c: c["pay"] + 1000)).any()


def test_what_is_no_model_of_a_run(tmp_path, small):
    save(small.models["fair"].pipeline[-1], tmp_path / "bare.evenhand")
    with pytest.raises(ModelFileError, match="without the table it expects"):
        load_model(tmp_path / "bare.evenhand")
    save(small.models["fair"].pipeline, tmp_path / "odd.evenhand", {"schema": {"columns": 3}})
    with pytest.raises(ModelFileError, match="what it says about its table is damaged"):
        load_model(tmp_path / "odd.evenhand")
