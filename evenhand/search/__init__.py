"""The worst case x' of each individual: gradient search, and exact search over finite candidates."""

from evenhand.search.ascent import AdamAscent, NormalisedAscent, SignAscent
from evenhand.search.candidates import CandidateSearch
from evenhand.search.gradient import GradientSearch
from evenhand.search.presets import PAPER_ADULT, PAPER_ADULT_SENSR, PAPER_BIOS, PAPER_TOXICITY
from evenhand.search.worst_cases import Bounds, DistanceGain, Gain, Search, WorstCases

__all__ = [
    "PAPER_ADULT",
    "PAPER_ADULT_SENSR",
    "PAPER_BIOS",
    "PAPER_TOXICITY",
    "AdamAscent",
    "Bounds",
    "CandidateSearch",
    "DistanceGain",
    "Gain",
    "GradientSearch",
    "NormalisedAscent",
    "Search",
    "SignAscent",
    "WorstCases",
]
