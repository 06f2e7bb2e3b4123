"""FairRegularizer in the Hugging Face Trainer.

from evenhand.integrations.huggingface import FairTrainer

fair = FairRegularizer(metric, eps=0.1, at="bert.pooler")          # the metric lives in the pooled embeddings
FairTrainer(model, arguments, train_dataset=data, fair=fair, rho=5.0).train()

Where words move, rather than pooled embeddings, ``per_token(metric)`` at ``"bert.embeddings.word_embeddings"`` reads
the mask of each batch: examples/finetune_transformer.py --trainer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from evenhand.integrations.memory import kept, restore
from evenhand.regularizer import FairRegularizer, not_negative
from evenhand.search.mode import eval_mode

try:
    from transformers import Trainer, TrainerCallback
except ImportError as error:
    raise ImportError("the Hugging Face Trainer is not installed: pip install transformers accelerate") from error

_KEPT = "evenhand"  # the name under which lam stands in trainer_state.json


class FairTrainer(Trainer):  # type: ignore[misc]
    """A Trainer that minimises its loss + rho * R(h).

    ``fair`` looks at the model through the batch's inputs without the labels: say with ``at=`` or ``vary=`` what of
    them moves. lam is kept in every checkpoint and continued from it. Evaluations give the plain loss. However many
    batches are accumulated for a step, rho weighs the same against the loss: of a model whose loss the Trainer adds up
    over them, where it means to average, R(h) is added up as well.
    """

    def __init__(self, *args: Any, fair: FairRegularizer, rho: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rho = not_negative("rho", rho, "by which fairness is weighed against the loss")
        self.fair, self.rho = fair, rho
        self._divides: bool | None = None  # whether the loss is divided by num_items_in_batch, once that was seen
        self.add_callback(RestoreLam(fair))

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        features = {name: value for name, value in inputs.items() if name not in self.label_names}
        fairly = model.training and self.rho > 0
        share = self._share(model, inputs, num_items_in_batch) if fairly else 1.0
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        if fairly:
            with self.accelerator.autocast():
                fairness = self.fair.train().to(loss.device)(model, features)
            loss = loss + self.rho * share * fairness
        return (loss, outputs) if return_outputs else loss

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """lam goes with it, whoever asked for a checkpoint, and when: a callback at the end of a step is too early for
        that of the best model."""
        callbacks: Any = self.state.stateful_callbacks
        callbacks[_KEPT] = {"args": {}, "attributes": kept(self.fair)}
        super()._save_checkpoint(*args, **kwargs)

    def _share(self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any) -> float:
        """How much of R(h) of a batch belongs to its loss: all of it where the loss is a mean over the batch, and of a
        loss that is divided by the items of all accumulated batches, as many times less."""
        batches = int(getattr(self, "current_gradient_accumulation_steps", self.args.gradient_accumulation_steps))
        if batches == 1:
            return 1.0
        if num_items_in_batch is None:
            divided = getattr(self, "loss_is_scaled_for_ga", None) is True  # somebody says so
        else:
            divided = self._is_divided(model, inputs, num_items_in_batch)
        return 1.0 / batches if divided else 1.0

    def _is_divided(self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any) -> bool:
        """Whether the loss is less when it is told of more items, asked once: many models take the number, as their
        signature says, and give the mean over the batch all the same."""
        if self._divides is None:
            plain: Any = super().compute_loss
            with torch.no_grad(), eval_mode(model):
                loss, of_more = (
                    plain(model, dict(inputs), False, items).mean().abs().item()
                    for items in (num_items_in_batch, 2 * num_items_in_batch)
                )
            if not loss > 0:  # nothing to see: no labels in this batch
                return True
            self._divides = of_more < 0.75 * loss
        return self._divides


class RestoreLam(TrainerCallback):  # type: ignore[misc]
    """lam, and the state of the search's random generator, from the Trainer's own checkpoints."""

    def __init__(self, fair: FairRegularizer) -> None:
        self.fair = fair

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        stored = state.stateful_callbacks.get(_KEPT)
        if stored is not None:
            restore(self.fair, stored["attributes"])
