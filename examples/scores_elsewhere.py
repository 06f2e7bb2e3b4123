"""evenhand's scores with other people's tools: fairlearn's MetricFrame and scikit-learn's scorers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from fairlearn.metrics import MetricFrame
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_validate

from evenhand import evaluation
from evenhand.counterfactuals import alter_columns
from evenhand.datasets import adult


def consistency(estimator: Any, X: pd.DataFrame, y: Any = None) -> float:
    """A scorer for cross_validate and GridSearchCV: the share of people whose decision does not depend on sex."""
    return evaluation.prediction_consistency(alter_columns(X, {"sex": [0.0, 1.0]}).map(estimator.predict))


def main(rows: int = 3000) -> dict[str, Any]:
    train, test = adult(seed=0)
    X, y = train.X.iloc[:rows], train.y[:rows]
    model = LogisticRegression(max_iter=500).fit(X, y)

    # scores of people, by group
    by_sex = MetricFrame(
        metrics={"balanced accuracy": evaluation.balanced_accuracy},
        y_true=test.y,
        y_pred=model.predict(test.X),
        sensitive_features=pd.Series(test.sex, name="sex"),
    )
    # scores of models, in cross-validation
    folds = cross_validate(
        LogisticRegression(max_iter=500),
        X,
        y,
        cv=3,
        scoring={"balanced accuracy": make_scorer(evaluation.balanced_accuracy), "consistency": consistency},
    )
    return {
        "by group": by_sex.by_group,
        "gap": float(by_sex.difference().iloc[0]),
        "consistency": float(np.mean(folds["test_consistency"])),
        "balanced accuracy": float(np.mean(folds["test_balanced accuracy"])),
    }


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value}")
