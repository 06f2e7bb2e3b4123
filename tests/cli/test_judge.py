"""audit and certify: any model, honest exit codes."""

import dataclasses
import json
import subprocess
import sys
import textwrap

import pytest
import torch

from evenhand.certify.certificate import Certificate
from evenhand.cli import proving
from evenhand.headline import Bracketed
from evenhand.tables.encoder import positions
from evenhand.workflow import load_model

from .conftest import people

GRADIENT_BOOSTING = """
import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

_data = pd.read_csv(r"{path}")
boosting = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["job", "sex"]), ("passthrough", ["age", "pay"])),
    GradientBoostingClassifier(n_estimators=10, random_state=0),
).fit(_data[["age", "pay", "job", "sex"]], _data["approved"])

def by_sex(frame):
    return (frame["sex"] == "male").astype(float) * 0.8 + 0.1

class ByPay:
    feature_names_in_ = ["pay", "age"]
    classes_ = [0, 1]

    def predict_proba(self, frame):
        assert list(frame.columns) == ["pay", "age"]
        p = 1 / (1 + np.exp(-(frame["pay"].to_numpy(float) - 32) / 4))
        return np.stack([1 - p, p], 1)

by_pay = ByPay()
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q = torch.nn.Linear(2, 2)

    def forward(self, x):
        return torch.softmax(self.q(x), 1) * x

net_of_attention = Attention()
nothing = 3
"""


@pytest.fixture
def own_models(tmp_path, monkeypatch):
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "boostmodels.py").write_text(textwrap.dedent(GRADIENT_BOOSTING.format(path=tmp_path / "people.csv")))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("boostmodels", None)


def test_audit_of_ours(trained, invoke, tmp_path):
    folder, _ = trained
    out = tmp_path / "worst.csv"
    args = ["audit", folder / "run", folder / "people.csv", "--rows", "8", "--out", out]
    result = invoke(*args, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["r_low"] >= found["lower"] >= 0
    assert found["questions"]["sex"]["share"] == 0  # it does not see it
    assert not found["questions"]["sex"]["seen"]
    assert out.exists()


def test_audit_without_gradients(own_models, invoke):
    data = own_models / "people.csv"
    result = invoke("audit", "boostmodels:boosting", data, "--sensitive", "sex", "--rows", "10", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["r_low"] > 0  # approval depends on sex in these data
    assert found["questions"]["sex"]["share"] > 0
    assert all(line["changed"] for line in found["people"])  # nobody is compared with a person of two jobs, or none
    function = invoke("audit", "boostmodels:by_sex", data, "--sensitive", "sex", "--json")
    assert json.loads(function.stdout)["questions"]["sex"]["share"] == 1.0
    text = invoke("audit", "boostmodels:by_sex", data, "--sensitive", "sex").stdout
    assert "R(h) >=" in text
    assert "100.0% of the decisions change when only sex is altered (tried: all 2 values of sex)" in text


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("boostmodels:missing", "has no 'missing'; it has"),
        ("boostmodels:nothing", "no predict_proba and no predict"),
        ("nomodule:x", "no Python module 'nomodule'"),
        ("model.pkl", "pickled models are not loaded"),
        ("nowhere.evenhand", "no model file nowhere.evenhand"),
        ("nowhere.onnx", "there is no file nowhere.onnx"),
        ("word", "give a .evenhand or .onnx file, the folder of a run, or module:object"),
    ],
)
def test_models_that_are_none(own_models, invoke, model, message):
    result = invoke("audit", model, own_models / "people.csv", "--sensitive", "sex")
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_sensitive_columns_of_another_file(own_models, invoke):
    """A model that has never seen them, in a table without them; one says what it takes, one does not."""
    frame = people().rename_axis("id").reset_index()
    frame.drop(columns=["sex"]).to_csv(own_models / "open.csv", index=False)
    frame[["id", "sex"]].sample(frac=1, random_state=0).to_csv(own_models / "closed.csv", index=False)
    with (own_models / "boostmodels.py").open("a") as file:
        file.write(
            "\ndef by_number(frame):\n    assert 'sex' not in frame\n    return (frame['pay'] > 32) * 0.8 + 0.1\n"
        )
    for name in ("by_pay", "by_number"):
        args = ["audit", f"boostmodels:{name}", own_models / "open.csv", "--attributes", own_models / "closed.csv",
                "--sensitive", "sex", "--rows", "10", "--json"]  # fmt: skip
        result = invoke(*args, "--by", "id")
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["questions"]["sex"]["seen"] is False
    without = invoke(*args)
    assert without.exit_code == 2
    assert "'id' is in both tables and differs" in without.stderr
    assert "--by COLUMN" in without.stderr


