"""FairRegularizer in Lightning, without a change of the module.

    from evenhand.integrations.lightning import FairCallback

    fair = FairRegularizer(metric, eps=0.1, bounds=(low, high))
    Trainer(callbacks=[FairCallback(fair, rho=5.0)]).fit(module, loader)

In a module of one's own the regularizer can as well be a submodule and a term of ``training_step``: see
examples/lightning_module.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from evenhand.integrations.memory import kept, restore
from evenhand.regularizer import FairRegularizer, not_negative

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback  # type: ignore[assignment]
    except ImportError as error:
        raise ImportError("Lightning is not installed: pip install lightning") from error


def first_part(batch: Any) -> Any:
    """The inputs of a batch (inputs, labels)."""
    if isinstance(batch, Mapping) or not isinstance(batch, tuple | list):
        raise TypeError(
            f"the batch is a {type(batch).__name__}; say what of it are the inputs: inputs=lambda batch: ..."
        )
    return batch[0]


def the_module(module: Any) -> Any:
    """The module itself; a function that other processes can be sent."""
    return module


class FairCallback(Callback):
    """Adds rho * R(h) to the loss that ``training_step`` returned, before each backward pass.

    inputs: the model's inputs, from the batch; by default its first part. model: what is judged, from the module; by
    default the module itself. lam is kept in Lightning's checkpoints. Not for modules that optimise by hand.
    """

    def __init__(
        self,
        fair: FairRegularizer,
        rho: float,
        inputs: Callable[[Any], Any] = first_part,
        model: Callable[[Any], Any] = the_module,
    ) -> None:
        super().__init__()
        rho = not_negative("rho", rho, "by which fairness is weighed against the loss")
        self.fair, self.rho, self.inputs, self.model = fair, rho, inputs, model
        self.batch: Any = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        if not pl_module.automatic_optimization:
            raise ValueError("the module optimises by hand: add rho * fair(model, x) to its loss instead of a callback")
        self.fair.to(pl_module.device)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.batch = batch

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Tensor) -> None:
        """The loss is Lightning's own, divided by the number of accumulated batches, and scaled under float16."""
        fairness = self.rho * self.fair.train()(self.model(pl_module), self.inputs(self.batch))
        fairness = fairness / trainer.accumulate_grad_batches
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        loss.add_((fairness if scaler is None else scaler.scale(fairness)).to(loss))

    def state_dict(self) -> dict[str, Any]:
        return kept(self.fair)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        restore(self.fair, state_dict)
