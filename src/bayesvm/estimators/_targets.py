"""Estimators: what ``fit`` needs to know of a kind of targets, wherever their rows lie."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bayesvm.data.checks import Locate


class TargetKind(Protocol):
    """Classes or numbers. A summary of the targets of some rows adds up, and has ``n_rows``."""

    def require(self, y: Any) -> None:
        """Raise an error that names the row, before scikit-learn raises one that does not."""
        ...

    def of(self, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """The summary of targets that were checked."""
        ...

    def summarise(self, y: np.ndarray, weight: np.ndarray | None, locate: Locate, name: str = "y") -> Any:
        """The summary of targets that were not."""
        ...

    def require_part(self, found: Any, name: str) -> None:
        """Raise an error if more rows cannot make it right."""
        ...

    def require_all(self, found: Any, name: str) -> None:
        """Raise an error if all rows together cannot be learned from."""
        ...

    def encoder(self, estimator: Any, found: Any) -> tuple[Any, np.ndarray]:
        """How targets become the numbers that blocks carry, and the weight of all rows, of each class if any."""
        ...
