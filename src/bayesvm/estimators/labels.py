"""Estimators: labels of any type encoded as class indices, and counts of the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import Array
from bayesvm.data.blocks import slices
from bayesvm.data.targets import Targets

Codes = npt.NDArray[np.int8] | npt.NDArray[np.int32]


def codes_of(classes: Targets, y: Targets) -> Codes:
    """The index of each label among the sorted classes, in few bytes; unknown labels get a neighbouring index."""
    few = len(classes) <= np.iinfo(np.int8).max
    codes: Codes = np.empty(len(y), np.int8) if few else np.empty(len(y), np.int32)
    for part in slices(len(y)):
        codes[part] = np.minimum(np.searchsorted(classes, y[part]), len(classes) - 1)
    return codes


SEPARATOR = "|"  # of the classes of a set, in files


def written_labels(classes: Targets) -> list[str]:
    """The classes as they are written in a set."""
    names = list(map(str, classes.tolist()))
    for name in names:
        if SEPARATOR in name:
            raise ValueError(
                f"the class {name!r} has a {SEPARATOR!r} in its name, which separates the classes of a set in files; "
                "rename it before training, or use predict_set in Python"
            )
    return names


def written_sets(sets: npt.NDArray[np.bool_], names: list[str]) -> npt.NDArray[np.str_]:
    """The classes of each set, with ``SEPARATOR`` between them; nothing of an empty set."""
    which, place = np.unique(sets, axis=0, return_inverse=True)  # far fewer than rows
    texts = [SEPARATOR.join(name for name, inside in zip(names, each, strict=True) if inside) for each in which]
    return np.array(texts, str)[place.ravel()]


@dataclass(frozen=True)
class ClassEncoder:
    """The classes and, optionally, a weight factor per class; a ``TargetEncoder``."""

    classes: Targets
    factors: Array | None = None

    def __call__(self, y: Targets, weight: Array | None) -> tuple[Codes, Array | None]:
        """Encode the labels and weights of some rows."""
        codes = codes_of(self.classes, y)
        for part in slices(len(y)):
            strange = np.flatnonzero(self.classes[codes[part]] != y[part])
            if len(strange):
                raise ValueError(
                    f"the label {y[part][strange[:1]].tolist()[0]!r} was not in the data when the labels were first "
                    "read; the data have changed since: fit again"
                )
        if self.factors is None:
            return codes, weight
        return codes, self.factors[codes] * (1.0 if weight is None else weight)


@dataclass
class LabelCounts:
    """The distinct labels, with the number and the total weight of their rows; can be added."""

    labels: Targets
    counts: Array
    weights: Array

    @classmethod
    def of(cls, y: Targets, weight: Array | None, labels: Targets | None = None) -> LabelCounts:
        """The counts of some rows; ``labels``, if given, are all possible labels, sorted."""
        if labels is None:
            try:
                labels = np.unique(y)
            except TypeError as error:  # labels of several types have no order
                kinds = ", ".join(sorted({type(label).__name__ for label in y.flat}))
                raise ValueError(
                    f"Unknown label type: the labels cannot be sorted, because they are of type {kinds}; convert them "
                    "to text: y.astype(str)"
                ) from error
        codes, size = codes_of(labels, y), len(labels)
        counts, weights = np.zeros(size), np.zeros(size)
        for part in slices(len(y)):
            counts += np.bincount(codes[part], minlength=size)
            weights += np.bincount(codes[part], None if weight is None else weight[part], size)
        return cls(labels, counts, weights)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    def __iadd__(self, other: Self) -> Self:
        both = [part.labels for part in (self, other) if len(part.labels)]  # without rows, labels have no type
        labels = np.unique(np.concatenate(both)) if both else self.labels
        counts, weights = np.zeros(len(labels)), np.zeros(len(labels))
        for part in (self, other):
            if len(part.labels):
                place = np.searchsorted(labels, part.labels)
                counts[place] += part.counts
                weights[place] += part.weights
        self.labels, self.counts, self.weights = labels, counts, weights
        return self
