"""The graph gives the model's probabilities, to 1e-5, in onnxruntime."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder, RobustScaler
from torch import nn

from evenhand import ERMClassifier, FairMetric, SenSeIRegressor
from evenhand.datasets import adult_frame
from evenhand.files import export_onnx
from evenhand.files.onnx import OnnxExportError, onnx_inputs
from evenhand.tables.encoder import encode, make_encoder
from evenhand.tables.schema import Schema

onnxruntime = pytest.importorskip("onnxruntime")
X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)


def run(path, inputs):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)


def test_adult_with_text_categories_and_missing_values(tmp_path):
    frame = adult_frame()
    schema = Schema.infer(frame, "income", ["sex", "race"])
    clean, y = schema.apply(frame), schema.codes(frame)
    encoder = make_encoder(schema).fit(clean.iloc[:8000])
    net = ERMClassifier(hidden=(20,), steps=40, random_state=0).fit(encode(encoder, clean.iloc[:8000]), y[:8000])
    model = Pipeline([("encode", encoder), ("model", net)])
    export_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    some = clean.iloc[8000:20000].copy()
    some.iloc[:50, some.columns.get_loc("age")] = np.nan
    label, probabilities = session.run(None, onnx_inputs(session, some))
    expected = net.predict_proba(encode(encoder, some))
    assert np.abs(probabilities - expected).max() < 1e-5
    agree = label == expected.argmax(1)
    assert agree[np.abs(expected[:, 0] - 0.5) > 1e-5].all()


def test_pipeline_with_texts_as_labels(fitted, tmp_path):
    model, frame = fitted
    export_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    label, probabilities = session.run(None, onnx_inputs(session, frame))
    assert np.abs(probabilities - model.predict_proba(frame)).max() < 1e-5
    assert label.tolist() == model.predict(frame).tolist()


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Linear(3, 4), nn.BatchNorm1d(4), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(4, 2, bias=False)],
        [nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()), nn.Linear(4, 2)],
    ],
)
def test_layers(layers, tmp_path):
    model = ERMClassifier(module=nn.Sequential(*layers), steps=5, random_state=0).fit(X, Y)
    export_onnx(model, tmp_path / "m.onnx")
    assert np.abs(run(tmp_path / "m.onnx", {"x": X})[1] - model.predict_proba(X)).max() < 1e-5


def test_regressor_and_other_encoders(tmp_path):
    regressor = SenSeIRegressor(FairMetric([[0.0], [0.0], [1.0]]), hidden=(4,), steps=5, random_state=0).fit(
        X, X[:, 0] * 1000
    )
    export_onnx(regressor, tmp_path / "r.onnx")
    assert np.allclose(run(tmp_path / "r.onnx", {"x": X})[0], regressor.predict(X), rtol=1e-5, atol=1e-3)
    both = np.column_stack([X[:, 0], 1e6 * X[:, 1]])
    several = SenSeIRegressor(hidden=(4,), steps=5, random_state=0).fit(X, both)
    export_onnx(several, tmp_path / "s.onnx")
    assert np.allclose(run(tmp_path / "s.onnx", {"x": X})[0], several.predict(X), rtol=1e-5, atol=1e-3)
    frame = pd.DataFrame({"a": X[:, 0] * 1e4, "b": X[:, 1], "code": np.arange(60) % 3})
    encode_all = make_column_transformer(
        (RobustScaler(), ["a"]), (MinMaxScaler((-1, 1), clip=True), ["b"]), (OrdinalEncoder(), ["code"])
    )
    model = make_pipeline(encode_all, ERMClassifier(hidden=(4,), steps=5, random_state=0)).fit(frame, Y)
    export_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    other = frame.assign(b=frame["b"] * 9)  # beyond the range: clipped in both
    assert np.abs(session.run(None, onnx_inputs(session, other))[1] - model.predict_proba(other)).max() < 1e-5


def test_what_cannot_be_exported_is_named(tmp_path):
    with pytest.raises(OnnxExportError, match="single ColumnTransformer"):
        export_onnx(make_pipeline(PCA(2), ERMClassifier(hidden=(4,), steps=2)).fit(X, Y), tmp_path / "m")
    gelu = ERMClassifier(module=nn.Sequential(nn.Linear(3, 2), nn.GELU()), steps=2).fit(X, Y)
    with pytest.raises(OnnxExportError, match="GELU"):
        export_onnx(gelu, tmp_path / "m")
    with pytest.raises(OnnxExportError, match="fitted estimator"):
        export_onnx(nn.Linear(2, 2), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
