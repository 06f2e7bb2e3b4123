"""How good a model is, with intervals: accuracy, ranking, calibration, and what other thresholds would cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Z = 1.959964  # 95 %
BINS = 10
SMALLEST = 30  # people; a smaller group is listed and takes part in no comparison
THRESHOLDS = np.round(np.linspace(0.02, 0.98, 49), 2)

Array = NDArray[np.float64]


def of_classes(y: NDArray[np.int64], codes: NDArray[np.int64], p: Array, positive: int) -> dict[str, Any]:
    """Scores of decisions ``codes`` and probabilities p (n, K) against the class numbers y; each with an interval."""
    right = (codes == y).astype(np.float64)
    log_losses = -np.log(np.clip(p[np.arange(len(y)), y], 1e-12, 1))
    brier = np.square(p - np.eye(p.shape[1])[y]).sum(1)
    auc, auc_interval = _auc(y, p)
    return {
        "n": len(y),
        "accuracy": float(right.mean()),
        "balanced_accuracy": balanced(y, right)[0],
        "auc": auc,
        "log_loss": float(log_losses.mean()),
        "brier": float(brier.mean()),
        "calibration_error": calibration_error(y == positive, p[:, positive]),
        "mean_probability": float(p[:, positive].mean()),
        "observed": float((y == positive).mean()),
        "false_positives": _rate(codes == positive, y != positive),
        "false_negatives": _rate(codes != positive, y == positive),
        "selected": _rate(codes == positive, np.ones(len(y), dtype=bool)),
        "intervals": {
            "accuracy": wilson(int(right.sum()), len(y)),
            "balanced_accuracy": balanced(y, right)[1],
            "auc": auc_interval,
            "log_loss": mean_interval(log_losses),
            "brier": mean_interval(brier),
        },
        "calibration": calibration_table(y == positive, p[:, positive]),
    }


def of_quantities(y: Array, predicted: Array) -> dict[str, Any]:
    """R2, mean absolute error and root mean square error, with intervals."""
    wrong, spread = np.square(y - predicted), np.square(y - y.mean())
    r2 = 1 - wrong.mean() / spread.mean()
    part = (wrong - (1 - r2) * spread) / spread.mean()  # linearisation of the ratio
    half = Z * part.std(ddof=1) / np.sqrt(len(y))
    absolute = np.abs(y - predicted)
    return {
        "n": len(y),
        "r2": float(r2),
        "mae": float(absolute.mean()),
        "rmse": float(np.sqrt(wrong.mean())),
        "mean_prediction": float(predicted.mean()),
        "observed": float(y.mean()),
        "intervals": {"r2": [float(r2 - half), float(r2 + half)], "mae": mean_interval(absolute)},
    }


def difference(y: NDArray[Any], ours: NDArray[Any], theirs: NDArray[Any], regression: bool) -> dict[str, Any]:
    """By how much ours is more accurate on the same rows (balanced accuracy, or R2), with an interval of the pairs."""
    if regression:
        spread = np.square(y - y.mean()).mean()
        gain = (np.square(y - theirs) - np.square(y - ours)) / spread
        return {"difference": float(gain.mean()), "interval": mean_interval(gain)}
    value, interval = balanced(y, (ours == y).astype(float) - (theirs == y).astype(float))
    return {"difference": value, "interval": interval}


def balanced(y: NDArray[np.int64], values: Array) -> tuple[float, list[float]]:
    """The mean over the classes of the mean of ``values`` in each, and its normal interval."""
    means, variance = [], 0.0
    for k in np.unique(y):
        part = values[y == k]
        means.append(part.mean())
        variance += part.var(ddof=1) / len(part) if len(part) > 1 else np.nan
    half = Z * np.sqrt(variance) / len(means)
    value = float(np.mean(means))
    return value, [value - half, value + half]


def mean_interval(values: Array) -> list[float]:
    """The normal 95 % interval of a mean."""
    half = Z * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return [float(values.mean() - half), float(values.mean() + half)]


def wilson(successes: int, n: int, z: float = Z) -> list[float]:
    """The 95 % Wilson interval of a share."""
    if n == 0:
        return [0.0, 1.0]
    p = successes / n
    centre, spread = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return [float(max(0, (centre - spread) / (1 + z * z / n))), float(min(1, (centre + spread) / (1 + z * z / n)))]


def calibration_table(happened: NDArray[np.bool_], p: Array) -> list[dict[str, Any]]:
    """People in ten groups of rising probability: what was said, and what happened."""
    order = np.argsort(p, kind="stable")
    rows = []
    for part in np.array_split(order, min(BINS, max(1, len(p) // 10))):
        k, n = int(happened[part].sum()), len(part)
        rows.append({"said": float(p[part].mean()), "happened": k / n, "n": n, "interval": wilson(k, n)})
    return rows


def calibration_error(happened: NDArray[np.bool_], p: Array) -> float:
    """Mean distance between what was said and what happened, over the groups of ``calibration_table``."""
    table = calibration_table(happened, p)
    return float(sum(row["n"] * abs(row["said"] - row["happened"]) for row in table) / sum(row["n"] for row in table))


def thresholds(y: NDArray[np.int64], p: Array, groups: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """What deciding from each probability of the second class on gives: accuracy, errors, rates of large groups."""
    rows = []
    large = {n: [g for g in np.unique(group) if (group == g).sum() >= SMALLEST] for n, group in groups.items()}
    for t in THRESHOLDS:
        chosen = p >= t
        right = (chosen == (y == 1)).astype(float)
        rows.append(
            {
                "threshold": float(t),
                "selected": float(chosen.mean()),
                "balanced_accuracy": balanced(y, right)[0],
                "accuracy": float(right.mean()),
                "false_positives": _rate(chosen, y == 0)["rate"],
                "false_negatives": _rate(~chosen, y == 1)["rate"],
                "by_group": {
                    name: {str(g): float(chosen[group == g].mean()) for g in large[name]}
                    for name, group in groups.items()
                },
            }
        )
    return rows


def auc_of(happened: NDArray[np.bool_], score: Array) -> tuple[float, float]:
    """Area under the ROC curve and its standard error (DeLong, DeLong and Clarke-Pearson 1988)."""
    a, b = score[happened], score[~happened]
    m, n = len(a), len(b)
    if m == 0 or n == 0:
        return float("nan"), float("nan")
    both = rankdata(score)
    above = (both[happened] - rankdata(a)) / n
    below = 1 - (both[~happened] - rankdata(b)) / m
    value = float(above.mean())
    variance = (above.var(ddof=1) / m if m > 1 else np.nan) + (below.var(ddof=1) / n if n > 1 else np.nan)
    return value, float(np.sqrt(variance))


def _auc(y: NDArray[np.int64], p: Array) -> tuple[float, list[float] | None]:
    """Of two classes; of more, the mean of one class against the others, without an interval."""
    if p.shape[1] == 2:
        value, error = auc_of(y == 1, p[:, 1])
        return value, [max(0.0, value - Z * error), min(1.0, value + Z * error)]
    values = [auc_of(y == k, p[:, k])[0] for k in range(p.shape[1])]
    return float(np.nanmean(values)), None


def _rate(event: NDArray[np.bool_], among: NDArray[np.bool_]) -> dict[str, Any]:
    k, n = int((event & among).sum()), int(among.sum())
    return {"rate": k / n if n else None, "n": n, "interval": wilson(k, n)}
