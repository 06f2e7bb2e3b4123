"""Every number of a report again, from the saved models and the CSV alone: numpy, scikit-learn and fairlearn, none of
our measuring code. The model is loaded by the lines of its own model card."""

import json
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from scipy.stats import binomtest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    recall_score,
    roc_auc_score,
)

from evenhand.workflow import judging, load_model

from .conftest import QUICK, QuickAudit

N = 400
Z = 1.959964


def table(regression):
    """Missing values, a sensitive column that decides, and a group of one."""
    rng = np.random.default_rng(5)
    sex, pay = rng.choice(["f", "m"], N), rng.normal(30, 8, N).round(2)
    frame = pd.DataFrame({"pay": pay, "town": rng.choice(["a", "b", "c"], N), "sex": sex})
    frame["race"] = np.where(np.arange(N) == 7, "alone", rng.choice(["x", "y"], N))
    score = pay + 6 * (sex == "m") + rng.normal(0, 4, N)
    frame["outcome"] = score.round(3) if regression else np.where(score > 36, 2, 1)
    frame.loc[rng.random(N) < 0.1, "pay"] = np.nan
    return frame


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "quantity"])
def run(request, invoke, tmp_path_factory):
    """The folder, the held-out rows of the CSV, and the networks of the run, the fair one by the card's own lines."""
    folder = tmp_path_factory.mktemp("again")
    table(request.param).to_csv(folder / "people.csv", index=False)
    args = ["--target", "outcome", "--sensitive", "sex,race", "--out", folder / "run", *QUICK, "--show-people", "all"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(judging, "search", lambda model, frame, task, settings: QuickAudit(frame))
        done = invoke("train", folder / "people.csv", *args)
    assert done.exit_code == 0, done.stderr
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "run" / "model_card.md").read_text(), flags=re.S)
    space = {}
    exec(code, space)
    parts = pd.read_csv(folder / "run" / "parts.csv")
    assert sorted(parts["row"]) == list(range(N))  # nobody is left out, nobody counts twice
    rows = parts.loc[parts["part"] == "held_out", "row"]
    trained = set(space["people"].loc[parts.loc[parts["part"] == "train", "row"], "race"])
    people = space["people"].loc[rows]
    people = people[people["race"].isin(trained)]  # a category that training did not have is outside
    names = ("plain", "blind", "project")
    models = {n: load_model(p) for n in names if (p := folder / "run" / "stages" / f"{n}.evenhand").exists()}
    return folder / "run", people, {**models, "fair": space["model"]}, parts


@pytest.fixture
def said(run):
    return json.loads((run[0] / "metrics.json").read_text())


def near(value, **how):
    return pytest.approx(value, rel=1e-5, abs=1e-7, **how)


def wilson(k, n):
    return list(binomtest(int(k), int(n)).proportion_ci(method="wilson"))


def mean_and_interval(values):
    half = Z * np.std(values, ddof=1) / np.sqrt(len(values))
    return np.mean(values), [np.mean(values) - half, np.mean(values) + half]


def changed_rows(frame, values):
    """The table with every combination of values of the sensitive columns."""
    for combination in product(*values.values()):
        yield frame.assign(**dict(zip(values, combination)))


def test_accuracy_and_probabilities(run, said):
    _, people, models, *_ = run
    for name, model in models.items():
        m, y, predicted = said["models"][name], people["outcome"], model.predict(people)
        assert m["n"] == len(people)
        if said["task"] == "regression":
            assert m["r2"] == near(r2_score(y, predicted))
            assert m["mae"] == near(mean_absolute_error(y, predicted))
            assert m["rmse"] == near(np.sqrt(np.mean((y - predicted) ** 2)))
            assert m["intervals"]["mae"] == near(mean_and_interval(np.abs(y - predicted))[1])
            continue
        p = model.predict_proba(people)
        happened = (y == 2).to_numpy()
        assert m["accuracy"] == near(accuracy_score(y, predicted))
        assert m["balanced_accuracy"] == near(balanced_accuracy_score(y, predicted))
        assert m["auc"] == near(roc_auc_score(happened, p[:, 1]))
        assert m["log_loss"] == near(log_loss(y, p, labels=[1, 2]))
        assert m["brier"] == near(np.mean(np.sum((p - np.stack([~happened, happened], 1)) ** 2, 1)))
        assert m["mean_probability"] == near(p[:, 1].mean())
        assert m["observed"] == near(happened.mean())
        assert m["intervals"]["accuracy"] == near(wilson((predicted == y).sum(), len(y)))
        assert m["false_positives"]["rate"] == near(false_positive_rate(happened, predicted == 2))
        assert m["false_negatives"]["rate"] == near(1 - recall_score(happened, predicted == 2))
        assert m["selected"]["rate"] == near(selection_rate(happened, predicted == 2))
        np.testing.assert_array_equal(predicted == 2, p[:, 1] >= m["threshold"])  # decisions are made where it says
        bins = np.array_split(np.argsort(p[:, 1], kind="stable"), len(m["calibration"]))
        off = [abs(p[part, 1].mean() - happened[part].mean()) * len(part) for part in bins]
        assert m["calibration_error"] == near(sum(off) / len(y))


