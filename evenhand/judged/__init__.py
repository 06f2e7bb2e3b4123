"""Any model as something to judge: what it answers, by what it decides, and its rows in the user's own units."""

from evenhand.judged.judged import Judged, columns_of

__all__ = ["Judged", "columns_of"]
