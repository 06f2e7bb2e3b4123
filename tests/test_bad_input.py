# ruff: noqa: E501
"""One table of mistakes: each ends in an error that says what was expected, what came, and what to do."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from evenhand import (
    ERMClassifier,
    FairMetric,
    FairRegularizer,
    GradientSearch,
    ProjectClassifier,
    SenSeIClassifier,
    SenSeIRegressor,
    SenSRClassifier,
    Variations,
    audit,
    certify,
    evaluation,
    fair_metrics,
)
from evenhand.files import ModelFileError, load, save
from evenhand.objectives import CLP, ERM, Adversarial, CoCL, SenSeI
from evenhand.search import CandidateSearch
from evenhand.tables.read import TableError, read_table
from evenhand.training.checkpoints import CheckpointError
from evenhand.training.loop import TrainingDiverged, train

RNG = np.random.default_rng(0)
X = RNG.random((40, 3)).astype(np.float32)
MORE = RNG.random((60, 3)).astype(np.float32)
Y = (X[:, 0] > 0.5).astype(int)
FRAME = pd.DataFrame(X, columns=["age", "income", "sex"])
TX, TY = torch.from_numpy(X), torch.from_numpy(Y)
METRIC = FairMetric(torch.eye(3)[:, :1])
NET = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
VERSIONS = Variations(np.stack([X, X], axis=1), rows=range(40))


def with_nan(values):
    values = np.array(values, dtype=float)
    values[3, 1] = np.nan
    return values


def fit(y=Y, X=X, kind=SenSeIClassifier, **settings):
    return kind(**({"steps": 2, "hidden": (4,)} | settings)).fit(X, y)


def learn(objective=None, x=TX, y=TY, model=None, **settings):
    return train(model or NET, objective or ERM(), x, y, **({"steps": 2, "batch_size": 10} | settings))


def written(path, data: bytes):
    path.write_bytes(data)
    return path


def frame_with(name, values):
    return FRAME.assign(**{name: values})


# name: (the call, given a folder for its files), kind of error, what its message must say
BAD = {
    # data
    "NaN in a frame": (lambda f: fit(X=pd.DataFrame(with_nan(X), columns=list("abc"))), ValueError, "NaN or infinity in column.*'b'"),
    "NaN in an array": (lambda f: fit(X=with_nan(X)), ValueError, "contains NaN"),
    "infinity in a frame": (lambda f: fit(X=frame_with("age", np.inf)), ValueError, "NaN or infinity in column.*'age'"),
    "a column of texts": (lambda f: fit(X=frame_with("job", "nurse")), ValueError, "'job' are not numbers; encode"),
    "no rows": (lambda f: fit(X=X[:0], y=Y[:0]), ValueError, r"0 sample\(s\)"),
    "no columns": (lambda f: fit(X=X[:, :0]), ValueError, r"0 feature\(s\)"),
    "one-dimensional X": (lambda f: fit(X=X[:, 0]), ValueError, "Expected 2D array"),
    "fewer labels than rows": (lambda f: fit(y=Y[:-1]), ValueError, "inconsistent numbers of samples"),
    "labels with NaN": (lambda f: fit(y=np.where(Y, np.nan, 1.0)), ValueError, "contains NaN"),
    "labels that are numbers": (lambda f: fit(y=X[:, 0]), ValueError, "Unknown label type: continuous"),
    "a single class": (lambda f: fit(y=Y * 0), ValueError, "two classes or more; y holds one class only"),
    "negative weights": (lambda f: ERMClassifier(steps=2).fit(X, Y, sample_weight=-np.ones(40)), ValueError, "not be negative|Negative"),
    "weights of another length": (lambda f: ERMClassifier(steps=2).fit(X, Y, sample_weight=np.ones(3)), ValueError, "sample_weight"),
    "another width in predict": (lambda f: fit().predict(X[:, :2]), ValueError, "2 features, but .* is expecting 3"),
    "other columns in predict": (lambda f: fit(X=FRAME).predict(FRAME.rename(columns={"age": "Age"})), ValueError, "feature names should match"),
    "predict before fit": (lambda f: SenSeIClassifier().predict(X), Exception, "not fitted yet"),
    "targets with infinity": (lambda f: fit(y=np.full(40, np.inf), kind=SenSeIRegressor), ValueError, "infinity"),
    # parameters
    "rho below zero": (lambda f: fit(rho=-1.0), ValueError, "rho must be zero or positive; got -1.0"),
    "rho is NaN": (lambda f: fit(rho=float("nan")), ValueError, "rho must be a number; got nan"),
    "eps below zero": (lambda f: fit(eps=-0.1), ValueError, "eps must be zero or positive; got -0.1"),
    "eps of SenSR below zero": (lambda f: fit(eps=-0.1, kind=SenSRClassifier), ValueError, "eps must be zero or positive"),
    "lam below zero": (lambda f: fit(lam=-1.0), ValueError, "lam must be zero or positive; got -1.0"),
    "bounds by an unknown name": (lambda f: fit(bounds="box"), ValueError, "bounds must be 'data', None, a Box or"),
    "bounds the wrong way round": (lambda f: fit(bounds=(1.0, 0.0)), ValueError, "bounds must be finite with low <= high"),
    "bounds with NaN": (lambda f: fit(bounds=(float("nan"), 1.0)), ValueError, "bounds must be finite"),
    "bounds of another width": (lambda f: fit(bounds=([0.0, 0.0], 1.0)), ValueError, "hold one value per column; got shapes .* for 3 columns"),
    "bounds that exclude people": (lambda f: fit(X=FRAME, bounds=(0.0, 0.5)), ValueError, r"bounds exclude \d+ of 40 training rows"),
    "no steps": (lambda f: fit(steps=0), ValueError, "steps must be positive; got 0"),
    "lr of zero": (lambda f: fit(lr=0.0), ValueError, "lr must be positive; got 0.0"),
    "warm-up beyond all steps": (lambda f: fit(warm_up=2.0), ValueError, "share of the steps, between 0 and 1; got 2.0"),
    "all rows held out": (lambda f: fit(validation_fraction=1.0), ValueError, r"must lie in \[0, 1\); got 1.0"),
    "patience without held-out rows": (lambda f: fit(patience=3), ValueError, "patience needs validation data"),
    "a metric of another width": (lambda f: fit(fair_metric=FairMetric.euclidean(5)), ValueError, "built for 5 features but X has 3"),
    "a metric that is none": (lambda f: fit(fair_metric=lambda X: "metric"), TypeError, "FairMetric or a function of X.*got str"),
    "a projection of another width": (lambda f: fit(fair_metric=FairMetric.euclidean(5), kind=ProjectClassifier), ValueError, "built for 5 features"),
    "a network of another width": (lambda f: fit(module=nn.Linear(3, 7)), ValueError, r"to \(n, 2\) .*gave \(2, 7\)"),
    "streams read once": (lambda f: SenSeIClassifier().fit_stream(iter([(X, Y)])), TypeError, "reads the batches more than once"),
    # metrics
    "neither directions nor sigma": (lambda f: FairMetric(), ValueError, "either directions .* or sigma"),
    "directions with NaN": (lambda f: FairMetric([[float("nan")], [1.0]]), ValueError, "directions holds NaN or infinite"),
    "directions of zeros": (lambda f: FairMetric([[0.0], [0.0]]), ValueError, "directions span nothing"),
    "sigma not square": (lambda f: FairMetric(sigma=np.ones((2, 3))), ValueError, "sigma must be square"),
    "sigma not symmetric": (lambda f: FairMetric(sigma=[[1.0, 2.0], [0.0, 1.0]]), ValueError, "sigma must be symmetric"),
    "sigma not PSD": (lambda f: FairMetric(sigma=[[1.0, 0.0], [0.0, -1.0]]), ValueError, "positive semi-definite; its smallest eigenvalue is -1"),
    "distance of another width": (lambda f: METRIC(np.ones((2, 4)), np.ones((2, 4))), ValueError, r"3 features but x has shape \(2, 4\)"),
    "a column that is not there": (lambda f: fair_metrics.from_columns(FRAME, ["sexx"]), ValueError, "'sexx' does not exist; the closest are 'sex'"),
    "a string for a list": (lambda f: fair_metrics.from_columns(FRAME, "sex"), TypeError, r"write \['sex'\]"),
    "a position beyond the columns": (lambda f: fair_metrics.from_columns(X, [7]), ValueError, "column 7 does not exist: the data have 3"),
    "an attribute of one value": (lambda f: fair_metrics.from_classifier(frame_with("sex", 1.0), ["sex"]), ValueError, "'sex' has the single value"),
    "an attribute that is missing": (lambda f: fair_metrics.from_classifier(FRAME, predict={"race": [None] * 40}), ValueError, "'race' is missing in 40 of 40 rows"),
    "no sensitive column": (lambda f: fair_metrics.from_classifier(FRAME), ValueError, "at least one sensitive column"),
    "FACE with too many directions": (lambda f: fair_metrics.face(VERSIONS, k=3), ValueError, "k must be at least 1 and less than the 3 features"),
    "FACE without differences": (lambda f: fair_metrics.face(VERSIONS, k=1), ValueError, "differ in only 0 directions"),
    "EXPLORE with one answer": (lambda f: fair_metrics.explore(X, X + 1, np.ones(40)), ValueError, "comparable must hold both answers"),
    "a file that is no metric": (lambda f: FairMetric.load(written(f / "m.npz", b"no")), ValueError, "m.npz is not a fair metric"),
    # search, objectives, training
    "search of another width": (lambda f: GradientSearch()(NET, lambda h: h[:, 0], TX[:, :2], METRIC, 1.0), ValueError, "built for 3 features"),
    "a model without gradients": (lambda f: GradientSearch()(lambda x: torch.zeros(len(x), 2), lambda h: h[:, 0], TX, METRIC, 1.0), ValueError, "use CandidateSearch"),
    "candidates beyond the rows": (lambda f: CandidateSearch(VERSIONS)(NET, lambda h: h[:, 0], TX[:5], METRIC, 1.0), ValueError, "speak of row 39 but x has 5 rows"),
    "eps of the regularizer is NaN": (lambda f: FairRegularizer(METRIC, eps=float("nan")), ValueError, "eps must be zero or positive, got nan"),
    "rho of SenSeI below zero": (lambda f: SenSeI(FairRegularizer(METRIC), rho=-1), ValueError, "rho must be zero or positive"),
    "nothing to pair": (lambda f: CLP(Variations(np.zeros((0, 2, 3)), rows=[]), rho=1.0), ValueError, "nobody with versions"),
    "pairs with NaN": (lambda f: CLP(Variations(np.full((1, 2, 3), np.nan), rows=[0]), rho=1.0), ValueError, "NaN or infinite"),
    "one group to guess": (lambda f: Adversarial(np.zeros(40, int), 2), ValueError, "has a single group"),
    "embedding with NaN": (lambda f: CoCL(with_nan(X), 1.0), ValueError, "embedding holds NaN"),
    "x without y": (lambda f: train(NET, ERM(), TX), TypeError, "y is missing"),
    "arrays for tensors": (lambda f: learn(x=X), TypeError, "x and y must be tensors, got ndarray"),
    "x and y of different length": (lambda f: learn(y=TY[:-1]), ValueError, "same, positive number of rows; got 40 and 39"),
    "features that are NaN": (lambda f: learn(x=TX * float("nan")), TrainingDiverged, "step 1 of 2.*features of this batch hold NaN"),
    "a rate at which weights explode": (lambda f: learn(model=nn.Linear(3, 2), lr=1e38, steps=9), TrainingDiverged, "Lower lr or rho|lower lr or rho"),
    "resume from nothing": (lambda f: learn(resume=True), ValueError, "need checkpoint="),
    "a checkpoint that is a text": (lambda f: learn(checkpoint=written(f / "run", b"text"), resume=True), CheckpointError, "is not a checkpoint of evenhand, or is damaged"),
    "a checkpoint in no folder": (lambda f: learn(checkpoint=f / "no" / "run"), FileNotFoundError, "does not exist; make it first"),
    # scores, variations
    "scores of different length": (lambda f: evaluation.balanced_accuracy([0, 1], [0]), ValueError, "y has 2 rows but predicted has 1"),
    "scores of nobody": (lambda f: evaluation.balanced_accuracy([], []), ValueError, "y is empty"),
    "labels that are missing": (lambda f: evaluation.balanced_accuracy([0, np.nan], [0, 1]), ValueError, "y is missing in"),
    "one version to compare": (lambda f: evaluation.prediction_consistency([[1], [0]]), ValueError, "at least 2 versions"),
    "groups of another length": (lambda f: evaluation.tpr_gaps([0, 1], [0, 1], ["a"]), ValueError, "one label for each of the 2 rows"),
    "variations without rows": (lambda f: Variations([[1, 2]], rows=[0, 1]), ValueError, "holds 1 individuals but rows names 2"),
    # audit, certificate
    "an audit of nobody": (lambda f: audit(NET, X[:0], METRIC, bounds=(0, 1)), ValueError, "x is empty"),
    "an audit without a metric": (lambda f: audit(NET, X, bounds=(0, 1)), ValueError, "fair_metric is needed"),
    "people outside the bounds": (lambda f: audit(NET, X, METRIC, bounds=(0, 0.5)), ValueError, "bounds"),
    "a certificate without a metric": (lambda f: certify(NET, MORE, bounds=(0, 1)), ValueError, "fair_metric is needed"),
    "a certificate with negative eps": (lambda f: certify(NET, MORE, METRIC, eps=-1.0, bounds=(0, 1)), ValueError, "eps must be a finite number, at least 0 .*got -1"),
    # files
    "a model that is not fitted": (lambda f: save(ERMClassifier(), f / "m"), ValueError, "not fitted yet; call fit before save"),
    "saving what is not ours": (lambda f: save(object(), f / "m"), TypeError, "takes an estimator of evenhand.*got object"),
    "a model file that is a text": (lambda f: load(written(f / "m.evenhand", b"text")), ModelFileError, "m.evenhand"),
    "a model file that is a pickle": (lambda f: load(written(f / "m.pkl", b"\x80\x04\x95\x05\x00")), ModelFileError, "pickle"),
    "a table that is not there": (lambda f: read_table(f / "no.csv"), TableError, "there is no file"),
    "an empty table": (lambda f: read_table(written(f / "t.csv", b"")), TableError, r"is empty \(0 bytes\)"),
    "a table without rows": (lambda f: read_table(written(f / "t.csv", b"a,b\n")), TableError, "has a header but no rows"),
    "a picture for a table": (lambda f: read_table(written(f / "t.csv", b"\x89PNG\r\n\x1a\n\x00\x00")), TableError, "binary file, not a table"),
    "a text for a parquet file": (lambda f: read_table(written(f / "t.parquet", b"a,b\n1,2\n")), TableError, "not a parquet file"),
}  # fmt: skip


def test_the_table_is_long_enough():
    assert len(BAD) >= 50


@pytest.mark.parametrize("name", BAD)
def test_bad_input_says_what_to_do(name, tmp_path):
    call, kind, message = BAD[name]
    with pytest.raises(kind, match=f"(?s){message}"):
        call(tmp_path)
