"""Images: handwritten digits whose brightness must not matter, with a convolutional network.

    python examples/digits_images.py

The digits of scikit-learn, 8 by 8 pixels. In the training data odd digits come from a brighter scanner, as people of
one group come from one hospital or one school: a network can tell odd from even by the tone alone. Images that differ
by their tone are alike, so the constant image is the sensitive direction of the fair metric, which lives on the pixels.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

from evenhand import FairMetric, FairRegularizer

TONE = 0.4  # how much brighter an image may be, where 1 is the range of the ink


def images(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images with a tone that gives the label away, test images without a tone; labels are odd or even."""
    digits = load_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits.images))
    x = torch.tensor(digits.images[order] / 16, dtype=torch.float32)[:, None]  # (n, 1, 8, 8)
    y = torch.tensor(digits.target[order] % 2)
    train, test = slice(0, 1200), slice(1200, None)
    tone = TONE * (0.8 * y[train] + 0.2 * torch.tensor(rng.random(1200), dtype=torch.float32))
    return x[train] + tone[:, None, None, None], y[train], x[test], y[test]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.1), nn.Linear(16 * 4 * 4, 2),
    )  # fmt: skip


def train(rho: float, steps: int, seed: int = 0) -> nn.Module:
    x, y, _, _ = images()
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = network()
        metric = FairMetric(torch.ones(64, 1))  # the constant image: a change of tone costs nothing
        fair = FairRegularizer(metric, eps=0.01, bounds=(0.0, 1.0 + TONE), lam=0.1, generator=generator)
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for _ in range(steps):
            rows = torch.randint(len(x), (128,), generator=generator)
            loss = F.cross_entropy(model(x[rows]), y[rows])
            if rho > 0:
                loss = loss + rho * fair(model, x[rows])  # the only new line
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def main(steps: int = 150, rho: float = 3.0) -> dict[str, dict[str, float]]:
    _, _, x, y = images()
    scores = {}
    for name, weight in (("plain", 0.0), ("fair", rho)):
        model = train(weight, steps)
        with torch.no_grad():
            dark, bright = model(x).argmax(1), model(x + 0.9 * TONE).argmax(1)
        scores[name] = {
            "accuracy on dark images": (dark == y).float().mean().item(),
            "accuracy on bright images": (bright == y).float().mean().item(),
            "decisions that depend on the tone": (dark != bright).float().mean().item(),
        }
    return scores


if __name__ == "__main__":
    for name, score in main().items():
        print(name, "  ".join(f"{key}: {value:.3f}" for key, value in score.items()), sep="  ")
