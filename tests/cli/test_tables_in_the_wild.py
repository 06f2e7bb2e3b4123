"""Seven tables with the traps of public ones, end to end without reading the docs; the audit is not searched here."""

import json
import re
import sqlite3

import numpy as np
import pandas as pd
import pytest

from evenhand.tables import read_table
from evenhand.workflow import judging, load_model

from .conftest import QUICK, QuickAudit

N = 420


def base(seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], N)
    frame = pd.DataFrame(
        {"amount": rng.normal(30, 8, N).round(2), "height": rng.normal(165, 6, N) + 10 * (sex == "Male")}
    )
    frame["job"], frame["sex"] = rng.choice(["a", "b", "c"], N), sex
    yes = frame["amount"] + 4 * (sex == "Male") + rng.normal(0, 4, N) > 32
    return frame, yes.to_numpy(), rng


def recidivism():
    """Names, dates as text, a leak and a race with a group of one."""
    frame, yes, rng = base()
    frame["id"] = rng.permutation(N) + 1
    frame["name"] = [f"Name{i} Sur{i}" for i in range(N)]
    frame["screened"] = pd.date_range("2013-01-01", periods=N).strftime("%d/%m/%Y")
    frame["is_again"] = np.where(rng.random(N) < 0.01, 1 - yes, yes)
    frame["race"] = np.array(["White", "Black"])[rng.integers(0, 2, N)]
    frame.loc[5, "race"] = "Other"
    return frame.assign(again=yes.astype(int)), "again", "sex,race"


def credit():
    """A target of 1 and 2."""
    frame, yes, _ = base(1)
    return frame.assign(risk=np.where(yes, 2, 1)), "risk", "sex"


def pay():
    """A target that is a number."""
    frame, _, rng = base(2)
    return frame.assign(pay=frame["amount"] * 10 + rng.normal(0, 5, N)), "pay", "sex"


def admissions():
    """Sixty percent missing, and an age as attribute."""
    frame, yes, rng = base(3)
    frame["test"] = np.where(rng.random(N) < 0.6, np.nan, rng.normal(size=N))
    frame["age"] = rng.integers(18, 70, N)
    return frame.assign(admitted=np.where(yes, "yes", "no")), "admitted", "age"


def contacts():
    """E-mail addresses, telephone numbers, free text, and a column name with a comma."""
    frame, yes, rng = base(4)
    frame["mail"] = [f"p{i}@example.org" for i in range(N)]
    frame["phone"] = [f"+49 30 {i:07d}" for i in rng.permutation(10**5)[:N]]
    frame["remark"] = [f"number {i} came in and asked for more than that" for i in range(N)]
    return frame.assign(ok=yes).rename(columns={"sex": "sex, as given"}), "ok", "sex, as given"


def census():
    """Codes, "?" for missing, how many people a row stands for, a rare race, text with leading spaces."""
    frame, yes, rng = base(5)
    frame = frame.rename(columns={"amount": "wage per hour"})
    frame["detailed industry recode"] = rng.integers(0, 12, N)
    frame["migration code"] = np.where(rng.random(N) < 0.5, " ?", " MSA to MSA")
    frame["instance weight"] = rng.normal(1700, 300, N).round(2)
    frame["year"] = rng.choice([94, 95], N)
    frame["race"] = np.where(rng.random(N) < 0.03, " Amer Indian Aleut or Eskimo", " White")
    return frame.assign(income=np.where(yes, " 50000+.", " - 50000.")), "income", "sex,race"


def twins():
    """Columns of one name, one of them sensitive; the second is another column."""
    frame, yes, rng = base(6)
    frame["other amount"], frame["sex again"] = rng.normal(size=N).round(3), frame["sex"]
    frame["ok"] = yes
    return frame.set_axis(["amount", "height", "job", "sex", "amount", "sex", "ok"], axis=1), "ok", "sex"


TABLES = {f.__name__: f for f in (recidivism, credit, pay, admissions, contacts, census, twins)}


@pytest.fixture
def go(tmp_path, invoke, monkeypatch):
    monkeypatch.setattr(judging, "search", lambda model, frame, task, settings: QuickAudit(frame))

    def run(frame, target, sensitive, *options, suffix="csv", **how):
        path = tmp_path / f"people.{suffix}"
        frame.to_csv(path, index=False, **how) if suffix == "csv" else frame.to_json(path, orient="records", lines=True)
        args = ["--target", target, "--sensitive", sensitive, "--out", tmp_path / "run", *QUICK, *options]
        done = invoke("train", path, *args)
        assert done.exit_code == 0, done.stderr
        return path, tmp_path / "run", done

    return run


