import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from evenhand.counterfactuals import GenderSwap, TokenSwap
from evenhand.datasets import templates
from evenhand.error_rates import error_rates
from evenhand.report.texts import render_texts
from evenhand.tables.read import TableError
from evenhand.variations import Variations
from evenhand.workflow.folder import plain
from evenhand.workflow.text_judging import Judged
from evenhand.workflow.texts import Beside, certificates, compared, swaps_named, text_task, train_texts

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
    options = {"rho": 1.0, "hidden": (20,), "steps": 80, "k": 6, "lr": 3e-3, "read_alike": False}
    found = train_texts(task, embed, TokenSwap(TOKENS), said.append, abuse=True, **options)
    return task, found, said


@pytest.fixture(scope="module")
def alike():
    options = {"rho": 1.0, "hidden": (20,), "steps": 20, "k": 6, "lr": 3e-3}
    return train_texts(text_task(FRAME, "comment", "toxic"), embed, TokenSwap(TOKENS), print, **options)


def test_what_holds_by_construction_is_told_from_what_is_learned(alike):
    plain, fair = (alike.findings["models"][name] for name in ("plain", "fair"))
    assert fair["read_alike"] == fair["consistency"] == 1
    assert fair["ctf"] < 1e-7 < fair["as_they_stand"]["ctf"]
    assert fair["blind"] == plain["blind"]  # read alike is not blind
    assert "read_alike" not in plain
    certificate = alike.findings["certificate"]
    assert certificate["mean"] == pytest.approx(0, abs=1e-7)  # rounding of the means in float32
    assert "by construction" in certificate["statement"]
    assert "nothing about words that are in no list" in certificate["statement"]
    assert certificate["worst"]["statement"] == "No version of a text moves its probabilities after calibration."
    assert certificate["worst"]["as_they_stand"]["moves_by"] > 0


def test_the_report_says_so(alike):
    page = render_texts(alike.findings, [], {})
    stand = alike.findings["models"]["fair"]["as_they_stand"]
    assert "100.0% of the texts with versions get the same answer in all of them, by construction" in page
    assert f"CTF score {stand['ctf']:.3f}" in page
    assert "of words that it has not, expect less" in page


def test_both_models_are_judged_on_the_same_texts(run):
    task, found, said = run
    models = found.findings["models"]
    assert set(models) == {"plain", "fair"}
    assert models["fair"]["ctf"] < models["plain"]["ctf"]
    assert len(task.held_out) == pytest.approx(120, abs=10)
    assert len(task.texts) + len(task.held_out) == 400
    assert any(f"training the fair model on {len(task.texts)} texts" in line for line in said)
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


def test_pasted_texts_buy_no_confidence(run):
    task, found, _ = run
    texts = TokenSwap(TOKENS)([f"{text} Number {i} says so." for i, text in enumerate(COMMENTS.texts)])
    values = np.concatenate([texts.values] * 3)
    pasted = Variations(values, np.arange(len(values)))
    once, thrice = (certificates(found.model, task, versions, 0.95) for versions in (texts, pasted))
    assert (once["upper"], once["n"]) == (thrice["upper"], thrice["n"])
    assert f"{2 * len(texts)} copies of a text were left out" in thrice["statement"]
    assert "copies" not in once["statement"]


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_list_in_any_unicode(tmp_path, encoding):
    path = tmp_path / "tokens.txt"
    path.write_bytes("gay\r\nstraight\r\n".encode(encoding))
    assert swaps_named(str(path)).tokens == ["gay", "straight"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(range(256)), "tokens.txt is not a text in UTF-8"),
        (b"a\0b\nc", "tokens.txt is not a text in UTF-8"),
        (b"\n# none\n", "tokens.txt holds 0 tokens; a swap needs two or more"),
        (b"gay\n", "tokens.txt holds 1 token; a swap"),
    ],
)
def test_a_list_that_is_none(tmp_path, data, message):
    path = tmp_path / "tokens.txt"
    path.write_bytes(data)
    with pytest.raises(TableError, match=message):
        swaps_named(str(path))


def test_rows_without_text_or_label_are_counted():
    frame = pd.concat([FRAME, pd.DataFrame({"comment": [None, "x"], "toxic": ["yes", None]})])
    task = text_task(frame, "comment", "toxic")
    assert (task.without_text, task.without_label) == (1, 1)


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