def test_a_model_that_fails_is_no_internal_error(own_models, invoke):
    with (own_models / "boostmodels.py").open("a") as file:
        file.write("\ndef failing(frame):\n    return frame['no such column']\n")
    result = invoke("audit", "boostmodels:failing", own_models / "people.csv", "--sensitive", "sex")
    assert result.exit_code == 2
    assert "boostmodels:failing failed on a table with the columns 'age', 'pay'" in result.stderr
    assert "KeyError" in result.stderr
    assert "--columns" in result.stderr


def test_black_boxes_must_say_what_is_sensitive(own_models, invoke):
    result = invoke("audit", "boostmodels:boosting", own_models / "people.csv")
    assert "add --sensitive sex,race" in result.stderr


def certificate(lower, upper):
    import numpy as np

    return Certificate(
        lower, upper, lower, upper, 1.0, 1.0, 1.0, 0.01, 60, 0.95, "d_Y", np.zeros(60), np.ones(60), np.arange(60)
    )


@pytest.mark.parametrize(
    ("lower", "upper", "code", "word"),
    [(0, 0.05, 0, "certified"), (0.2, 0.5, 1, "refuted"), (0.05, 0.5, 3, "undecided")],
)
def test_exit_codes_of_certify(trained, invoke, monkeypatch, lower, upper, code, word):
    folder, _ = trained
    monkeypatch.setattr(proving, "prove", lambda *args, **kwargs: certificate(lower, upper))
    result = invoke("certify", folder / "run", folder / "people.csv", "--delta", "0.1", "--distinct-people")
    assert result.exit_code == code
    assert f"{word}: R(h)" in result.stdout
    as_json = invoke("certify", folder / "run", folder / "people.csv", "--delta", "0.1", "--json", "--distinct-people")
    assert json.loads(as_json.stdout)["verdict"] == word


@pytest.mark.parametrize(
    ("bounds", "code"), [((0.0, 0.04), 0), ((0.1, 0.2), 1), ((0.0, 0.2), 3), ((0.05, 0.06), 3), (None, 3)]
)
def test_a_limit_relative_to_strangers(trained, invoke, monkeypatch, bounds, code):
    """R(h) in squared dollars is far above any --delta; the share of how strangers are treated has no unit."""
    folder, _ = trained
    share = None if bounds is None else Bracketed(*bounds, *bounds)
    found = dataclasses.replace(certificate(3e6, 4e6), relative=share)
    monkeypatch.setattr(proving, "prove", lambda *args, **kwargs: found)
    result = invoke("certify", folder / "run", folder / "people.csv", "--relative", "0.05", "--distinct-people")
    assert result.exit_code == code
    assert "0.05 of how differently strangers are treated" in result.stdout


