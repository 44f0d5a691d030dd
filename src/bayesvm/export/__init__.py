"""Export: fitted models for places where there is no bayesvm."""

from bayesvm.export.onnx import to_onnx

__all__ = ["to_onnx"]
