"""What a checkpoint must hold of a regularizer, as plain numbers."""

from __future__ import annotations

from typing import Any

import torch

from evenhand.regularizer import FairRegularizer


def kept(fair: FairRegularizer) -> dict[str, Any]:
    """lam, and the state of the search's random generator where it has one of its own."""
    generator = fair.generator
    return {"lam": fair.lam.item(), "generator": None if generator is None else generator.get_state().tolist()}


def restore(fair: FairRegularizer, values: dict[str, Any]) -> None:
    """Put back what ``kept`` gave."""
    fair.lam.fill_(float(values["lam"]))
    if fair.generator is not None and values.get("generator") is not None:
        fair.generator.set_state(torch.tensor(values["generator"], dtype=torch.uint8))
