import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenhand import SenSeIClassifier
from evenhand.frontier.trade_off import Frontier, pareto


def sweep():
    frame = pd.DataFrame(
        {
            "rho": [0, 0, 1, 1, 5, 5, 9, 9],
            "fold": [0, 1] * 4,
            "accuracy": [0.82, 0.80, 0.81, 0.79, 0.70, 0.72, 0.74, 0.76],
            "unfairness": [0.50, 0.40, 0.10, 0.12, 0.09, 0.09, 0.02, 0.04],
            "seconds": 1.0,
        }
    )
    return Frontier(frame, ("rho",), ("accuracy", "unfairness"), SenSeIClassifier())


def test_table_has_means_and_students_intervals():
    row = sweep().table.iloc[0]
    low, high = stats.ttest_1samp([0.82, 0.80], 0).confidence_interval(0.95)
    assert row["accuracy"] == pytest.approx(0.81)
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx((low, high))
    assert row["folds"] == 2


def test_front_leaves_out_what_is_beaten():
    assert sweep().table["front"].tolist() == [True, True, False, True]  # rho = 9 beats rho = 5
    assert sweep().front["rho"].tolist() == [9, 1, 0]
    assert "4 settings on 2 folds, 3 on the front" in str(sweep())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_pareto_against_the_definition(points):
    a, u = np.array(points, dtype=float).T
    for i, on_front in enumerate(pareto(a, u)):
        beaten = any((a[j] >= a[i] and u[j] <= u[i]) and (a[j] > a[i] or u[j] < u[i]) for j in range(len(a)))
        assert on_front == (not beaten)


def test_undefined_is_on_no_front():
    assert pareto(np.array([0.8, np.nan]), np.array([0.1, 0.0])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("rule", "rho"),
    [
        ({"max_accuracy_loss": 0.02}, 1),
        ({"max_accuracy_loss": 0.0}, 0),
        ({"max_accuracy_loss": 0.5}, 9),
        ({"max_unfairness": 0.2}, 1),
        ({"max_unfairness": 0.05}, 9),
        ({"max_unfairness": 1.0}, 0),
    ],
)
def test_choose(rule, rho):
    choice = sweep().choose(**rule)
    assert choice.params == {"rho": rho}
    assert choice.estimator.rho == rho
    assert not hasattr(choice.estimator, "module_")
    assert str(choice).startswith(f"rho={rho} is the")
    assert str(choice).endswith("mean of 2 held-out folds.")


def test_choose_says_what_is_impossible():
    with pytest.raises(ValueError, match=r"the least is 0\.03 at rho=9"):
        sweep().choose(max_unfairness=0.001)
    with pytest.raises(ValueError, match="either"):
        sweep().choose()


def test_nothing_defined_is_never_chosen():
    frontier = sweep()
    frontier.frame["unfairness"] = np.nan
    with pytest.raises(ValueError, match="nothing to choose"):
        frontier.choose(max_accuracy_loss=1)


def test_a_single_setting_without_parameters():
    frame = sweep().frame.drop(columns="rho")
    single = Frontier(frame, (), ("accuracy", "unfairness"), SenSeIClassifier())
    assert single.table["accuracy"].tolist() == [pytest.approx(frame["accuracy"].mean())]
    assert single.choose(max_accuracy_loss=0).params == {}
