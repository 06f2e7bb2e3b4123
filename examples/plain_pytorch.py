"""A training loop of one's own in plain PyTorch: the regularizer is one more term of the loss."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from evenhand import FairRegularizer, fair_metrics
from evenhand.datasets import adult


def main(steps: int = 500, rho: float = 20.0) -> dict[str, float]:
    torch.manual_seed(0)
    train, _ = adult(seed=0)
    x = torch.tensor(train.X.to_numpy(), dtype=torch.float32)
    y = torch.tensor(train.y)
    metric = fair_metrics.from_classifier(train.X, columns=["sex", "race"], predict=["sex"])
    model = nn.Sequential(nn.Linear(x.shape[1], 100), nn.ReLU(), nn.Dropout(0.1), nn.Linear(100, 2))
    fair = FairRegularizer(metric, eps=0.1, bounds=(x.amin(0), x.amax(0)), lam=0.05)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=500, shuffle=True)

    step = 0
    while step < steps:
        for x_batch, y_batch in loader:
            loss = F.cross_entropy(model(x_batch), y_batch) + rho * fair(model, x_batch)  # the only new term
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == steps:
                break

    model.eval()
    flipped = x.clone()
    flipped[:, train.X.columns.get_loc("sex")] = 1 - flipped[:, train.X.columns.get_loc("sex")]
    with torch.no_grad():
        changed = (model(x).argmax(1) != model(flipped).argmax(1)).float().mean()
    return {"loss": loss.item(), "decisions that depend on sex": changed.item(), "lam": fair.lam.item()}


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.3f}")
