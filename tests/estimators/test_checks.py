"""scikit-learn's own checks of every public estimator, and one-sentence errors about parameters."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import SkipTestWarning
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from evenhand import estimators
from evenhand.estimators import checks
from evenhand.fair_metrics import from_classifier
from evenhand.variations import Variations

SMALL = {"hidden": (20,), "steps": 40, "batch_size": 32, "lr": 0.03, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose


def groups(X):
    """Two groups in any table, alike for equal rows: what an attribute beside X would say."""
    values = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    first = values[:, 0]
    return np.where(first > (first.min() + first.max()) / 2, "b", "a")


def mirrored(X):
    """A second version of every row: its first feature with the other sign."""
    values = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)
    other = values.copy()
    other[:, 0] *= -1
    return Variations(np.stack([values, other], axis=1), rows=np.arange(len(values)))


class Named:
    """A function whose text is its name: the names of tests must not hold where in memory it lies."""

    def __init__(self, function):
        self.function = function

    def __call__(self, X):
        return self.function(X)

    def __repr__(self):
        return self.function.__name__

    def __deepcopy__(self, memo):
        return self


EXTRA = {
    "AdversarialClassifier": {"sensitive": Named(groups)},
    "CoCLClassifier": {"sensitive": Named(groups)},
    "CLPClassifier": {"variations": Named(mirrored), "rho": 0.01},  # more would take a feature away that is needed
    "CLPRegressor": {"variations": Named(mirrored), "rho": 0.01},
}
ALL = [
    getattr(estimators, name)(**(SMALL | EXTRA.get(name, {}) if not name.endswith("Metric") else {}))
    for name in estimators.__all__
    if "Boosting" not in name and name != "BuDROClassifier"  # no networks: checked in test_boosting.py, test_budro.py
]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", SkipTestWarning)
    every_check = parametrize_with_checks(ALL)


@every_check
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_sound_parameters_pass(model):
    if "steps" in model.get_params():
        checks.check_parameters(model)


class Tables(torch.nn.Linear):
    """A module that gives a table, as those of transformers do."""

    def __init__(self):
        super().__init__(3, 2)

    def forward(self, x):
        return {"logits": super().forward(x)}


TREES = [estimators.SenSeIBoostingClassifier, estimators.SenSeIBoostingRegressor, estimators.BuDROClassifier]


@pytest.mark.parametrize("model", TREES)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"eps": "0.1"}, "eps must be a number; got '0.1' of type str"),
        ({"eps": -1}, "eps must be zero or positive; got -1"),
        ({"trees": "5"}, "trees must be a whole number; got '5' of type str"),
        ({"trees": 2.5}, "trees must be a whole number; got 2.5 of type float"),
        ({"trees": 0}, "trees must be positive; got 0"),
        ({"leaves": 1}, "leaves must be 2 or more; got 1"),
        ({"learning_rate": "x"}, "learning_rate must be a number; got 'x' of type str"),
        ({"learning_rate": -1}, "learning_rate must be positive; got -1"),
        ({"l2": "a"}, "l2 must be a number; got 'a' of type str"),
        ({"rho": "1"}, "rho must be a number; got '1' of type str"),
        ({"search_every": 0}, "search_every must be positive; got 0"),
        ({"smooth": "wide"}, "smooth must be a number; got 'wide' of type str"),
        ({"validation_fraction": 1.5}, r"validation_fraction must lie in \[0, 1\)"),
        ({"neighbours": "a"}, "neighbours must be a whole number; got 'a' of type str"),
        ({"support": 1.5}, "support must be a whole number; got 1.5 of type float"),
    ],
)
def test_wrong_parameters_of_trees(model, parameters, message):
    if not set(parameters) <= set(model().get_params()):
        pytest.skip("a parameter of others")
    with pytest.raises(ValueError, match=message) as told:
        model(**{"trees": 2} | parameters).fit(TWO, LABELS)
    assert "\n" not in str(told.value)


TWO = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
LABELS = (TWO[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"search": "fast"}, r"search must be a function, such as GradientSearch\(\); got 'fast'"),
        ({"output_distance": "logits"}, "output_distance must be a function"),
        ({"lam_rule": 0.1}, "lam_rule must be a function"),
        ({"optimizer": "adam"}, r"optimizer must be a function, such as torch\.optim\.AdamW; got 'adam'"),
        ({"module": "mlp"}, "module must be a function"),
        ({"certified": "yes"}, "certified must be a number"),
        ({"every": 1.5}, "every must be a whole number; got 1.5"),
        ({"every": "2"}, "every must be a whole number; got '2'"),
        ({"every": 0}, "every must be positive; got 0"),
        ({"patience": "3"}, "patience must be a whole number; got '3'"),
        ({"callbacks": print}, "callbacks must be a list"),
        ({"callbacks": ["print"]}, "callbacks must be functions"),
        ({"device": "tpu"}, r"device='tpu' cannot be used here .*; 'cpu' always can"),
        ({"device": None}, r"device=None cannot be used here .*; 'cpu' always can"),
        ({"fair_metric": ["sex"]}, r"fair_metric must be a FairMetric or a learner of one, got \['sex'\]"),
        ({"class_weight": {0: -1.0}}, "class_weight must give every class a weight"),
        ({"bounds": 5}, "bounds"),
        ({"rho": float("inf")}, "rho must be finite; got inf"),
        ({"optimizer": torch.optim.LBFGS}, "optimizer LBFGS needs a closure"),
        ({"optimizer": torch.optim.LBFGS, "weight_decay": 0.1}, "optimizer LBFGS needs a closure"),
        ({"optimizer": lambda groups: torch.optim.LBFGS(groups)}, "optimizer LBFGS needs a closure"),
        ({"module": Tables()}, "it gave dict, so return the tensor of outputs in it alone"),
        ({"module": lambda d, k: 5}, r"module must be or make a torch\.nn\.Module; got int"),
    ],
)
def test_wrong_parameters_are_told_in_one_sentence(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message) as told:
        estimators.SenSeIClassifier(**(SMALL | parameters)).fit(TWO, LABELS)
    assert "\n" not in str(told.value)


def test_several_targets_and_missing_ones_are_told_what_to_do():
    two = np.stack([LABELS, 1 - LABELS], axis=1)
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        estimators.SenSeIClassifier(**SMALL).fit(TWO, two)
    assert estimators.SenSeIRegressor(**SMALL).fit(TWO, two.astype(float)).predict(TWO).shape == two.shape
    assert MultiOutputClassifier(estimators.SenSeIClassifier(**SMALL)).fit(TWO, two).predict(TWO).shape == two.shape
    for nothing in (None, float("nan")):
        labels = np.array(["yes", "no", nothing] + ["yes"] * 37, dtype=object)
        with pytest.raises(ValueError, match="y is missing in 1 of 40 rows"):
            estimators.ERMClassifier(**SMALL).fit(TWO, labels)


def test_positions_serve_where_names_get_lost():
    frame = pd.DataFrame(TWO, columns=["a", "b", "c"])
    by_name, by_place = (
        BaggingClassifier(
            estimators.SenSeIClassifier(estimators.ColumnsMetric([column]), **SMALL), n_estimators=2, random_state=0
        )
        for column in ("a", 0)
    )
    with pytest.raises(ValueError, match=r"give positions, such as \[0\], where names get lost"):
        by_name.fit(frame, LABELS)
    assert by_place.fit(frame, LABELS).predict(frame).shape == (40,)


def test_sensitive_features_keep_their_names_in_bagging():
    frame, sensitive = pd.DataFrame(TWO, columns=["a", "b", "c"]), pd.DataFrame({"sex": np.where(TWO[:, 1] > 0, 1, 0)})
    with config_context(enable_metadata_routing=True):
        one = estimators.SenSeIClassifier(estimators.ClassifierMetric(), **SMALL).set_fit_request(
            sensitive_features=True
        )
        fitted = BaggingClassifier(one, n_estimators=2).fit(frame, LABELS, sensitive_features=sensitive)
    for one in fitted.estimators_:
        assert [attribute.name for attribute in one.fair_metric_.attribute_models] == ["sex"]


def models_of(column):
    """Every estimator that is told of columns, and of this one."""
    yield estimators.SenSeIClassifier(estimators.ClassifierMetric([column]), **SMALL)
    yield estimators.SenSeIClassifier(lambda X: from_classifier(X, [column]), **SMALL)
    yield estimators.AdversarialClassifier([column], **SMALL)
    yield estimators.CoCLClassifier([column], **SMALL)


@pytest.mark.parametrize("kind", range(4))
def test_positions_serve_in_bagging(kind):
    """Copies of the rows are trained on as arrays: a metric of the copies is that of the frame's column."""
    values = TWO.copy()
    values[:, 1] = TWO[:, 1] > 0
    frame = pd.DataFrame(values, columns=["a", "sex", "c"])
    by_name, by_place = (
        BaggingClassifier(list(models_of(column))[kind], n_estimators=2, random_state=0) for column in ("sex", 1)
    )
    with pytest.raises(ValueError, match=r"column 'sex' does not exist: .* give positions, such as \[0\].*Bagging"):
        by_name.fit(frame, LABELS)
    fitted = by_place.fit(frame, LABELS)
    assert fitted.predict(frame).shape == (40,)
    if kind < 2:
        assert all(one.fair_metric_.directions[1].norm() == pytest.approx(1) for one in fitted.estimators_)
    else:
        named = list(models_of("sex"))[kind].fit(frame, LABELS)
        placed = list(models_of(1))[kind].fit(values, LABELS)
        np.testing.assert_array_equal(placed.predict_proba(values), named.predict_proba(frame))


def test_lazy_frames_are_collected():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(TWO, schema=["a", "b", "c"])
    model = estimators.SenSeIClassifier(estimators.ColumnsMetric(["a"]), **SMALL)
    lazy, eager = (model.fit(x, LABELS).predict_proba(x) for x in (frame.lazy(), frame))
    np.testing.assert_array_equal(lazy, eager)
