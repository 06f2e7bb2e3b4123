"""Models that leave the lab: files without pickle, and ONNX."""

from evenhand.files.models import FORMAT, ModelFileError, load, load_metadata, save
from evenhand.files.onnx import export_onnx

__all__ = ["FORMAT", "ModelFileError", "export_onnx", "load", "load_metadata", "save"]
