"""Versions of the same individual by rule: strings and frames in, `Variations` out.

The rules change words or columns. They make no claim about causes: what else would differ for a person of another
sex or race is not modelled.
"""

from evenhand.counterfactuals.columns import alter_columns, swap_column
from evenhand.counterfactuals.gender import GenderSwap
from evenhand.counterfactuals.given_names import names_in
from evenhand.counterfactuals.identities import identity_categories, identity_tokens
from evenhand.counterfactuals.preview import Preview
from evenhand.counterfactuals.tokens import TokenSwap

__all__ = [
    "GenderSwap",
    "Preview",
    "TokenSwap",
    "alter_columns",
    "identity_categories",
    "identity_tokens",
    "names_in",
    "swap_column",
]
