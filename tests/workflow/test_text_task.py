import numpy as np
import pandas as pd
import pytest

from evenhand.counterfactuals import GenderSwap
from evenhand.tables.read import TableError
from evenhand.workflow.text_task import Beside, text_task

RNG = np.random.default_rng(0)
N = 200
Y = RNG.random(N) < 0.5
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "letter": [f"She did {i} things and he did {i % 7}." for i in range(N)],
        "years": RNG.normal(size=N).round(2),
        "role": RNG.choice(["nurse", "driver"], N),
        "sex": RNG.choice(["f", "m"], N),
        "code": np.where(Y, "A", "B"),
        "hired": np.where(Y, 1.0, 0.0),
    }
)
FRAME.loc[[1, 2], "letter"] = None
FRAME.loc[3, "letter"] = "  "
FRAME.loc[4, "hired"] = None
FRAME.loc[5, "years"] = None


def test_columns_beside_the_text_are_cleaned_and_those_left_out_have_a_reason():
    task = text_task(FRAME, "letter", "hired", beside=Beside(sensitive=["sex"]))
    assert sorted(c.name for c in task.schema.used) == ["role", "years"]
    left = {c.name: c.note for c in task.schema.columns if c.kind == "dropped"}
    assert set(left) == {"id", "code"}
    assert "it alone predicts the target" in left["code"]
    assert list(task.table.columns) == ["years", "role", "letter"]
    assert (len(task.table), len(task.table_held_out)) == (len(task.texts), len(task.held_out))
    assert len(task.table) + len(task.table_held_out) == N - 1
    assert (task.without_text, task.without_label) == (3, 1)
    assert task.table_held_out["letter"].tolist() == task.held_out
    assert task.labels == ["0", "1"]  # not 0.0 and 1.0, though a label is missing
    wanted = FRAME.iloc[task.rows_held_out]
    assert task.sensitive_held_out["sex"].tolist() == wanted["sex"].tolist()
    assert task.table_held_out["role"].tolist() == wanted["role"].tolist()
    assert task.y_held_out.tolist() == wanted["hired"].tolist()
    versions = task.versions(GenderSwap())
    assert versions.columns == ("years", "role", "letter")
    assert task.versions(None) is None


def test_named_columns_only_and_what_was_asked_for_is_kept():
    task = text_task(FRAME, "letter", "hired", beside=Beside(columns=["years", "code"]))
    assert sorted(c.name for c in task.schema.used) == ["code", "years"]
    assert "kept because you asked for it" in task.notes[0]
    task = text_task(FRAME, "letter", "hired", beside=Beside(sensitive=["sex"], ignore=["years"]))
    assert [c.name for c in task.schema.used] == ["role"]


def test_texts_alone_leave_rows_without_text_out():
    task = text_task(FRAME, "letter", "hired")
    assert task.schema is None
    assert task.given is task.texts
    assert len(task.texts) + len(task.held_out) == N - 4


def test_another_table_has_to_fit_and_need_not_know_the_sensitive_columns():
    schema = text_task(FRAME, "letter", "hired", beside=Beside(sensitive=["sex"])).schema
    other = text_task(FRAME.drop(columns=["sex", "hired", "id"]), "letter", None, share=1.0, labels=["0", "1"],
                      schema=schema)  # fmt: skip
    assert len(other.judging) == N
    assert other.judging["letter"].tolist() == [("" if i in (1, 2, 3) else t) for i, t in enumerate(FRAME["letter"])]
    assert other.sensitive_held_out == {}
    with pytest.raises(TableError, match=r"lacks 1 column\(s\) .* 'role'"):
        text_task(FRAME.drop(columns="role"), "letter", None, share=1.0, labels=["0", "1"], schema=schema)
    with pytest.raises(TableError, match="'hired' holds '7'; the model knows 0, 1"):
        text_task(FRAME.assign(hired=7), "letter", "hired", share=1.0, labels=["0", "1"], schema=schema)
    one = text_task(FRAME[FRAME["hired"] == 1], "letter", "hired", share=1.0, labels=["0", "1"], schema=schema)
    assert set(one.y_held_out) == {1}  # a table of one class is a table


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sensitive": ["letter"]}, "'letter' is the text; it cannot be among the columns that are sensitive"),
        ({"columns": ["hired"]}, "'hired' is the target; it cannot be among the columns to keep"),
        ({"sensitive": ["sexx"]}, "did you mean 'sex'"),
        ({"columns": ["yeers"]}, "did you mean 'years'"),
    ],
)
def test_mistakes(given, message):
    with pytest.raises(TableError, match=message):
        text_task(FRAME, "letter", "hired", beside=Beside(**given))
    with pytest.raises(TableError, match="both the text and the target"):
        text_task(FRAME, "letter", "letter")
    rare = FRAME.assign(hired=["seldom", "seldom", *FRAME["hired"].astype(str)[2:]])
    with pytest.raises(TableError, match=r"fewer than 3 texts, .* 'seldom'; leave"):
        text_task(rare, "letter", "hired", beside=Beside())


def test_missing_sensitive_values():
    frame = FRAME.assign(sex=FRAME["sex"].where(np.arange(N) > 20))
    with pytest.raises(TableError, match="20 in 'sex'") as error:
        text_task(frame, "letter", "hired", beside=Beside(sensitive=["sex"]))
    assert error.value.cure == "missing_sensitive"
    task = text_task(frame, "letter", "hired", beside=Beside(sensitive=["sex"], missing_sensitive="drop"))
    assert "a sensitive value is missing" in task.notes[0]
    assert len(task.table) + len(task.table_held_out) == N - 21
    task = text_task(frame, "letter", "hired", beside=Beside(sensitive=["sex"], missing_sensitive="category"))
    assert "(missing)" in set(task.sensitive["sex"])


@pytest.mark.parametrize(
    ("labels", "positive", "flagged"),
    [
        (("keep", "remove"), None, "remove"),
        (("abusive", "ok"), None, "abusive"),  # not the last in order: it says that it is harmless
        (("abusive", "not abusive"), None, "abusive"),
        (("hate", "nonhate"), None, "hate"),
        (("0", "1"), None, "1"),
        (("false", "true"), "false", "false"),
    ],
)
def test_which_class_is_flagged(labels, positive, flagged):
    frame = pd.DataFrame({"comment": [f"text {i}" for i in range(20)], "verdict": [labels[i % 2] for i in range(20)]})
    task = text_task(frame, "comment", "verdict", positive=positive)
    assert task.labels[1] == flagged
    for text, code in zip([*task.texts, *task.held_out], [*task.y, *task.y_held_out]):
        assert task.labels[code] == labels[int(text.split()[1]) % 2]


def test_a_class_that_is_not_there_cannot_be_flagged():
    with pytest.raises(TableError, match="one of two; 'bad' was named, 'hired' holds 0, 1"):
        text_task(FRAME, "letter", "hired", positive="bad", beside=Beside())
