"""What a column is, by its values; what identifies people is recognised, in any order and under any name."""

import numpy as np
import pandas as pd
import pytest

from evenhand.tables.errors import TableError
from evenhand.tables.kinds import infer, numbers_of

from .test_schema import table

N = 400
RNG = np.random.default_rng(0)
FIRST = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jon", "Kim", "Leo"]
LAST = ["Abel", "Byrne", "Cole", "Diaz", "Ellis", "Ford", "Gray", "Hill", "Ito", "Jones", "Khan", "Lopez"]


def kind(values, name="column", **options):
    return infer(pd.Series(values), name, **options)


def test_kinds():
    kinds = {name: infer(values, name, name in ("sex", "race")) for name, values in table().items()}
    assert [kinds[name].kind for name in ("age", "score", "odd")] == ["number"] * 3
    assert [kinds[name].kind for name in ("member", "sex")] == ["binary"] * 2
    assert [kinds[name].kind for name in ("race", "town")] == ["category"] * 2
    assert kinds["born"].kind == "date"
    assert [kinds[name].kind for name in ("id", "country", "empty")] == ["dropped"] * 3
    assert "identifier" in kinds["id"].note
    assert "constant" in kinds["country"].note
    assert "5 values that are not numbers" in kinds["odd"].note
    assert kinds["score"].note == "10 missing (3%)"


@pytest.mark.parametrize(
    ("name", "values", "note"),
    [
        ("ID", RNG.permutation(N) + 1, "counts the rows"),
        ("row", np.arange(N)[::-1], "counts the rows"),
        ("customerID", 9973 * RNG.permutation(10**4)[:N], "an identifier"),
        ("name", [f"{a} {b}" for a in FIRST for b in LAST] * 2 + FIRST * 9 + ["Zoe"] * 4, "names of people"),
        ("last", [b + s for b in LAST for s in ("", "son", "er", "i")] * 8 + LAST + ["Xu"] * 4, "names of people"),
        ("contact", [f"{a}.{i}@mail.org".lower() for i, a in enumerate(FIRST * 34)][:N], "e-mail addresses"),
        ("reach", [f"+49 30 {i:07d}" for i in 9973 * RNG.permutation(10**4)[:N] % 10**7], "telephone numbers"),
        ("phone", 10**9 + 7919 * RNG.permutation(10**5)[:N], "telephone numbers"),
        ("remark", [f"the person number {i} said that all was well" for i in range(N)], "free text"),
        ("home_address", [f"{i % 90} Main Street" for i in range(N)], "postal addresses"),
        ("page", [f"https://example.org/{i % 80}" for i in range(N)], "addresses on the internet"),
    ],
)
def test_what_identifies_people_is_left_out(name, values, note):
    found = kind(values, name)
    assert found.kind == "dropped"
    assert note in found.note
    assert found.personal
    assert kind(values, name, sensitive=True).kind != "dropped"
    assert kind(values, name, keep=True).kind in ("number", "category", "date")


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%d %b %Y", "%Y-%m-%d %H:%M:%S", "%b %d, %Y"])
def test_dates_as_text(form):
    days = pd.Series(pd.date_range("1999-01-05", periods=N, freq="3D").strftime(form))
    assert kind(days).kind == "date"
    assert kind(days, keep_dates=True).kind == "number"
    assert numbers_of(days, "day").notna().all()


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("income", RNG.normal(3e4, 9e3, N).round(), "number"),
        ("postcode", [f"{i % 40:05d}" for i in range(N)], "category"),
        ("school name", [f"School {i % 12}" for i in range(N)], "category"),
        ("length_of_stay", ["<1 week", "1 to 2 weeks", "a month", "more"] * 100, "category"),
        ("charge", [f"charge {i % 200}" for i in range(N)], "category"),
        ("amount", RNG.permutation(10**6)[:N] / 100, "number"),
    ],
)
def test_what_describes_people_is_kept(name, values, expected):
    assert kind(values, name).kind == expected


def test_sixty_percent_missing_is_said():
    values = np.where(RNG.random(N) < 0.6, np.nan, RNG.normal(size=N))
    assert kind(values).note.endswith("missing (" + f"{np.isnan(values).mean():.0%})")


def test_no_note_shows_a_value():
    for values in (["secret"] * N, [*map(str, RNG.normal(size=N - 5)), *["secret"] * 5]):
        assert "secret" not in kind(values).note


def test_text_in_a_column_of_numbers():
    with pytest.raises(TableError, match="holds text in 3 of 4 rows") as caught:
        numbers_of(pd.Series(["secret", "b", "c", "4"]), "age")
    assert "secret" not in str(caught.value)
    assert numbers_of(pd.Series([1.0] * 20 + ["?"]), "age").isna().sum() == 1


def test_codes_are_categories_and_survey_weights_no_features():
    codes = RNG.integers(0, 52, N)
    found = kind(codes, "detailed industry recode")
    assert found.kind == "category"
    assert found.note.startswith("52 categories, the 29 most frequent kept apart")
    assert kind(codes, "zipCode").kind == "category"
    assert kind(codes, "hours").kind == "number"
    assert kind(codes + 0.5, "code").kind == "number"  # 3.5 is no code
    for name in ("instance weight", "sample_weight", "fnlwgt", "PersonWeight"):
        assert "how many people a row stands for" in kind(RNG.normal(1700, 900, N), name).note
        assert kind(RNG.normal(1700, 900, N), name, keep=True).kind == "number"
    assert kind(RNG.normal(70, 9, N), "weight").kind == "number"  # of a person


