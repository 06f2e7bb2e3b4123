import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from evenhand import ERMClassifier, FairMetric, SenSeIClassifier, SenSeIRegressor, SenSRClassifier
from evenhand.datasets import synthetic
from evenhand.frontier import SearchedUnfairness, frontier
from evenhand.frontier.sweep import one_thread

ROOT = Path(__file__).parents[2]
METRIC = FairMetric([[1.0], [0.0]])
X, Y = synthetic(300)


def make(**options):
    settings = {"eps": 0.01, "hidden": (16,), "steps": 60, "batch_size": 100, "lr": 5e-3, "random_state": 0}
    return SenSeIClassifier(METRIC, **{**settings, **options})


SCORES = {"unfairness": SearchedUnfairness(0.01, rows=8)}


def sweep(directory=None, **options):
    return frontier(make(), X, Y, rho=[0, 5, 1], scores=SCORES, cv=2, directory=directory, progress=False, **options)


def without_time(found):
    return found.frame.drop(columns="seconds")


@pytest.fixture(scope="module")
def alone():
    """What the sweep finds in one process."""
    return without_time(sweep())


def test_unfairness_falls_along_rho():
    found = frontier(make(steps=200), X, Y, rho=[0, 0.3, 5], scores=SCORES, cv=2, progress=False)
    assert found.table["rho"].tolist() == [0, 0.3, 5]
    assert found.table["unfairness"].is_monotonic_decreasing
    assert found.choose(max_accuracy_loss=0).params["rho"] < 5
    assert len(found.frame) == 6


def test_processes_give_what_one_process_gives(alone):
    pd.testing.assert_frame_equal(without_time(sweep(n_jobs=2)), alone)


def test_resumes_with_the_same_result(tmp_path, alone):
    """Any part of the finished models may be there: what is trained again comes out as it was."""
    pd.testing.assert_frame_equal(without_time(sweep(tmp_path)), alone)
    records = sorted(tmp_path.glob("*.json"))
    assert len(records) == 6
    for record in records[::2]:
        record.unlink()
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    pd.testing.assert_frame_equal(without_time(sweep(tmp_path)), alone)
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    assert len(list(tmp_path.glob("*.json"))) == 6


def test_another_sweep_takes_nothing_from_the_directory(tmp_path):
    for model, data in ((make(steps=9), X), (make(steps=10), X), (make(steps=9), X + 1)):
        frontier(model, data, Y, rho=[0], scores=SCORES, cv=2, directory=tmp_path, progress=False)
    assert len(list(tmp_path.glob("*.json"))) == 6


PROGRAM = """
import sys, time
from tests_sweep import make, X, Y, SCORES
from evenhand.frontier import frontier
frontier(make(), X, Y, rho=[0, 1, 2], scores=SCORES, cv=2, n_jobs=2, directory=sys.argv[1], progress=False)
"""


