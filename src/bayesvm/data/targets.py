"""Data: how callers encode targets. The data layer reads targets and passes on numbers.

Encoders and functions are sent to the workers of a cluster, so they must be picklable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy.typing as npt

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.data.checks import Locate

Targets = npt.NDArray[Any]  # raw values: numbers, bools or text


class TargetEncoder(Protocol):
    """Encodes targets as the numbers stored in blocks, and computes the weights of the rows in the fit."""

    def __call__(self, y: Targets, weight: Array | None) -> tuple[npt.NDArray[Any], Array | None]: ...


@dataclass(frozen=True)
class CompletingEncoder:
    """A ``TargetEncoder`` with a step for the same rows: missing values are imputed (D33), or marked by features.

    Steps nest: that of the wrapped encoder comes first.
    """

    encoder: TargetEncoder
    completion: Callable[[Any], Any]

    def __call__(self, y: Targets, weight: Array | None) -> tuple[npt.NDArray[Any], Array | None]:
        """Encode with the wrapped encoder."""
        return self.encoder(y, weight)


def encoded_block(encoder: TargetEncoder, X: Any, y: Targets, weight: Array | None) -> Block:
    """Rows with targets as numbers and missing values imputed."""
    if not isinstance(encoder, CompletingEncoder):
        return Block(X, *encoder(y, weight))
    rows = encoded_block(encoder.encoder, X, y, weight)
    return rows._replace(X=encoder.completion(rows.X))


class Summary(Protocol):
    """A summary of the targets of some rows; ``+=`` adds the summary of more rows."""

    def __iadd__(self, other: Self) -> Self: ...


SummaryType = TypeVar("SummaryType", bound=Summary)
# Summarises the targets of some rows, with their weights; an error at a row begins with the location of the row.
Summarise = Callable[[Targets, Array | None, Locate], SummaryType]
