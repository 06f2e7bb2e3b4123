"""Every number of a report again, from the saved models and the CSV alone: numpy, scikit-learn and fairlearn, none of
our measuring code. The model is loaded by the lines of its own model card."""

import json
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from scipy.optimize import minimize
from scipy.stats import binomtest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
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


def encoded(train, frame, see_sensitive, scaled=True):
    """(n, d): numbers filled and clipped (and scaled) by the train rows, a column for each value of the others."""
    number = train["pay"].fillna(train["pay"].median())
    pay = frame["pay"].fillna(train["pay"].median()).clip(number.min(), number.max())
    columns = [(pay - number.mean()) / number.std(ddof=0) if scaled else pay]
    columns += [frame["sex"] == "m"] if see_sensitive else []
    for name in ("town", "race") if see_sensitive else ("town",):
        columns += [frame[name] == value for value in sorted(train[name].unique())]
    return np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)


def calibrated(log_p, happened, log_p_new):
    """Probabilities with the slope and the offsets that are likeliest on the first rows, slightly pulled to slope 1 and
    to the shares of the classes."""
    centre = log_p - log_p.mean(1, keepdims=True)
    share = np.log((np.bincount(happened, minlength=2) + 1) / (len(happened) + 2))

    def loss(v):
        z = np.exp(v[0]) * centre + v[1:]
        wanted = z[np.arange(len(z)), happened] - np.log(np.exp(z).sum(1))
        return -wanted.sum() + v[0] ** 2 + np.sum((v[1:] - (share - share.mean())) ** 2)

    v = minimize(loss, np.zeros(3), tol=1e-10).x
    z = np.exp(np.exp(v[0]) * (log_p_new - log_p_new.mean(1, keepdims=True)) + v[1:])
    return z / z.sum(1, keepdims=True)


@pytest.mark.parametrize("name", ["boosted", "boosted_blind"])
def test_boosted_trees_trained_again(run, said, name):
    """By scikit-learn alone, on numbers as they stand in the CSV."""
    _, people, _, parts = run
    regression, seeing = said["task"] == "regression", name == "boosted"
    every, m = table(regression), said["models"][name]
    train, validation = (every.loc[parts.loc[parts["part"] == part, "row"]] for part in ("train", "validation"))
    common = {"max_iter": 3, "early_stopping": True, "random_state": 0}
    trees = HistGradientBoostingRegressor(**common)
    if not regression:
        trees = HistGradientBoostingClassifier(class_weight="balanced", **common)
    trees.fit(encoded(train, train, seeing, scaled=False), train["outcome"])

    def log_odds(frame):
        return np.log(trees.predict_proba(encoded(train, frame, seeing, scaled=False)))

    truth = (validation["outcome"] == 2).to_numpy(dtype=int)
    share = (truth.sum() + 1) / (len(truth) + 2)  # from here on each class counts equally

    def predicted(frame):
        if regression:
            return trees.predict(encoded(train, frame, seeing, scaled=False))
        return np.where(calibrated(log_odds(validation), truth, log_odds(frame))[:, 1] >= share, 2, 1)

    y, now = people["outcome"], predicted(people)
    if regression:
        assert m["r2"] == near(r2_score(y, now))
        assert m["mae"] == near(mean_absolute_error(y, now))
        moved = np.abs([predicted(people.assign(sex=sex)) - now for sex in "fm"]).max(0)
        assert m["changed"]["sex"]["share"] == near(np.mean(moved > 0.1 * train["outcome"].std(ddof=0)))
        return
    p = calibrated(log_odds(validation), truth, log_odds(people))
    assert m["threshold"] == near(share)
    assert m["balanced_accuracy"] == near(balanced_accuracy_score(y, now))
    assert m["auc"] == near(roc_auc_score(y == 2, p[:, 1]))
    assert m["log_loss"] == pytest.approx(log_loss(y, p, labels=[1, 2]), abs=1e-4)
    assert m["mean_probability"] == pytest.approx(p[:, 1].mean(), abs=1e-3)
    other = np.any([predicted(people.assign(sex=sex)) != now for sex in "fm"], axis=0)
    assert m["changed"]["sex"]["share"] == near(other.mean())
    assert (m["changed"]["sex"]["share"] > 0) == seeing


