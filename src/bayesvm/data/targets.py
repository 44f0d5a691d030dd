"""Data: what whoever learns from a table makes of its targets. The data layer reads them and carries numbers.

Both functions travel to the workers of a cluster, so they must be picklable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy.typing as npt

from bayesvm.core.linalg import Array
from bayesvm.data.checks import Locate

Targets = npt.NDArray[Any]  # as they were read: numbers, bools or text


class TargetEncoder(Protocol):
    """Turns targets into the numbers that blocks carry, and gives their rows the weights that they have in the fit."""

    def __call__(self, y: Targets, weight: Array | None) -> tuple[npt.NDArray[Any], Array | None]: ...


class Summary(Protocol):
    """What is known of the targets of some rows; those of more rows are added with ``+=``."""

    def __iadd__(self, other: Self) -> Self: ...


SummaryType = TypeVar("SummaryType", bound=Summary)
# Summarises the targets of some rows, with their weights; its error at a bad row begins with the row's location.
Summarise = Callable[[Targets, Array | None, Locate], SummaryType]
