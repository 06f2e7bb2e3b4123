"""A scikit-learn Pipeline from the raw Adult frame: mixed types in, fair decisions out.

The metric is learned inside the pipeline, on the encoded columns, so that cross-validation refits it on every fold.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import SenSeIClassifier, evaluation, fair_metrics
from evenhand.counterfactuals import alter_columns
from evenhand.datasets import adult_frame

NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
CATEGORIES = ["workclass", "marital-status", "occupation", "relationship", "sex", "race"]


def fair_pipeline(steps: int = 600) -> Pipeline:
    encode = make_column_transformer(
        (StandardScaler(), NUMBERS),
        (OneHotEncoder(sparse_output=False, drop="if_binary", handle_unknown="ignore"), CATEGORIES),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    # "sex" stands for its one-hot columns; `predict` adds the direction that gives it away
    learner = partial(fair_metrics.from_classifier, columns=["sex", "race"], predict=["sex"])
    fair = SenSeIClassifier(learner, rho=20, eps=0.1, steps=steps, batch_size=500, lr=2e-3, random_state=0)
    return Pipeline([("encode", encode), ("fair", fair)])


def main(steps: int = 600, rows: int | None = None) -> dict[str, float]:
    frame = adult_frame().dropna(subset=["native-country", "occupation"])
    frame = frame if rows is None else frame.sample(rows, random_state=0)
    X, y = frame[NUMBERS + CATEGORIES], frame["income"]
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = fair_pipeline(steps).fit(X_train, y_train)
    same = alter_columns(X_test, {"sex": ["Female", "Male"], "race": ["White", "Black"]})
    return {
        "balanced accuracy": evaluation.balanced_accuracy(np.asarray(y_test), model.predict(X_test)),
        "consistency under sex and race": evaluation.prediction_consistency(same.map(model.predict)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    for name, value in main(parser.parse_args().steps).items():
        print(f"{name}: {value:.3f}")
