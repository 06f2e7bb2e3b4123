"""FairRegularizer in Lightning: a submodule, so that lam is saved in checkpoints and moved to the right device."""

from __future__ import annotations

from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from evenhand import FairMetric, FairRegularizer
from evenhand.datasets import synthetic


class FairNet(lightning.LightningModule):
    def __init__(self, rho: float = 20.0) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        self.fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.01, bounds=(-1.0, 1.0))
        self.rho = rho

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        x, y = batch
        return F.cross_entropy(self(x), y) + self.rho * self.fair(self.net, x)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.net.parameters(), lr=1e-2)


def main(epochs: int = 10, rho: float = 20.0, precision: str = "32-true") -> dict[str, float]:
    lightning.seed_everything(0, verbose=False)
    X, y = synthetic(512, seed=0)
    x = torch.tensor(X, dtype=torch.float32)
    loader = DataLoader(TensorDataset(x, torch.tensor(y)), batch_size=64, shuffle=True)
    model = FairNet(rho)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        precision=precision,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    model.eval()
    with torch.no_grad():
        low, high = (model(torch.stack([torch.full_like(x[:, 0], v), x[:, 1]], 1)).argmax(1) for v in (-1.0, 1.0))
        accuracy = (model(x).argmax(1) == torch.tensor(y)).float().mean()
    return {"accuracy": accuracy.item(), "changed": (low != high).float().mean().item(), "lam": model.fair.lam.item()}


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.3f}")
