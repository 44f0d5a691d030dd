"""Data: labels of any type, as the numbers of their classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import Array

Labels = npt.NDArray[Any]
Codes = npt.NDArray[np.int8] | npt.NDArray[np.int32]
SLICE = 2**20  # rows of a vector that are looked at together, so that temporary arrays stay small


def slices(n_rows: int) -> Iterator[slice]:
    """All rows of a vector, some at a time."""
    return (slice(start, start + SLICE) for start in range(0, n_rows, SLICE))


def codes_of(classes: Labels, y: Labels) -> Codes:
    """The number of each label among the sorted classes, in few bytes; that of a neighbour if it is none of them."""
    few = len(classes) <= np.iinfo(np.int8).max
    codes: Codes = np.empty(len(y), np.int8) if few else np.empty(len(y), np.int32)
    for part in slices(len(y)):
        codes[part] = np.minimum(np.searchsorted(classes, y[part]), len(classes) - 1)
    return codes


@dataclass(frozen=True)
class Coder:
    """The classes, and the weight that every row of a class is given, if any."""

    classes: Labels
    factors: Array | None = None

    def __call__(self, y: Labels, weight: Array | None) -> tuple[Codes, Array | None]:
        """Codes and weights of some rows."""
        codes = codes_of(self.classes, y)
        strange = np.flatnonzero(self.classes[codes] != y)
        if len(strange):
            raise ValueError(
                f"the label {y[strange[:1]].tolist()[0]!r} was not there when the labels were read first; "
                "the data have changed since"
            )
        if self.factors is None:
            return codes, weight
        return codes, self.factors[codes] * (1.0 if weight is None else weight)


@dataclass
class LabelCounts:
    """Which labels there are, how many rows each has, and how much these weigh; adds up."""

    labels: Labels
    counts: Array
    weights: Array

    @classmethod
    def of(cls, y: Labels, weight: Array | None) -> LabelCounts:
        """Those of some rows."""
        labels = np.unique(y)
        codes = codes_of(labels, y) if len(labels) else np.zeros(0, np.int8)
        counts = np.bincount(codes, minlength=len(labels)).astype(np.float64)
        weights = counts.copy() if weight is None else np.bincount(codes, weight, len(labels)).astype(np.float64)
        return cls(labels, counts, weights)

    def __iadd__(self, other: Self) -> Self:
        both = [part.labels for part in (self, other) if len(part.labels)]  # no rows, no type of labels
        labels = np.unique(np.concatenate(both)) if both else self.labels
        counts, weights = np.zeros(len(labels)), np.zeros(len(labels))
        for part in (self, other):
            place = np.searchsorted(labels, part.labels) if len(part.labels) else np.zeros(0, np.intp)
            counts[place] += part.counts
            weights[place] += part.weights
        self.labels, self.counts, self.weights = labels, counts, weights
        return self
