"""Models that leave the lab: files without pickle, and ONNX."""

from evenhand.persistence.files import FORMAT, ModelFileError, load, load_metadata, save
from evenhand.persistence.onnx_export import export_onnx

__all__ = ["FORMAT", "ModelFileError", "export_onnx", "load", "load_metadata", "save"]
