"""Kinds are inferred once and applied again; what is dropped is dropped by name."""

import numpy as np
import pandas as pd
import pytest

from evenhand.tables.read import TableError
from evenhand.tables.schema import Schema, encode, encoded_names, make_encoder


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "score": rng.normal(size=n),
            "member": rng.choice([True, False], n),
            "sex": rng.choice(["f", "m"], n),
            "race": rng.choice(["a", "b", "c"], n),
            "town": rng.choice([f"town {i}" for i in range(100)], n),
            "born": pd.date_range("1970-01-01", periods=n).strftime("%d.%m.%Y"),
            "id": [f"P{i:05d}" for i in range(n)],
            "country": "here",
            "empty": np.nan,
            "odd": [*map(str, rng.normal(size=n - 5).round(2)), *["unknown"] * 5],
            "y": rng.choice(["no", "yes"], n),
        }
    )
    frame.loc[:9, "score"] = np.nan
    return frame


def test_kinds():
    kinds = {c.name: (c.kind, c.note) for c in Schema.infer(table(), "y", ["sex", "race"]).columns}
    assert [kinds[name][0] for name in ("age", "score", "odd")] == ["number"] * 3
    assert [kinds[name][0] for name in ("member", "sex")] == ["binary"] * 2
    assert [kinds[name][0] for name in ("race", "town")] == ["category"] * 2
    assert kinds["born"][0] == "date"
    assert [kinds[name][0] for name in ("id", "country", "empty")] == ["dropped"] * 3
    assert "identifier" in kinds["id"][1]
    assert "constant: 'here'" in kinds["country"][1]
    assert "5 values that are not numbers" in kinds["odd"][1]
    assert kinds["score"][1] == "10 missing"


def test_a_column_that_counts_the_rows_is_left_out_and_named():
    n = len(table())
    numbered = table().assign(customer=np.arange(n) + 10_000, back=np.arange(n)[::-1], mixed=np.arange(n) * 7 % n)
    kinds = {c.name: (c.kind, c.note) for c in Schema.infer(numbered, "y", ["sex"]).columns}
    assert (
        kinds["customer"] == kinds["back"] == ("dropped", f"{n} different whole numbers in order: it counts the rows")
    )
    assert kinds["mixed"][0] == "number"


def test_columns_are_ignored_when_asked():
    columns = Schema.infer(table(), "y", ["sex"], ignore=["town", "score"]).columns
    left_out = {c.name for c in columns if c.note == "you asked for it"}
    assert left_out == {"town", "score"}
    assert all(c.kind == "dropped" for c in columns if c.name in left_out)
    with pytest.raises(TableError, match="'sex' cannot be ignored: it is the sensitive column"):
        Schema.infer(table(), "y", ["sex"], ignore=["sex"])
    with pytest.raises(TableError, match="'y' cannot be ignored: it is the target"):
        Schema.infer(table(), "y", ["sex"], ignore=["y"])
    with pytest.raises(TableError, match="no column 'towns' for --ignore; did you mean 'town'"):
        Schema.infer(table(), "y", ["sex"], ignore=["towns"])


def test_codes_with_leading_zeros_are_categories():
    codes = table().assign(postcode=[f"{i % 40:05d}" for i in range(len(table()))])
    kinds = {c.name: c.kind for c in Schema.infer(codes, "y", ["sex"]).columns}
    assert kinds["postcode"] == "category"


def test_dates_are_kept_when_asked():
    schema = Schema.infer(table(), "y", ["sex"], keep_dates=True)
    days = schema.apply(table())["born"]
    assert days.notna().all()
    assert len(days.unique()) > 200


def test_round_trip_and_encoding():
    frame = table()
    schema = Schema.infer(frame, "y", ["sex", "race"])
    assert Schema.from_json(schema.to_json()) == schema
    clean = schema.apply(frame)
    encoder = make_encoder(schema).fit(clean)
    X = encode(encoder, clean)
    names = encoded_names(encoder)
    assert len(names) == X.shape[1]
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
    monkeypatch.setattr("evenhand.tables.schema.CHUNK", 37)
    pd.testing.assert_frame_equal(encode(encoder, clean), whole)


def test_the_same_category_as_number_and_text():
    frame = table().assign(code=np.tile([1.0, 2.0, 3.0], 100))
    schema = Schema.infer(frame, "y", ["code"])
    texts = schema.apply(frame.assign(code=frame["code"].astype(int).astype(str)))["code"]
    assert texts.tolist() == schema.apply(frame)["code"].tolist()


@pytest.mark.parametrize(
    ("change", "target", "sensitive", "message"),
    [
        ({}, "z", ["sex"], "no column 'z' for --target"),
        ({}, "y", ["gender"], "no column 'gender' for --sensitive"),
        ({}, "y", [], "name at least one sensitive column"),
        ({}, "y", ["y"], "both the target and sensitive"),
        ({"y": "one"}, "y", ["sex"], "has 1 distinct value"),
        ({}, "score", ["sex"], "distinct values, which is not a class"),
        ({}, "y", ["country"], "sensitive column 'country' cannot be used: constant"),
        ({}, "y", ["empty"], "every value is missing"),
    ],
)
def test_mistakes_are_named(change, target, sensitive, message):
    with pytest.raises(TableError, match=message):
        Schema.infer(table().assign(**change), target, sensitive)


def test_later_tables_are_checked():
    schema = Schema.infer(table(), "y", ["sex"])
    with pytest.raises(TableError, match=r"lacks 2 column.*'age', 'race'"):
        schema.apply(table().drop(columns=["age", "race"]))
    with pytest.raises(TableError, match="holds 'perhaps', which training did not have"):
        schema.codes(table().assign(y="perhaps"))
    with pytest.raises(TableError, match="no column 'y'"):
        schema.codes(table().drop(columns="y"))
    with pytest.raises(TableError, match="'age' held numbers in training but holds text such as 'old'"):
        schema.apply(table().assign(age="old"))