def test_a_text_that_is_there_twice_is_on_one_side_and_rows_are_those_of_the_table():
    texts = [f"a gay man number {i % 40}" for i in range(120)]
    frame = pd.DataFrame({"t": [None, "  ", *texts], "y": [1, 0, *([0, 1] * 60)]})
    frame.loc[5, "y"] = None
    task = text_task(frame, "t", "y")
    assert not set(task.texts) & set(task.held_out)
    assert frame["t"].iloc[task.rows_held_out].tolist() == task.held_out
    assert (task.without_text, task.without_label) == (2, 1)
    assert len(task.texts) + len(task.held_out) == 119


def test_rows_without_a_text_are_no_copies_of_each_other_where_there_are_other_columns():
    """All on one side, they were judged by nobody, or left few rows to train on."""
    rng = np.random.default_rng(0)
    texts = [None if i % 2 else f"He is nurse number {i}" for i in range(200)]
    frame = pd.DataFrame({"t": texts, "age": rng.normal(size=200), "y": rng.integers(2, size=200)})
    frame = pd.concat([frame, frame.iloc[:40]], ignore_index=True)  # these are
    task = text_task(frame, "t", "y", beside=Beside())
    empty = [float((part["t"] == "").mean()) for part in (task.table, task.table_held_out)]
    assert empty == pytest.approx([0.5, 0.5], abs=0.15)
    assert 50 <= len(task.table_held_out) <= 90
    assert not set(task.table["age"]) & set(task.table_held_out["age"])


@pytest.mark.parametrize(
    "pasted", [["Buy pills now"] * 6, ["Buy pills now", "Buy pills now", "Buy other pills"], ["a man number 3"] * 9]
)
def test_a_class_needs_three_texts_of_its_own_not_one_pasted_three_times(pasted):
    """Nobody would judge the class, or nobody learn it."""
    texts = [f"a man number {i}" for i in range(40)]
    frame = pd.DataFrame({"t": texts + pasted, "y": ["a", "b"] * 20 + ["c"] * len(pasted)})
    with pytest.raises(TableError, match=r"fewer than 3 texts, .*: 'c'; leave .* several times counts once"):
        text_task(frame, "t", "y")


def test_the_worst_version_is_named_by_its_row_of_the_table(run):
    _, found, _ = run
    for line in found.worst.head(5).itertuples():
        assert FRAME["comment"][line.row] == line.text


def test_the_warning_that_more_is_flagged_advises_nothing_that_a_command_does_not_have():
    task = text_task(FRAME, "comment", "toxic")
    y, score = task.y_held_out, np.linspace(0, 1, len(task.y_held_out))
    judged = {}
    for name, flagged in (("plain", np.zeros_like(y)), ("fair", np.ones_like(y))):
        rates = error_rates(y, flagged, {})
        judged[name] = Judged({"false_negative_rate": rates.fnr}, pd.DataFrame(), rates, score)
    _, said = compared(judged, task)
    assert said.startswith("At its threshold the fair model flags 100.0% of harmless texts, the plain one 0.0%: part")
    assert "mentions" not in said
    assert "threshold_at" not in said


def test_names_need_names_in_the_texts():
    with pytest.raises(TableError, match="0 male and 1 female ones are known; use --swap gender"):
        swaps_named("names", ["Anna sings."])


LETTERS = pd.DataFrame(
    {
        "letter": [f"{who} {'leads' if good else 'missed'} the team {i % 9}." for i, (who, good) in enumerate(
            (("She", "He")[i % 2], i % 3 > 0) for i in range(300))],
        "years": np.random.default_rng(0).normal(size=300) + np.arange(300) % 3,
        "sex": ["f", "m"] * 150,
        "hired": [int(i % 3 > 0 and (i % 2 == 1 or i % 7 > 3)) for i in range(300)],
    }
)  # fmt: skip


