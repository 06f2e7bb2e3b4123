import functools
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from evenhand import FairMetric, GradientSearch, SenSeIClassifier
from evenhand.frontier.store import Store, fingerprint


def test_save_and_load(tmp_path):
    store, module = Store(tmp_path / "new"), nn.Linear(3, 2)
    assert store.load("k") is None
    store.save("k", {"scores": {"accuracy": 0.1 + 0.2}, "lam": np.float64(1 / 3)}, module)
    assert store.load("k") == {"scores": {"accuracy": 0.1 + 0.2}, "lam": 1 / 3}
    for name, value in store.load_weights("k").items():
        assert torch.equal(value, module.state_dict()[name])
    assert sorted(path.name for path in store.directory.iterdir()) == ["k.json", "k.npz"]  # no partial file is left


def test_damaged_or_partial_files_are_no_results(tmp_path):
    (tmp_path / "k.json").write_text('{"scores": {"accur')
    (tmp_path / ".j.json.1.partial").write_text("{}")
    assert Store(tmp_path).load("k") is None
    assert Store(tmp_path).load("j") is None
    assert Store(None).load("k") is None
    Store(None).save("k", {}, None)


def test_nothing_appears_when_writing_fails(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(TypeError):
        store.save("k", {(1, 2): "keys of JSON are strings"}, None)
    assert list(tmp_path.iterdir()) == []


def test_records_are_readable(tmp_path):
    Store(tmp_path).save("k", {"params": {"rho": np.int64(3)}}, None)
    assert json.loads((tmp_path / "k.json").read_text()) == {"params": {"rho": 3}}


PROGRAM = """
import numpy as np, pandas as pd, torch
from functools import partial
from evenhand import FairMetric, GradientSearch, SenSeIClassifier
from evenhand.frontier.store import fingerprint
def learner(X, columns=("a",)): return None
print(fingerprint([SenSeIClassifier(FairMetric([[1.0], [0.0]]), search=GradientSearch(), rho=2), np.arange(3.0),
    pd.DataFrame({"a": ["x", "y"]}), partial(learner, columns=("b",)), lambda x: x + 1, {"k": 1}]))
"""


def test_fingerprint_is_the_same_in_another_process():
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True) for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.strip()) == 20


def learner(X, k=1):
    return X


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SenSeIClassifier(rho=1), SenSeIClassifier(rho=2)),
        (SenSeIClassifier(FairMetric([[1.0], [0.0]])), SenSeIClassifier(FairMetric([[0.0], [1.0]]))),
        (SenSeIClassifier(search=GradientSearch()), SenSeIClassifier(search=GradientSearch(starts=2))),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"b": [1, 2]})),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]})),
        (functools.partial(learner, k=2), functools.partial(learner, k=3)),
        (lambda x: x + 1, lambda x: x + 2),
        (np.zeros(4), np.zeros((2, 2))),
        ([1, [2]], [[1], 2]),
    ],
)
def test_fingerprint_tells_apart(one, other):
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_fingerprint_sees_what_a_closure_holds():
    def make(k):
        return lambda x: x + k

    assert fingerprint(make(1)) != fingerprint(make(2))
