"""FairRegularizer in skorch.

from evenhand.integrations.skorch import FairMixin

class FairClassifier(FairMixin, NeuralNetClassifier): ...

FairClassifier(module, criterion=nn.CrossEntropyLoss, fair=fair, rho=5.0).fit(X, y)
"""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from evenhand.regularizer import FairRegularizer, not_negative

try:
    from skorch.utils import to_tensor
except ImportError as error:
    raise ImportError("skorch is not installed: pip install skorch") from error


class FairMixin:
    """In front of any skorch net: the training loss is that of the net + rho * R(h); validation losses are plain.

    The parameter ``fair`` stays as it was given; ``fair_`` is the copy that a fit uses and whose lam it moves. The
    module should give logits (criterion=CrossEntropyLoss), because that is what is compared.
    """

    def __init__(self, *args: Any, fair: FairRegularizer, rho: float, **kwargs: Any) -> None:
        self.fair, self.rho = fair, rho
        super().__init__(*args, **kwargs)

    def initialize_module(self) -> Any:
        super().initialize_module()  # type: ignore[misc]
        self.fair_ = copy.deepcopy(self.fair)
        return self

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:
        loss: Tensor = super().get_loss(y_pred, y_true, X=X, training=training)  # type: ignore[misc]
        if not training:
            return loss
        rho = not_negative("rho", self.rho, "by which fairness is weighed against the loss")
        if rho == 0:
            return loss
        x = to_tensor(X, device=self.device)  # type: ignore[attr-defined]
        fairness: Tensor = self.fair_.train().to(loss.device)(self.module_, x)  # type: ignore[attr-defined]
        return loss + rho * fairness
