"""Round trips are exact; hostile files end in a clear error, run nothing and write nothing."""

import copy
import hashlib
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save as dump
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from evenhand import (
    ERMClassifier,
    FairMetric,
    GradientSearch,
    ProjectClassifier,
    SenSeIClassifier,
    SenSeIRegressor,
    SenSRClassifier,
)
from evenhand.domain import Box, FreeBox
from evenhand.files import FORMAT, ModelFileError, load, load_metadata, save
from evenhand.files.models import _load_tensors
from evenhand.regularizer import ratio_rule

X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
Y = (X[:, 0] + 0.5 * X[:, 2] > 0).astype(int)
METRIC = FairMetric([[0.0], [0.0], [1.0]])


class Boom:
    """A pickle that would leave a file behind if anybody loaded it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize(
    "estimator",
    [
        SenSeIClassifier(METRIC, hidden=(5,), steps=10, search=GradientSearch(starts=2), lam_rule=ratio_rule()),
        SenSeIClassifier(FairMetric(sigma=np.diag([1.0, 2.0, 0.0])), hidden=(5, 4), steps=10, bounds=(-9.0, 9.0)),
        SenSeIClassifier(lambda X: METRIC, hidden=(5,), steps=10, bounds=None),
        SenSRClassifier(METRIC, hidden=(5,), steps=10),
        ProjectClassifier(METRIC, hidden=(5,), steps=10),
        ERMClassifier(hidden=(5,), steps=10, random_state=np.random.RandomState(0)),
        ERMClassifier(
            module=nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.1), nn.Linear(4, 2)),
            steps=10,
        ),
        SenSeIRegressor(METRIC, hidden=(5,), steps=10),
    ],
    ids=lambda e: type(e).__name__,
)  # fmt: skip
def test_round_trip_is_exact(estimator, tmp_path):
    target = X[:, 0] if isinstance(estimator, SenSeIRegressor) else Y
    estimator.fit(X, target)
    save(estimator, tmp_path / "m.evenhand", {"note": "ä"})
    again = load(tmp_path / "m.evenhand")
    answer = "predict" if isinstance(estimator, SenSeIRegressor) else "predict_proba"
    assert np.array_equal(getattr(again, answer)(X), getattr(estimator, answer)(X))
    assert getattr(again, "lam_", None) == getattr(estimator, "lam_", None)
    assert again.history_.equals(estimator.history_)
    assert torch.equal(again.fair_metric_.sigma, estimator.fair_metric_.sigma)
    assert again.get_params(deep=False)["hidden"] == estimator.get_params(deep=False)["hidden"]
    assert load_metadata(tmp_path / "m.evenhand") == {"note": "ä"}


@pytest.mark.parametrize("outputs", [1, 2])
def test_partial_fit_goes_on_from_a_file_as_without_one(outputs, tmp_path):
    target = 1e4 + 300 * X[:, 0] if outputs == 1 else np.stack([X[:, 0] - 7, 1e8 + X[:, 1]], axis=1)
    model = SenSeIRegressor(METRIC, hidden=(5,), steps=100, random_state=0).fit(X, target)
    save(model, tmp_path / "m.evenhand")
    again = load(tmp_path / "m.evenhand")
    some, later = X[:20], 5 + 0.1 * target[:20]  # whose own scale is another one
    assert np.array_equal(model.partial_fit(some, later).predict(X), again.partial_fit(some, later).predict(X))
    assert again.targets_.scale.tolist() == model.targets_.scale.tolist() != np.std(later, axis=0).tolist()
    save(again, tmp_path / "again.evenhand")
    assert load(tmp_path / "again.evenhand").targets_.mean.tolist() == model.targets_.mean.tolist()


def test_the_domain_and_the_multipliers_come_back(tmp_path):
    """Bounds as they were used: binary columns, blocks, free directions; and where certified training ended."""
    box = Box([-9.0, 0.0, -9.0], [9.0, 1.0, 9.0], binary=[1])
    table = X.copy()
    table[:, 1] = table[:, 1] > 0
    model = SenSeIClassifier(METRIC, hidden=(4,), steps=5, bounds=box, certified=1.0, random_state=0).fit(table, Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.bounds_.binary == again.bounds.binary == (1,)
    assert torch.equal(again.bounds_.high, box.high)
    for one, other in zip(again.multipliers_.tensors(), model.multipliers_.tensors(), strict=True):
        assert torch.equal(one, other)
    save(
        SenSeIClassifier(METRIC, hidden=(4,), steps=5, random_state=0).fit(table, Y).set_params(bounds=None),
        tmp_path / "n",
    )
    free = load(tmp_path / "n").bounds_
    assert isinstance(free, FreeBox)
    assert free.contains(torch.tensor(table).double()).all()


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [3, 7]])
def test_labels_keep_their_type(labels, tmp_path):
    y = np.array(labels)[Y]
    model = ERMClassifier(hidden=(4,), steps=3, random_state=0).fit(X, y)
    save(model, tmp_path / "m.evenhand")
    again = load(tmp_path / "m.evenhand")
    assert again.classes_.dtype == model.classes_.dtype
    assert np.array_equal(again.predict(X), model.predict(X))


def test_pipeline_with_preprocessing(fitted, tmp_path):
    model, frame = fitted
    save(model, tmp_path / "m.evenhand")
    again = load(tmp_path / "m.evenhand")
    assert np.array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert [name for name, _ in again.steps] == ["encode", "model"]


def test_of_several_steps_the_last_is_the_model(tmp_path):
    steps = [("impute", SimpleImputer()), ("scale", StandardScaler())]
    model = Pipeline([*steps, ("model", ERMClassifier(hidden=(3,), steps=3, random_state=0))]).fit(X, Y)
    save(model, tmp_path / "m.evenhand", {"note": "three"})
    again = load(tmp_path / "m.evenhand")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert [name for name, _ in again.steps] == ["impute", "scale", "model"]
    assert load_metadata(tmp_path / "m.evenhand") == {"note": "three"}


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model = ERMClassifier(hidden=(4,), steps=3, random_state=0).fit(X, Y)
    for name in ("a", "b"):
        save(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_network_of_ones_own_needs_its_architecture(tmp_path):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x):
            return self.linear(x).sin()

    model = ERMClassifier(module=Own(), steps=3).fit(X, Y)
    save(model, tmp_path / "m.evenhand")
    with pytest.raises(ModelFileError, match=r"load\(path, module=YourNet\(\)\)"):
        load(tmp_path / "m.evenhand")
    again = load(tmp_path / "m.evenhand", module=Own())
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_save_refuses_what_it_cannot_keep(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save(ERMClassifier(), tmp_path / "m")
    with pytest.raises(TypeError, match="estimator of evenhand"):
        save(nn.Linear(2, 2), tmp_path / "m")
    model = SenSeIClassifier(METRIC, hidden=(4,), steps=3, lam_rule=lambda lam, d, eps: lam).fit(X, Y)
    with pytest.raises(ValueError, match=r"lam_rule=.* cannot be saved without pickle"):
        save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    model = ERMClassifier(hidden=(4,), steps=3, random_state=0).fit(X, Y)
    save(model, tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def full(fd):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(model, tmp_path / "m", {"other": 1})
    assert (tmp_path / "m").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "m.evenhand"
    save(SenSeIClassifier(METRIC, hidden=(4,), steps=5, random_state=0).fit(X, Y), path)
    return path


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def changed(sound, path, **changes):
    parts = members(sound)
    document = {**json.loads(parts["model.json"]), **changes}
    return write(path, {**parts, "model.json": json.dumps(document)})


def test_pickle_bomb_is_not_run(tmp_path):
    mark = tmp_path / "ran"
    for i, data in enumerate([pickle.dumps(Boom(mark)), pickle.dumps(Boom(mark), protocol=0)]):
        path = tmp_path / f"bomb{i}"
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match="pickle, which is never loaded" if i == 0 else "not a model file"):
            load(path)
    torch.save(Boom(mark), tmp_path / "bomb.pt")
    with pytest.raises(ModelFileError):
        load(tmp_path / "bomb.pt")
    assert not mark.exists()


@pytest.mark.parametrize("name", ["../outside", "/outside", "model.json/../x", "extra.pkl"])
def test_path_traversal(sound, tmp_path, name):
    inner = tmp_path / "inner"
    inner.mkdir()
    path = write(inner / "m", {**members(sound), name: b"x"})
    with pytest.raises(ModelFileError, match="members that a model file does not have"):
        load(path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inner", "m"]


def test_newer_format_says_what_to_do(sound, tmp_path):
    with pytest.raises(ModelFileError, match=f"reads up to {FORMAT}; pip install -U evenhand"):
        load(changed(sound, tmp_path / "m", format=FORMAT + 1))


@pytest.mark.parametrize(
    "changes",
    [
        {"magic": "other"}, {"format": "1"}, {"format": 0}, {"estimator": "os.system"}, {"estimator": 3},
        {"layers": {"type": "Upsample", "arguments": {}}}, {"layers": []},
        {"layers": {"type": "Linear", "arguments": {"in_features": 10**9, "out_features": 10**9}}},
        {"layers": {"type": "Linear", "arguments": {"in_features": 3, "out_features": 2, "device": "meta"}}},
        {"parameters": []}, {"parameters": {"rho": {"$": "function", "name": "system"}}},
        {"parameters": {"nonsense": 1}},
        {"parameters": {"rho": [1]}}, {"history_": 7}, {"dtype": "float8"}, {"sha256": None}, {"sha256": {}},
        {"classes_": {"dtype": "O", "values": [{"a": 1}]}}, {"classes_": {"dtype": "V8", "values": [1, 2]}},
        {"classes_": {"dtype": "<U200000000", "values": ["a", "b"]}}, {"lam_": -1.0}, {"lam_": "nan"}, {"lam_": 1e999},
        {"offset_": [0.0, "nan"]}, {"offset_": [0.0]}, {"n_features_in_": 4}, {"steps": ["a", "b"]},
        {"attributes": [{"name": "x"}]},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_documents_are_clear_errors(sound, tmp_path, changes):
    path = changed(sound, tmp_path / "m", **changes)
    with pytest.raises(ModelFileError, match=r"m\b"):
        load(path)


def tampered(sound, path, **tensors):
    """The file with other tensors, as somebody who knows the format would write it."""
    from safetensors.torch import load as parse
    from safetensors.torch import save as dump

    parts = members(sound)
    data = dump({**parse(parts["tensors.safetensors"]), **{k.replace("__", "."): v for k, v in tensors.items()}})
    document = json.loads(parts["model.json"])
    document["sha256"]["tensors.safetensors"] = hashlib.sha256(data).hexdigest()
    return write(path, {**parts, "tensors.safetensors": data, "model.json": json.dumps(document)})


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        ({"module__0.weight": torch.full((4, 3), torch.nan)}, r"module\.0\.weight holds NaN"),
        ({"module__0.weight": torch.zeros(5, 3)}, "declare other weights"),
        ({"module__9.weight": torch.zeros(5, 3)}, "declare other weights"),
        ({"metric__directions": torch.tensor([[0.0], [0.0], [2.0]])}, "not orthonormal"),
        ({"metric__directions": torch.eye(4)[:1].T.contiguous()}, "metric is for 4 features"),
        ({"metric__directions": torch.ones(3, 1, dtype=torch.int64)}, "directions"),
        ({"metric__factor": torch.zeros(3, 4)}, "factor has shape"),
        ({"metric__factor": torch.full((3, 3), torch.inf)}, "factor holds NaN or infinite"),
        ({"bounds__low": torch.full((3,), 9.0).double()}, "low <= high"),
        ({"bounds__high": torch.full((3,), torch.nan).double()}, "must be finite"),
        ({"bounds__low": torch.zeros(2).double()}, "bounds must hold one number of type float64 for each column"),
        ({"bounds__low": torch.zeros(3)}, "bounds must hold one number of type float64 for each column"),
    ],
)
def test_unsound_numbers_are_refused(sound, tmp_path, tensors, why):
    with pytest.raises(ModelFileError, match=why):
        load(tampered(sound, tmp_path / "m", **tensors))


def test_layers_that_are_not_there_cost_nothing(sound, tmp_path):
    """Two thousand bytes declare a petabyte of weights: refused before anything is reserved for it."""
    huge = [
        [str(i), {"type": "Linear", "arguments": {"in_features": 2**20, "out_features": 2**20}}] for i in range(250)
    ]
    path = changed(sound, tmp_path / "m", layers={"type": "Sequential", "children": huge})
    with pytest.raises(ModelFileError, match="declare other weights"):
        load(path)
    many = [[str(i), {"type": "ReLU"}] for i in range(20_000)]
    with pytest.raises(ModelFileError, match="not sound"):
        load(changed(sound, tmp_path / "n", layers={"type": "Sequential", "children": many}))


def test_one_tensor_is_not_named_many_times(sound, tmp_path):
    named = {"$": "tuple", "values": [{"$": "tensor", "key": "parameter.bounds.9"}] * 20_000}
    path = tampered(sound, tmp_path / "m", **{"parameter.bounds.9": torch.zeros(3)})
    with pytest.raises(ModelFileError, match="a second time"):
        load(changed(path, tmp_path / "n", parameters={"hidden": named}))
    of_the_net = {"$": "tensor", "key": "module.0.weight"}
    with pytest.raises(ModelFileError, match="that is not there"):
        load(changed(sound, tmp_path / "n", parameters={"hidden": of_the_net}))


def test_memory_and_overflow_become_our_error(sound, monkeypatch):
    from evenhand.files import models

    for error in (MemoryError, OverflowError, RecursionError):

        def fail(*given, error=error):
            raise error("too much")

        monkeypatch.setattr(models, "built", fail)
        with pytest.raises(ModelFileError, match="not a sound model file"):
            load(sound)


def test_the_same_pipeline_gives_the_same_bytes(fitted, tmp_path):
    model, frame = fitted
    save(model, tmp_path / "a")
    clone = copy.deepcopy(model)  # the same values elsewhere in memory
    save(model, tmp_path / "b")
    assert load(tmp_path / "a").get_params().keys() == clone.get_params().keys()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert np.array_equal(load(tmp_path / "b").predict_proba(frame), model.predict_proba(frame))


def test_giant_headers_and_bombs(sound, tmp_path):
    parts = members(sound)
    huge = struct.pack("<Q", 2**60) + b"{}"
    document = json.loads(parts["model.json"])
    document["sha256"]["tensors.safetensors"] = hashlib.sha256(huge).hexdigest()
    path = write(tmp_path / "a", {**parts, "tensors.safetensors": huge, "model.json": json.dumps(document)})
    with pytest.raises(ModelFileError, match="header"):
        load(path)
    bomb = write(tmp_path / "b", {**parts, "model.json": b" " * 10_000_000}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="compressed"):
        load(bomb)
    deep = write(tmp_path / "c", {**parts, "model.json": b"[" * 100_000})
    with pytest.raises(ModelFileError, match="not JSON"):
        load(deep)


def test_what_the_header_of_the_tensors_may_be():
    """Eight bytes say how long it is; no tensor at all is a header that fills the file."""
    assert _load_tensors("m", dump({})) == {}
    for data, why in [
        (b"", "larger than the file"),
        (b"\0" * 7, "larger than the file"),
        (b"\0" * 8, "is damaged"),
        (struct.pack("<Q", 3) + b"{}", "larger than the file"),
        (struct.pack("<Q", 9) + b"{}", "larger than the file"),
        (struct.pack("<Q", 2**25) + b"{}", "larger than the file"),
    ]:
        with pytest.raises(ModelFileError, match=why):
            _load_tensors("m", data)


def test_a_part_of_a_model_and_no_model_are_told_from_a_pickle(sound, tmp_path):
    for left_out in ("model.json", "tensors.safetensors"):
        parts = {name: data for name, data in members(sound).items() if name != left_out}
        with pytest.raises(ModelFileError, match="a zip archive but not a model file"):
            load(write(tmp_path / "part", parts))
    for data, pickled in [(b"hello", False), (b"\x80\x04K\x01.", True), (b"\x80\x09", False), (b"\x02\x04", False)]:
        (tmp_path / "other").write_bytes(data)
        with pytest.raises(ModelFileError) as caught:
            load(tmp_path / "other")
        assert ("looks like a pickle" in str(caught.value)) is pickled


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file"):
        load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="is a folder"):
        load(tmp_path)


def test_truncated_anywhere(sound, tmp_path):
    data = sound.read_bytes()
    for cut in [0, 1, 10, len(data) // 3, len(data) // 2, len(data) - 30, len(data) - 1]:
        (tmp_path / "m").write_bytes(data[:cut])
        with pytest.raises(ModelFileError):
            load(tmp_path / "m")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_an_error_or_harmless(sound, tmp_path, place, bit):
    data = bytearray(sound.read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    (tmp_path / "m").write_bytes(bytes(data))
    try:
        again = load(tmp_path / "m")
    except ModelFileError:
        return
    # bits that carry nothing (dates, flags of the archive): then the model is the same
    assert np.array_equal(again.predict_proba(X), load(sound).predict_proba(X))
