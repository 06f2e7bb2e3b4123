"""Trees come back to the last bit; what is not a tree is refused before the kernels walk along it."""

import numpy as np
import pytest
import torch

from evenhand import FairMetric, SenSeIBoostingClassifier, SenSeIBoostingRegressor
from evenhand.ensembles.read import Tree, join_trees
from evenhand.estimators.calibration import calibrate
from evenhand.files import ModelFileError, load, save
from evenhand.files.trees import read_trees, write_trees
from tests.files.test_models import changed, tampered

STUMP = Tree(*map(np.array, ([0, -1, -1], [0.5, 0, 0], [1, 0, 0], [2, 0, 0], [0.0, -1.0, 3.0], [True, True, True])))
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
X[:, 2] = X[:, 2] > 0
METRIC = FairMetric([[0.0], [0.0], [1.0]])


@pytest.fixture(scope="module")
def fitted():
    pytest.importorskip("lightgbm", reason="boosted trees are fitted by LightGBM")
    small = {"trees": 4, "leaves": 4, "random_state": 0}
    y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    holes = X.copy()
    holes[::7, 0] = np.nan
    return {
        "two": SenSeIBoostingClassifier(METRIC, **small).fit(holes, y),
        "hard": SenSeIBoostingClassifier(METRIC, smooth=0.0, monotone=[1, 0, 0], **small).fit(X, y),
        "three": SenSeIBoostingClassifier(lambda X: METRIC, **small).fit(X, np.digitize(X[:, 0], [-0.5, 0.5])),
        "number": SenSeIBoostingRegressor(METRIC, **small).fit(X, 1000 * X[:, 0]),
    }


@pytest.mark.parametrize("name", ["two", "hard", "three", "number"])
def test_round_trip_is_exact(fitted, name, tmp_path):
    model = fitted[name]
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    answer = "predict" if name == "number" else "predict_proba"
    assert np.array_equal(getattr(again, answer)(X), getattr(model, answer)(X))
    assert again.history_.equals(model.history_)
    assert torch.equal(again.fair_metric_.sigma, model.fair_metric_.sigma)
    assert again.bounds_.binary == model.bounds_.binary == (2,)
    kept, given = again.get_params(deep=False), model.get_params(deep=False)
    assert {k: v for k, v in kept.items() if k != "fair_metric"} == {
        k: v for k, v in given.items() if k != "fair_metric"
    }


@pytest.mark.parametrize("threshold", [None, 0.8])
def test_calibration_is_kept(fitted, threshold, tmp_path):
    model = SenSeIBoostingClassifier(METRIC, trees=4, leaves=4, random_state=0).fit(X, fitted["two"].predict(X))
    calibrate(model, X, np.array(["no", "yes"])[(X[:, 0] > 0.8).astype(int)], threshold)
    p = model.predict_proba(X)[:, 1]
    assert p.mean() == pytest.approx((X[:, 0] > 0.8).mean(), abs=0.02)
    if threshold is not None:
        assert ((p >= threshold) == (model.predict(X) == "yes")).all()
    save(model, tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def tensors():
    found = {}
    write_trees(join_trees([STUMP, STUMP], [0, 0], [0.5], 2), found)
    return found


def test_trees_come_back():
    again = read_trees(tensors(), 2)
    assert again([[0.0, 0.0], [1.0, 0.0]])[:, 0].tolist() == [-1.5, 6.5]


def column(values, kind=torch.int32):
    return torch.tensor(values, dtype=kind)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("left", column([0, 0, 0, 4, 0, 0]), "do not form trees"),  # its own child: a walk without end
        ("right", column([1, 0, 0, 5, 0, 0]), "do not form trees"),  # two ways to one node
        ("right", column([4, 0, 0, 5, 0, 0]), "do not form trees"),  # into the other tree
        ("right", column([10**6, 0, 0, 5, 0, 0]), "do not form trees"),
        ("left", column([-3, 0, 0, 4, 0, 0]), "do not form trees"),
        ("feature", column([7, -1, -1, 0, -1, -1]), "one of the 2 features"),
        ("feature", column([-2, -1, -1, 0, -1, -1]), "one of the 2 features"),
        ("feature", column([-1, -1, -1, 0, -1, -1]), "do not form trees"),  # nodes that nothing leads to
        ("root", column([0, 9]), "one after the other"),
        ("root", column([1, 3]), "one after the other"),
        ("root", column([0, 0]), "one after the other"),
        ("root", column([]), "one of the outputs"),
        ("output", column([0, 1]), "one of the outputs"),
        ("output", column([0, -1]), "one of the outputs"),
        ("base", column([], torch.float64), "one of the outputs"),
        ("width", column([-1.0, 0, 0, 0, 0, 0], torch.float64), "zero or more"),
        ("value", column([0, torch.nan, 0, 0, 0, 0], torch.float64), "value holds NaN"),
        ("threshold", column([0.0], torch.float64), "different lengths"),
        ("left", column([1, 0, 0, 4, 0, 0], torch.int64), "one column of type"),
        ("value", torch.zeros(6, 1, dtype=torch.float64), "one column of type"),
    ],
)
def test_what_is_no_tree_is_refused(name, value, why):
    with pytest.raises(ValueError, match=why):
        read_trees({**tensors(), f"trees.{name}": value}, 2)


def test_deeper_than_the_stacks():
    n = 400
    inner = np.arange(0, 2 * n, 2)
    feature = np.full(2 * n + 1, -1)
    left, right = np.zeros(2 * n + 1, int), np.zeros(2 * n + 1, int)
    feature[inner], left[inner], right[inner] = 0, inner + 1, inner + 2
    chain = Tree(feature, np.zeros(2 * n + 1), left, right, np.zeros(2 * n + 1), np.ones(2 * n + 1))
    found = {}
    write_trees(join_trees([chain], [0], [0.0], 1), found)
    with pytest.raises(ValueError, match="400 splits deep"):
        read_trees(found, 1)


def test_files_that_do_not_fit_together(fitted, tmp_path):
    save(fitted["two"], tmp_path / "m")
    with pytest.raises(ModelFileError, match="do not form trees"):
        load(tampered(tmp_path / "m", tmp_path / "a", trees__left=torch.zeros_like(_left(fitted["two"]))))
    with pytest.raises(ModelFileError, match="1 outputs where 3 are needed"):
        load(changed(tmp_path / "m", tmp_path / "b", classes_={"dtype": "<i8", "values": [0, 1, 2]}))
    with pytest.raises(ModelFileError, match="not a sound model file"):
        load(changed(tmp_path / "m", tmp_path / "c", estimator="SenSeIClassifier"))
    with pytest.raises(ModelFileError, match="a regressor has none"):
        load(changed(tmp_path / "m", tmp_path / "d", estimator="SenSeIBoostingRegressor"))


def _left(model):
    return torch.from_numpy(model.ensemble_.left)
