import numpy as np
import pytest

from evenhand import FairMetric, SenSeIClassifier, audit
from evenhand.datasets import synthetic
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


def test_a_range_that_is_none():
    from evenhand.integrations.optuna import FrontierObjective

    with pytest.raises(ValueError, match="range"):
        FrontierObjective(SenSeIClassifier(), [[0.0]], [0], [[0.0]], [0], rho=(0.0, 1.0))
