import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from evenhand.counterfactuals import GenderSwap, TokenSwap
from evenhand.datasets import templates
from evenhand.error_rates import error_rates
from evenhand.evaluation import ctf_squared, ctf_std
from evenhand.text import TextClassifier
from evenhand.text.validation import one_against_rest
from evenhand.workflow.text_judging import (
    Judged,
    at_one_fpr,
    judge_task,
    misses_more,
    named_worst,
    without_texts,
    worst_of,
)
from evenhand.workflow.text_task import Beside, text_task

COUNTS = HashingVectorizer(n_features=96, norm="l2")
COMMENTS = templates(300, seed=0)
TOKENS = list(COMMENTS.groups.columns)
FILLER = " and so the long day went on with nothing much to say" * 3
OPTIONS = {"rho": 1.0, "hidden": (10,), "steps": 40, "k": 4, "lr": 3e-3}


def embed(texts):
    return COUNTS.transform(texts).toarray()


def fitted(task, swaps, method="sensei", **options):
    return TextClassifier(embed, swaps, method, **OPTIONS | options).fit(task.given, task.y)


@pytest.fixture(scope="module")
def long():
    """Texts with much around their token, of which a passage is swapped; the plain and the fair model."""
    table = pd.DataFrame({"t": [f"{text}{FILLER}" for text in COMMENTS.texts], "y": COMMENTS.y})
    task, swaps = text_task(table, "t", "y"), TokenSwap(TOKENS, passage=12)
    models = {name: fitted(task, swaps, name) for name in ("plain", "sensei")}
    judged = {name: judge_task(model, task, swaps(task.held_out), swaps, []) for name, model in models.items()}
    return task, models, judged


def test_the_probability_of_a_text_is_that_of_predict_and_a_passage_is_compared_with_itself(long):
    task, models, judged = long
    worst, model = judged["plain"].worst, models["plain"]
    assert worst["passage"].all()
    assert judged["plain"].scores["compared"] == len(worst)
    whole = model.predict_proba([task.held_out[row] for row in worst["row"]])[:, 1]
    passage, version = (model.predict_proba(worst[name].tolist())[:, 1] for name in ("text", "worst_version"))
    assert worst["probability"].to_numpy() == pytest.approx(whole)
    assert worst["compared_with"].to_numpy() == pytest.approx(passage)
    assert worst["moves_by"].to_numpy() == pytest.approx(np.abs(version - passage))
    assert np.abs(whole - passage).max() > 0.01
    changes = (passage >= model.threshold_) != (version >= model.threshold_)
    assert (worst["decision_changes"] == changes).all()


def test_read_alike_the_worst_versions_as_they_stand_and_of_the_plain_model_stand_beside(long):
    task, models, judged = long
    worst = worst_of(judged["sensei"], judged["plain"], task)
    assert (worst["moves_by"] == 0).all()
    assert (worst["words"] == "").all()
    assert (worst["as_they_stand_moves_by"] > 0).mean() > 0.2
    assert worst["as_they_stand_moves_by"].is_monotonic_decreasing
    first = worst.iloc[0]
    assert task.held_out[list(task.rows_held_out).index(first["row"])].startswith(first["text"].split()[0])
    p = models["plain"].predict_proba([first["text"], first["plain_worst_version"]])[:, 1]
    assert first["plain_moves_by"] == pytest.approx(abs(p[1] - p[0]))
    named = named_worst(worst)
    assert named["statement"] == "No version of a text moves its probabilities after calibration."
    assert named["as_they_stand"]["words"] == first["as_they_stand_words"] != ""
    assert named["as_they_stand"]["statement"].startswith("Read as they stand: The worst version of all is that of row")
    assert named["plain"]["moves_by"] == worst["plain_moves_by"].max()


def test_without_texts_there_are_rows_words_and_numbers(long):
    task, _, judged = long
    worst = without_texts(worst_of(judged["sensei"], judged["plain"], task))
    assert not any(len(str(cell).split()) > 4 for cell in worst.to_numpy().ravel())
    assert {"row", "words", "as_they_stand_words", "plain_words"} <= set(worst)


