"""Any library's tree ensemble as a ``TreeEnsemble``: LightGBM, XGBoost, CatBoost, scikit-learn's boosting and forests.

What was read is compared with what the model itself answers at points about the thresholds: a kind of ensemble that
this file does not know (averaged trees, trees that were dropped, another link) is refused instead of misread.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.ensembles.trees import DEEPEST, TreeEnsemble

FAR = 1e30  # no value lies beyond: CatBoost tells missing values from others by a border at the end of float32
PROBES = 32  # points at which the model is asked
CATEGORICAL = "the ensemble splits a categorical column by sets of codes; one-hot encode it instead"


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
    if isinstance(own, TreeEnsemble):
        return own
    found = _read(model)
    if found is None:
        return None
    if found.depth > DEEPEST:
        raise CannotRead(f"a tree of the ensemble is {found.depth} splits deep; at most {DEEPEST} can be read")
    return _confirmed(found, _asked(model))


def _probes(ensemble: TreeEnsemble) -> NDArray[np.float64]:
    """Points about the thresholds, exact in float32."""
    rng, marks = np.random.default_rng(0), ensemble.thresholds()
    points = np.zeros((PROBES, ensemble.d))
    for j, every in enumerate(marks):
        known = every[np.abs(every) < FAR / 2]
        if len(known):
            reach = 0.5 * (known[-1] - known[0]) or max(1.0, abs(known[0]))
            points[:, j] = rng.choice(known, PROBES) + 0.05 * reach * rng.normal(size=PROBES)
    return points.astype(np.float32).astype(np.float64)


def _confirmed(ensemble: TreeEnsemble, asked: Callable[[NDArray[np.float64]], Any]) -> TreeEnsemble:
    """The ensemble, if it says what the model says; a constant between them is added to the base."""
    points = _probes(ensemble)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of columns, which an array does not have
        said = np.asarray(asked(points), dtype=np.float64)
    read = ensemble(points)
    apart = said.reshape(read.shape) - read if said.size == read.size else np.full(read.shape, np.inf)
    size = float(np.abs(said).max(initial=0.0) + np.abs(read).max(initial=0.0))
    small = 1e-4 * (float(np.abs(read - read.mean(0)).max(initial=0.0)) + 1e-2 * size)  # in the model's own units
    if not float(np.abs(apart - np.median(apart, axis=0)).max(initial=0.0)) <= small:
        raise CannotRead(
            "the model's answers are not the sum of its trees: they are averaged, weighted or transformed in a way "
            "that is not known here"
        )
    if float(np.abs(apart).max(initial=0.0)) <= small:
        return ensemble
    return ensemble.scaled(1.0, np.median(apart, axis=0))


def _asked(model: Any) -> Callable[[NDArray[np.float64]], Any]:
    """What the model itself answers: scores of classifiers and boosters, votes of forests, predictions."""
    home, classes = type(model).__module__.split(".")[0], hasattr(model, "predict_proba")
    wrapped = hasattr(model, "fit")
    if home == "lightgbm":
        return lambda x: model.predict(x, raw_score=classes or not wrapped)
    if home == "xgboost":
        if wrapped and not classes:
            return lambda x: _xgboost_booster(model).inplace_predict(x, validate_features=False)
        return lambda x: _xgboost_booster(model).inplace_predict(x, predict_type="margin", validate_features=False)
    if home == "catboost":
        return lambda x: model.predict(x, prediction_type="RawFormulaVal" if _catboost_classes(model) else None)
    if hasattr(model, "decision_function"):
        return lambda x: model.decision_function(x)
    return lambda x: model.predict_proba(x) if classes else model.predict(x)


def _read(model: Any) -> TreeEnsemble | None:
    kind, home = type(model).__name__, type(model).__module__.split(".")[0]
    if home == "lightgbm":
        return _lightgbm(model)
    if home == "xgboost":
        return _xgboost(model)
    if home == "catboost":
        return _catboost(model)
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
            raise CannotRead(CATEGORICAL)
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


def _rounded(threshold: Any) -> Any:
    """x <= t, of x rounded to float32, as x <= t' of x itself: t' is the last number that is rounded to t or below."""
    t = np.asarray(threshold, dtype=np.float64)
    below = t.astype(np.float32)
    below = np.where(below > t, np.nextafter(below, np.float32(-np.inf)), below)
    above = np.nextafter(below, np.float32(np.inf))
    middle = (below.astype(np.float64) + above.astype(np.float64)) / 2  # exact; itself it goes to the even one
    last = np.where(middle.astype(np.float32) == below, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(above), last, t)


def _below(threshold: Any) -> Any:
    """x < t, of x rounded to float32, as x <= t' of x itself."""
    return _rounded(np.nextafter(np.asarray(threshold, dtype=np.float32), np.float32(-np.inf)))


def _xgboost_booster(model: Any) -> Any:
    """The booster, cut where early stopping found the best."""
    if not hasattr(model, "get_booster"):
        return model
    booster, best = model.get_booster(), None
    if getattr(model, "early_stopping_rounds", None) is not None:
        best = getattr(model, "best_iteration", None)
    return booster if best is None else booster[: int(best) + 1]


