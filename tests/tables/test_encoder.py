"""Columns become numbers, and each number knows its column."""

import numpy as np
import pandas as pd

from evenhand.tables.encoder import encode, encoded_names, make_encoder, positions
from evenhand.tables.schema import Schema

from .test_schema import table


def test_each_feature_is_what_its_name_says():
    frame = table()
    schema = Schema.infer(frame, "y", ["sex", "race"], see_sensitive=True)
    clean = schema.apply(frame)
    encoder = make_encoder(schema).fit(clean)
    X = encode(encoder, clean)
    names = encoded_names(encoder)
    assert len(names) == X.shape[1]
    assert positions(encoder)["race"] == [i for i, (name, _) in enumerate(names) if name == "race"]
    assert X.dtypes.eq(np.float32).all()
    assert np.isfinite(X.to_numpy()).all()
    assert sum(name == "sex" for name, _ in names) == 1
    assert [value for name, value in names if name == "race"] == ["a", "b", "c"]
    towns = [value for name, value in names if name == "town"]
    assert len(towns) == 30
    assert towns[-1] == "(rare)"
    for name, value in names:  # each encoded category is the indicator it says it is
        if name == "race":
            assert np.array_equal(X.iloc[:, names.index((name, value))] == 1, clean["race"] == value)


def test_numbers_beyond_the_training_range_are_clipped():
    frame = table()
    schema = Schema.infer(frame, "y", ["sex"])
    encoder = make_encoder(schema).fit(schema.apply(frame))
    wild = frame.assign(age=10_000, town="never seen")
    X, inside = encode(encoder, schema.apply(wild)), encode(encoder, schema.apply(frame))
    assert np.allclose(X.iloc[:, 0], inside.iloc[:, 0].max())


def test_chunks_give_the_same(monkeypatch):
    frame = table()
    schema = Schema.infer(frame, "y", ["sex"])
    clean = schema.apply(frame)
    encoder = make_encoder(schema).fit(clean)
    whole = encode(encoder, clean)
    monkeypatch.setattr("evenhand.tables.encoder.CHUNK", 37)
    pd.testing.assert_frame_equal(encode(encoder, clean), whole)
