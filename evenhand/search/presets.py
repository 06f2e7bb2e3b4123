"""The paper's settings of the search, by experiment (its Table of hyper-parameters: s, se, f, fe)."""

from __future__ import annotations

from evenhand.search.gradient import GradientSearch

PAPER_ADULT = GradientSearch(subspace_step=5.0, subspace_steps=50, full_step=0.001, full_steps=50)
PAPER_ADULT_SENSR = GradientSearch(subspace_step=10.0, subspace_steps=50, full_step=0.0001, full_steps=40)
PAPER_BIOS = GradientSearch(subspace_step=0.1, subspace_steps=50, full_step=0.01, full_steps=10)
PAPER_TOXICITY = GradientSearch(subspace_step=0.1, subspace_steps=10, full_step=0.0, full_steps=0)