def test_a_value_or_nothing_is_a_yes_or_no():
    found = kind(["yes", None, None, "yes"] * 100, "member")
    assert (found.kind, found.note) == ("binary", "one value or none: 200 missing (50%)")
    assert kind(["yes"] * N).kind == "dropped"
    assert kind([None] * N).kind == "dropped"


def test_numbers_that_are_none_count_as_missing():
    values = np.r_[RNG.normal(size=N), np.inf, -np.inf, 1e308, 1e36]
    assert kind(values).note == "3 values that are infinite or beyond 1e+37 count as missing"
    assert numbers_of(pd.Series(values), "x").isna().sum() == 3
    assert np.isfinite(numbers_of(pd.Series(values), "x").dropna().astype(np.float32)).all()


def test_names_of_few_people_and_of_members():
    """Twenty first names are names; so is what ends in name and holds two of them; a product is none."""
    assert kind(RNG.choice(FIRST, N), "first_name").note == "names of people"
    assert kind(RNG.choice(["yes", "no", "maybe"], N), "first").kind == "category"
    members = [f"{a} {b}" for a, b in zip(RNG.choice(FIRST, N), RNG.choice(LAST, N))]
    assert kind(members, "guarantor name").personal
    assert kind(RNG.choice([f"Brand {i}" for i in range(40)], N), "product name").kind == "category"
    assert (
        kind([f"{name}straße {i % 90}" for i, name in enumerate(RNG.choice(LAST, N))], "Straße").note
        == "postal addresses"
    )


def test_an_identifier_that_some_rows_lack():
    numbers = pd.Series(RNG.permutation(N).astype(float)).where(np.arange(N) % 2 == 0)
    assert (
        kind(numbers, "case").note
        == "200 different whole numbers, one for each of 200 rows that have one: an identifier"
    )
    assert kind(RNG.permutation(N), "case").note.endswith("one for each row: it counts the rows")


def test_most_rows_with_a_text_of_their_own():
    assert kind([f"t{i % 250}" for i in range(N)]).kind == "dropped"
    assert kind([f"t{i % 150}" for i in range(N)]).kind == "category"


def test_yes_no_or_not_known_is_a_category():
    flags = pd.Series(RNG.random(N) < 0.5).astype("boolean")
    assert kind(flags).kind == "binary"
    assert kind(flags.mask(np.arange(N) % 7 == 0)).kind == "category"  # three values, one of them


def test_durations_are_days():
    days = pd.Series(pd.to_timedelta(RNG.integers(0, 90, N) * 12, unit="h"))
    assert (kind(days).kind, kind(days).note) == ("number", "a duration, in days")
    np.testing.assert_allclose(numbers_of(days, "d"), days.dt.total_seconds() / 86_400)


def test_long_phrases_of_few_kinds_are_categories_and_free_text_is_not():
    phrases = ["works for the state or a town", "works for a company of his own", "has never worked for any pay yet"]
    assert kind([phrases[i % 3] for i in range(N)]).kind == "category"
    free = kind([f"{phrases[i % 3]} number {i // 2}" for i in range(N)])
    assert (free.kind, free.note) == ("dropped", "free text")


def test_codes_are_whole_numbers():
    whole = RNG.integers(1, 9, N).astype(float)
    assert kind(whole, "zip code").kind == "category"
    assert kind(np.where(np.arange(N) == 0, 1.5, whole), "zip code").kind == "number"


def test_names_from_eleven_on_are_names_of_people():
    assert kind([LAST[i % 10] for i in range(N)], "surname").kind == "category"
    assert kind([LAST[i % 11] for i in range(N)], "surname").note == "names of people"


def test_amounts_of_a_sensitive_column_are_groups():
    bands = ["$1,000", "$2,000", "$3,000"]
    assert kind([bands[i % 3] for i in range(N)]).kind == "number"
    assert kind([bands[i % 3] for i in range(N)], sensitive=True).kind == "category"


def test_a_column_beyond_all_numbers_is_left_out():
    left = kind(np.linspace(1e40, 2e40, N))
    assert left.kind == "dropped"
    assert "larger unit" in left.note
    assert kind([np.inf, *range(N)]).kind == "number"


def test_where_the_lines_are_drawn():
    """Between codes and identifiers, groups and quantities, hotlines and telephones, words and sentences."""
    assert kind(np.arange(N) * 7 % 1009, "zip code").kind != "category"  # each row its own: no code of many
    assert kind(np.arange(N) % 10, sensitive=True).kind == "category"
    assert kind(np.arange(N) % 11, sensitive=True).kind == "number"
    hotlines = ["+49 30 1234567", "+49 30 7654321", "+49 40 1111111"]
    assert kind([hotlines[i % 3] for i in range(N)]).kind == "category"
    assert kind([f"+49 30 {1234567 + 911 * i}" for i in range(N)]).note == "telephone numbers"
    assert kind([f"he said so once {i}" for i in range(N)]).note != "free text"
    assert kind([f"he said so just once {i}" for i in range(N)]).note == "free text"  # six words
    assert kind([["0123", "1234", "5678"][i % 3] for i in range(N)]).kind == "category"  # one zero in front is enough
    assert kind([["123", "1234", "5678"][i % 3] for i in range(N)]).kind == "number"
