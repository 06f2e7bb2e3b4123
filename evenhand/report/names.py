"""What the models of a run are called, in one place."""

from __future__ import annotations

NAMES = {
    "plain": "Plain network",
    "blind": "Plain network, blind",
    "boosted": "Boosted trees",
    "boosted_blind": "Boosted trees, blind",
    "project": "Project",
    "sensr": "SenSR",
    "fair_network": "Fair network (SenSeI)",
    "fair_trees": "Fair boosted trees (SenSeI)",
    "fair": "Fair (SenSeI)",
}
LONG_NAMES = {
    "plain": "a network trained for accuracy alone, with early stopping; it sees the sensitive columns",
    "blind": "the same without the sensitive columns",
    "boosted": "gradient-boosted trees (scikit-learn), with early stopping; they see the sensitive columns",
    "boosted_blind": "the same without the sensitive columns",
    "project": "a plain network whose inputs have the free directions removed",
    "sensr": "robust training on the worst case (SenSR)",
    "fair_network": "fair training of a network; the rule chose trees",
    "fair_trees": "fair training of boosted trees with soft splits; the rule chose a network",
    "fair": "fair training (SenSeI)",
}
WITHOUT_FAIRNESS = ("plain", "blind", "boosted", "boosted_blind")
