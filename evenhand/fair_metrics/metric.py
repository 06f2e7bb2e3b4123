"""The fair metric d_X: which people are alike."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from evenhand.atomic import whole_file

Array = Any  # whatever torch.as_tensor takes: tensor, numpy array, nested lists


class FairMetric(nn.Module):
    """d_X(x, x') = (x - x')^T Sigma (x - x'), the squared distance of the paper.

    ``FairMetric(directions)`` takes the columns of A, the sensitive directions (d, k), and uses Sigma = I - P_ran(A):
    moves along them cost nothing. ``FairMetric(sigma=S)`` takes any positive semi-definite matrix; its null space
    becomes ``directions``. ``FairMetric.euclidean(d)`` has no free direction.

    >>> import torch
    >>> metric = FairMetric([[1.0], [0.0]])                     # the first feature is sensitive
    >>> metric(torch.tensor([[0.0, 0.0]]), torch.tensor([[9.0, 2.0]]))
    tensor([4.])
    """

    directions: Tensor
    factor: Tensor | None
    attribute_models: tuple[Any, ...] = ()  # the fitted inner models of a learned metric, see from_classifier

    def __init__(self, directions: Array = None, *, sigma: Array = None, rank_tolerance: float = 1e-6) -> None:
        super().__init__()
        if (directions is None) == (sigma is None):
            raise ValueError("give either directions (d, k) or sigma=(d, d), and not both")
        if directions is not None:
            basis = orthonormal_basis(_matrix(directions, "directions"), rank_tolerance)
            if basis.shape[1] == 0:
                raise ValueError(
                    "directions span nothing: every column is zero; "
                    "use FairMetric.euclidean(d) for a metric without a free direction"
                )
            factor = None
        else:
            basis, factor = _null_space_and_factor(_matrix(sigma, "sigma"), rank_tolerance)
        self.register_buffer("directions", basis)
        self.register_buffer("factor", factor)

    @classmethod
    def euclidean(cls, d: int, dtype: torch.dtype = torch.float32) -> FairMetric:
        """The metric without a free direction: Sigma = I."""
        return cls.of(torch.zeros(d, 0, dtype=dtype))

    @classmethod
    def of(cls, directions: Tensor, factor: Tensor | None = None, attribute_models: tuple[Any, ...] = ()) -> FairMetric:
        """A metric from its parts as they are: orthonormal directions (d, k), maybe none, and a factor of Sigma."""
        metric = cls.__new__(cls)
        nn.Module.__init__(metric)
        metric.register_buffer("directions", directions)
        metric.register_buffer("factor", factor)
        metric.attribute_models = attribute_models
        return metric

    def copied(self) -> FairMetric:
        """Another metric of the same parts: moving it to a device or dtype does not move this one."""
        return FairMetric.of(self.directions, self.factor, self.attribute_models)

    @property
    def d(self) -> int:
        """Number of features."""
        return self.directions.shape[0]

    @property
    def sigma(self) -> Tensor:
        """Sigma, (d, d), positive semi-definite by construction."""
        if self.factor is not None:
            return self.factor.T @ self.factor
        eye = torch.eye(self.d, dtype=self.directions.dtype, device=self.directions.device)
        return eye - self.directions @ self.directions.T

    def cost(self, delta: Tensor) -> Tensor:
        """Squared fair length of each perturbation: (n, d) -> (n,). Never a (d, d) product for Sigma = I - Q Q^T."""
        rest = delta @ self.factor.T if self.factor is not None else self.project(delta)
        return rest.square().sum(-1)

    def cost_gradient(self, delta: Tensor) -> Tensor:
        """Gradient of ``cost`` with respect to the perturbation, 2 Sigma delta: (n, d) -> (n, d)."""
        if self.factor is not None:
            return 2 * (delta @ self.factor.T) @ self.factor
        return 2 * self.project(delta)

    def forward(self, x: Array, x_other: Array) -> Tensor:
        """Fair distance of each pair of rows: (n, d), (n, d) -> (n,)."""
        return self.cost(self.rows(x) - self.rows(x_other))

    def pairwise(self, x: Array, z: Array) -> Tensor:
        """All fair distances between two sets: (n, d), (m, d) -> (n, m)."""
        x, z = self.rows(x), self.rows(z)
        if self.factor is not None:
            x, z = x @ self.factor.T, z @ self.factor.T
        else:
            x, z = self.project(x), self.project(z)
        distances: Tensor = torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist")
        return distances.square()

    def project(self, x: Tensor) -> Tensor:
        """x with the sensitive directions removed: (n, d) -> (n, d)."""
        if self.directions.shape[1] == 0:
            return x
        return x - (x @ self.directions) @ self.directions.T

    def rows(self, x: Array) -> Tensor:
        """x as a tensor that fits this metric, or a clear error."""
        rows: Tensor = torch.as_tensor(x, device=self.directions.device)
        rows = rows.to(self.directions.dtype)
        self.check_width(rows)
        return rows

    def matching(self, x: Tensor) -> FairMetric:
        """This metric in the dtype and on the device of x: itself, or a copy."""
        self.check_width(x)
        if self.directions.dtype == x.dtype and self.directions.device == x.device:
            return self
        return self.copied().to(x.device, x.dtype)

    def check_width(self, x: Tensor) -> None:
        if x.ndim != 2 or x.shape[1] != self.d:
            raise ValueError(
                f"fair_metric was built for {self.d} features but x has shape {tuple(x.shape)}; "
                "build the metric on the encoded columns that the model sees"
            )

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a dtype or device, in place; returns self."""
        return super().to(*args, **kwargs)

    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        """Half precision would bend the directions, and a free move would cost something: they stay float32."""
        exact = dict(self._buffers)
        super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        for name, now in self._buffers.items():
            before = exact[name]
            if now is not None and before is not None and now.dtype in (torch.float16, torch.bfloat16):
                self._buffers[name] = before.to(now.device)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the metric to an .npz file (plain arrays, no pickle), atomically."""
        arrays: dict[str, Any] = {"directions": self.directions.cpu().numpy()}
        if self.factor is not None:
            arrays["factor"] = self.factor.cpu().numpy()
        with whole_file(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FairMetric:
        """Read what ``save`` wrote; runs no code from the file."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                directions = torch.from_numpy(arrays["directions"])
                factor = torch.from_numpy(arrays["factor"]) if "factor" in arrays else None
            if directions.ndim != 2 or (
                factor is not None and (factor.ndim != 2 or factor.shape[1] != len(directions))
            ):
                raise ValueError("its matrices do not fit together")
            if not all(
                t.is_floating_point() and bool(torch.isfinite(t).all()) for t in (directions, factor) if t is not None
            ):
                raise ValueError("its matrices are not finite numbers")
            if not is_orthonormal(directions):
                raise ValueError("its directions are not orthonormal")
        except Exception as error:  # whatever a damaged archive makes zipfile and numpy raise
            if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
                raise
            raise ValueError(f"{os.fspath(path)} is not a fair metric written by FairMetric.save: {error}") from error
        return cls.of(directions, factor)

    def extra_repr(self) -> str:
        kind = "I - P_ran(A)" if self.factor is None else "given"
        return f"{self.d} features, {self.directions.shape[1]} free directions, Sigma = {kind}"


def is_orthonormal(directions: Tensor) -> bool:
    """Whether A^T A is the identity, to the rounding of the stored numbers."""
    wide = directions.to(torch.float64)
    identity = torch.eye(wide.shape[1], dtype=torch.float64, device=wide.device)
    return bool(((wide.T @ wide - identity).abs() <= 1e-4).all())


MUCH_FREE = 1 / 3  # of the difference between people: above it little is left to tell them apart by


def free_share(fair_metric: FairMetric, x: Array, weight: Array | None = None) -> float:
    """How much of the difference between people the metric declares free: the share of the variance of x (n, d),
    weighted by weight (n,), along its directions. At 1 everybody is like everybody, and the only fair model is a
    constant.

    >>> free_share(FairMetric([[1.0], [0.0]]), torch.tensor([[1.0, 3.0], [-1.0, 1.0]]))
    0.5
    """
    shared = isinstance(x, np.ndarray) and not x.flags.writeable  # torch would warn of it
    rows = torch.as_tensor(np.array(x) if shared else x, dtype=torch.float64, device="cpu")
    fair_metric.check_width(rows)
    each = torch.ones(len(rows), 1) if weight is None else torch.as_tensor(weight).reshape(-1, 1)
    away = each.sqrt() * (rows - (each * rows).sum(0) / each.sum())
    total = float(away.square().sum())
    along = float((away @ fair_metric.directions.detach().to("cpu", torch.float64)).square().sum())
    return min(along / total, 1.0) if total > 0 else 0.0


def check_free_share(fair_metric: FairMetric, x: Array) -> float:
    """``free_share``, with a warning above a third and a refusal above nine tenths."""
    share = free_share(fair_metric, x)
    if share > 0.9:
        raise ValueError(
            f"{share:.0%} of the difference between people lies along the metric's {fair_metric.directions.shape[1]} "
            "free directions: it makes nearly everybody alike, and only a constant model would be fair. Declare fewer "
            "columns (or fewer learned directions) sensitive"
        )
    if share > MUCH_FREE:
        warnings.warn(
            f"{share:.0%} of the difference between people lies along the metric's free directions; what is left to "
            "tell them apart by is little",
            UserWarning,
            stacklevel=2,
        )
    return share


def orthonormal_basis(directions: Tensor, rank_tolerance: float = 1e-6) -> Tensor:
    """An orthonormal basis of the column span, (d, k) -> (d, rank); collinear, duplicate and zero columns are fine.

    Gram-Schmidt in the given order, each column first scaled to length one so that the rank cut does not depend on its
    units: the first columns stay what they are, so that a sensitive coordinate remains a coordinate.
    """
    basis = torch.zeros(directions.shape[0], 0, dtype=torch.float64)
    for column in directions.cpu().to(torch.float64).T:  # not every device has float64
        length = column.norm()
        if length == 0:
            continue
        rest = column / length
        for _ in range(2):  # twice is enough for orthogonality to rounding
            rest = rest - basis @ (basis.T @ rest)
        if rest.norm() > rank_tolerance:
            basis = torch.cat([basis, (rest / rest.norm())[:, None]], dim=1)
    return basis.to(directions.dtype).contiguous().to(directions.device)


def _null_space_and_factor(sigma: Tensor, rank_tolerance: float) -> tuple[Tensor, Tensor]:
    wide = sigma.cpu().to(torch.float64)
    if wide.shape[0] != wide.shape[1]:
        raise ValueError(f"sigma must be square, (d, d); got {tuple(sigma.shape)}")
    scale = wide.abs().max().item()
    if (wide - wide.T).abs().max().item() > 1e-5 * scale:
        raise ValueError("sigma must be symmetric; symmetrise it with (sigma + sigma.T) / 2")
    # In units of its own diagonal, so that neither the rank cut nor the sign depends on the units of the columns.
    root = wide.diagonal().clamp(min=0).sqrt()
    if (wide.abs() > 1.00001 * root[:, None] * root + 1e-5 * scale * (root == 0)).any():
        smallest = torch.linalg.eigvalsh((wide + wide.T) / 2)[0].item()
        raise ValueError(f"sigma must be positive semi-definite; its smallest eigenvalue is {smallest:.3g}")
    unit = torch.where(root > 0, root, torch.ones_like(root))
    scaled = wide / unit[:, None] / unit
    values, vectors = torch.linalg.eigh((scaled + scaled.T) / 2)
    if values[0].item() < -1e-5 * values[-1].item():
        least = values[0].item()
        raise ValueError(
            f"sigma must be positive semi-definite; of its correlations the smallest eigenvalue is {least:.3g}"
        )
    free = values <= rank_tolerance * values[-1].clamp(min=0)
    factor = values[~free].sqrt()[:, None] * vectors[:, ~free].T * unit
    null = orthonormal_basis(vectors[:, free] / unit[:, None])
    free_directions, factor = (t.to(sigma.dtype).contiguous().to(sigma.device) for t in (null, factor))
    return free_directions, factor


def _matrix(values: Array, name: str) -> Tensor:
    matrix = torch.as_tensor(
        values if isinstance(values, Tensor | np.ndarray | list | tuple) else np.array(values)
    ).detach()  # lists become float32, arrays keep their dtype
    if not matrix.is_floating_point():
        matrix = matrix.to(torch.float32)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise ValueError(f"{name} must be a matrix with at least one row and one column; got {tuple(matrix.shape)}")
    if not torch.isfinite(matrix).all():
        raise ValueError(f"{name} holds NaN or infinite values; clean the data the metric was learned from")
    return matrix.clone()
