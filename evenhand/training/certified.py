"""Fine-tuning for the certificate: the same loop, with the certified bound as the objective."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from evenhand.bounds.quadratic_dual import Multipliers
from evenhand.fair_metrics.metric import FairMetric
from evenhand.objectives.batch import Loss
from evenhand.objectives.certified import Certified, CertifiedRegularizer
from evenhand.training.loop import train
from evenhand.training.streams import Stream


def certified_fine_tune(
    module: nn.Module,
    x: Tensor | Stream,
    y: Tensor | None,
    fair_metric: FairMetric,
    eps: float,
    bounds: Any,
    rho_c: float = 3.0,
    steps: int = 250,
    *,
    people: int = 24,
    lr: float = 2e-3,
    multiplier_lr: float = 0.05,
    loss: Loss | None = None,
    generator: torch.Generator | None = None,
    **settings: Any,
) -> Multipliers:
    """Minimise loss + rho_c * (upper bound of R(h)) over the module's weights, in place; seconds on a small net.

    The bound is worked out for ``people`` rows of each batch. Data and ``settings`` are those of ``train``. Returns the
    multipliers, a start for the tuning of the certificate.
    """
    generator = generator if generator is not None else torch.Generator().manual_seed(0)
    bound = CertifiedRegularizer(fair_metric, eps, bounds, module)
    drawn = torch.Generator().manual_seed(generator.initial_seed() + 1)
    objective = Certified(bound, rho_c, people, multiplier_lr, loss, drawn)
    given = {"batch_size": 500, "optimizer": short_memory_adam, **settings}
    train(module, objective, x, y, steps=steps, lr=lr, generator=generator, **given)
    return bound.multipliers(module)


def short_memory_adam(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    """Adam with a shorter memory than usual, because the multipliers follow the weights."""
    return torch.optim.Adam(groups, betas=(0.9, 0.99))
