"""A whole run on a table: from a frame to a folder with models, scores, certificate and report."""

from evenhand.workflow.folder import Folder, fingerprint, versions
from evenhand.workflow.prepare import Task, prepare
from evenhand.workflow.questions import Flip
from evenhand.workflow.stages import METHODS, Results, Settings, run

__all__ = ["METHODS", "Flip", "Folder", "Results", "Settings", "Task", "fingerprint", "prepare", "run", "versions"]
