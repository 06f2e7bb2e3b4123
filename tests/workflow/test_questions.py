"""Counting decisions that change, against counts by hand."""

import numpy as np
import pandas as pd
import pytest

from evenhand.tables.schema import Schema
from evenhand.workflow.questions import Flip, broadest, changed, compared, flips, most_changed, show


class BySex:
    """Decides by sex for people under 30, by age for the others."""

    columns = ("age", "sex")

    def probabilities(self, frame):
        p = np.where(frame["age"] < 30, (frame["sex"] == "m") * 0.8 + 0.1, (frame["age"] > 50) * 0.8 + 0.1)
        return np.stack([1 - p, p], axis=1).astype(float)

    def codes(self, frame):
        return self.probabilities(frame).argmax(1)


class Blind(BySex):
    columns = ("age",)


FRAME = pd.DataFrame({"age": np.array([20, 25, 40, 60] * 25, dtype=np.float32), "sex": ["f", "m", "m", "f"] * 25})
SEX = Flip("sex", {"sex": ["f", "m"]})


def schema_of(frame, sensitive):
    return Schema.infer(frame.assign(y=[0, 1] * (len(frame) // 2)), "y", sensitive)


def test_the_share_that_depends_on_sex():
    found = changed(BySex(), FRAME, SEX)
    assert found["share"] == 0.5  # those under 30
    assert found["max_change"] == pytest.approx(0.8)
    assert found["seen"]
    nothing = changed(Blind(), FRAME, SEX)
    assert (nothing["share"], nothing["max_change"], nothing["seen"]) == (0, 0, False)


def test_every_value_that_occurs_is_tried():
    """A number is not three quantiles: only an age of 29 or less, or above 50, changes anything."""
    ages = pd.DataFrame({"age": np.arange(18, 68, dtype=np.float32).repeat(4), "sex": ["f", "m"] * 100})
    (question,) = [q for q in flips(schema_of(ages, ["age"]), ages) if q.name == "age"]
    assert question.changes["age"] == list(range(18, 68))
    assert question.tried == "all 50 values of age"
    every = np.stack([BySex().codes(ages.assign(age=float(a))) for a in range(18, 68)], 1)
    by_hand = (every != BySex().codes(ages)[:, None]).any(1).mean()
    assert changed(BySex(), ages, question)["share"] == by_hand


def test_too_many_values_are_counted():
    ages = pd.DataFrame({"age": np.linspace(0, 1, 1000).astype(np.float32), "sex": ["f", "m"] * 500})
    (question,) = flips(schema_of(ages, ["age"]), ages)
    assert question.tried == "120 of 1000 values of age"
    assert (min(question.changes["age"]), max(question.changes["age"])) == (0.0, 1.0)


def test_questions_of_a_schema():
    n = 60
    frame = pd.DataFrame({"age": np.arange(n), "sex": ["f", "m"] * 30, "race": ["a", "b", "c"] * 20})
    frame["pay"] = np.random.default_rng(0).normal(size=n)
    schema = schema_of(frame, ["sex", "race", "age"])
    clean = schema.apply_known(frame)
    questions = {q.name: q for q in flips(schema, clean)}
    assert set(questions) == {"sex", "race", "age", "sex or race or age"}
    joint = questions["sex or race or age"]
    assert joint.count == 1 + 2 * 3 * len(joint.changes["age"])
    assert broadest(list(questions.values()), schema.sensitive) is joint
    versions = list(joint.versions(clean))
    assert len(versions) == joint.count
    assert versions[5].dtypes.equals(versions[0].dtypes)


def test_a_quantity_counts_as_changed_from_a_tenth_of_the_spread_on():
    class Pay(BySex):
        def codes(self, frame):
            return frame["age"].to_numpy() + 2.0 * (frame["sex"] == "m").to_numpy()

    assert changed(Pay(), FRAME, SEX, spread=19.0)["share"] == 1
    assert changed(Pay(), FRAME, SEX, spread=21.0)["share"] == 0


def test_people_whose_score_changes_most():
    schema = schema_of(FRAME, ["sex"])
    people = most_changed(BySex(), FRAME, SEX, schema, k=3)
    assert [p["row"] for p in people] == ["0", "1", "4"]
    first = people[0]
    assert first["changed"] == {"sex": ["f", "m"]}
    assert (first["decision"], first["decision_other"]) == ("0", "1")
    assert (first["score"], first["score_other"]) == (pytest.approx(0.1), pytest.approx(0.9))
    assert most_changed(Blind(), FRAME, SEX, schema) == []


def test_one_person_beside_another():
    schema = schema_of(FRAME, ["sex"])
    (found,) = compared(BySex(), FRAME.iloc[[2]], FRAME.iloc[[3]], schema)
    assert found["changed"] == {"age": ["40", "60"], "sex": ["m", "f"]}
    assert found["record"] == {"age": "40", "sex": "m"}


class ThreeWays(BySex):
    """Of those under 30, men are moved to the third class: from the second at 25, from the first otherwise."""

    def probabilities(self, frame):
        age, man = frame["age"].to_numpy(), (frame["sex"] == "m").to_numpy()
        moved = 0.5 * ((age < 30) & man) * age / 25
        p = np.where((age == 25)[:, None], [0.2, 0.7, 0.1], [0.7, 0.2, 0.1])
        p[np.arange(len(p)), (age == 25).astype(int)] -= moved
        p[:, 2] += moved
        return p


def test_of_several_classes_the_one_that_changes_most_is_shown():
    frame = FRAME.iloc[:8].copy()
    schema = Schema.infer(pd.concat([FRAME] * 2).assign(y=[0, 1] * 80 + [2] * 40), "y", ["sex"])
    people = most_changed(ThreeWays(), frame, SEX, schema, k=9)
    assert [(p["row"], p["label"]) for p in people] == [("1", "1"), ("5", "1"), ("0", "0"), ("4", "0")]
    assert [p["change"] for p in people] == pytest.approx([0.5, 0.5, 0.4, 0.4])
    assert [p["score"] for p in people] == pytest.approx([0.2, 0.2, 0.7, 0.7])
    assert [p["score_other"] for p in people] == pytest.approx([0.7, 0.7, 0.3, 0.3])


def test_many_categories_are_not_asked_about_together():
    """Numbers are thinned so that all combinations can be tried, categories are not: there is no joint question."""
    n = 900
    frame = pd.DataFrame({"town": [f"t{i % 30:02d}" for i in range(n)], "job": [f"j{i // 30:02d}" for i in range(n)]})
    frame["pay"] = np.random.default_rng(0).normal(size=n)
    schema = schema_of(frame, ["town", "job"])
    questions = flips(schema, schema.apply_known(frame))
    assert [(q.name, q.count) for q in questions] == [("town", 31), ("job", 31)]
    assert broadest(questions, schema.sensitive) is questions[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(39.0, "39"), (np.float32(0.25), "0.25"), (-5.9e-10, "0"), (float("nan"), "(missing)"), ("a", "a")],
)
def test_values_as_people_write_them(value, text):
    assert show(value) == text