def _xgboost(model: Any) -> TreeEnsemble:
    document = json.loads(_xgboost_booster(model).save_raw("json"))["learner"]
    settings, grown = document["learner_model_param"], document["gradient_booster"]
    k = max(int(settings["num_class"]), int(settings.get("num_target", 1)), 1)
    share = grown.get("weight_drop")  # dart: by what each tree is multiplied
    inner = grown.get("gbtree", grown).get("model", {})
    if "trees" not in inner:
        raise CannotRead(f"{document['gradient_booster']['name']} has no trees; judge it as a function of its rows")
    trees = []
    for number, tree in enumerate(inner["trees"]):
        if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
            raise CannotRead("the leaves of the ensemble hold several outputs; train one tree for each output")
        if any(tree.get("split_type", [])):
            raise CannotRead(CATEGORICAL)
        left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
        leaf = left < 0
        condition = np.array(tree["split_conditions"], dtype=np.float64)
        weight = 1.0 if share is None else float(share[number])
        trees.append(
            Tree(
                np.where(leaf, -1, tree["split_indices"]),
                np.where(leaf, 0.0, _below(condition)),
                np.where(leaf, 0, left),
                np.where(leaf, 0, right),
                np.where(leaf, weight * condition, 0.0),
                np.array(tree["default_left"], dtype=bool),
            )
        )
    start = np.asarray(json.loads(str(settings["base_score"])), dtype=np.float64).reshape(-1)
    if "logistic" in document["objective"]["name"]:
        start = np.log(start / (1 - start))
    base = np.broadcast_to(start, (k,)).copy()
    return join_trees(trees, inner["tree_info"], base, int(settings["num_feature"]))


def _catboost_classes(model: Any) -> bool:
    return type(model).__name__ != "CatBoostRegressor" and len(getattr(model, "classes_", ())) > 0


def _catboost(model: Any) -> TreeEnsemble:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text())
    known = {f["feature_index"]: f for f in document["features_info"].get("float_features", [])}
    scale, bias = document["scale_and_bias"]
    base = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    k, trees, output = len(base), list[Tree](), list[int]()
    for tree in document.get("oblivious_trees") or document.get("trees") or []:
        for c in range(k):
            rows: list[list[float]] = []
            if "leaf_values" in tree:
                _same_splits(rows, tree.get("splits") or [], np.reshape(tree["leaf_values"], (-1, k))[:, c], known)
            else:
                _own_splits(rows, tree, c, known)
            table = np.array(rows, dtype=np.float64)
            table[:, 4] *= scale
            trees.append(Tree(*(table[:, i] for i in range(6))))
            output.append(c)
    return join_trees(trees, output, base, len(model.feature_names_))


def _catboost_split(split: dict[str, Any], known: dict[int, Any]) -> list[float]:
    """Column, border and where a missing value goes; larger values go to the right."""
    if split.get("split_type", "FloatFeature") != "FloatFeature":
        raise CannotRead(CATEGORICAL)
    feature = known[split["float_feature_index"]]
    border = float(_rounded(min(max(split["border"], -FAR), FAR)))
    return [feature["flat_feature_index"], border, float(feature.get("nan_value_treatment") != "AsTrue")]


def _same_splits(rows: list[list[float]], splits: list[Any], values: NDArray[Any], known: dict[int, Any]) -> int:
    """A tree that asks the same question at every node of a level; bit i of a leaf's number answers question i."""
    here = len(rows)
    rows.append([-1, 0.0, 0, 0, float(values[0]), 1])
    if splits:
        column, border, missing = _catboost_split(splits[-1], known)
        half = len(values) // 2  # the last question is the highest bit
        left = _same_splits(rows, splits[:-1], values[:half], known)
        right = _same_splits(rows, splits[:-1], values[half:], known)
        rows[here] = [column, border, left, right, 0.0, missing]
    return here


def _own_splits(rows: list[list[float]], node: dict[str, Any], c: int, known: dict[int, Any]) -> int:
    here = len(rows)
    rows.append([-1, 0.0, 0, 0, 0.0, 1])
    if "split" not in node:
        rows[here][4] = float(np.atleast_1d(node["value"])[c])
        return here
    column, border, missing = _catboost_split(node["split"], known)
    left, right = _own_splits(rows, node["left"], c, known), _own_splits(rows, node["right"], c, known)
    rows[here] = [column, border, left, right, 0.0, missing]
    return here


def _histogram(model: Any) -> TreeEnsemble:
    trees, output = [], []
    for iteration in model._predictors:
        for k, predictor in enumerate(iteration):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            if nodes["is_categorical"][~leaf].any():
                raise CannotRead(CATEGORICAL)
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
    """A tree of scikit-learn's tree module, which rounds x to float32."""
    leaf = tree.children_left < 0
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
    return Tree(
        np.where(leaf, -1, tree.feature),
        np.where(leaf, 0.0, _rounded(tree.threshold)),
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