def test_what_certify_hands_to_the_proof(trained, invoke, monkeypatch, tmp_path):
    """The proof itself has tests of its own; here: the rows, the metric, the domain and the options that reach it."""
    folder, _ = trained
    seen = {}

    def prove(opened, people, x_tune, eps, confidence, progress):
        seen.update(people=people, metric=opened.fair_metric, eps=eps, box=opened.box, x_tune=x_tune,
                    confidence=confidence)  # fmt: skip
        return certificate(0.0, 0.05)

    monkeypatch.setattr(proving, "prove", prove)
    options = [
        "--rows",
        "60",
        "--eps",
        "0.02",
        "--confidence",
        "0.9",
        "--out",
        tmp_path / "c.json",
        "--distinct-people",
    ]
    result = invoke("certify", folder / "run", folder / "people.csv", "--tuning", folder / "people.csv", *options)
    assert result.exit_code == 0, result.stderr
    assert len(seen["people"]) == 60
    assert (seen["eps"], seen["confidence"]) == (0.02, 0.9)
    assert seen["metric"].d == seen["box"].d
    assert len(seen["x_tune"]) == 320
    assert Certificate.from_json((tmp_path / "c.json").read_text()).upper == 0.05


def test_certify_refuses_what_it_cannot_prove(own_models, trained, invoke):
    result = invoke("certify", "boostmodels:boosting", own_models / "people.csv")
    assert result.exit_code == 2
    assert "does not say which columns are sensitive; add --sensitive" in result.stderr
    result = invoke("certify", "boostmodels:net_of_attention", own_models / "people.csv", "--sensitive", "sex",
                    "--columns", "pay,age")  # fmt: skip
    assert result.exit_code == 2
    assert "cannot be certified" in result.stderr
    assert "evenhand audit works for any model" in result.stderr
    folder, _ = trained
    result = invoke("certify", folder / "run", folder / "people.csv", "--rows", "10", "--distinct-people")
    assert "10 usable rows are too few" in result.stderr


def test_rows_that_the_model_was_trained_on_are_refused(trained, invoke, tmp_path, monkeypatch):
    monkeypatch.setattr(proving, "prove", lambda *args, **kwargs: certificate(0.0, 0.05))
    folder, _ = trained
    result = invoke("certify", folder / "run", folder / "people.csv")
    assert result.exit_code == 2
    assert "of 320 rows are rows that the model was trained, chosen or tuned on" in result.stderr
    people(100, seed=77).to_csv(tmp_path / "new.csv", index=False)
    assert invoke("certify", folder / "run", tmp_path / "new.csv").exit_code == 0
    plain = invoke("certify", folder / "run" / "stages" / "plain.evenhand", folder / "people.csv")
    assert "trained, chosen or tuned on" in plain.stderr


def test_every_model_of_a_run_is_judged_by_the_metric_of_the_run(trained):
    """The plain network has no use for a metric; its file carries the run's, never a Euclidean one."""
    folder, _ = trained
    plain = load_model(folder / "run" / "stages" / "plain.evenhand")
    places = positions(plain.pipeline[0])
    step = torch.zeros(1, plain.fair_metric.d)
    step[0, places["sex"]] = 1.0
    assert plain.fair_metric.cost(step).item() == 0
    assert plain.box is not None


def test_a_model_that_never_saw_the_sensitive_column(own_models, invoke):
    data = own_models / "people.csv"
    result = invoke("audit", "boostmodels:by_pay", data, "--sensitive", "sex", "--rows", "40", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["questions"]["sex"] | {"share": 0.0, "seen": False} == found["questions"]["sex"]
    module = invoke(
        "audit", "boostmodels:net", data, "--sensitive", "sex", "--columns", "age,pay", "--rows", "30", "--json"
    )
    assert module.exit_code == 0, module.stderr
    assert json.loads(module.stdout)["r_low"] >= 0
    wrong = invoke("audit", "boostmodels:net", data, "--sensitive", "sex", "--columns", "age,pay,job")
    assert wrong.exit_code == 2
    assert "takes numbers, but column(s) 'job' hold text" in wrong.stderr


def test_as_a_module():
    out = subprocess.run(
        [sys.executable, "-m", "evenhand", "certify", "--help"], capture_output=True, text=True, check=True
    )
    assert "Exit codes: 0 certified" in " ".join(out.stdout.split())
    assert "Example: evenhand certify" in " ".join(out.stdout.split())
