import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from evenhand.counterfactuals import GenderSwap, TokenSwap
from evenhand.datasets import templates
from evenhand.tables.read import TableError
from evenhand.workflow.folder import plain
from evenhand.workflow.texts import swaps_named, text_task, train_texts

COUNTS = HashingVectorizer(n_features=96, norm="l2")
COMMENTS = templates(400, seed=0)
FRAME = pd.DataFrame({"comment": COMMENTS.texts, "toxic": np.where(COMMENTS.y, "yes", "no")})
TOKENS = list(COMMENTS.groups.columns)


def embed(texts):
    return COUNTS.transform(texts).toarray()


@pytest.fixture(scope="module")
def run():
    task = text_task(FRAME, "comment", "toxic")
    said = []
    found = train_texts(
        *(task, embed, TokenSwap(TOKENS), said.append), abuse=True, rho=1.0, hidden=(20,), steps=80, k=6, lr=3e-3
    )
    return task, found, said


def test_both_models_are_judged_on_the_same_texts(run):
    task, found, said = run
    models = found.findings["models"]
    assert set(models) == {"plain", "fair"}
    assert models["fair"]["ctf"] < models["plain"]["ctf"]
    assert len(task.held_out) == 120
    assert any("training the fair model on 280 texts" in line for line in said)
    json.dumps(plain(found.findings), allow_nan=False)


def test_rates_by_term_are_those_of_the_predictions(run):
    task, found, _ = run
    predicted = found.model.predict(task.held_out)
    for row in found.findings["models"]["fair"]["terms"]:
        members = np.array([row["term"] in f" {text} " for text in task.held_out])
        harmless = members & (task.y_held_out == 0)
        if row["term"] == "gay" and harmless.any():
            assert row["false_positive"] == pytest.approx(predicted[harmless].mean())
            assert row["false_positive_interval"][0] <= row["false_positive"] <= row["false_positive_interval"][1]


def test_the_worst_version_is_the_worst(run):
    _, found, _ = run
    line = found.worst.iloc[0]
    swap = TokenSwap(TOKENS)
    versions = swap([line["text"]]).values[0].tolist()
    p = found.model.predict_proba(versions)[:, 1]
    assert line["worst_version"] == versions[int(np.abs(p - p[0]).argmax())]
    assert line["moves_by"] == pytest.approx(np.abs(p - p[0]).max())
    assert line["moves_by"] == found.worst["moves_by"].max()


def test_the_certificate_says_over_these_versions(run):
    certificate = run[1].findings["certificate"]
    assert "exact over these versions and over nothing else" in certificate["statement"]
    assert certificate["lower"] <= certificate["mean"] <= certificate["upper"]


def test_swaps_by_name(tmp_path):
    assert isinstance(swaps_named("gender"), GenderSwap)
    assert swaps_named("names", ["John met Anna"]).names == (["John"], ["Anna"])
    assert swaps_named("identity").sample == 8
    assert len(swaps_named("categories").categories) == 6
    path = tmp_path / "tokens.txt"
    path.write_text("gay\nstraight  # a comment\n\n", "utf-8")
    assert swaps_named(str(path)).tokens == ["gay", "straight"]
    path.write_text("faith: muslim, christian\nage: old, young\n", "utf-8")
    assert swaps_named(str(path)).categories == {"faith": ["muslim", "christian"], "age": ["old", "young"]}
    with pytest.raises(TableError, match="there is no file nothing"):
        swaps_named("nothing")


def test_rows_without_text_or_label_are_counted():
    frame = pd.concat([FRAME, pd.DataFrame({"comment": [None, "x"], "toxic": ["yes", None]})])
    assert text_task(frame, "comment", "toxic").left_out == 2


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [("other", "toxic", "no column 'other'"), ("comment", "none", "no column"), ("comment", "one", "2 and 200")],
)
def test_bad_tables(text, target, message):
    with pytest.raises(TableError, match=message):
        text_task(FRAME.assign(one=1), text, target)


def test_abuse_needs_tokens():
    task = text_task(FRAME, "comment", "toxic")
    with pytest.raises(TableError, match="--abuse needs"):
        train_texts(task, embed, GenderSwap(), print, abuse=True)


def test_the_certificate_names_the_worst_version_and_repeats_no_text(run):
    _, found, _ = run
    named, line = found.findings["certificate"]["worst"], found.worst.iloc[0]
    assert named["row"] == line["row"]
    assert named["words"] in line["worst_version"]
    assert named["words"] not in line["text"].split()
    assert named["moves_by"] == found.worst["moves_by"].max()
    assert sum(named["often"].values()) <= len(found.worst)
    assert line["text"] not in named["statement"]
