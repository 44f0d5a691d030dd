"""Estimators: scikit-learn's fitted attributes, read from the one value that a fit stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayesvm.inference.fitted import Fitted


class FittedAttribute:
    """An attribute that reads ``fitted_``; it is missing before ``fit``, and where there is nothing to read (None)."""

    def __init__(self, read: Callable[[Fitted], Any]) -> None:
        self.read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self
        value = self.read(estimator.fitted_) if hasattr(estimator, "fitted_") else None
        if value is None:
            raise AttributeError(f"this {owner.__name__} has no attribute {self.name!r}", name=self.name, obj=estimator)
        return value
