"""Estimators: the interface of a kind of targets, classes or numbers, for rows in memory, in files and on Dask."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from bayesvm.data.checks import Locate


class TargetKind(Protocol):
    """Classes or numbers. Summaries of the targets of chunks of rows can be added, and have ``n_rows``."""

    def require(self, y: Any) -> None:
        """Check targets; errors name the row, unlike those of scikit-learn."""
        ...

    def of(self, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """The summary of checked targets."""
        ...

    def summarise(self, y: np.ndarray, weight: np.ndarray | None, locate: Locate, name: str = "y") -> Any:
        """The summary of targets, which are checked here."""
        ...

    def require_part(self, found: Any, name: str) -> None:
        """Raise an error if the targets so far are invalid, whatever rows follow."""
        ...

    def require_all(self, found: Any, name: str) -> None:
        """Raise an error if the targets of all rows are invalid."""
        ...

    def encoder(self, estimator: Any, found: Any) -> tuple[Any, np.ndarray]:
        """The encoder of the targets, and the total weight of the rows, or of the rows of each class."""
        ...
