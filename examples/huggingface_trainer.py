"""FairRegularizer in the Hugging Face Trainer: override ``compute_loss``.

The Trainer divides the loss by the number of accumulated batches, so returning the mean over the batch is right: with
gradient accumulation the gradient is the same as with one large batch.
"""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import Trainer, TrainingArguments

from evenhand import FairMetric, FairRegularizer
from evenhand.datasets import synthetic


class Net(nn.Module):
    """Any model that the Trainer takes: a batch in, a dict with the logits out."""

    def __init__(self, d: int, classes: int = 2) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, 16), nn.ReLU(), nn.Linear(16, classes))

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        return {"logits": self.layers(x)}


class Logits(nn.Module):
    """The model as the regularizer wants it: inputs to logits. A module, so that its dropout is off in the search."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)["logits"]


class FairTrainer(Trainer):
    """Adds rho * R(h) to the loss; the fair metric is about the inputs ``x``."""

    def __init__(self, *args: Any, fair: FairRegularizer, rho: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fair, self.rho = fair, rho

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Tensor], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        outputs = model(inputs["x"])
        self.fair.train(model.training).to(outputs["logits"].device)
        fairness = self.fair(Logits(model).train(model.training), inputs["x"])
        loss = F.cross_entropy(outputs["logits"], inputs["labels"]) + self.rho * fairness
        return (loss, outputs) if return_outputs else loss


def main(steps: int = 200, batch_size: int = 32, accumulate: int = 2, rho: float = 20.0) -> dict[str, float]:
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
