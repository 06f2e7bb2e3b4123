"""What a training step minimises: each objective is called as ``objective(model, batch)`` and gives a scalar."""

from evenhand.objectives.adversarial import Adversarial
from evenhand.objectives.batch import Batch, Objective
from evenhand.objectives.clp import CLP
from evenhand.objectives.cocl import CoCL
from evenhand.objectives.erm import ERM
from evenhand.objectives.sensei import SenSeI
from evenhand.objectives.sensr import SenSR
from evenhand.objectives.senstir import SenSTIR

__all__ = ["CLP", "ERM", "Adversarial", "Batch", "CoCL", "Objective", "SenSR", "SenSTIR", "SenSeI"]
