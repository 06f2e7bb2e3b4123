"""evenhand certify: networks and trees of somebody else, as they are."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

MODELS = """
import pandas as pd
import torch
from lightgbm import LGBMClassifier
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

data = pd.read_csv({path!r})
X, y = data[["sex", "pay", "age"]], data["yes"]
trees = LGBMClassifier(n_estimators=8, num_leaves=5, verbose=-1).fit(X, y)
quantity = make_pipeline(StandardScaler(), Ridge()).fit(X, data["pay"] / 1e4)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
"""


@pytest.fixture
def strangers(tmp_path, monkeypatch):
    """A table and a module of models that know nothing of us."""
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 500)
    pay, age = rng.uniform(2e4, 6e4, 500), rng.integers(18, 70, 500)
    yes = (pay / 1e4 + sex + rng.normal(size=500) > 4.5).astype(int)
    frame = pd.DataFrame({"sex": sex, "pay": pay, "age": age, "yes": yes})
    frame[:200].to_csv(tmp_path / "train.csv", index=False)
    frame[200:].to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "strangers.py").write_text(MODELS.format(path=str(tmp_path / "train.csv")))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("strangers", None)


@pytest.mark.parametrize("name", ["trees", "quantity", "net"])
def test_what_is_found_lies_below_what_is_proven(strangers, invoke, name):
    options = ["--sensitive", "sex", "--columns", "sex,pay,age", "--rows", "110"]
    result = invoke("certify", f"strangers:{name}", strangers / "new.csv", *options, "--delta", "1e9", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert 0 < found["r_low"] <= found["r_high"] <= found["upper"]
    assert "whether the model has learned from these people only you know" in result.stderr or result.stderr == ""
    if name != "trees":
        return
    low = json.loads(invoke("audit", f"strangers:{name}", strangers / "new.csv", *options, "--json").stdout)
    assert low["r_low"] <= 1.1 * found["r_high"]  # other people and standard deviations, by a little


def test_mistakes(strangers, invoke):
    nothing = invoke("certify", "strangers:net", strangers / "new.csv", "--columns", "sex,pay,age")
    assert nothing.exit_code == 2
    assert "add --sensitive" in nothing.stderr
    few = invoke("certify", "strangers:net", strangers / "new.csv", "--columns", "sex,pay,age", "--sensitive", "sex",
                 "--rows", "40")  # fmt: skip
    assert few.exit_code == 2
    assert "too few" in few.stderr
