"""GLIF (Petersen et al. 2021): make the outputs of any model individually fair, after the fact.

    minimise over f:  sum_i (f_i - y_i)^2 + lam * sum_{i<j} W_ij (f_i - f_j)^2,    W_ij = exp(-theta * d_X(i, j))

Similar people, those near each other in the fair metric, get similar outputs; the model itself may be a black box. The
minimum solves (I + lam L) f = y, L the Laplacian of the graph W; the normalised version replaces L by
D^-1/2 L D^-1/2, so that people with many neighbours do not count for more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import cg, splu
from sklearn.neighbors import NearestNeighbors

from evenhand.fair_metrics.metric import FairMetric
from evenhand.frames import numbers
from evenhand.regularizer import not_negative

__all__ = ["Smoothed", "glif", "glif_new", "glif_objective", "laplacian", "similarity_graph"]

DIRECT = 5_000  # up to so many rows the system is factorised; beyond, conjugate gradients


@dataclass(frozen=True)
class Smoothed:
    """The new outputs (n,) or (n, K), the graph they were smoothed on, and the objective before and after."""

    outputs: np.ndarray
    graph: sparse.csr_array
    objective_before: float
    objective: float

    def __str__(self) -> str:
        n, pairs = self.graph.shape[0], self.graph.nnz // 2
        alone = int((np.diff(self.graph.indptr) == 0).sum())
        text = f"{n:,} outputs smoothed over {pairs:,} similar pairs: objective {self.objective_before:.6g}"
        return text + f" -> {self.objective:.6g}" + (f"; {alone:,} rows have no similar row" if alone else "")


def glif(
    outputs: Any,
    X: Any = None,
    fair_metric: FairMetric | None = None,
    *,
    lam: float = 1.0,
    graph: Any = None,
    neighbours: int | None = 10,
    theta: float = 1.0,
    tau: float | None = None,
    normalised: bool = False,
    method: str = "exact",
    sweeps: int = 1000,
    tolerance: float = 1e-8,
) -> Smoothed:
    """Smooth a model's outputs (scores, probabilities or logits, (n,) or (n, K)) over similar people.

    X and fair_metric say who is similar, see ``similarity_graph`` for neighbours, theta and tau; or give any symmetric
    ``graph`` (n, n), sparse or dense. lam weighs fairness against staying close to the model.

    method: "exact" solves the linear system; "coordinate" improves one output after the other, as for data that
        arrive in a stream, at most ``sweeps`` times over all rows, until no output moves by more than ``tolerance``.

    >>> import numpy as np
    >>> print(glif(np.array([0.0, 1.0]), graph=np.array([[0.0, 1.0], [1.0, 0.0]]), lam=1.0).outputs.round(3))
    [0.333 0.667]
    """
    y = numbers(outputs, "outputs")
    if y.ndim not in (1, 2) or len(y) == 0 or not np.isfinite(y).all():
        raise ValueError(f"outputs must be finite numbers (n,) or (n, K); got shape {y.shape}")
    lam = not_negative("lam", lam, "by which fairness is weighed against staying close to the model")
    if graph is None:
        if X is None or fair_metric is None:
            raise ValueError("say who is similar: X and fair_metric, or graph=W")
        graph = similarity_graph(X, fair_metric, neighbours=neighbours, theta=theta, tau=tau)
    w = _checked_graph(graph, len(y))
    L = laplacian(w, normalised=normalised)
    columns = y.reshape(len(y), -1)
    if method == "exact":
        smoothed = _solve(L, columns, lam, tolerance)
    elif method == "coordinate":
        smoothed = _coordinate(L, columns, lam, sweeps, tolerance)
    else:
        raise ValueError(f"method must be 'exact' or 'coordinate', got {method!r}")
    before, after = (_objective(f, columns, L, lam) for f in (columns, smoothed))
    return Smoothed(smoothed.reshape(y.shape), w, before, after)


def glif_new(
    outputs: Any,
    X: Any,
    smoothed: Any,
    X_smoothed: Any,
    fair_metric: FairMetric,
    *,
    lam: float = 1.0,
    neighbours: int | None = 10,
    theta: float = 1.0,
    tau: float | None = None,
) -> np.ndarray:
    """New people's outputs, pulled towards those of similar people who were smoothed before and stay as they are.

    Each new output minimises the same objective by itself: f = (y + lam * sum_j W_j f_j) / (1 + lam * sum_j W_j), so
    that nobody's answer depends on who else is new. The parameters are those that ``glif`` had, without normalised.

    >>> from evenhand import FairMetric
    >>> glif_new([1.0], [[0.0]], [0.0], [[0.0]], FairMetric.euclidean(1), lam=1.0)   # one person just like them
    array([0.5])
    """
    y, f = numbers(outputs, "outputs"), numbers(smoothed, "smoothed")
    if y.shape[1:] != f.shape[1:] or not (np.isfinite(y).all() and np.isfinite(f).all()):
        raise ValueError(
            f"outputs and smoothed must be finite numbers of one kind, (n,) or (n, K); got {y.shape} and {f.shape}"
        )
    lam = not_negative("lam", lam, "by which fairness is weighed against staying close to the model")
    if neighbours is None and tau is None:
        raise ValueError("give neighbours=, or tau= for all pairs closer than a threshold")
    points, known = _fair_coordinates(X, fair_metric), _fair_coordinates(X_smoothed, fair_metric)
    if len(points) != len(y) or len(known) != len(f):
        raise ValueError(
            f"X and outputs must be of the same people, X_smoothed and smoothed too; got {len(points)} and {len(y)}, "
            f"{len(known)} and {len(f)}"
        )
    if neighbours is None:
        assert tau is not None
        found = NearestNeighbors(radius=tau**0.5).fit(known).radius_neighbors_graph(points, mode="distance")
    else:
        nearest = NearestNeighbors(n_neighbors=min(neighbours, len(known))).fit(known)
        found = nearest.kneighbors_graph(points, mode="distance")
    w = sparse.csr_array(found)
    d_x = w.data**2
    w.data = np.where(d_x <= (np.inf if tau is None else tau), np.exp(-theta * d_x), 0.0)
    pull = lam * np.asarray(w @ f.reshape(len(f), -1))
    total = lam * np.asarray(w.sum(axis=1)).reshape(-1, 1)
    result: np.ndarray = ((y.reshape(len(y), -1) + pull) / (1 + total)).reshape(y.shape)
    return result


def similarity_graph(
    X: Any, fair_metric: FairMetric, *, neighbours: int | None = 10, theta: float = 1.0, tau: float | None = None
) -> sparse.csr_array:
    """W_ij = exp(-theta * d_X(i, j)) for pairs of similar rows, sparse and symmetric, 0 on the diagonal.

    A pair is similar if one is among the ``neighbours`` nearest of the other (None: any number, which needs tau) and
    d_X <= tau, the threshold on the squared fair distance (None: no threshold).
    """
    if neighbours is None and tau is None:
        raise ValueError("give neighbours=, or tau= for all pairs closer than a threshold")
    points = _fair_coordinates(X, fair_metric)
    n = len(points)
    if neighbours is None:
        assert tau is not None
        found = NearestNeighbors(radius=tau**0.5).fit(points).radius_neighbors_graph(mode="distance")
    else:
        found = NearestNeighbors(n_neighbors=min(neighbours, n - 1)).fit(points).kneighbors_graph(mode="distance")
    pairs = sparse.coo_array(found)
    i, j, d_x = pairs.row, pairs.col, pairs.data**2
    near = (i != j) & (d_x <= (np.inf if tau is None else tau))
    w = sparse.csr_array((np.exp(-theta * d_x[near]), (i[near], j[near])), shape=(n, n))
    return sparse.csr_array(w.maximum(w.T))


def laplacian(graph: Any, *, normalised: bool = False) -> sparse.csr_array:
    """L = D - W, or D^-1/2 (D - W) D^-1/2; rows without neighbours are zero in both."""
    w = sparse.csr_array(graph)
    degree = np.asarray(w.sum(axis=1)).ravel()
    L = sparse.diags_array(degree) - w
    if normalised:
        scale = sparse.diags_array(np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0))
        L = scale @ L @ scale
    return sparse.csr_array(L)


def glif_objective(smoothed: Any, outputs: Any, graph: Any, lam: float, *, normalised: bool = False) -> float:
    """sum_i |f_i - y_i|^2 + lam * sum_{i<j} W_ij |f_i - f_j|^2 (f_i / sqrt(D_i) in the normalised version)."""
    f, y = numbers(smoothed, "smoothed"), numbers(outputs, "outputs")
    return _objective(f.reshape(len(f), -1), y.reshape(len(y), -1), laplacian(graph, normalised=normalised), lam)


def _objective(f: np.ndarray, y: np.ndarray, L: sparse.csr_array, lam: float) -> float:
    return float(((f - y) ** 2).sum() + lam * (f * (L @ f)).sum())


def _solve(L: sparse.csr_array, y: np.ndarray, lam: float, tolerance: float) -> np.ndarray:
    """(I + lam L) f = y: by factorisation, or by conjugate gradients for many rows."""
    n = len(y)
    system = sparse.csc_array(sparse.eye_array(n) + lam * L)
    if n <= DIRECT:
        solved: np.ndarray = splu(system).solve(y)
        return solved
    diagonal = system.diagonal()
    scale = sparse.diags_array(1 / diagonal)
    rows = sparse.csr_array(system)
    result = np.empty_like(y)
    for k in range(y.shape[1]):
        result[:, k], failed = cg(rows, y[:, k], x0=y[:, k], rtol=tolerance, atol=0.0, M=scale, maxiter=10 * n)
        if failed:
            raise ArithmeticError(f"conjugate gradients did not converge at lam={lam:g}; lower lam")
    return result


def _coordinate(L: sparse.csr_array, y: np.ndarray, lam: float, sweeps: int, tolerance: float) -> np.ndarray:
    """Gauss-Seidel: f_i <- (y_i - lam * sum_{j != i} L_ij f_j) / (1 + lam L_ii), row by row; each step lowers the
    objective."""
    f = y.copy()
    diagonal = L.diagonal()
    for _ in range(sweeps):
        moved = 0.0
        for i in range(len(f)):
            row = slice(L.indptr[i], L.indptr[i + 1])
            others = L.data[row] @ f[L.indices[row]] - diagonal[i] * f[i]
            new = (y[i] - lam * others) / (1 + lam * diagonal[i])
            moved = max(moved, float(np.abs(new - f[i]).max()))
            f[i] = new
        if moved <= tolerance:
            return f
    raise ArithmeticError(
        f"{sweeps} sweeps still move an output by {moved:.3g}; allow more sweeps, a larger tolerance, or a smaller lam"
    )


def _fair_coordinates(X: Any, fair_metric: FairMetric) -> np.ndarray:
    """Points whose plain squared distance is the fair distance."""
    x = fair_metric.rows(numbers(X, "X")).to(torch.float64)
    if not torch.isfinite(x).all():
        raise ValueError("X holds NaN or infinite values; impute or drop them first")
    if fair_metric.factor is not None:
        x = x @ fair_metric.factor.T.to(torch.float64)
    else:
        basis = fair_metric.directions.to(torch.float64)
        x = x - (x @ basis) @ basis.T
    result: np.ndarray = x.cpu().numpy()
    return result


def _checked_graph(graph: Any, n: int) -> sparse.csr_array:
    w = sparse.csr_array(graph)
    if w.shape != (n, n):
        raise ValueError(f"graph must be ({n}, {n}), a weight for each pair of rows; got {w.shape}")
    if w.nnz and (w.data.min() < 0 or not np.isfinite(w.data).all()):
        raise ValueError("the weights of the graph must be finite and not negative")
    if abs(w - w.T).max() > 1e-10:
        raise ValueError("the graph must be symmetric: similarity goes both ways; use graph.maximum(graph.T)")
    w = w.copy()
    w.setdiag(0)
    w.eliminate_zeros()
    return w
