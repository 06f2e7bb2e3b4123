"""Parameters of the estimators, checked at fit: one sentence about what was expected and what came."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.devices import check_device

WHOLE = {"batch_size", "steps", "every", "patience", "trees", "leaves", "versions", "search_every"}
WHOLE |= {"neighbours", "support", "samples"}
POSITIVE = WHOLE | {"lr", "adversary_lr", "learning_rate"}
NOT_NEGATIVE = {"rho", "free", "eps", "lam", "weight_decay", "warm_up", "validation_fraction", "certified", "weight"}
NOT_NEGATIVE |= {"smooth", "reach", "avoid", "l2"}
LEAST = {"leaves": 2, "samples": 2}  # of one leaf or one drawn ranking nothing can be learned
MAY_BE_NONE = {"patience", "certified", "smooth"}
FUNCTIONS = {  # each None, or a function such as this
    "search": "GradientSearch()",
    "output_distance": "mean_squared_logits",
    "lam_rule": "gradient_rule(0.01)",
    "optimizer": "torch.optim.AdamW",
    "module": "a torch.nn.Module or a function of the numbers of features and outputs",
}


def check_parameters(estimator: Any) -> None:
    """Types and ranges of the numbers, the widths and the class weights of an estimator."""
    given = estimator.get_params(deep=False)
    for name in sorted((POSITIVE | NOT_NEGATIVE) & set(given)):
        if given[name] is not None or name not in MAY_BE_NONE:
            _check_number(name, given[name])
    hidden = given.get("hidden", ())
    if not isinstance(hidden, Sequence) or isinstance(hidden, str) or not all(_is_width(w) for w in hidden):
        hint = f"; write hidden=({hidden},)" if _is_width(hidden) else ""
        raise ValueError(f"hidden must be a tuple of positive widths, such as (100,); got {hidden!r}{hint}")
    if not 0 <= given.get("free", 0) <= 1:
        raise ValueError(f"free is the share of rho on what costs nothing and must lie in [0, 1]; got {given['free']}")
    if not 0 <= given.get("validation_fraction", 0) < 1:
        raise ValueError(f"validation_fraction must lie in [0, 1); got {given['validation_fraction']}")
    for name, example in FUNCTIONS.items():
        if given.get(name) is not None and not callable(given[name]):
            raise ValueError(f"{name} must be a function, such as {example}; got {given[name]!r}")
    if not all(callable(callback) for callback in _listed("callbacks", given.get("callbacks") or ())):
        raise ValueError(f"callbacks must be functions of (step, steps, numbers); got {given['callbacks']!r}")
    check_device(given.get("device", "cpu"))
    weight = given.get("class_weight")
    if not (weight is None or isinstance(weight, Mapping) or (isinstance(weight, str) and weight == "balanced")):
        raise ValueError(f"class_weight must be 'balanced', None or a table of class: weight; got {weight!r}")


def _check_number(name: str, value: Any) -> None:
    kind = numbers.Integral if name in WHOLE else numbers.Real
    if not isinstance(value, kind) or isinstance(value, bool) or value != value:
        what = "a whole number" if name in WHOLE else "a number"
        raise ValueError(f"{name} must be {what}; got {value!r} of type {type(value).__name__}")
    size = float(value)
    if math.isinf(size):
        raise ValueError(f"{name} must be finite; got {value}")
    if size < LEAST.get(name, -math.inf):
        raise ValueError(f"{name} must be {LEAST[name]} or more; got {value}")
    if name in POSITIVE and not size > 0:
        raise ValueError(f"{name} must be positive; got {value}")
    if name in NOT_NEGATIVE and not size >= 0:
        raise ValueError(f"{name} must be zero or positive; got {value}")


def _listed(name: str, values: Any) -> list[Any]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ValueError(f"{name} must be a list; got {values!r}")
    return list(values)


def _is_width(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) > 0
