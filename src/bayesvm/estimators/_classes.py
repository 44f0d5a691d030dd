"""Estimators: the classes of rows that lie elsewhere, from counts of their labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from bayesvm.data.labels import Coder, LabelCounts

MOST_CLASSES = 1_000  # beyond that a column of labels is taken for a mistake


def require_few_classes(counts: LabelCounts, target: str, remedy: str) -> None:
    """No more labels than can be meant as classes; for tables while they are read, since all might not fit."""
    if len(counts.labels) > MOST_CLASSES:
        raise ValueError(
            f"{target} has more than {MOST_CLASSES:,} different labels within {counts.counts.sum():,.0f} rows; "
            f"is it an identifier? {remedy}"
        )


def coder_for(estimator: Any, counts: LabelCounts) -> tuple[Coder, np.ndarray]:
    """How labels are coded and rows of a class weighted, and the weight of every class."""
    require_few_classes(counts, "y", "Give the column of classes as y")
    labels, weights = counts.labels, counts.weights
    check_classification_targets(np.repeat(labels, 2))  # labels that are all distinct would look like numbers
    if len(labels) == 1:
        raise ValueError(
            f"{type(estimator).__name__} needs two classes in y, but all {counts.counts.sum():.0f} rows have one "
            f"class: {labels.tolist()[0]!r}"
        )
    if not weights.any():
        raise ValueError("all sample weights are zero; some must be positive")
    factors = _factors(estimator.class_weight, counts) if weights.all() else None
    totals = weights if factors is None else factors * weights
    if not totals.all():
        raise ValueError(f"all rows of class {labels[totals.argmin()]!r} have zero weight; leave them out of y instead")
    return Coder(labels, factors), totals


def _factors(class_weight: Any, counts: LabelCounts) -> np.ndarray | None:
    """What the rows of each class weigh, beside their own weights."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):  # "balanced" means balanced as weighted
        return counts.weights.sum() / (len(counts.labels) * counts.weights)
    return compute_class_weight(class_weight, classes=counts.labels, y=counts.labels)
