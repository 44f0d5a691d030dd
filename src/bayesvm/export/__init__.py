"""Export: fitted models for use without bayesvm."""

from bayesvm.export.onnx import to_onnx

__all__ = ["to_onnx"]
