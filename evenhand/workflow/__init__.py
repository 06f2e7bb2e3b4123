"""A whole run on a table: from a frame to a folder with models, scores, certificate and report."""

from evenhand.workflow.folder import Folder, fingerprint, versions
from evenhand.workflow.opened import TableModel, load_model
from evenhand.workflow.prepare import Task, prepare
from evenhand.workflow.questions import Flip
from evenhand.workflow.settings import Settings
from evenhand.workflow.stages import Results, run
from evenhand.workflow.trained import NAMES

__all__ = [
    "NAMES",
    "Flip",
    "Folder",
    "Results",
    "Settings",
    "TableModel",
    "Task",
    "fingerprint",
    "load_model",
    "prepare",
    "run",
    "versions",
]