@pytest.mark.parametrize("swap", [None, GenderSwap()])
def test_a_text_beside_columns_is_one_model_and_sensitive_columns_judge(swap):
    task = text_task(LETTERS, "letter", "hired", beside=Beside(sensitive=["sex"]))
    found = train_texts(task, embed, swap, lambda _: None, rho=1.0, hidden=(20,), steps=80, k=4, lr=3e-3)
    models = found.findings["models"]
    assert found.model.text == "letter"
    assert [c["name"] for c in found.findings["columns"]["used"]] == ["years"]
    assert found.findings["columns"]["sensitive"]["sex"]["explained"] > 0.3  # She and He tell it
    assert models["fair"]["levels"]["sex"]["worst_move"] < models["plain"]["levels"]["sex"]["worst_move"]
    rows = models["fair"]["groups"]["sex"]
    assert [row["group"] for row in rows] == ["f", "m"]
    predicted = found.model.predict(task.judging)
    women = task.sensitive_held_out["sex"] == "f"
    assert rows[0]["n"] == women.sum()
    assert rows[0]["selected"] == pytest.approx(predicted[women].mean())
    wrongly = women & (task.y_held_out == 0)
    assert rows[0]["false_positive"] == pytest.approx(predicted[wrongly].mean())
    certificate = found.findings["certificate"]
    assert ("setting what gives sex away" in certificate["statement"]) == (swap is None)
    assert list(certificate["attributes"]) == ([] if swap is None else ["sex"])
    assert (len(found.worst) > 0) == (swap is not None)
    json.dumps(plain(found.findings), allow_nan=False)


def test_what_does_not_go_together():
    task = text_task(LETTERS, "letter", "hired", beside=Beside())
    with pytest.raises(TableError, match="a swap or sensitive columns must say"):
        train_texts(task, embed, None, print)
    with pytest.raises(TableError, match="adds texts that have no other columns"):
        train_texts(task, embed, TokenSwap(TOKENS), print, abuse=True)


def test_a_swap_that_changes_nothing_is_refused_before_anything_is_trained():
    said = []
    with pytest.raises(TableError, match="no text says what --swap changes"):
        train_texts(text_task(FRAME, "comment", "toxic"), embed, TokenSwap(["xyzzy", "plugh"]), said.append)
    assert not any("training" in line for line in said)


def test_sentences_about_other_people_help_lists_of_identities_only(monkeypatch):
    given = []
    monkeypatch.setattr("evenhand.workflow.texts.about_people", lambda tokens: given.append(len(tokens)))
    task = text_task(FRAME, "comment", "toxic")
    settings = {"rho": 1.0, "hidden": (5,), "steps": 2, "k": 3}
    train_texts(task, embed, TokenSwap(TOKENS), print, **settings)
    assert given == [len(TOKENS)]
    train_texts(task, embed, TokenSwap([TOKENS[0], "xyzzy", "plugh"]), print, **settings)
    assert len(given) == 1


def test_no_error_repeats_a_text():
    long = pd.DataFrame({"t": [f"text {i}" for i in range(60)], "y": [f"{i} " + "a secret " * 9 for i in range(60)]})
    with pytest.raises(TableError, match=r"fewer than 3 texts.*: 60 long ones; leave") as error:
        text_task(long, "t", "y")
    assert "secret" not in str(error.value)
    with pytest.raises(TableError, match=r"it holds 1: name another target"):
        text_task(long.assign(y="same"), "t", "y")


def test_a_threshold_of_ones_own_and_no_certificate():
    task = text_task(FRAME, "comment", "toxic")
    options = {"rho": 1.0, "hidden": (5,), "steps": 20, "k": 3, "threshold": 0.9, "certificate": False}
    found = train_texts(task, embed, TokenSwap(TOKENS), lambda _: None, **options)
    assert found.model.threshold_ == found.plain.threshold_ == found.findings["threshold"] == 0.9
    for name, model in (("plain", found.plain), ("fair", found.model)):
        flagged = model.predict_proba(task.held_out)[:, 1] >= 0.9
        rate = flagged[task.y_held_out == 0].mean()
        assert found.findings["models"][name]["false_positive_rate"] == pytest.approx(rate)
    assert found.findings["certificate"]["refused"] == "none was asked for"
    several = FRAME.assign(toxic=np.arange(400) % 3)
    with pytest.raises(TableError, match=r"threshold of 0\.9 needs two classes, the target has 3"):
        train_texts(text_task(several, "comment", "toxic"), embed, TokenSwap(TOKENS), print, **options)


def test_both_models_are_compared_at_the_false_positive_rate_of_the_plain_one(run):
    task, found, _ = run
    one = found.findings["at_one_fpr"]
    assert one["fpr"] == found.findings["models"]["plain"]["false_positive_rate"]
    for name, model in (("plain", found.plain), ("fair", found.model)):
        score = model.predict_proba(task.held_out)[:, 1]
        flagged = score >= one["thresholds"][name]
        assert flagged[task.y_held_out == 0].mean() <= one["fpr"]
        assert one["missed"][name] == pytest.approx((~flagged)[task.y_held_out == 1].mean())
