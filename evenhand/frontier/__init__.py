"""Sweeps over rho, or any parameter: the trade-off between accuracy and unfairness, and the choice of a model."""

from evenhand.frontier.scores import SearchedUnfairness, accuracy
from evenhand.frontier.sweep import frontier
from evenhand.frontier.trade_off import Choice, Frontier

__all__ = ["Choice", "Frontier", "SearchedUnfairness", "accuracy", "frontier"]
