"""Data larger than memory gives what the same data in memory give, and memory stays bounded."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from evenhand import ERMClassifier, FairMetric, SenSeIClassifier, SenSeIRegressor, fair_metrics
from evenhand.estimators import CLPClassifier
from evenhand.objectives import ERM
from evenhand.training.loop import train
from evenhand.training.streams import Repeated, arrow_batches, chunks, endless, mapped_batches
from evenhand.variations import Variations

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 5)).astype(np.float32)
X[:, 1] = X[:, 0] + 0.5 * X[:, 1] > 0  # binary, predicted by column 0
Y = (X[:, 2] + 0.5 * X[:, 0] > 0).astype(int)

FIRST = FairMetric(torch.eye(5)[:, 1:2])


def pieces(*arrays, rows=100):
    return [tuple(a[i : i + rows] for a in arrays) for i in range(0, len(arrays[0]), rows)]


def learned(data):
    torch.manual_seed(0)
    model = nn.Linear(5, 2)
    train(model, ERM(), data, steps=40, lr=0.05)
    return ((model(torch.from_numpy(X)).argmax(1).numpy()) == Y).mean()


def test_train_takes_any_kind_of_stream(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    x, y = np.load(tmp_path / "x.npy", mmap_mode="r"), np.load(tmp_path / "y.npy", mmap_mode="r")
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=Y)
    frame.to_parquet(tmp_path / "data.parquet")
    kinds = {
        "list": pieces(X, Y),
        "loader": DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), 100, shuffle=True),
        "generator, once": (item for item in pieces(X, Y) * 7),
        "mapped": mapped_batches(x, y, 100),
        "parquet": arrow_batches(tmp_path / "data.parquet", "label", batch_size=100),
        "weighted": pieces(X, Y, np.ones(600)),
    }
    for name, data in kinds.items():
        assert learned(data) > 0.9, name


def test_mapped_batches_visit_every_row_once_a_pass():
    rows = torch.arange(103)
    seen = torch.cat(
        [x for x, _ in mapped_batches(rows[:, None], rows, 10, generator=torch.Generator().manual_seed(0))]
    )
    assert sorted(seen[:, 0].tolist()) == rows.tolist()
    assert seen[:, 0].tolist() != rows.tolist()


def test_streams_that_cannot_work_say_why():
    with pytest.raises(ValueError, match="stream ended after 6 of 40 steps"):
        learned(item for item in pieces(X, Y))
    with pytest.raises(ValueError, match="gave no batch"):
        learned([])
    with pytest.raises(TypeError, match=r"must give \(x, y\)"):
        learned([{"x": X}])
    with pytest.raises(ValueError, match="NaN or infinite features"):
        learned([(X * np.nan, Y)])
    with pytest.raises(ValueError, match="same, positive n"):
        learned([(X, Y[:-1])])
    with pytest.raises(ValueError, match=r"column\(s\) \['nothing'\] do not exist"):
        arrow_batches(_arrow(), "nothing")


def _arrow():
    dataset = pytest.importorskip("pyarrow.dataset")
    pa = pytest.importorskip("pyarrow")
    return dataset.dataset(pa.table({"a": [1.0, 2.0], "label": [0, 1]}))


def test_endless_starts_again():
    stream = endless(Repeated(lambda: iter([1, 2])))
    assert [next(stream) for _ in range(5)] == [1, 2, 1, 2, 1]


def test_chunks_are_the_array():
    assert np.array_equal(np.concatenate(list(chunks(X, 70))), X)


def test_face_of_chunks_is_face_of_all():
    values = RNG.normal(size=(40, 3, 6))
    whole = fair_metrics.face(Variations(values, rows=range(40)), k=2)
    parts = fair_metrics.face_stream(
        (Variations(values[i : i + 7], rows=range(len(values[i : i + 7]))) for i in range(0, 40, 7)), k=2
    )
    assert torch.allclose(whole.sigma, parts.sigma, atol=1e-9)
    with pytest.raises(ValueError, match="nothing to learn from"):
        fair_metrics.face_stream([], k=1)


@pytest.mark.parametrize("categories", [2, 3])
def test_classifier_metric_of_chunks_is_that_of_all(categories):
    x = RNG.normal(size=(500, 4))
    attribute = (x[:, 0] + RNG.normal(size=500) > 0) + (0 if categories == 2 else 1) * (x[:, 1] > 0.5)
    table = pd.DataFrame(x, columns=list("abcd"))
    for value in range(1, categories):
        table[f"group_{value}"] = (attribute == value).astype(float)
    names = [f"group_{value}" for value in range(1, categories)]
    whole = fair_metrics.from_classifier(table, columns=names, predict=["group"])
    parts = fair_metrics.from_classifier_stream([table[i : i + 130] for i in range(0, 500, 130)], names, ["group"])
    inner, streamed = whole.attribute_models[0].estimator, parts.attribute_models[0].estimator
    # scikit-learn stops at a tolerance of 1e-4; ours goes to the optimum
    assert np.allclose(inner.coef_, streamed.coef_, atol=2e-3)
    assert np.allclose(inner.intercept_ - inner.intercept_[0], streamed.intercept_ - streamed.intercept_[0], atol=2e-3)
    assert torch.allclose(whole.sigma, parts.sigma, atol=2e-2)
    with pytest.raises(TypeError, match="read several times"):
        fair_metrics.from_classifier_stream(iter([table]), names)


@pytest.mark.parametrize("kind", [ERMClassifier, SenSeIClassifier])
def test_fit_stream_learns_what_fit_learns(kind):
    labels = np.array(["no", "yes"])[Y]
    settings = {"hidden": (8,), "steps": 60, "lr": 0.02, "batch_size": 100, "random_state": 0}
    streamed = kind(**settings).fit_stream(pieces(X, labels))
    whole = kind(**settings).fit(X, labels)
    assert streamed.score(X, labels) > whole.score(X, labels) - 0.03
    assert list(streamed.classes_) == ["no", "yes"]
    assert streamed.n_features_in_ == 5
    if kind is SenSeIClassifier:
        for one, other in zip(streamed.bounds_, whole.bounds_):
            assert torch.equal(one, other)
        assert streamed.bounds_.low[1] == 0


@pytest.mark.parametrize("kind", ["loader", "mapped", "parquet file", "parquet folder", "arrow data set"])
def test_estimators_fit_every_kind_of_stream(kind, tmp_path):
    if kind == "loader":
        stream = DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), 100, shuffle=True)
    elif kind == "mapped":
        np.save(tmp_path / "x.npy", X)
        np.save(tmp_path / "y.npy", Y)
        stream = mapped_batches(*(np.load(tmp_path / name, mmap_mode="r") for name in ("x.npy", "y.npy")), 100)
    else:
        dataset = pytest.importorskip("pyarrow.dataset")
        frame = pd.DataFrame(X, columns=list("abcde")).assign(label=Y)
        for i in range(3):
            frame[i * 200 : (i + 1) * 200].to_parquet(tmp_path / f"{i}.parquet")
        place = tmp_path / "0.parquet" if kind == "parquet file" else tmp_path
        source = dataset.dataset(place, format="parquet") if kind == "arrow data set" else place
        stream = arrow_batches(source, "label", batch_size=100)
    fitted = SenSeIClassifier(FIRST, hidden=(8,), rho=0.1, steps=60, lr=0.02, random_state=0).fit_stream(stream)
    assert fitted.score(X, Y) > 0.9
    assert fitted.n_features_in_ == 5


def test_fit_stream_weighs_classes_equally():
    rare = np.arange(600) % 20 == 0
    labels = np.where(rare, Y, 1)
    settings = {"hidden": (8,), "steps": 60, "lr": 0.02, "batch_size": 100, "random_state": 0}
    rates = [np.mean(fitted.predict(X) == 0) for fitted in (
        ERMClassifier(**settings).fit(X, labels), ERMClassifier(**settings).fit_stream(pieces(X, labels)))]  # fmt: skip
    assert abs(rates[0] - rates[1]) < 0.15


def test_fit_stream_with_frames_and_a_learner_of_the_metric():
    frame = pd.DataFrame(X, columns=list("abcde"))
    streamed = SenSeIClassifier(lambda parts: fair_metrics.from_classifier_stream(parts, [1]), hidden=(8,), steps=5)
    streamed.fit_stream([(frame[i : i + 100], Y[i : i + 100]) for i in range(0, 600, 100)])
    assert list(streamed.feature_names_in_) == list("abcde")
    assert streamed.fair_metric_.directions.shape == (5, 2)


def test_regressors_fit_streams_in_the_unit_of_the_target():
    target = 100 + 20 * X[:, 2]
    fitted = SenSeIRegressor(rho=0.0, hidden=(8,), steps=200, lr=0.02, random_state=0).fit_stream(pieces(X, target))
    assert fitted.score(X, target) > 0.9


def test_fit_stream_says_what_it_cannot_do():
    with pytest.raises(TypeError, match="more than once"):
        ERMClassifier().fit_stream(iter(pieces(X, Y)))
    with pytest.raises(TypeError, match="looks up more about each row"):
        CLPClassifier().fit_stream(pieces(X, Y))
    with pytest.raises(ValueError, match="two classes or more"):
        ERMClassifier().fit_stream(pieces(X, Y * 0))
    with pytest.raises(ValueError, match="no validation_fraction"):
        ERMClassifier(validation_fraction=0.1).fit_stream(pieces(X, Y))
    with pytest.raises(ValueError, match=r"bounds exclude training rows, in column\(s\) \[0"):
        SenSeIClassifier(FairMetric.euclidean(5), bounds=(0, 1)).fit_stream(pieces(X, Y))


def test_estimators_resume_from_their_checkpoint(tmp_path):
    settings = {"hidden": (8,), "steps": 30, "batch_size": 50, "random_state": 0}
    whole = SenSeIClassifier(**settings).fit(X, Y)

    class Stop(Exception):
        pass

    def stop(step, steps, record):
        if step >= 10:
            raise Stop

    with pytest.raises(Stop):
        SenSeIClassifier(**settings, progress=stop).checkpoint_to(tmp_path / "fit", every=4).fit(X, Y)
    resumed = SenSeIClassifier(**settings).checkpoint_to(tmp_path / "fit", every=4).fit(X, Y)
    assert np.array_equal(whole.predict_proba(X), resumed.predict_proba(X))


MEMORY = """
import resource, sys
import numpy as np, torch
from evenhand import ERMClassifier
from evenhand.training.streams import mapped_batches
x = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(x)) % 2
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ERMClassifier(hidden=(4,), steps=20).fit_stream(mapped_batches(x, y, 5000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units elsewhere")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """A file of 96 MB, read twice over, adds far less than its size to the peak."""
    x = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(600_000, 40))
    for start in range(0, len(x), 50_000):
        x[start : start + 50_000] = np.random.default_rng(start).random((50_000, 40), dtype=np.float32)
    del x
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "x.npy")], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) / 1024 < 60
