import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand import ERMClassifier, FairMetric, SenSeIClassifier, audit
from evenhand.datasets import synthetic
from evenhand.estimators import ClassifierMetric
from evenhand.evaluation import balanced_accuracy

optuna = pytest.importorskip("optuna", reason="optuna is not installed: pip install optuna")


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_trials_are_models_judged_on_the_validation_rows():
    from evenhand.integrations.optuna import FrontierObjective

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = synthetic(300, seed=0)
    estimator = SenSeIClassifier(FairMetric(np.array([[1.0], [0.0]])), hidden=(8,), eps=0.1, steps=40, random_state=0)
    objective = FrontierObjective(
        estimator, X[:200], y[:200], X[200:], y[200:], rho=(0.1, 50.0),
        suggest={"lr": lambda trial: trial.suggest_categorical("lr", [0.01])},
    )  # fmt: skip
    study = optuna.create_study(directions=["maximize", "minimize"])
    study.enqueue_trial({"rho": 0.1, "lr": 0.01})
    study.enqueue_trial({"rho": 50.0, "lr": 0.01})
    study.optimize(objective, n_trials=2)
    mild, strict = study.trials
    assert strict.values[1] < mild.values[1]
    model = SenSeIClassifier(
        FairMetric(np.array([[1.0], [0.0]])), hidden=(8,), eps=0.1, steps=40, random_state=0, rho=0.1, lr=0.01
    ).fit(X[:200], y[:200])
    assert mild.values[0] == pytest.approx(balanced_accuracy(y[200:], model.predict(X[200:])))
    found = audit(model, X[200:], model.fair_metric_, 0.1, (X.min(0), X.max(0)), per_person=False)
    assert mild.values[1] == pytest.approx(found.r_low)


@pytest.mark.parametrize("rho", [(0.0, 1.0), (2.0, 1.0), 5, (1.0,), ("1", "2"), (1.0, np.inf)])
def test_a_range_that_is_none(rho):
    from evenhand.integrations.optuna import FrontierObjective

    with pytest.raises(ValueError, match="rho must be a range"):
        FrontierObjective(SenSeIClassifier(), [[0.0]], [0], [[0.0]], [0], rho=rho)


def values(objective, rho=1.0, **more):
    trial = optuna.trial.FixedTrial({"rho": rho, **more})
    return objective(trial)


def small(**options):
    metric = FairMetric(np.array([[1.0], [0.0]]))
    return SenSeIClassifier(
        **{"fair_metric": metric, "hidden": (8,), "eps": 0.1, "steps": 20, "random_state": 0, **options}
    )


def test_a_pipeline_is_judged_in_the_units_of_its_last_step():
    from evenhand.integrations.optuna import FrontierObjective

    X, y = synthetic(200, seed=0)
    X = 100 * X + 7
    scaler = StandardScaler().fit(X[:150])
    Z = scaler.transform(X)
    alone = FrontierObjective(small(), Z[:150], y[:150], Z[150:], y[150:])
    inside = FrontierObjective(
        make_pipeline(StandardScaler(), small()), X[:150], y[:150], X[150:], y[150:],
        suggest={"senseiclassifier__steps": lambda trial: trial.suggest_categorical("steps", [20])},
    )  # fmt: skip
    assert values(inside, steps=20) == pytest.approx(values(alone), rel=0.01)  # of other tuning rows
    assert inside.eps == 0.1


def test_arrow_tables_are_as_good_as_frames():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from evenhand.integrations.optuna import FrontierObjective

    X, y = synthetic(200, seed=0)
    frame = pd.DataFrame(X, columns=["sex", "pay"])
    table = pa.Table.from_pandas(frame)
    found = [values(FrontierObjective(small(), x[:150], y[:150], x[150:], y[150:])) for x in (table, frame, X)]
    assert found[0] == found[1] == pytest.approx(found[2])


def test_sensitive_features_teach_the_metric_of_every_trial():
    from evenhand.integrations.optuna import FrontierObjective

    X, y = synthetic(200, seed=0)
    data, sex = (X[:150], y[:150], X[150:], y[150:]), (X[:150, 0] > 0).astype(int)
    plain = small(fair_metric=ClassifierMetric())
    model = small(fair_metric=ClassifierMetric(), rho=1.0).fit(X[:150], y[:150], sensitive_features=sex)
    wanted = audit(model, X[150:], model.fair_metric_, 0.1, (X.min(0), X.max(0)), per_person=False)
    assert values(FrontierObjective(plain, *data, sensitive_features=sex))[1] == pytest.approx(wanted.r_low)
    inside = FrontierObjective(make_pipeline("passthrough", plain), *data, sensitive_features=sex)
    assert values(inside)[1] == pytest.approx(wanted.r_low)


def test_what_cannot_be_searched_is_said():
    from evenhand.integrations.optuna import FrontierObjective

    data = ([[0.0]], [0], [[0.0]], [0])
    with pytest.raises(TypeError, match=r"one with a rho, .* or a Pipeline that ends in one; got ERMClassifier"):
        FrontierObjective(make_pipeline(StandardScaler(), ERMClassifier()), *data)
    with pytest.raises(ValueError, match=r"eps must be zero or positive, got '0.1'"):
        FrontierObjective(SenSeIClassifier(), *data, eps="0.1")
