"""Sequences: a recurrent network over readings whose level must not matter.

    python examples/sequences.py

Two sensors read a patient every hour. One of them reads higher for some people than for others, whatever their state,
as pulse oximeters do by skin tone; in the (synthetic) records those with high readings were also admitted more often.
What tells the state is how the readings change. Patients that differ by a constant on that sensor are alike, so that
constant is the sensitive direction, in the space of the whole sequence, (hours, sensors) flattened.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenhand import FairMetric, FairRegularizer

HOURS, SENSORS, LEVEL = 12, 2, 1.0


def patients(n: int, biased: bool, seed: int) -> tuple[Tensor, Tensor]:
    """Readings (n, hours, sensors) and who was admitted: by the trend and, where biased, by the level as well."""
    generator = torch.Generator().manual_seed(seed)
    trend = torch.randn(n, generator=generator)
    level = (2 * torch.rand(n, generator=generator) - 1) * LEVEL
    hours = torch.linspace(-0.5, 0.5, HOURS)
    x = 0.3 * torch.randn(n, HOURS, SENSORS, generator=generator) + 0.8 * (trend[:, None] * hours)[:, :, None]
    x[:, :, 0] += level[:, None]
    return x.clamp(-4, 4), (trend + (1.5 * level if biased else 0.0) > 0).long()


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.GRU(SENSORS, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x)[0][:, -1])[:, 0]  # one logit for each patient, (n,)


def same_level() -> FairMetric:
    """A constant on the first sensor costs nothing."""
    direction = torch.zeros(HOURS, SENSORS)
    direction[:, 0] = 1.0
    return FairMetric(direction.reshape(-1, 1))


def train(rho: float, steps: int, seed: int = 0) -> nn.Module:
    x, y = patients(2000, biased=True, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Recurrent()
        fair = FairRegularizer(same_level(), eps=0.01, bounds=(-4.0, 4.0), lam=0.1, generator=generator)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(steps):
            rows = torch.randint(len(x), (128,), generator=generator)
            loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows].float())
            if rho > 0:
                loss = loss + rho * fair(model, x[rows])  # the only new line
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def main(steps: int = 150, rho: float = 3.0) -> dict[str, dict[str, float]]:
    x, y = patients(1000, biased=False, seed=1)
    lower, higher = x.clone(), x.clone()
    lower[:, :, 0] -= LEVEL
    higher[:, :, 0] += LEVEL
    scores = {}
    for name, weight in (("plain", 0.0), ("fair", rho)):
        model = train(weight, steps)
        with torch.no_grad():
            decided, low, high = (model(version) > 0 for version in (x, lower, higher))
        scores[name] = {
            "accuracy by the true state": (decided == y.bool()).float().mean().item(),
            "decisions that depend on the level": (low != high).float().mean().item(),
        }
    return scores


if __name__ == "__main__":
    for name, score in main().items():
        print(name, "  ".join(f"{key}: {value:.3f}" for key, value in score.items()), sep="  ")