@pytest.mark.parametrize("name", TABLES)
def test_end_to_end(name, go, invoke):
    frame, target, sensitive = TABLES[name]()
    path, run, done = go(frame, target, sensitive)
    page = (run / "report.html").read_text()
    metrics = json.loads((run / "metrics.json").read_text())
    kinds = {c["name"]: c for c in metrics["columns"]}
    model = load_model(run)
    frame = read_table(path)
    assert not set(model.columns) & set(model.schema.sensitive)
    needed = frame[list(model.columns)]  # predicting asks for nothing else
    predicted = model.predict(needed)
    if name == "recidivism":
        assert [kinds[c]["kind"] for c in ("id", "name", "screened", "is_again")] == [
            "dropped",
            "dropped",
            "date",
            "dropped",
        ]
        assert "alone predicts the target" in kinds["is_again"]["note"]
        assert "Check when is_again is recorded" in page
        assert "Name7 Sur7" not in page
    if name == "credit":
        assert set(predicted.tolist()) <= {1, 2}
    if name == "pay":
        assert metrics["task"] == "regression"
        assert predicted.dtype.kind == "f"
        assert "R2" in page
    if name == "admissions":
        assert "60%" in kinds["test"]["note"] or "missing" in kinds["test"]["note"]
        assert metrics["models"]["plain"]["changed"]["age"]["tried"].startswith("all ")
    if name == "contacts":
        assert {kinds[c]["note"] for c in ("mail", "phone", "remark")} == {
            "e-mail addresses", "telephone numbers", "free text",
        }  # fmt: skip
        assert "@example.org" not in page
        assert set(predicted.tolist()) <= {True, False}
    if name == "census":
        used = {c: kinds[c]["kind"] for c in ("detailed industry recode", "migration code", "instance weight", "year")}
        assert list(used.values()) == ["category", "binary", "dropped", "binary"]
        assert "how many people a row stands for" in page
        assert "left out: by its name it says how many people a row stands for" in done.stderr
        assert set(predicted.tolist()) <= {"50000+.", "- 50000."}
        assert "Amer Indian Aleut or Eskimo: too few people" in page
        assert "'race' has one large group only" in done.stderr
    if name == "twins":
        assert "has more than one column 'amount'; number 5 is called 'amount (2)' here" in done.stderr
        assert {"amount", "amount (2)"} <= set(model.columns)
        assert "amount (2)" in page
        assert "it is the sensitive column &#39;sex&#39; in other words" in page
        assert "sex (2)" not in model.columns
    fair = metrics["models"]["fair"]["changed"]
    assert all(one["share"] == 0 and not one["seen"] for one in fair.values())


def test_the_snippet_of_the_model_card_runs(go, monkeypatch, tmp_path):
    frame, target, sensitive = TABLES["admissions"]()
    go(frame.assign(job=frame["job"].where(frame.index % 7 > 0)), target, sensitive)
    (code,) = re.findall(r"```python\n(.*?)```", (tmp_path / "run" / "model_card.md").read_text(), flags=re.S)
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(code, space)
    assert len(space["model"].predict(space["people"])) == N


def test_without_header(go, tmp_path):
    frame, target, sensitive = TABLES["credit"]()
    _, run, _ = go(frame, "column 5", "column 4", "--no-header", header=False)
    assert json.loads((run / "metrics.json").read_text())["schema"]["classes"] == [1, 2]
    space = snippet_of(run)
    assert len(space["people"]) == N  # the first line is data there, too
    assert set(space["model"].predict(space["people"]).tolist()) <= {1, 2}


def snippet_of(run):
    (code,) = re.findall(r"```python\n(.*?)```", (run / "model_card.md").read_text(), flags=re.S)
    space = {}
    exec(code, space)
    return space


def test_money_and_percent(go, invoke):
    """$1,234.50 and 12.5% are numbers, in training, in predict, in the card's lines and in ONNX."""
    frame, yes, rng = base(7)
    frame["amount"] = [f"${1000 * value:,.2f}" for value in frame["amount"]]
    frame["rate"] = [f"{value:.1f}%" for value in rng.uniform(1, 20, N)]
    path, run, _ = go(frame.assign(ok=yes), "ok", "sex")
    space = snippet_of(run)
    assert space["model"].schema.kind("amount") == space["model"].schema.kind("rate") == "number"
    p = space["model"].predict_proba(space["people"])[:, 1]
    done = invoke("predict", run, path, "--json")
    np.testing.assert_allclose([row["probability of True"] for row in json.loads(done.stdout)], p, atol=1e-6)
    assert invoke("export", run, run / "m.onnx").exit_code == 0
    done = invoke("predict", run / "m.onnx", path, "--json")
    np.testing.assert_allclose([row["probability of True"] for row in json.loads(done.stdout)], p, atol=1e-5)


def test_a_database(invoke, tmp_path, monkeypatch):
    frame, target, sensitive = TABLES["credit"]()
    with sqlite3.connect(tmp_path / "hr.db") as connection:
        frame.to_sql("people", connection, index=False)
    connection.close()
    monkeypatch.setattr(judging, "search", lambda model, frame, task, settings: QuickAudit(frame))
    url = f"sqlite:///{tmp_path / 'hr.db'}"
    args = ["--sql", "select * from people", "--url", url, "--target", target, "--sensitive", sensitive, *QUICK]
    done = invoke("train", *args, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    assert len(snippet_of(tmp_path / "run")["people"]) == N


def test_json_lines(go):
    frame, target, sensitive = TABLES["credit"]()
    _, run, _ = go(frame, target, sensitive, suffix="jsonl")
    assert (run / "report.html").exists()
