"""Estimators: fitted attributes in the style of scikit-learn, read from the one value that a fit stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class FittedAttribute:
    """An attribute that reads ``fitted_`` and cannot be set.

    It does not exist before ``fit``, nor if ``read`` returns None, unless ``may_be_none``; ``needs`` says what it takes
    to have it. With ``of_columns``, ``read`` takes the estimator as a second argument.
    """

    def __init__(
        self, read: Callable[..., Any], *, may_be_none: bool = False, of_columns: bool = False, needs: str = ""
    ) -> None:
        self.read = read
        self.may_be_none = may_be_none
        self.of_columns = of_columns
        self.needs = needs

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self
        if hasattr(estimator, "fitted_"):
            value = self.read(estimator.fitted_, *([estimator] if self.of_columns else []))
            if value is not None or self.may_be_none:
                return value
            needs = f", which needs {self.needs}" if self.needs else ""
            message = f"this {owner.__name__} has no {self.name}{needs}"
        else:
            message = f"{self.name} is available only after fit; this {owner.__name__} is not fitted"
        raise AttributeError(message, name=self.name, obj=estimator)

    def __set__(self, estimator: Any, value: Any) -> None:
        raise AttributeError(f"{self.name} cannot be set: it is a result of fit", name=self.name)
