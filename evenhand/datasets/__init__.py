"""Data as frames and arrays; functions, no classes to learn."""

from evenhand.datasets.adult import Split, Table, adult, adult_frame
from evenhand.datasets.synthetic import synthetic

__all__ = ["Split", "Table", "adult", "adult_frame", "synthetic"]