class Searched:
    """A run with a real search and a real certificate, and what numpy alone makes of its files: outputs of the network,
    the fair distance, and what a blind search of its own finds."""

    def __init__(self, folder, regression):
        self.said, self.certificate, self.frontier = (
            json.loads((folder / "metrics.json").read_text()), json.loads((folder / "certificate.json").read_text()),
            pd.read_csv(folder / "frontier.csv"),
        )  # fmt: skip
        every, parts = table(regression), pd.read_csv(folder / "parts.csv")
        self.train, held_out = (every.loc[parts.loc[parts["part"] == part, "row"]] for part in ("train", "held_out"))
        self.people = held_out[held_out["race"].isin(self.train["race"])]
        self.looked_at = self.people.head(self.said["models"]["fair"]["audit"]["n"])
        directions = np.load(folder / "metric.npz")["directions"].astype(float)
        self.costs = np.eye(len(directions)) - directions @ directions.T
        estimator = load_model(folder).pipeline[-1]
        self.layers = [(w.weight.detach().numpy().astype(float), w.bias.detach().numpy().astype(float))
                       for w in estimator.module_ if hasattr(w, "weight")]  # fmt: skip
        self.unit = getattr(estimator, "y_scale_", 1.0)

    def x(self, frame):
        return encoded(self.train, frame, see_sensitive=False)

    def outputs(self, x):
        for i, (weight, bias) in enumerate(self.layers):
            x = x @ weight.T + bias
            x = np.maximum(x, 0) if i < len(self.layers) - 1 else x
        return x - x.mean(-1, keepdims=True) if x.shape[-1] > 1 else x

    def d_y(self, x, other):
        return self.unit**2 * np.square(self.outputs(x) - self.outputs(other)).mean(-1)

    def d_x(self, x, other):
        return np.square((x - other) @ self.costs).sum(-1)

    def r_of_a_blind_search(self, eps, candidates=2000):
        """R(h) over random people: the dual, whose minimum over lam is the linear programme's value."""
        rng, x, known = np.random.default_rng(0), self.x(self.looked_at), self.x(self.train)
        others = np.repeat(x[:, None], candidates, axis=1)
        reach = np.sqrt(eps) * 10 ** rng.uniform(-1, 1, others.shape[:2])
        others[..., 0] += rng.choice([-1, 1], others.shape[:2]) * reach
        towns = known[rng.integers(0, len(known), others.shape[:2]), 1:]
        others[..., 1:] = np.where(rng.random((*others.shape[:2], 1)) < 0.3, towns, others[..., 1:])
        others[..., 0] = others[..., 0].clip(known[:, 0].min(), known[:, 0].max())
        d_x, d_y = self.d_x(others, x[:, None]), self.d_y(others, x[:, None])
        top = d_y.max() / eps
        return min(lam * eps + np.maximum((d_y - lam * d_x).max(1), 0).mean()
                   for lam in np.r_[0, np.geomspace(1e-4, 1, 400) * top])  # fmt: skip


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "quantity"])
def searched(request, invoke, tmp_path_factory):
    folder = tmp_path_factory.mktemp("searched")
    table(request.param).to_csv(folder / "people.csv", index=False)
    few = [
        "--steps",
        "60",
        "--rho",
        "1,5",
        "--hidden",
        "4",
        "--trees",
        "3",
        "--audit-rows",
        "20",
        "--certify-rows",
        "20",
    ]
    args = ["--target", "outcome", "--sensitive", "sex,race", "--out", folder / "run", "--jobs", "1", *few]
    search = judging.search
    with pytest.MonkeyPatch.context() as patched:  # the others have searches like it
        patched.setattr(
            judging, "search", lambda model, frame, *more: search(model, frame, *more) if model.name == "fair" else
            QuickAudit(frame),
        )  # fmt: skip
        done = invoke("train", folder / "people.csv", *args)
    assert done.exit_code == 0, done.stderr
    return Searched(folder / "run", request.param)


def test_the_audit_again(searched):
    """R found: more than its own pairs and a blind search prove, less than the certificate allows."""
    found = searched.said["models"]["fair"]["audit"]
    n, eps, proved = found["n"], found["eps"], 0.0
    assert n == 20
    for person in found["people"]:
        own = searched.people.loc[[int(person["row"])]]
        values = {name: float(would) if name == "pay" else would for name, (_, would) in person["changed"].items()}
        pair = searched.x(own), searched.x(own.assign(**values))
        assert person["d_x"] == pytest.approx(searched.d_x(*pair)[0], rel=1e-3, abs=1e-6)
        assert person["d_x"] <= eps
        assert person["d_y"] == pytest.approx(searched.d_y(*pair)[0], rel=0.1)  # before its numbers were rounded
        proved += searched.d_y(*pair)[0] / n
    assert found["r_low"] >= 0.9 * proved
    blind = searched.r_of_a_blind_search(eps)
    assert found["r_low"] >= 0.97 * blind
    assert blind <= searched.certificate["r_high"] * (1 + 1e-6)  # nothing may exceed it, on the same people
    assert found["r_low"] <= searched.certificate["r_high"] * (1 + 1e-6)
    assert found["relative"] == near(found["r_low"] / found["strangers"])
    differences = [searched.d_y(a, b) for a, b in product(searched.x(searched.looked_at), repeat=2)]
    assert min(d for d in differences if d > 0) <= found["strangers"] <= max(differences)


def test_the_certificate_again(searched):
    c, x = searched.certificate, searched.x(searched.looked_at)
    assert (c["n"], c["confidence"]) == (20, 0.95)
    differences = [searched.d_y(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j]
    assert c["strangers"] == pytest.approx(np.mean(differences), rel=1e-4)
    assert 0 <= c["lower"] <= c["r_low"] * (1 + 1e-9)
    assert c["r_low"] <= c["r_high"] <= c["upper"]
    assert c["relative"]["low"] == near(c["r_low"] / c["strangers"])
    assert c["relative"]["high"] == near(c["r_high"] / c["strangers"])
    top = np.inf if c["relative"]["upper"] is None else c["relative"]["upper"]  # of so few people
    assert c["relative"]["lower"] <= c["relative"]["low"] <= c["relative"]["high"] <= top
    low, high = np.array(c["each_low"]), np.array(c["each_high"])
    assert len(low) == len(high) == 20
    assert (low <= high + 1e-9).all()
    assert all(f"{c[key]:.3g}" in c["statement"] for key in ("lower", "upper"))


def test_the_chosen_weight_again(searched):
    """The rule of the report, applied again to the table of what was tried."""
    chosen, reference = searched.said["chosen"], searched.said["reference"]
    assert reference["accuracy"] == max(reference["each"].values()) == reference["each"][reference["name"]]
    tried = searched.frontier
    allowed = tried[tried["accuracy"] >= reference["accuracy"] - 0.03]
    assert chosen["within"] == (len(allowed) > 0)
    best = allowed.loc[allowed["unfairness"].idxmin()] if len(allowed) else tried.loc[tried["accuracy"].idxmax()]
    assert chosen["rho"] == best["rho"]
    assert f"{best['accuracy']:.3f}" in chosen["why"]


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