def test_kill_loses_at_most_the_models_in_flight(tmp_path):
    """kill -9 of the whole process group in the middle, then the same call again."""
    store, code = tmp_path / "store", tmp_path / "tests_sweep.py"
    code.write_text(Path(__file__).read_text())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(store)]
    process = subprocess.Popen(command, env=env, start_new_session=True)
    deadline = time.monotonic() + 400
    while not list(store.glob("*.json")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, "the sweep ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in store.glob("*.json")}
    assert 1 <= len(finished) < 6
    subprocess.run(command, env=env, check=True)
    assert len(list(store.glob("*.json"))) == 6
    assert all(path.stat().st_mtime_ns == then for path, then in finished.items())  # nothing was trained twice


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_takes_the_work_unchanged(alone):
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        found = without_time(sweep())
        ran_on = client.run(lambda: os.getpid())
    assert len(set(ran_on.values()) - {os.getpid()}) == 2
    pd.testing.assert_frame_equal(found, alone)


def test_warm_start_needs_fewer_steps(tmp_path):
    """A chain's later models start from the one before: with one step they stay near it, anew they do not."""
    given = {"scores": SCORES, "cv": 2, "progress": False}
    warm = frontier(make(steps=200), X, Y, rho=[0, 0.001], warm_share=0.005, **given)
    cold = frontier(make(steps=1), X, Y, rho=[0.001], **given)
    assert warm.table["accuracy"].iloc[1] == pytest.approx(warm.table["accuracy"].iloc[0], abs=0.02)
    assert cold.table["accuracy"].iloc[0] < warm.table["accuracy"].iloc[1] - 0.02


def test_a_sweep_of_the_network_starts_each_anew():
    params = {"hidden": [(4,), (8,)], "rho": [0, 1]}
    found = frontier(make(steps=10), X, Y, params=params, scores=SCORES, cv=2, progress=False)
    assert len(found.table) == 4
    assert found.choose(max_accuracy_loss=1).params.keys() == {"hidden", "rho"}


def test_sensr_along_eps_is_measured_at_one_eps():
    model = SenSRClassifier(METRIC, hidden=(16,), steps=30, random_state=0)
    found = frontier(model, X, Y, params={"eps": [0.0, 0.1]}, scores=SCORES, cv=2, progress=False)
    assert found.table["eps"].tolist() == [0.0, 0.1]
    assert found.table["unfairness"].notna().all()


def test_regressors_and_scores_of_ones_own():
    model = SenSeIRegressor(METRIC, eps=0.01, steps=100, random_state=0)
    own = {"worst": lambda model, X, y: np.abs(model.predict(X) - y).max()}
    found = frontier(model, X, X[:, 1] + X[:, 0], rho=[0, 5], scores=own, cv=2, progress=False)
    assert {"worst", "worst_low", "worst_high"} <= set(found.table)
    assert found.table["unfairness"].iloc[1] < found.table["unfairness"].iloc[0]


def test_progress_goes_to_stderr(capsys):
    frontier(make(steps=2), X, Y, rho=[0], scores=SCORES, cv=2, progress=True)
    assert "2 of 2 models" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either rho"),
        ({"rho": [1], "params": {"rho": [1]}}, "either rho"),
        ({"rho": []}, "empty"),
        ({"params": {"rhoo": [1]}}, "no parameter 'rhoo'"),
        ({"rho": [1], "chain": 0}, "chain"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        frontier(make(), X, Y, **options)


def test_an_estimator_without_a_metric_must_say_what_is_unfair():
    with pytest.raises(ValueError, match="say what is unfair"):
        frontier(ERMClassifier(), X, Y, params={"steps": [1]})


def test_one_thread_is_given_back():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


PEOPLE, LABELS = synthetic(80, seed=0)
TINY = {"hidden": (4,), "steps": 4, "batch_size": 20, "random_state": 0}


@pytest.mark.parametrize(
    "form",
    [pa.Table.from_pandas, lambda X: pl.from_pandas(X).lazy(), sparse.csr_array, lambda X: X.to_numpy().tolist()],
)
def test_it_takes_the_tables_that_estimators_take(form):
    model = SenSeIClassifier(FairMetric([[1.0], [0.0]]), **TINY)
    frame = pd.DataFrame(PEOPLE, columns=["a", "b"])
    options = {"rho": [0, 1], "cv": 2, "scores": ONLY_WEIGHTS, "progress": False}
    found, expected = (frontier(model, X, LABELS, **options) for X in (form(frame), frame))
    pd.testing.assert_frame_equal(without_time(found), without_time(expected))


def size_of(model, X, y):
    return float(model.module_[0].weight.detach().abs().sum())


ONLY_WEIGHTS = {"accuracy": size_of, "unfairness": size_of}


@pytest.mark.parametrize("form", [np.asarray, list, pd.Series, lambda s: pl.DataFrame({"group": s})])
def test_sensitive_features_and_weights_are_split_with_the_rows(form, tmp_path):
    """Each model is the one that its fold alone gives; other features are another sweep."""
    group, weight = (PEOPLE[:, 0] > 0).astype(int), np.arange(80) % 3 + 1.0
    model = SenSeIClassifier(**TINY)
    given = {"sensitive_features": form(group), "sample_weight": weight}
    options = {"rho": [1], "cv": KFold(2), "scores": ONLY_WEIGHTS, "progress": False, "directory": tmp_path}
    found = frontier(model, PEOPLE, LABELS, fit_params=given, **options).frame["accuracy"]
    for (rows, _), value in zip(KFold(2).split(PEOPLE), found):
        alone = clone(model).set_params(rho=1)
        alone.fit(PEOPLE[rows], LABELS[rows], weight[rows], sensitive_features=group[rows])
        assert value == size_of(alone, None, None)
    other = frontier(model, PEOPLE, LABELS, fit_params=given | {"sample_weight": weight[::-1]}, **options)
    assert not np.allclose(other.frame["accuracy"], found)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[80, 80, 79\]"):
        frontier(model, PEOPLE, LABELS, fit_params={"sample_weight": weight[1:]}, **options)
