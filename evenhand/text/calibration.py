"""Probabilities that mean what they say: logits rescaled on texts that were not trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

__all__ = ["Calibration"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """Two classes: p = sigmoid(slope * margin + shift) (Platt 2000). More: logits * slope (temperature scaling)."""

    slope: float = 1.0
    shift: float = 0.0

    @classmethod
    def learned(cls, logits: Floats, codes: NDArray[np.intp]) -> Calibration:
        """The most likely one on held-out logits (n, K) and class numbers (n,).

        Labels are smoothed as Platt does, so that a few perfectly separated texts do not ask for an infinite slope.
        """
        if logits.shape[1] == 2:
            margin, positive = logits[:, 1] - logits[:, 0], codes == 1
            n1, n0 = int(positive.sum()), int((~positive).sum())
            target = np.where(positive, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))

            def loss(at: Floats) -> float:
                z = at[0] * margin + at[1]
                return float(np.mean(np.logaddexp(0, z) - target * z))

            found = minimize(loss, np.array([1.0, 0.0]), method="L-BFGS-B", bounds=[(1e-3, None), (None, None)])
            return cls(float(found.x[0]), float(found.x[1]))

        k = logits.shape[1]
        rest = 1 / (np.bincount(codes, minlength=k)[codes] + 2)  # the share of a text's other classes together
        target = np.repeat(rest[:, None] / (k - 1), k, axis=1)
        target[np.arange(len(codes)), codes] = 1 - rest

        def cross_entropy(log_slope: float) -> float:
            z = logits * np.exp(log_slope)
            z = z - z.max(axis=1, keepdims=True)
            return float(np.mean(np.log(np.exp(z).sum(axis=1)) - (target * z).sum(axis=1)))

        return cls(float(np.exp(minimize_scalar(cross_entropy, bounds=(-4, 3), method="bounded").x)), 0.0)

    def probabilities(self, logits: Floats) -> Floats:
        """(n, K) logits -> (n, K) probabilities."""
        if logits.shape[1] == 2:
            z = self.slope * (logits[:, 1] - logits[:, 0]) + self.shift
            p = 1 / (1 + np.exp(-np.clip(z, -700, 700)))
            return np.stack([1 - p, p], axis=1)
        z = self.slope * logits
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))
