"""Options of a run that change its results."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """rho: weights of fairness to choose from; one value: no sweep. eps, eps_certified: mean fair distance within which
    people count as similar, in training and in audit and certificate. max_accuracy_loss: balanced accuracy (or R2) that
    may be given up against the best model without fairness. threshold: probability of the second class from which on
    it is decided for; None lets each class count equally. positive: the class that counts as being selected, by default
    the last. show_people: "none" keeps single people out of the report, "id" shows row and difference, "all" the whole
    record. audit_rows, certify_rows: None takes as many as need about a minute. model: the kind of the fair model,
    "network", "trees", or "both", to choose between them; tree_rho: the weights for trees, whose penalty is relative to
    the spread of their scores."""

    rho: tuple[float, ...] = (1.0, 5.0, 20.0, 100.0)
    tree_rho: tuple[float, ...] = (0.5, 2.0, 8.0)
    model: str = "network"
    eps: float = 0.1
    eps_certified: float = 0.01
    max_accuracy_loss: float = 0.03
    hidden: tuple[int, ...] = (100,)
    steps: int = 1150
    batch_size: int = 500
    lr: float = 2e-3
    trees: int = 200
    seed: int = 0
    confidence: float = 0.95
    threshold: float | None = None
    positive: str | None = None
    show_people: str = "id"
    sensr: bool = False  # also train SenSR, for comparison
    sensr_eps: float = 0.1
    certificate: bool = True
    audit_rows: int | None = None
    certify_rows: int | None = None

    def __post_init__(self) -> None:
        if self.model not in ("network", "trees", "both"):
            raise ValueError(f"model is 'network', 'trees' or 'both', got {self.model!r}")

    @property
    def weights(self) -> dict[str, tuple[float, ...]]:
        """The weights of fairness to try, for each kind of model."""
        every = {"network": self.rho, "trees": self.tree_rho}
        return every if self.model == "both" else {self.model: every[self.model]}
