"""A whole run on a table: from a frame to a folder with models, scores, certificate and report."""

from evenhand.run.folder import Folder, fingerprint, versions
from evenhand.run.problem import Problem, prepare
from evenhand.run.stages import METHODS, Results, Settings, run
from evenhand.run.versions import Flip

__all__ = ["METHODS", "Flip", "Folder", "Problem", "Results", "Settings", "fingerprint", "prepare", "run", "versions"]
