"""Adversarial debiasing (Zhang, Lemoine & Mitchell 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.objectives.batch import Batch, Loss, Objective, weighted_mean


class Adversary(nn.Module):
    """Guesses sensitive attributes from the logits, and from the label for equalised odds.

    With s = softmax((1 + |c|) h) a linear layer an attribute reads [s, s * (y = 0), s * (y = 1), ...], or s alone when
    ``given_label`` is false (demographic parity). The first class of s is left out: for two classes this is the
    adversary of the paper.
    """

    def __init__(
        self, n_classes: int, n_groups: Sequence[int], given_label: bool, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.n_classes, self.given_label = n_classes, given_label
        width = (n_classes - 1) * (1 + n_classes if given_label else 1)
        self.scale = nn.Parameter(torch.ones(()))  # c
        self.heads = nn.ModuleList(nn.Linear(width, g) for g in n_groups)
        with torch.no_grad():
            for head in self.heads:
                assert isinstance(head, nn.Linear)
                limit = (6 / (head.in_features + head.out_features)) ** 0.5
                head.weight.uniform_(-limit, limit, generator=generator)
                head.bias.zero_()

    def forward(self, h: Tensor, y: Tensor) -> list[Tensor]:
        """Logits of each attribute's groups: (n, K), (n,) -> (n, G) an attribute."""
        s = ((1 + self.scale.abs()) * h).softmax(dim=-1)[:, 1:]
        if self.given_label:
            label = F.one_hot(y, self.n_classes).to(s.dtype)
            s = torch.cat([s, (label[:, :, None] * s[:, None, :]).flatten(1)], dim=1)
        return [head(s) for head in self.heads]


class Adversarial(Objective):
    """The loss, with a gradient that does not help an adversary who guesses the sensitive attributes from the output.

    For each parameter of the model, with g the gradient of the loss and a_j that of the adversary's loss on
    attribute j: step along g - proj_span(a) g - weight * sum_j a_j. The value is the loss itself. The adversary takes
    its own Adam step at each call in train mode, with a learning rate that decays by ``lr_decay`` a step.

    sensitive: group numbers of the training rows, (n,) or (n, attributes), found by ``batch.rows``. A batch without
        row numbers is evaluated by its loss alone. given_label: equalised odds (default), else demographic parity.
    """

    sensitive: Tensor

    def __init__(
        self,
        sensitive: Any,
        n_classes: int,
        weight: float = 0.001,
        loss: Loss | None = None,
        *,
        given_label: bool = True,
        lr: float = 1e-3,
        lr_decay: float = 0.96**0.001,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(loss)
        if not weight >= 0:
            raise ValueError(f"weight must be zero or positive, got {weight}; it is the adversary's share of a step")
        groups = checked_groups(sensitive)
        n_groups = [int(column.max()) + 1 for column in groups.T]
        self.weight, self.lr_decay = float(weight), lr_decay
        self.register_buffer("sensitive", groups, persistent=False)
        self.adversary = Adversary(n_classes, n_groups, given_label, generator)
        self.optimizer = torch.optim.Adam(self.adversary.parameters(), lr=lr)

    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        if not self.training or batch.rows is None:
            return self.plain(model, batch)
        h = model(batch.x)
        loss = weighted_mean(self.loss(h, batch.y), batch.weight)
        guesses = self.adversary(h, batch.y)
        groups = self.sensitive[batch.rows]
        losses = [
            weighted_mean(F.cross_entropy(guess, group, reduction="none"), batch.weight)
            for guess, group in zip(guesses, groups.T)
        ]
        parameters = [p for p in model.parameters() if p.requires_grad]
        gradient = torch.autograd.grad(loss, parameters, retain_graph=True)
        of_adversary = [torch.autograd.grad(a, parameters, retain_graph=True) for a in losses]
        self._step(losses)
        self.last = {"loss": loss.detach(), "adversary": torch.stack(losses).detach().mean()}
        value = loss.detach()
        for p, g, *a in zip(parameters, gradient, *of_adversary):
            value = value + ((p - p.detach()) * away_from(g, a, self.weight)).sum()  # worth 0, with this gradient
        return value

    def _step(self, losses: list[Tensor]) -> None:
        """The adversary learns: one step on its own losses."""
        own = list(self.adversary.parameters())
        for p, slope in zip(own, torch.autograd.grad(torch.stack(losses).sum(), own)):
            p.grad = slope
        self.optimizer.step()
        for group in self.optimizer.param_groups:
            group["lr"] *= self.lr_decay


def away_from(g: Tensor, a: list[Tensor], weight: float) -> Tensor:
    """g - proj_span(a) g - weight * sum(a): what is left of a gradient when no adversary may gain by it."""
    result = g
    basis: list[Tensor] = []
    for slope in a:
        for unit in basis:
            slope = slope - (slope * unit).sum() * unit
        length = slope.norm()
        if length > torch.finfo(g.dtype).tiny:
            basis.append(slope / length)
            result = result - (result * basis[-1]).sum() * basis[-1]
    return result - weight * torch.stack(a).sum(dim=0)


def checked_groups(sensitive: Any) -> Tensor:
    """Group numbers as a tensor (n, attributes), or a clear error."""
    groups = torch.as_tensor(sensitive)
    groups = groups[:, None] if groups.ndim == 1 else groups
    if groups.ndim != 2 or groups.shape[1] == 0 or len(groups) == 0 or groups.is_floating_point():
        raise ValueError(
            f"sensitive must hold the group numbers of the rows, integers (n,) or (n, attributes); "
            f"got {groups.dtype} of shape {tuple(groups.shape)}"
        )
    if groups.min() < 0:
        raise ValueError("group numbers start at 0; a missing value needs a group of its own, or its row left out")
    single = [j for j in range(groups.shape[1]) if groups[:, j].max() == groups[:, j].min()]
    if single:
        raise ValueError(
            f"sensitive attribute {single[0]} has a single group: there is nothing for an adversary to guess"
        )
    return groups.long()
