"""Data as frames and arrays; functions, no classes to learn."""

from evenhand.datasets.adult import Split, Table, adult, adult_frame
from evenhand.datasets.bios import Biographies, bias_in_bios
from evenhand.datasets.mentions import mentions
from evenhand.datasets.people import about_people
from evenhand.datasets.synthetic import synthetic
from evenhand.datasets.templates import templates
from evenhand.datasets.toxicity import Comments, civil_comments, jigsaw_toxicity

__all__ = [
    "Biographies",
    "Comments",
    "Split",
    "Table",
    "about_people",
    "adult",
    "adult_frame",
    "bias_in_bios",
    "civil_comments",
    "jigsaw_toxicity",
    "mentions",
    "synthetic",
    "templates",
]
