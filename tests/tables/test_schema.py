"""Kinds are inferred once and applied again; what is dropped is dropped by name."""

import numpy as np
import pandas as pd
import pytest

from evenhand.tables.errors import TableError
from evenhand.tables.schema import Schema


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


def test_columns_are_ignored_when_asked():
    columns = Schema.infer(table(), "y", ["sex"], ignore=["town", "score"]).columns
    left_out = {c.name for c in columns if c.note == "you asked for it"}
    assert left_out == {"town", "score"}
    assert all(c.kind == "dropped" for c in columns if c.name in left_out)
    with pytest.raises(TableError, match="'sex' cannot be ignored: it is the sensitive column"):
        Schema.infer(table(), "y", ["sex"], ignore=["sex"])
    with pytest.raises(TableError, match="'y' cannot be ignored: it is the target"):
        Schema.infer(table(), "y", ["sex"], ignore=["y"])
    with pytest.raises(TableError, match="no column 'towns' for the columns to ignore; did you mean 'town'"):
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


def test_round_trip():
    frame = table()
    schema = Schema.infer(frame, "y", ["sex", "race"])
    assert Schema.from_json(schema.to_json()) == schema


def test_the_same_category_as_number_and_text():
    frame = table().assign(code=np.tile([1.0, 2.0, 3.0], 100))
    schema = Schema.infer(frame, "y", ["code"], see_sensitive=True)
    texts = schema.apply(frame.assign(code=frame["code"].astype(int).astype(str)))["code"]
    assert texts.tolist() == schema.apply(frame)["code"].tolist()


@pytest.mark.parametrize(
    ("change", "target", "sensitive", "message"),
    [
        ({}, "z", ["sex"], "no column 'z' for the target"),
        ({}, "y", ["gender"], "no column 'gender' for the sensitive columns"),
        ({}, "y", [], "name at least one sensitive column"),
        ({}, "y", ["y"], "both the target and sensitive"),
        ({"y": "one"}, "y", ["sex"], "has 1 distinct value"),
        ({}, "town", ["sex"], "distinct values, which is not a class"),
        ({}, "y", ["country"], "sensitive column 'country' cannot be used: constant"),
        ({}, "y", ["empty"], "every value is missing"),
    ],
)
def test_mistakes_are_named(change, target, sensitive, message):
    with pytest.raises(TableError, match=message):
        Schema.infer(table().assign(**change), target, sensitive)


def test_nothing_to_predict_from():
    bare = pd.DataFrame({"sex": ["f", "m"] * 10, "y": ["no", "no", "yes", "yes"] * 5})
    with pytest.raises(
        TableError, match="no column beside the target and the sensitive ones; there is nothing"
    ) as told:
        Schema.infer(bare, "y", ["sex"])
    assert told.value.cure is None
    with pytest.raises(TableError, match=r"no usable column is left.*\(age: constant") as told:
        Schema.infer(bare.assign(age=40), "y", ["sex"])
    assert told.value.cure == "keep"


def test_later_tables_are_checked():
    schema = Schema.infer(table(), "y", ["sex"])
    with pytest.raises(TableError, match=r"lacks 2 column.*'age', 'race'"):
        schema.apply(table().drop(columns=["age", "race", "sex"]))
    with pytest.raises(TableError, match="holds 'perhaps', which training did not have"):
        schema.codes(table().assign(y="perhaps"))
    with pytest.raises(TableError, match="no column 'y'"):
        schema.codes(table().drop(columns="y"))
    with pytest.raises(TableError, match="'age' held numbers in training but holds text in 300 of 300 rows"):
        schema.apply(table().assign(age="old"))
    with pytest.raises(TableError, match="holds text in 40 of 300 rows"):
        schema.apply(table().assign(age=["old"] * 40 + [30] * 260))


