"""Versions of the same individual by rule: strings and frames in, `Variations` out.

The rules change words or columns. They make no claim about causes: what else would differ for a person of another
sex or race is not modelled.
"""

from evenhand.counterfactuals.columns import alter_columns
from evenhand.counterfactuals.gender import GenderSwap, names_in
from evenhand.counterfactuals.tokens import TokenSwap, identity_tokens

__all__ = ["GenderSwap", "TokenSwap", "alter_columns", "identity_tokens", "names_in"]
