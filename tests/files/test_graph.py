"""Trees as a graph of ordinary operators give the ensemble's own numbers in onnxruntime."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import FairMetric, SenSeIBoostingClassifier, SenSeIBoostingRegressor
from evenhand.cli.models import OnnxModel
from evenhand.ensembles.read import Tree, join_trees
from evenhand.estimators.calibration import calibrate
from evenhand.files import export_onnx
from evenhand.files.graph import Graph, add_trees
from evenhand.files.onnx import onnx_inputs

onnxruntime = pytest.importorskip("onnxruntime")
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
X[:, 2] = X[:, 2] > 0


def run(path, inputs):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)


def random_ensemble(k, seed):
    """Trees of all shapes, a lone leaf among them, hard and soft splits mixed."""
    rng = np.random.default_rng(seed)
    trees = []
    for size in (0, 1, 3, 6):
        rows = [[-1, 0.0, 0, 0, rng.normal(), 1]]
        for _ in range(size):
            leaf = int(rng.choice([i for i, row in enumerate(rows) if row[0] < 0]))
            rows[leaf] = [int(rng.integers(3)), rng.normal(), len(rows), len(rows) + 1, 0.0, int(rng.integers(2))]
            rows += [[-1, 0.0, 0, 0, rng.normal(), 1], [-1, 0.0, 0, 0, rng.normal(), 1]]
        trees.append(Tree(*np.array(rows).T))
    whole = join_trees(trees, [i % k for i in range(4)], rng.normal(size=k), 3)
    return whole.softened([0.7, 0.0, 0.0], {2: (0.0, 1.0)})


@pytest.mark.parametrize(("k", "seed"), [(1, 0), (2, 1), (3, 2)])
def test_any_ensemble_with_missing_and_infinite_values(k, seed, tmp_path):
    ensemble = random_ensemble(k, seed)
    graph = Graph(np.float64)
    graph.input("x", "number", 3)
    graph.node("Identity", [add_trees(graph, ensemble, "x")], "h")
    graph.output("h", graph.real, ["n", k])
    (tmp_path / "m").write_bytes(graph.model().SerializeToString())
    x = np.vstack([X, ensemble.threshold[:, None] * np.ones(3)])  # at the thresholds themselves
    x[::5, 0], x[1::5, 1], x[2::9, 0], x[3::9, 1] = np.nan, np.nan, np.inf, -np.inf
    (h,) = run(tmp_path / "m", {"x": x})
    assert h == pytest.approx(ensemble(x), abs=1e-12)


@pytest.mark.parametrize("smooth", [None, 0.0])
def test_models(smooth, tmp_path):
    pytest.importorskip("lightgbm", reason="boosted trees are fitted by LightGBM")
    metric = FairMetric([[0.0], [0.0], [1.0]])
    small = {"trees": 6, "leaves": 5, "smooth": smooth, "random_state": 0}
    two = SenSeIBoostingClassifier(metric, **small).fit(X, X[:, 0] > 0)
    calibrate(two, X, X[:, 0] > 1, threshold=0.7)
    three = SenSeIBoostingClassifier(metric, **small).fit(X, np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-1, 1])])
    for model in (two, three):
        export_onnx(model, tmp_path / "m.onnx")
        label, p = run(tmp_path / "m.onnx", {"x": X})
        assert p == pytest.approx(model.predict_proba(X), abs=1e-12)
        assert label.tolist() == model.predict(X).tolist()
    assert OnnxModel(tmp_path / "m.onnx").predict_proba(pd.DataFrame(X)) == pytest.approx(p, abs=1e-12)
    number = SenSeIBoostingRegressor(metric, **small).fit(X, 1000 * X[:, 0])
    export_onnx(number, tmp_path / "r.onnx")
    assert run(tmp_path / "r.onnx", {"x": X})[0] == pytest.approx(number.predict(X), abs=1e-9)


def test_behind_preprocessing(tmp_path):
    pytest.importorskip("lightgbm", reason="boosted trees are fitted by LightGBM")
    frame = pd.DataFrame({"age": 40 + 10 * X[:, 0], "job": np.array(["baker", "clerk"])[X[:, 2].astype(int)]})
    frame.loc[3, "age"] = np.nan
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]), (OneHotEncoder(sparse_output=False), ["job"])
    )
    metric = FairMetric([[0.0], [1.0], [-1.0]])
    model = make_pipeline(encode, SenSeIBoostingClassifier(metric, trees=6, leaves=5, random_state=0))
    model.fit(frame, X[:, 0] > 0)
    export_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    assert session.run(None, onnx_inputs(session, frame))[1] == pytest.approx(model.predict_proba(frame), abs=1e-12)
