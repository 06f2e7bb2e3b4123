"""Any library's tree ensemble as a ``TreeEnsemble``: LightGBM, XGBoost, scikit-learn's boosting and forests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.trees import DEEPEST, TreeEnsemble


class CannotRead(ValueError):
    """The model is a tree ensemble of a kind that the arrays cannot hold; the message says which."""


class Tree(NamedTuple):
    """One tree as columns, its root first."""

    feature: NDArray[Any]
    threshold: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    value: NDArray[Any]
    missing_left: NDArray[Any]


def read_ensemble(model: Any) -> TreeEnsemble | None:
    """The ensemble behind a fitted model, None if it is not one that is known.

    Outputs are log-odds for boosted classifiers (one column for two classes), probabilities for forests, predictions
    for regressors.
    """
    own = getattr(model, "ensemble_", None)
    found = own if isinstance(own, TreeEnsemble) else _read(model)
    if found is not None and found.depth > DEEPEST:
        raise CannotRead(f"a tree of the ensemble is {found.depth} splits deep; at most {DEEPEST} can be read")
    return found


def _read(model: Any) -> TreeEnsemble | None:
    kind, home = type(model).__name__, type(model).__module__.split(".")[0]
    if home == "lightgbm":
        return _lightgbm(model)
    if home == "xgboost":
        return _xgboost(model)
    if home == "sklearn" and kind.startswith("HistGradientBoosting"):
        return _histogram(model)
    if home == "sklearn" and kind.startswith("GradientBoosting"):
        return _gradient_boosting(model)
    if home == "sklearn" and kind.startswith(("RandomForest", "ExtraTrees", "DecisionTree", "ExtraTree")):
        return _forest(model)
    return None


def join_trees(trees: Iterable[Tree], output: Iterable[int], base: Any, d: int) -> TreeEnsemble:
    """Trees one after the other, their node numbers shifted."""
    parts = list(trees)
    starts = np.concatenate([[0], np.cumsum([len(tree.feature) for tree in parts])])
    empty = np.zeros(0)

    def column(name: str, kind: Any, shifted: bool = False) -> Any:
        chosen = [getattr(tree, name) + (start if shifted else 0) for tree, start in zip(parts, starts)]
        return np.concatenate([*chosen, empty]).astype(kind)

    return TreeEnsemble(
        feature=column("feature", np.int32),
        threshold=column("threshold", np.float64),
        width=np.zeros(int(starts[-1])),
        left=column("left", np.int32, True),
        right=column("right", np.int32, True),
        value=column("value", np.float64),
        missing_left=column("missing_left", np.bool_),
        root=starts[:-1].astype(np.int32),
        output=np.asarray(list(output), dtype=np.int32),
        base=np.atleast_1d(np.asarray(base, dtype=np.float64)),
        d=d,
    )


def lightgbm_tree(info: dict[str, Any]) -> Tree:
    """One entry of ``dump_model()["tree_info"]``."""
    rows: list[list[float]] = []

    def add(node: dict[str, Any]) -> int:
        here = len(rows)
        rows.append([-1, 0.0, 0, 0, 0.0, 1])
        if "split_feature" not in node:
            rows[here][4] = node["leaf_value"]
            return here
        if node["decision_type"] != "<=":
            raise CannotRead("the ensemble splits a categorical column by sets of codes; one-hot encode it instead")
        left, right = add(node["left_child"]), add(node["right_child"])
        rows[here] = [node["split_feature"], node["threshold"], left, right, 0.0, float(node["default_left"])]
        return here

    add(info["tree_structure"])
    table = np.array(rows, dtype=np.float64)
    return Tree(*(table[:, i] for i in range(6)))


def _lightgbm(model: Any) -> TreeEnsemble:
    booster = getattr(model, "booster_", model)
    document = booster.dump_model()
    k = int(document["num_tree_per_iteration"])
    trees = [lightgbm_tree(info) for info in document["tree_info"]]
    return join_trees(trees, [i % k for i in range(len(trees))], np.zeros(k), booster.num_feature())


def _below(threshold: Any) -> Any:
    """x < t in float32 as x <= t' in float64."""
    return np.nextafter(np.asarray(threshold, dtype=np.float32), np.float32(-np.inf)).astype(np.float64)


