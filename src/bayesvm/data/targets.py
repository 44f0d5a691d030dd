"""Data: what whoever learns from a table makes of its targets. The data layer reads them and carries numbers.

Encoders and functions travel to the workers of a cluster, so they must be picklable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy.typing as npt

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.data.checks import Locate
from bayesvm.data.completion import Completion

Targets = npt.NDArray[Any]  # as they were read: numbers, bools or text


class TargetEncoder(Protocol):
    """Turns targets into the numbers that blocks carry, and gives their rows the weights that they have in the fit."""

    def __call__(self, y: Targets, weight: Array | None) -> tuple[npt.NDArray[Any], Array | None]: ...


@dataclass(frozen=True)
class CompletingEncoder:
    """A ``TargetEncoder`` that travels with what completes the missing values of the same rows (D33)."""

    encoder: TargetEncoder
    completion: Completion

    def __call__(self, y: Targets, weight: Array | None) -> tuple[npt.NDArray[Any], Array | None]:
        """As the encoder alone."""
        return self.encoder(y, weight)


def encoded_block(encoder: TargetEncoder, X: Any, y: Targets, weight: Array | None) -> Block:
    """Rows as they were read, with targets as numbers and without missing values."""
    completed = encoder.completion(X) if isinstance(encoder, CompletingEncoder) else X
    return Block(completed, *encoder(y, weight))


class Summary(Protocol):
    """What is known of the targets of some rows; those of more rows are added with ``+=``."""

    def __iadd__(self, other: Self) -> Self: ...


SummaryType = TypeVar("SummaryType", bound=Summary)
# Summarises the targets of some rows, with their weights; its error at a bad row begins with the row's location.
Summarise = Callable[[Targets, Array | None, Locate], SummaryType]