def test_models_are_compared_at_one_false_positive_rate():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    plain = np.array([0.1, 0.2, 0.3, 0.9, 0.4, 0.8, 0.95, 0.97])
    fair = np.array([0.3, 0.4, 0.5, 0.6, 0.2, 0.45, 0.7, 0.9])
    nothing = pd.DataFrame()
    judged = {name: Judged({}, nothing, None, score) for name, score in (("plain", plain), ("fair", fair))}
    one = at_one_fpr(judged, y, 0.25)
    assert one["missed"] == {"plain": 0.0, "fair": 0.5}
    for name, score in (("plain", plain), ("fair", fair)):
        rates = error_rates(y, score >= one["thresholds"][name], {})
        assert rates.fpr <= 0.25
        assert rates.fnr == one["missed"][name]
    said = misses_more({"false_negative_rate": 0.1}, {"false_negative_rate": 0.2}, one)
    assert "misses 20.0% of harmful texts, the plain one 10.0%; where both flag 25.0%" in said
    assert misses_more({"false_negative_rate": 0.1}, {"false_negative_rate": 0.14}, one) == ""


@pytest.mark.parametrize("swaps", [TokenSwap(TOKENS), GenderSwap()])
def test_several_classes_have_auc_errors_by_class_and_a_ctf_score_of_their_own(swaps):
    texts = [f"{'He' if i % 2 else 'She'} said: {text} {i}" for i, text in enumerate(COMMENTS.texts)]  # no copies
    kinds = np.where(COMMENTS.y == 1, "bad", np.where(np.arange(300) % 3 == 0, "dull", "fine"))
    task = text_task(pd.DataFrame({"t": texts, "y": kinds}), "t", "y")
    model, versions = fitted(task, swaps, "plain"), swaps(task.held_out)
    found = judge_task(model, task, versions, swaps, [])
    p = model.predict_proba(task.held_out)
    assert found.scores["auc"] == pytest.approx(one_against_rest(task.y_held_out, p))
    for k, line in enumerate(found.scores["classes"]):
        mine = task.y_held_out == k
        assert (line["class"], line["n"]) == (task.labels[k], mine.sum())
        assert line["false_negative"] == pytest.approx((p[mine].argmax(axis=1) != k).mean())
        assert line["false_positive"] == pytest.approx((p[~mine].argmax(axis=1) == k).mean())
    of_each = versions.map(model.predict_proba).values
    several = of_each.shape[1] > 2
    ctf = sum(ctf_std(of_each[:, :, k]) for k in range(3)) if several else ctf_squared(of_each)
    assert found.scores["ctf"] == pytest.approx(ctf)
    assert found.scores["ctf"] != pytest.approx(found.scores["worst_move"])
    own = found.worst["compared_with"].to_numpy()
    assert own == pytest.approx(of_each[:, 0].max(axis=1))


def test_a_text_that_was_pasted_is_one_observation_by_term_class_and_group():
    texts = [f"{text} {i}" for i, text in enumerate(COMMENTS.texts)]
    table = pd.DataFrame({"t": texts, "y": COMMENTS.y, "likes": np.arange(300) % 7})
    table["sex"] = np.where(np.arange(300) % 2, "f", "m")
    swaps = TokenSwap(TOKENS)
    beside = Beside(sensitive=["sex"])
    task = text_task(table, "t", "y", beside=beside)
    model = TextClassifier(embed, swaps, "plain", text="t", **OPTIONS).fit(task.given, task.y)
    alone, five = text_task(table[:100], "t", "y", share=1.0, beside=beside), [*range(100), *([3] * 4), *([7] * 4)]
    pasted = text_task(table.iloc[five], "t", "y", share=1.0, beside=beside)
    once = judge_task(model, alone, None, swaps, []).scores
    again = judge_task(model, pasted, None, swaps, []).scores
    assert (once["copies"], again["copies"]) == (0, 8)
    assert again["terms"] == once["terms"]
    assert again["groups"] == once["groups"]
    assert (again["fped"], again["fned"]) == (once["fped"], once["fned"])
    assert again["false_positive_rate"] != once["false_positive_rate"]  # a share of the rows
    unknown = judge_task(model, pasted.unlabelled(), None, swaps, []).scores
    assert unknown["copies"] == 8
    assert sum(one["n"] for one in unknown["groups"]["sex"]) == 100


def test_a_pasted_text_of_several_classes_is_one_observation():
    kinds = np.where(COMMENTS.y == 1, "bad", np.where(np.arange(300) % 3 == 0, "dull", "fine"))
    table, swaps = pd.DataFrame({"t": COMMENTS.texts, "y": kinds}), TokenSwap(TOKENS)
    model = fitted(text_task(table, "t", "y"), swaps, "plain")
    alone, pasted = (text_task(some, "t", "y", share=1.0) for some in (table, table.iloc[[*range(300), 0, 0, 1, 1]]))
    once, again = (judge_task(model, task, None, swaps, []).scores for task in (alone, pasted))
    assert again["copies"] - once["copies"] == 4
    assert again["classes"] == once["classes"]
