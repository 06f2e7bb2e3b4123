"""A column that alone gives the target away is found; an honest predictor is not."""

import numpy as np
import pandas as pd

from evenhand.tables.leaks import copies, leaks, twins
from evenhand.tables.schema import Schema

N = 2000


def people(seed=0):
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=N)
    y = (skill + rng.normal(size=N) > 0).astype(int)
    frame = pd.DataFrame({"skill": skill, "sex": rng.choice(["f", "m"], N), "noise": rng.normal(size=N), "y": y})
    frame["again"] = np.where(rng.random(N) < 0.01, 1 - y, y)  # recorded afterwards, nearly always right
    frame["word"] = np.where(y == 1, rng.choice(["x", "y"], N), rng.choice(["u", "v"], N))
    frame["when"] = np.where(y == 1, rng.normal(size=N), np.nan)  # only known for one class
    return frame


def test_leaks_are_found_and_honest_columns_are_not():
    frame = people()
    schema = Schema.infer(frame, "y", ["sex"])
    found = leaks(schema, schema.apply_known(frame), schema.codes(frame))
    assert set(found) == {"again", "word", "when"}
    assert all(0.95 <= value <= 1 for value in found.values())


def test_chance_is_no_leak():
    """Many categories and few rows fit anything; on the other half they do not."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"town": rng.choice([f"t{i}" for i in range(100)], 220), "sex": rng.choice(["f", "m"], 220)})
    frame["y"] = rng.integers(0, 2, 220)
    schema = Schema.infer(frame, "y", ["sex"])
    assert leaks(schema, schema.apply_known(frame), schema.codes(frame)) == {}


def test_of_a_quantity():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=N), "sex": rng.choice(["f", "m"], N)})
    frame["y"] = frame["x"] + rng.normal(size=N)
    frame["twice"] = 2 * frame["y"] + 0.01 * rng.normal(size=N)
    schema = Schema.infer(frame, "y", ["sex"])
    assert set(leaks(schema, schema.apply_known(frame), schema.truth(frame))) == {"twice"}


def test_sensitive_columns_in_other_words():
    rng = np.random.default_rng(3)
    race = rng.choice(["a", "b", "c"], 200)
    age = rng.integers(20, 60, 200).astype(np.float32)
    frame = pd.DataFrame({"race": race, "race_code": pd.Series(race).map({"a": 7, "b": 1, "c": 3}), "age": age,
                          "years": 2 * age + 1, "town": rng.choice(["x", "y"], 200)})  # fmt: skip
    frame["nearly"] = np.where(np.arange(200) == 0, "b", race)  # one person differs: no copy
    frame.loc[0, "race"] = "a"
    frame.loc[0, "race_code"] = 7
    schema = Schema.infer(frame.assign(y=rng.integers(0, 2, 200)), "y", ["race", "age"])
    found = copies(schema, schema.apply_known(frame))
    assert found.keys() == {"race_code", "years"}
    assert found["race_code"].startswith("it is the sensitive column 'race' in other words")
    assert copies(schema, schema.apply_known(frame), keep=["race_code", "years"]) == {}


def test_columns_that_are_there_twice():
    rng = np.random.default_rng(4)
    x = np.where(rng.random(200) < 0.1, np.nan, rng.normal(size=200))
    frame = pd.DataFrame({"x": x, "word": rng.choice(["a", "b", "c"], 200), "sex": rng.choice(["f", "m"], 200)})
    frame["again"], frame["word again"], frame["nearly"] = x, frame["word"], np.where(np.arange(200) == 3, 0.0, x)
    frame["y"] = rng.integers(0, 2, 200)
    schema = Schema.infer(frame, "y", ["sex"])
    clean = schema.apply_known(frame)
    assert twins(schema, clean) == {
        "again": "it repeats 'x' in every row",
        "word again": "it repeats 'word' in every row",
    }
    assert twins(schema, clean, keep=["again", "word again"]) == {}
