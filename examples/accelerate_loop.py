"""FairRegularizer in a loop with Accelerate: any device, several processes, mixed precision, gradient accumulation.

python examples/accelerate_loop.py            # or: accelerate launch examples/accelerate_loop.py
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from evenhand import FairMetric, FairRegularizer
from evenhand.datasets import synthetic


def main(epochs: int = 10, rho: float = 20.0, accumulate: int = 2, mixed_precision: str = "no") -> dict[str, float]:
    X, y = synthetic(512, seed=0)
    x = torch.tensor(X, dtype=torch.float32)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(x, torch.tensor(y)), batch_size=32, shuffle=True)
    AcceleratorState._reset_state(reset_partial_state=True)  # main may be called again with another precision
    accelerator = Accelerator(gradient_accumulation_steps=accumulate, mixed_precision=mixed_precision, cpu=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.01, bounds=(-1.0, 1.0)).to(accelerator.device)
    accelerator.register_for_checkpointing(fair)  # lam is saved with save_state and loaded with load_state

    for _ in range(epochs):
        for x_batch, y_batch in loader:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x_batch), y_batch) + rho * fair(model, x_batch)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()

    net = accelerator.unwrap_model(model).eval()
    with torch.no_grad():
        low, high = (net(torch.stack([torch.full_like(x[:, 0], v), x[:, 1]], 1)).argmax(1) for v in (-1.0, 1.0))
        accuracy = (net(x).argmax(1) == torch.tensor(y)).float().mean()
    return {"accuracy": accuracy.item(), "changed": (low != high).float().mean().item(), "lam": fair.lam.item()}


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.3f}")
