"""The paper's settings of the search, by experiment (its Table of hyper-parameters: s, se, f, fe)."""

from __future__ import annotations

from evenhand.search.gradient import GradientSearch


def _paper(s: float, se: int, f: float, fe: int) -> GradientSearch:
    """Adam steps of fixed size in both stages."""
    return GradientSearch(subspace_step=s, subspace_steps=se, full_step=f, full_steps=fe, line_search=False)


PAPER_ADULT = _paper(5.0, 50, 0.001, 50)
PAPER_ADULT_SENSR = _paper(10.0, 50, 0.0001, 40)
PAPER_BIOS = _paper(0.1, 50, 0.01, 10)
PAPER_TOXICITY = _paper(0.1, 10, 0.0, 0)
