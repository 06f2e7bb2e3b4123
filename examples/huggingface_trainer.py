"""FairRegularizer in the Hugging Face Trainer: FairTrainer in the place of Trainer.

With gradient accumulation the gradient, and the step of lam, are those of one large batch; lam is kept in checkpoints.
"""

from __future__ import annotations

import tempfile

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import TrainingArguments

from evenhand import FairMetric, FairRegularizer
from evenhand.datasets import synthetic
from evenhand.integrations.huggingface import FairTrainer


class Net(nn.Module):
    """Any model that the Trainer takes: a batch in, a dict with the loss and the logits out."""

    def __init__(self, d: int, classes: int = 2) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, 16), nn.ReLU(), nn.Linear(16, classes))

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.layers(x)
        return {"logits": logits} if labels is None else {"loss": F.cross_entropy(logits, labels), "logits": logits}


def main(
    steps: int = 200, batch_size: int = 32, accumulate: int = 2, rho: float = 20.0, bf16: bool = False
) -> dict[str, float]:
    X, y = synthetic(512, seed=0)
    data = [{"x": torch.tensor(row, dtype=torch.float32), "labels": torch.tensor(label)} for row, label in zip(X, y)]
    torch.manual_seed(0)
    model = Net(2)
    fair = FairRegularizer(FairMetric([[1.0], [0.0]]), eps=0.0, bounds=(-1.0, 1.0))  # the first feature is sensitive
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=batch_size,
            gradient_accumulation_steps=accumulate,
            learning_rate=1e-2,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            bf16=bf16,
            seed=0,
        )
        FairTrainer(model, arguments, train_dataset=data, fair=fair, rho=rho).train()
    x = torch.tensor(X, dtype=torch.float32)
    model.eval()
    with torch.no_grad():
        low, high = (model(torch.stack([torch.full_like(x[:, 0], v), x[:, 1]], 1))["logits"] for v in (-1.0, 1.0))
        accuracy = (model(x)["logits"].argmax(1) == torch.tensor(y)).float().mean()
    changed = (low.argmax(1) != high.argmax(1)).float().mean()
    return {"accuracy": accuracy.item(), "decisions that depend on the sensitive feature": changed.item()}


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.3f}")
