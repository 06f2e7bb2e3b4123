import numpy as np
import pytest

from evenhand.text.levels import groups_of, learn_levels

RNG = np.random.default_rng(0)
SEX = np.where(RNG.random(600) < 0.5, "f", "m")
X = RNG.normal(size=(600, 5)).astype(np.float32)
X[:, 2] += np.where(SEX == "f", 1.5, -1.5)


def learned(values, x=X):
    return learn_levels("sex", x[:400], values[:400], x[400:], values[400:])


def test_versions_stand_where_the_groups_do_and_keep_everything_else():
    found = learned(SEX)
    assert set(found.groups) == {"f", "m"}
    assert found.directions.shape == (5, 1)
    assert abs(found.directions[2, 0]) > 0.95
    assert 0.5 < found.explained < 1
    versions = found.versions(X[:7])
    assert (versions.values[:, 0] == X[:7]).all()
    along = versions.values @ found.directions
    for place, group in enumerate(found.groups, start=1):
        mean = (X[:400][SEX[:400] == group] @ found.directions).mean()
        assert along[:, place] == pytest.approx(mean, abs=1e-4)
    rest = versions.values - along @ found.directions.T
    assert rest == pytest.approx(np.broadcast_to(rest[:, :1], rest.shape), abs=1e-4)


def test_what_is_no_better_than_chance_is_not_free():
    shuffled = [learned(np.random.default_rng(seed).permutation(SEX)) for seed in range(5)]
    assert sum(found is not None for found in shuffled) <= 1  # by chance one in forty
    assert learned(np.full(600, "f")) is None


def test_numbers_are_cut_at_their_quartiles():
    age = (40 + 8 * X[:, 1]).round()
    age[3] = np.nan
    found = learned(age)
    assert abs(found.directions[1, 0]) > 0.95
    groups = groups_of(age, age[:400])
    age = age[:400]
    groups = groups[:400]
    assert groups[3] == "(missing)"
    assert 4 <= len(set(groups)) <= 5
    for low, high in (name.split(" to ") for name in found.groups if name != "(missing)"):
        inside = age[groups == f"{low} to {high}"]
        assert float(low) <= inside.min() <= inside.max() <= float(high)


def test_missing_values_and_small_groups_are_groups():
    values = np.array(["a"] * 50 + ["b"] * 50 + [None] * 30 + ["rare"] * 2, dtype=object)
    assert set(groups_of(values, values)) == {"a", "b", "(missing)", "(small groups)"}
