"""What validation texts decide: which rows they are, which weight of fairness is taken, where the threshold lies."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.copies import firsts
from evenhand.error_rates import auc

__all__ = ["best_fpr", "between", "choose", "one_against_rest", "passes", "split", "weights"]

Codes = NDArray[np.intp]
FEW = 20  # validation texts of a class below which a small loss cannot be told from chance
MOST = 0.05  # what may be lost where no fair model keeps within the tolerance
FAR = 0.1  # what may be lost at most where so few texts validate that chance explains more
NEAR = 1.1  # times the lowest CTF score that count as the same
COMPARED = 10  # texts with versions from which on the plain model may be taken for the most consistent one


def split(codes: Codes, share: float, seed: int, rows: Iterable[Hashable] | None = None) -> tuple[Codes, Codes]:
    """Row numbers to train on and to validate on; of every class the same share, at least one text each.

    rows: what each row says. What is there several times is on one side only, as long as its class has another.
    """
    rng = np.random.default_rng(seed)
    of = np.arange(len(codes)) if rows is None else firsts(rows)
    validates = np.zeros(len(codes), dtype=bool)
    alone: list[Codes] = []  # classes of one text only, many times
    for k in np.unique(codes):
        mine = np.flatnonzero(codes == k)
        if len(mine) < 2:
            raise ValueError("every class needs two texts or more: one to train on and one to validate on")
        own = mine[of[mine] == mine]
        if len(own) < 2:
            own, alone = mine, [*alone, mine]
        drawn = rng.permutation(own)
        validates[drawn[: min(max(1, round(share * len(own))), len(own) - 1)]] = True
    apart = validates.copy()
    validates = validates[of]
    for mine in alone:
        validates[mine] = apart[mine]
    return np.flatnonzero(~validates), np.flatnonzero(validates)


def weights(two: Sequence[float], classes: int) -> tuple[float, ...]:
    """The weights of fairness to try with so many classes, from those for two.

    d_Y is a mean over the classes, of which a version moves few: the same weight does less the more there are. The
    power is measured: .1 does for two classes what 10 does for 28.

    >>> weights((0.1, 0.3), 2), [round(rho) for rho in weights((0.1, 0.3), 28)]
    ((0.1, 0.3), [10, 30])
    """
    return tuple(float(f"{rho * (classes / 2) ** 1.75:.3g}") for rho in two)


def choose(
    tried: Sequence[Mapping[str, float]], plain: Mapping[str, float], tolerance: float, codes: Codes, compared: int
) -> tuple[int | None, str]:
    """Which of the tried weights is taken, None for the plain model; and what has to be said about it.

    tried, plain: `skill`, `auc` and `ctf` on validation texts. Taken is the lowest CTF score among those that lose no
    more than the tolerance of either skill, or a larger weight whose score is within a tenth of it: few validation
    texts have versions, and neighbouring weights differ by chance. The plain model competes where enough texts are
    compared. With a class of fewer than FEW validation texts nobody can see what a weight loses, and the smallest of
    them is taken. If none keeps within the tolerance, the one that loses least, as long as that is no more than MOST,
    or what chance explains (two standard errors) up to FAR; otherwise the plain model. Where a label was given by
    prejudice no fair model keeps within a small tolerance, hence MOST.
    """
    smallest = int(np.bincount(codes).min())
    said = ""
    if smallest < FEW:
        said = (
            f"the smallest class has {smallest} validation texts, too few to tell a loss of {tolerance:g} from chance: "
            "the smallest weight that passed was taken; look at held-out texts before you rely on it"
        )

    def loss(row: Mapping[str, float]) -> float:
        return _lost(row, plain)

    allowed = [i for i, row in enumerate(tried) if loss(row) <= tolerance]
    if allowed:
        lowest = min(tried[i]["ctf"] for i in allowed)
        near = sorted((i for i in allowed if tried[i]["ctf"] <= NEAR * lowest), key=lambda i: tried[i]["rho"])
        best = near[-1] if smallest >= FEW else min(allowed, key=lambda i: tried[i]["rho"])
        if compared >= COMPARED and plain["ctf"] < tried[best]["ctf"]:
            return None, "the plain model is the most consistent on validation texts; it is kept"
        return best, said
    least = min(range(len(tried)), key=lambda i: loss(tried[i]))
    lost = f"every weight of fairness that was tried loses more than {tolerance:g} on validation texts"
    share = (plain["skill"] * smallest + 1) / (smallest + 2)  # a perfect skill on few texts is not known to be one
    chance = 2 * np.sqrt(share * (1 - share) / smallest)
    if loss(tried[least]) <= max(MOST, tolerance, min(chance, FAR)):
        return least, f"{lost}; the one that loses least was taken ({loss(tried[least]):.3g})"
    return None, f"{lost}, the least {loss(tried[least]):.3g}; the plain model is kept. Give rho to have a fair one"


def passes(row: Mapping[str, float], plain: Mapping[str, float], tolerance: float, codes: Codes) -> bool:
    """Whether a model keeps within the tolerance, is no less consistent than the plain one, and enough texts say so."""
    enough = int(np.bincount(codes).min()) >= FEW
    return enough and _lost(row, plain) <= tolerance and row["ctf"] <= plain["ctf"]


def _lost(row: Mapping[str, float], plain: Mapping[str, float]) -> float:
    return max(plain["skill"] - row["skill"], plain["auc"] - row["auc"])


def one_against_rest(codes: Codes, scores: NDArray[np.float64]) -> float:
    """The mean over the classes of the AUC of each against all others; (n,), (n, K)."""
    return float(np.mean([auc(codes == k, scores[:, k]) for k in np.unique(codes)]))


def between(p: NDArray[np.float64], threshold: float) -> float:
    """The middle between a threshold and the next score below: it flags the same texts, and misses none by a hair."""
    below = p[p < threshold]
    middle = threshold if len(below) == 0 else float(below.max() + threshold) / 2
    return middle if len(below) and middle > below.max() else threshold


def best_fpr(codes: Codes, margin: NDArray[np.float64]) -> float:
    """The share of negatives that the score flags at the threshold of its best balanced accuracy."""
    from sklearn.metrics import roc_curve

    fpr, tpr, _ = roc_curve(codes, margin, drop_intermediate=False)
    return float(fpr[int(np.argmax(tpr - fpr))])