def test_sensitive_columns_are_no_features_unless_asked():
    frame = table()
    schema = Schema.infer(frame, "y", ["sex", "race"])
    used = {c.name for c in schema.used}
    assert not used & {"sex", "race"}
    assert {"sex", "race"} <= set(schema.apply_known(frame).columns)
    schema.apply(frame.drop(columns=["sex", "race"]))  # predicting needs neither
    assert {c.name for c in schema.seeing(True).used} == used | {"sex", "race"}


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([1, 2], (1, 2)),
        ([1.0, 2.0, None], (1, 2)),
        ([True, False], (False, True)),
        (["b", "a"], ("a", "b")),
        ([0.5, 1.5], (0.5, 1.5)),
        (["1", "2"], ("1", "2")),
    ],
)
def test_classes_keep_their_own_values(values, classes):
    frame = table().assign(y=pd.Series((values * 300)[:300]))
    schema = Schema.infer(frame, "y", ["sex"])
    assert schema.classes == classes
    assert [type(c) for c in schema.classes] == [type(c) for c in classes]
    known = frame.dropna(subset=["y"])
    own = schema.own(schema.codes(known))
    assert (own == known["y"].to_numpy()).all()
    assert sorted(np.unique(own).tolist()) == list(classes)  # as an estimator will order them
    assert Schema.from_json(schema.to_json()).classes == classes


def test_a_number_of_many_values_is_a_quantity():
    frame = table()
    schema = Schema.infer(frame, "score", ["sex"])
    assert schema.regression
    assert np.allclose(schema.truth(frame.dropna()), frame.dropna()["score"])
    assert Schema.infer(table().assign(y=[1, 2, 3] * 100), "y", ["sex"], regression=True).regression
    with pytest.raises(TableError, match="holds no numbers"):
        Schema.infer(frame, "y", ["sex"], regression=True)


def test_twenty_values_are_classes_and_more_are_not():
    for n, classes, quantity in ((20, 20, False), (21, 0, True)):
        schema = Schema.infer(table().assign(y=np.arange(300) % n), "y", ["sex"])
        assert (len(schema.classes), schema.regression) == (classes, quantity)
    text = table().assign(y=[f"c{i % 20}" for i in range(300)])
    assert len(Schema.infer(text, "y", ["sex"]).classes) == 20
    with pytest.raises(TableError, match="21 distinct values, which is not a class"):
        Schema.infer(text.assign(y=[f"c{i % 21}" for i in range(300)]), "y", ["sex"])


def test_kinds_by_name():
    schema = Schema.infer(table(), "y", ["sex"])
    kinds = {"age": "number", "race": "category", "member": "binary", "sex": "binary", "id": "dropped"}
    assert {name: schema.kind(name) for name in kinds} == kinds


@pytest.mark.parametrize("classes", [[1, None], ["a", ["b"]], [{}], "ab", {"a": 1}])
def test_classes_of_a_file_are_plain_values(classes):
    with pytest.raises(TypeError, match="texts, numbers or booleans"):
        Schema.from_json({**Schema.infer(table(), "y", ["sex"]).to_json(), "classes": classes})


def test_left_out_for_a_reason():
    schema = Schema.infer(table(), "y", ["sex"]).without({"age": "it leaks"})
    assert {c.name: c.note for c in schema.columns if c.kind == "dropped"}["age"] == "it leaks"
    everything = {c.name: "gone" for c in schema.used}
    with pytest.raises(TableError, match="no usable column is left") as caught:
        schema.without(everything)
    assert caught.value.cure == "keep"


def test_a_target_of_money_is_a_quantity():
    frame = table().assign(y=[f"${1000 + 37 * i:,}" for i in range(300)])
    schema = Schema.infer(frame, "y", ["sex"])
    assert schema.regression
    np.testing.assert_array_equal(schema.truth(frame), [1000 + 37 * i for i in range(300)])
    again = Schema.from_json(Schema.infer(table().assign(pay=frame["y"]), "y", ["sex"]).to_json())
    assert next(c.decimal for c in again.columns if c.name == "pay") == "."
    assert again.apply(table().assign(pay="$2,500"))["pay"].tolist() == [2500.0] * 300


def test_names_of_a_kind():
    schema = Schema.infer(table(), "y", ["sex"])
    assert set(schema.names("number")) == {column.name for column in schema.used if column.kind == "number"}
    assert {"age", "score"} <= set(schema.names("number"))
    assert "town" in schema.names("category")
    assert "age" not in schema.names("category")
    assert "sex" not in schema.names("binary")  # judges, and is no feature
