"""Training for the certificate: the upper bound of R(h) is differentiable in the weights, so it can be minimised."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from evenhand.bounds.branch import default_cells
from evenhand.bounds.factors import definite, factor_of_s
from evenhand.bounds.layers import differentiable_layers
from evenhand.bounds.problem import Problem
from evenhand.bounds.quadratic_dual import Multipliers, make_rows, start_multipliers
from evenhand.bounds.readout import readout
from evenhand.bounds.solver import Solver, penalty
from evenhand.bounds.tuning import differentiable_value, tune
from evenhand.domain import Box
from evenhand.fair_metrics.metric import FairMetric
from evenhand.objectives.batch import Batch, Loss, Objective
from evenhand.output_distances import mean_squared_logits

BARRIER = 1e-3
TRIED = 4  # cells of each person whose bound is worked out in full


class CertifiedRegularizer(nn.Module):
    """An upper bound of R(h) on the batch, to be added to a loss: ``loss + rho_c * certified(model, x)``.

    model: any network that ``certify`` takes, of any depth. The multipliers of the
    bound are parameters of this module: give them to the optimiser, with a step of about 0.05. Where a step of the
    weights leaves S > 0, they are raised until it holds again, so that the value is always a true upper bound.
    """

    log_multipliers: nn.ParameterList

    def __init__(self, fair_metric: FairMetric, eps: float, bounds: Any, model: nn.Module, iterations: int = 8) -> None:
        super().__init__()
        self.fair_metric, self.eps, self.iterations = fair_metric, eps, iterations
        self.box = Box.of(bounds, fair_metric.d)
        start = start_multipliers(self._problem(model))
        self.log_multipliers = nn.ParameterList([t.detach().log() for t in start.tensors()])

    @property
    def lam(self) -> float:
        return math.exp(self.log_multipliers[0].item())

    def tune(self, model: nn.Module, x: Tensor, steps: int = 80) -> None:
        """Choose the multipliers for the model as it is."""
        problem = _frozen(self._problem(model))
        tuned = tune(problem, x.detach().to(torch.float64), self.eps, steps=steps, iterations=6, refine=False)
        with torch.no_grad():
            for log, value in zip(self.log_multipliers, tuned.multipliers.tensors(), strict=True):
                log.copy_(value.log())

    def multipliers(self, model: nn.Module) -> Multipliers:
        """The multipliers as they are, fit for this model: a start for the tuning of its certificate."""
        self._keep_positive_definite(self._problem(model))
        return self._multipliers().map(lambda t: t.detach().clone())

    def forward(self, model: nn.Module, x: Tensor) -> Tensor:
        """lam*eps + mean over the batch of an upper bound of r_lam: a scalar, float64."""
        problem = self._problem(model)
        x = x.detach().to(device="cpu", dtype=torch.float64)
        self._keep_positive_definite(problem)
        m = self._multipliers()
        s = factor_of_s(problem, m)
        units = penalty(problem, m)
        with torch.no_grad():
            fixed = _frozen(problem)
            solver = Solver(fixed, m.map(torch.Tensor.detach), verify=False)
            rows = make_rows(fixed, x, fixed.grid(len(x), default_cells(problem)))
            u, _ = solver.improve(rows, None, self.iterations)
            few = _largest(solver.value(rows, u), len(x), TRIED)  # then a better bound for the cells that may be worst
            rows, u = rows[few], u[few]
            u, _ = solver.improve(rows, u, 3 * self.iterations)
            worst = _largest(solver.value(rows, u), len(x), 1)
            relative, cells = u[worst] / units, rows.cells[worst]
        value = differentiable_value(problem, m, s, make_rows(problem, x, cells), relative * units)
        bound: Tensor = m.lam * self.eps + value.clamp(min=0).mean()
        barrier = s.singularity()
        # adds nothing to the value, only a slope away from singular S
        slope: Tensor = BARRIER * bound.detach() * (barrier - barrier.detach())
        return bound + slope

    def _problem(self, model: nn.Module) -> Problem:
        layers = readout(mean_squared_logits, differentiable_layers(model)).layers
        return Problem(layers, self.fair_metric, self.box)

    def _multipliers(self) -> Multipliers:
        values = [log.exp() for log in self.log_multipliers]
        return Multipliers(values[0], values[1:-2], values[-2], values[-1])

    @torch.no_grad()
    def _keep_positive_definite(self, problem: Problem) -> None:
        for _ in range(400):
            if definite(problem, self._multipliers(), 1e-6):
                return
            for i, log in enumerate(self.log_multipliers):
                hidden = 0 < i < len(self.log_multipliers) - 2
                log += 0.005 if hidden else 0.02
        raise RuntimeError("the weights moved too far in one step: S cannot be made positive definite; lower the step")


class Certified(Objective):
    """E[loss] + rho * an upper bound of R(h), by which a network that is trained already is fine-tuned; in seconds.

    The bound is worked out for ``people`` of each batch. Its multipliers are tuned to the model on the first batch and
    follow the weights by gradient steps of their own size; ``regularizer.multipliers(model)`` afterwards is a start for
    the tuning of the certificate.
    """

    tuned: Tensor

    def __init__(
        self,
        regularizer: CertifiedRegularizer,
        rho: float,
        people: int = 24,
        multiplier_lr: float = 0.05,
        loss: Loss | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(loss)
        if not rho >= 0 or people < 1:
            raise ValueError(f"rho must be zero or positive and people 1 or more; got {rho} and {people}")
        self.regularizer, self.rho, self.people = regularizer, float(rho), people
        self.multiplier_lr, self.generator = multiplier_lr, generator
        self.register_buffer("tuned", torch.tensor(False))

    def groups(self) -> list[dict[str, Any]]:
        return [{"params": list(self.regularizer.parameters()), "lr": self.multiplier_lr}]

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        rows = torch.randperm(len(batch.x), generator=self.generator)[: self.people]
        some = batch.x[rows.to(batch.x.device)]
        if not self.tuned:
            self.regularizer.tune(model, some)
            self.tuned.fill_(True)
        bound = self.regularizer(model, some)
        loss = self.plain(model, batch)
        self.last = {"loss": loss.detach(), "bound": bound.detach()}
        value: Tensor = loss + self.rho * bound.to(loss)
        return value


def _largest(value: Tensor, n: int, count: int) -> Tensor:
    """The rows with the largest values of each person, who has len(value) / n rows one after the other."""
    each = value.reshape(n, -1)
    best = each.topk(min(count, each.shape[1]), dim=1).indices
    return (best + torch.arange(n)[:, None] * each.shape[1]).flatten()


def _frozen(problem: Problem) -> Problem:
    """The same problem with plain weights."""
    return problem.with_layers([layer.detached() for layer in problem.layers])