def _xgboost(model: Any) -> TreeEnsemble:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    document = json.loads(booster.save_raw("json"))["learner"]
    settings = document["learner_model_param"]
    k = max(int(settings["num_class"]), 1)
    inner = document["gradient_booster"]["model"]
    trees = []
    for tree in inner["trees"]:
        if any(tree.get("split_type", [])):
            raise CannotRead("the ensemble splits a categorical column by sets of codes; one-hot encode it instead")
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        leaf = left < 0
        condition = np.array(tree["split_conditions"], dtype=np.float64)
        trees.append(
            Tree(
                np.where(leaf, -1, tree["split_indices"]),
                np.where(leaf, 0.0, _below(condition)),
                np.where(leaf, 0, left),
                np.where(leaf, 0, right),
                np.where(leaf, condition, 0.0),
                np.array(tree["default_left"], dtype=bool),
            )
        )
    start = np.asarray(json.loads(str(settings["base_score"])), dtype=np.float64).reshape(-1)
    if "logistic" in document["objective"]["name"]:
        start = np.log(start / (1 - start))
    base = np.broadcast_to(start, (k,)).copy()
    return join_trees(trees, inner["tree_info"], base, int(settings["num_feature"]))


def _histogram(model: Any) -> TreeEnsemble:
    trees, output = [], []
    for iteration in model._predictors:
        for k, predictor in enumerate(iteration):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            if nodes["is_categorical"][~leaf].any():
                raise CannotRead("the ensemble splits a categorical column by sets of codes; one-hot encode it instead")
            trees.append(
                Tree(
                    np.where(leaf, -1, nodes["feature_idx"].astype(np.int64)),
                    np.where(leaf, 0.0, nodes["num_threshold"]),
                    np.where(leaf, 0, nodes["left"].astype(np.int64)),
                    np.where(leaf, 0, nodes["right"].astype(np.int64)),
                    np.where(leaf, nodes["value"], 0.0),
                    nodes["missing_go_to_left"].astype(bool),
                )
            )
            output.append(k)
    return join_trees(trees, output, np.asarray(model._baseline_prediction).reshape(-1), model.n_features_in_)


def _plain(tree: Any, value: NDArray[Any]) -> Tree:
    """A tree of scikit-learn's tree module, which sees x in float32."""
    leaf = tree.children_left < 0
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    return Tree(
        np.where(leaf, -1, tree.feature),
        np.where(leaf, 0.0, tree.threshold),
        np.where(leaf, 0, tree.children_left),
        np.where(leaf, 0, tree.children_right),
        np.where(leaf, value, 0.0),
        np.asarray(missing).astype(bool),
    )


def _gradient_boosting(model: Any) -> TreeEnsemble:
    trees = [_plain(e.tree_, model.learning_rate * e.tree_.value[:, 0, 0]) for row in model.estimators_ for e in row]
    k = model.estimators_.shape[1]
    start = np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))).reshape(-1)
    return join_trees(trees, [i % k for i in range(len(trees))], start, model.n_features_in_)


def _forest(model: Any) -> TreeEnsemble:
    members = getattr(model, "estimators_", [model])
    if getattr(model, "n_outputs_", 1) != 1:
        raise CannotRead("the forest predicts several targets at once; give one target's model")
    trees, output = [], []
    for member in members:
        value = member.tree_.value[:, 0, :]
        if hasattr(model, "classes_"):
            value = value / value.sum(1, keepdims=True)
        for k in range(value.shape[1]):
            trees.append(_plain(member.tree_, value[:, k] / len(members)))
            output.append(k)
    return join_trees(trees, output, np.zeros(max(output) + 1), model.n_features_in_)
