"""Numbers as people write them become numbers; what only looks like one does not."""

import numpy as np
import pandas as pd
import pytest

from evenhand.tables import TableError
from evenhand.tables.amounts import amounts, decimal_of, unit_of, written_amounts
from evenhand.tables.kinds import infer, numbers_of
from evenhand.tables.schema import Schema


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("$1,234.50", ".", 1234.5), ("12.5 %", ".", 12.5), ("-$3", ".", -3.0), ("$-3", ".", -3.0),
        ("($400)", ".", -400.0), ("1.234,50 €", ",", 1234.5), ("1 234,5 €", ",", 1234.5), ("USD 3,000", ".", 3000.0),
        ("1'234.5", ".", 1234.5), ("0.125%", ".", 0.125), (" 7 ", ".", 7.0), ("1.234 €", ",", 1234.0),
    ],
)  # fmt: skip
def test_what_is_a_number(text, decimal, value):
    assert amounts(pd.Series([text]), decimal).tolist() == [value]


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "",
        "123 456 789",
        "10.123.234.123",
        "2020-01-02",
        "1,2,3",
        "12k",
        "12,34.5",
        "($400",
        "25 - 45",
        "1,23",
        "$",
    ],
)
def test_what_is_none(text):
    assert np.isnan(amounts(pd.Series([text]), ".")).all()


def test_dots_alone_are_no_thousands():
    assert np.isnan(amounts(pd.Series(["10.123.234.123", "030.123.456"]), ",")).all()


@pytest.mark.parametrize(
    ("texts", "sign"),
    [
        (["1.234 €", "12.500 €"], ","),
        (["1,234", "12,500"], "."),
        (["0,5 %", "12,5 %"], ","),
        (["3.5%", "12.125%"], "."),
    ],
)
def test_the_decimal_sign(texts, sign):
    assert decimal_of(pd.Series(texts)) == sign


def test_plain_numbers_and_categories_are_not_dressed():
    assert not written_amounts(pd.Series(["1", "2", "30"] * 9))
    assert not written_amounts(pd.Series(["< 1 year", "10+ years"] * 9))
    assert written_amounts(pd.Series([f"${i},000" for i in range(1, 30)] + ["unknown"]))


def test_a_column_of_money_is_a_number_and_its_sign_is_kept():
    rng = np.random.default_rng(0)
    true = rng.gamma(4, 12_000, 300).round(2)
    texts = pd.Series([f"{value:,.2f} €".translate(str.maketrans(",.", ".,")) for value in true])
    column = infer(texts, "pay")
    assert (column.kind, column.decimal) == ("number", ",")
    assert "written as text" in column.note
    np.testing.assert_allclose(numbers_of(texts, "pay", column.decimal), true)
    alone = numbers_of(pd.Series(["1.234", 5.5, None]), "pay", column.decimal)  # a thousand, as training had it
    np.testing.assert_array_equal(alone, [1234.0, 5.5, np.nan])


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["72 kg", "81.5 kg", "60 kg"], "kg"), (["37.2°C", "36.9°C", "38.0°C"], "°C"), (["180cm", "165cm"], "cm"),
        (["36 months", "60 months", " 48 months "], "months"), (["5 mg/dL", "7 mg/dL"], "mg/dL"),
        (["72 kg", "160 lbs"], ""), (["12A", "13A", "14A"], ""), (["1 year", "2 years"], ""), (["12", "13"], ""),
        (["18-25 years", "26-35 years"], ""), (["2nd", "3rd"], ""), (["Main 5", "Main 7"], ""), (["10+ years"], ""),
        (["-3 m", "4 m"], "m"),
    ],
)  # fmt: skip
def test_the_unit_of_a_column(texts, unit):
    assert unit_of(pd.Series(texts)) == unit


def test_numbers_with_a_unit_are_numbers_and_other_units_are_missing():
    weight = np.random.default_rng(0).normal(70, 9, 300).round(1)
    frame = pd.DataFrame({"weight": [f"{w} kg" for w in weight], "sex": ["f", "m"] * 150, "y": [0, 1, 1] * 100})
    schema = Schema.from_json(Schema.infer(frame, "y", ["sex"]).to_json())
    assert schema.kind("weight") == "number"
    np.testing.assert_allclose(schema.apply(frame)["weight"], weight, rtol=1e-6)
    bare = pd.DataFrame({"weight": ["71", "71 kg", "157 lbs", *frame["weight"][:40]]})
    assert schema.apply(bare)["weight"].tolist()[:2] == [71.0, 71.0]
    assert schema.imputed(bare) == {"weight": 1}
    with pytest.raises(TableError, match="held numbers in training but holds text in 2 of 2"):
        schema.apply(pd.DataFrame({"weight": ["157 lbs", "160 lbs"]}))
    comma = pd.Series([f"{w} kg".replace(".", ",") for w in weight])
    column = infer(comma, "weight")
    np.testing.assert_allclose(numbers_of(comma, "weight", column.decimal, column.unit), weight)
    assert infer(frame["weight"], "weight", sensitive=True).kind == "category"
