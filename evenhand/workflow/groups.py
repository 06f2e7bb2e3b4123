"""How groups fare under a model: selection, errors and calibration, with intervals and a smallest size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.evaluation import tpr_gaps
from evenhand.workflow.measures import SMALLEST, Z, mean_interval, wilson

SMALLEST_CLASS = 10  # people of one class in a group, for a gap between groups

Codes = NDArray[np.int64]


def group_rates(
    y: Codes, codes: Codes, p: NDArray[np.float64], group: NDArray[Any], positive: int, labels: Sequence[str]
) -> dict[str, Any]:
    """Rates of each group, the four-fifths rule and the gaps of the paper. labels: the classes, as the table writes."""
    rates = []
    truth, chosen = y == positive, codes == positive
    for name in sorted(set(group.tolist()), key=str):
        members = group == name
        rates.append(
            {
                "group": str(name),
                "n": int(members.sum()),
                "small": bool(members.sum() < SMALLEST),
                "selection": _share(chosen, members),
                "tpr": _share(chosen, members & truth),
                "fpr": _share(chosen, members & ~truth),
                "fnr": _share(~chosen, members & truth),
                "observed": _share(truth, members),
                "said": float(p[members, positive].mean()),
            }
        )
    own = np.asarray(labels, dtype=object)
    gaps = tpr_gaps(own[y], own[codes], np.asarray(group, dtype=object), min_count=SMALLEST_CLASS)
    return {
        "rates": rates,
        "four_fifths": four_fifths(rates),
        "rms": gaps.rms,
        "max": gaps.max,
        "per_class": {str(k): gap for k, gap in gaps.per_class.items()},
        "undefined": list(gaps.undefined),
    }


def group_errors(y: NDArray[np.float64], predicted: NDArray[np.float64], group: NDArray[Any]) -> dict[str, Any]:
    """For a quantity: mean prediction, mean error and absolute error of each group."""
    rates = []
    for name in sorted(set(group.tolist()), key=str):
        members = group == name
        error = predicted[members] - y[members]
        rates.append(
            {
                "group": str(name),
                "n": int(members.sum()),
                "small": bool(members.sum() < SMALLEST),
                "observed": float(y[members].mean()),
                "said": float(predicted[members].mean()),
                "error": {"rate": float(error.mean()), "interval": mean_interval(error)},
                "absolute_error": {"rate": float(np.abs(error).mean()), "interval": mean_interval(np.abs(error))},
            }
        )
    return {"rates": rates, "undefined": []}


def four_fifths(rates: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The lowest selection rate over the highest, among groups that are large enough, with an interval (logarithmic
    delta method); None where fewer than two groups are large enough or nobody is selected."""
    large = [r for r in rates if not r["small"]]
    if len(large) < 2:
        return None
    low = min(large, key=lambda r: r["selection"]["rate"])
    high = max(large, key=lambda r: r["selection"]["rate"])
    a, b = low["selection"], high["selection"]
    if not b["rate"]:
        return None
    ratio = a["rate"] / b["rate"]
    if a["rate"] > 0:
        error = np.sqrt((1 - a["rate"]) / (a["rate"] * a["n"]) + (1 - b["rate"]) / (b["rate"] * b["n"]))
        interval = [float(ratio * np.exp(-Z * error)), float(ratio * np.exp(Z * error))]
    else:
        interval = [0.0, a["interval"][1] / b["interval"][0]]
    verdict = "met" if interval[0] >= 0.8 else "not met" if interval[1] < 0.8 else "open"
    return {"ratio": float(ratio), "interval": interval, "lowest": low["group"], "highest": high["group"],
            "verdict": verdict}  # fmt: skip


def _share(event: NDArray[np.bool_], among: NDArray[np.bool_]) -> dict[str, Any]:
    k, n = int((event & among).sum()), int(among.sum())
    return {"rate": k / n if n else None, "n": n, "interval": wilson(k, n)}