def test_groups(run, said):
    _, people, models, *_ = run
    for name, model in models.items():
        predicted, y = model.predict(people), people["outcome"]
        for attribute in ("sex", "race"):
            group = said["models"][name]["groups"][attribute]
            assert {r["group"]: r["n"] for r in group["rates"]} == people[attribute].value_counts().to_dict()
            assert {r["group"] for r in group["rates"] if r["small"]} == {
                str(value) for value, count in people[attribute].value_counts().items() if count < 30
            }
            if said["task"] == "regression":
                for rate in group["rates"]:
                    there = people[attribute] == rate["group"]
                    assert rate["error"]["rate"] == near(np.mean(predicted[there] - y[there]))
                    assert rate["observed"] == near(y[there].mean())
                continue
            metrics = {"selection": selection_rate, "tpr": true_positive_rate, "fpr": false_positive_rate}
            found = MetricFrame(
                metrics=metrics, y_true=y == 2, y_pred=predicted == 2, sensitive_features=people[attribute]
            )
            for rate in group["rates"]:
                for key in metrics:
                    if rate[key]["rate"] is not None:
                        assert rate[key]["rate"] == near(found.by_group.loc[rate["group"], key])
            large = [r["group"] for r in group["rates"] if not r["small"]]
            selected = found.by_group.loc[large, "selection"]
            if group["four_fifths"] is not None:
                assert group["four_fifths"]["ratio"] == near(selected.min() / selected.max())
            gaps = []
            for label in (1, 2):
                rates = [np.mean(predicted[there] == label) for g in people[attribute].unique()
                         if (there := ((people[attribute] == g) & (y == label)).to_numpy()).sum() >= 10]  # fmt: skip
                gaps += [max(rates) - min(rates)] if len(rates) > 1 else []  # one group has no gap: undefined
            assert group["rms"] == near(np.sqrt(np.mean(np.square(gaps))))
            assert group["max"] == near(max(gaps))


def test_what_changes_with_the_sensitive_columns(run, said):
    _, people, models, parts = run
    every = table(said["task"] == "regression")
    train = every.loc[parts.loc[parts["part"] == "train", "row"]]
    values = {name: sorted(train[name].unique()) for name in ("sex", "race")}
    spread = train["outcome"].std(ddof=0)
    for name, model in models.items():
        for question, columns in (("sex", ["sex"]), ("race", ["race"]), ("sex or race", ["sex", "race"])):
            now = model.predict(people)
            versions = [model.predict(v) for v in changed_rows(people, {c: values[c] for c in columns})]
            if said["task"] == "regression":
                other = np.abs(np.stack(versions) - now).max(0) > 0.1 * spread
            else:
                other = (np.stack(versions) != now).any(0)
            answer = said["models"][name]["changed"][question]
            assert answer["share"] == near(other.mean())
            assert answer["interval"] == near(wilson(other.sum(), len(people)))
            assert answer["seen"] == (name == "plain")
            assert answer["versions"] == len(versions) + 1


def test_comparisons_thresholds_and_people(run, said):
    folder, people, models, *_ = run
    y, ours = people["outcome"], models["fair"].predict(people)
    for name, model in models.items():
        theirs = model.predict(people)
        if name != "fair":
            score = r2_score if said["task"] == "regression" else balanced_accuracy_score
            assert said["comparisons"][name]["difference"] == near(score(y, ours) - score(y, theirs))
        for person in said["models"][name]["people"][:5]:
            own = people.loc[[int(person["row"])]]
            assert person["record"]["sex"] == own["sex"].iloc[0]
            other = own.assign(**{column: would for column, (_, would) in person["changed"].items()})
            both = pd.concat([own, other])
            scores = model.predict(both) if said["task"] == "regression" else model.predict_proba(both)[:, 1]
            assert [person["score"], person["score_other"]] == near(scores)
            if said["task"] != "regression":
                assert [person["decision"], person["decision_other"]] == [str(d) for d in model.predict(both)]
    if said["task"] == "classification":
        p = models["fair"].predict_proba(people)[:, 1]
        for line in said["models"]["fair"]["thresholds"][::8]:
            chosen = np.where(p >= line["threshold"], 2, 1)
            assert line["balanced_accuracy"] == near(balanced_accuracy_score(y, chosen))
            assert line["selected"] == near(np.mean(chosen == 2))
            for sex, share in line["by_group"]["sex"].items():
                assert share == near(np.mean(chosen[people["sex"] == sex] == 2))


def test_the_page_shows_these_numbers(run, said):
    folder, *_ = run
    page = re.sub(r"\s+", " ", (folder / "report.html").read_text())
    for m in said["models"].values():
        if said["task"] == "regression":
            assert f"{m['r2']:.3f}<br>" in page
        else:
            assert f"{m['balanced_accuracy']:.1%}<br>" in page
            assert f"{m['auc']:.3f}<br>" in page
            assert f"{m['log_loss']:.3f}<br>" in page
        for answer in m["changed"].values():
            assert f"{answer['share']:.1%}<br>" in page
        for group in m["groups"].values():
            if "rms" in group:
                assert f"{group['rms']:.1%}</td>" in page
    for sizes in said["rows"].values():
        assert f"({sizes:,}" in page
