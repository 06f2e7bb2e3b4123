"""FairRegularizer in the Hugging Face Trainer.

from evenhand.integrations.huggingface import FairTrainer

fair = FairRegularizer(metric, eps=0.1, at="bert.pooler")          # the metric lives in the pooled embeddings
FairTrainer(model, arguments, train_dataset=data, fair=fair, rho=5.0).train()
"""

from __future__ import annotations

from typing import Any

from torch import nn

from evenhand.integrations.memory import kept, restore
from evenhand.regularizer import FairRegularizer

try:
    from transformers import Trainer, TrainerCallback
except ImportError as error:
    raise ImportError("the Hugging Face Trainer is not installed: pip install transformers accelerate") from error

_KEPT = "evenhand"  # the name under which lam stands in trainer_state.json


class FairTrainer(Trainer):  # type: ignore[misc]
    """A Trainer that minimises its loss + rho * R(h).

    ``fair`` looks at the model through the batch's inputs without the labels: say with ``at=`` or ``vary=`` what of
    them moves. lam is kept in every checkpoint and continued from it. Evaluations give the plain loss.
    """

    def __init__(self, *args: Any, fair: FairRegularizer, rho: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not rho >= 0:
            raise ValueError(f"rho must be zero or positive, got {rho}; it weighs fairness against the loss")
        self.fair, self.rho = fair, float(rho)
        self.add_callback(KeepLam(fair))

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        features = {name: value for name, value in inputs.items() if name not in self.label_names}
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        if model.training and self.rho > 0:
            with self.accelerator.autocast():
                fairness = self.fair.train().to(loss.device)(model, features)
            loss = loss + self.rho * fairness / self._left_to_us(num_items_in_batch)
        return (loss, outputs) if return_outputs else loss

    def _left_to_us(self, num_items_in_batch: Any) -> int:
        """By how much a mean over the batch must be divided here: by the number of accumulated batches, where the
        Trainer takes the loss for one that was divided by the items of all of them."""
        scaled = getattr(self, "loss_is_scaled_for_ga", None)
        if scaled is None:
            scaled = (self.model_accepts_loss_kwargs and num_items_in_batch is not None) or (
                self.compute_loss_func is not None
            )
        return int(getattr(self, "current_gradient_accumulation_steps", 1)) if scaled else 1


class KeepLam(TrainerCallback):  # type: ignore[misc]
    """lam, and the state of the search's random generator, in the Trainer's own checkpoints."""

    def __init__(self, fair: FairRegularizer) -> None:
        self.fair = fair

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        stored = state.stateful_callbacks.get(_KEPT)
        if stored is not None:
            restore(self.fair, stored["attributes"])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if control.should_save:
            state.stateful_callbacks[_KEPT] = {"args": {}, "attributes": kept(self.fair)}

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.on_step_end(args, state, control)
