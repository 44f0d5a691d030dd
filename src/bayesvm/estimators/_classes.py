"""Estimators: which labels are classes; those of rows that lie elsewhere, from counts of their labels."""

from __future__ import annotations

import warnings
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from bayesvm.data.labels import Coder, LabelCounts

MOST_CLASSES = 500
MOST_NUMBERS = 200  # that are taken for names of classes,
ROWS_OF_A_NUMBER = 5  # if they have so many rows each, on average
ROWS_OF_A_CLASS = 2
FEW_CLASSES = 20  # that few rows may well have
COSTLY_CLASSES = 50  # from where on a fit says what it is about to do


def require_few_classes(labels: np.ndarray, n_rows: int, target: str) -> None:
    """Require labels without fractions, few enough to be classes."""
    check_classification_targets(np.repeat(labels, 2))  # labels that are all distinct would look like numbers
    numbers = _are_numbers(labels)
    if len(labels) > (MOST_NUMBERS if numbers else MOST_CLASSES):
        raise ValueError(_too_many(labels, n_rows, target, numbers=numbers))


def require_classes(labels: np.ndarray, n_rows: int, target: str) -> None:
    """The different labels of all rows are classes, neither a quantity nor an identifier."""
    require_few_classes(labels, n_rows, target)
    numbers = _are_numbers(labels)
    if len(labels) > FEW_CLASSES and n_rows < len(labels) * (ROWS_OF_A_NUMBER if numbers else ROWS_OF_A_CLASS):
        raise ValueError(_too_many(labels, n_rows, target, numbers=numbers))


def _are_numbers(labels: np.ndarray) -> bool:
    return len(labels) > 0 and isinstance(labels.tolist()[0], Number)


def _too_many(labels: np.ndarray, n_rows: int, target: str, *, numbers: bool) -> str:
    if numbers:
        return (
            f"{target} has {len(labels):,} different numbers in {n_rows:,} rows, like a quantity. bayesvm is a "
            f"classifier: bin the target (above and below a limit, for example). Up to {MOST_NUMBERS} numbers with "
            f"{ROWS_OF_A_NUMBER} rows each are taken for classes; if more are meant, give them as text: "
            "y.astype(str), a column of text, or --categories on the command line"
        )
    return (
        f"{target} has {len(labels):,} different labels in {n_rows:,} rows: is it an identifier? Up to {MOST_CLASSES} "
        f"classes with {ROWS_OF_A_CLASS} rows each are learned; give the column of classes, or merge rare ones"
    )


def warn_if_costly(n_classes: int, n_rows: int) -> None:
    """Say so before a fit that takes long because of its many classes."""
    if n_classes > COSTLY_CLASSES:
        warnings.warn(
            f"{n_classes} classes: as many models are trained, each class against the rest, over {n_rows:,} rows; "
            "that takes about as many times as long as two classes. Merge rare classes if that is too long",
            UserWarning,
            stacklevel=4,
        )


def coder_for(estimator: Any, counts: LabelCounts) -> tuple[Coder, np.ndarray]:
    """How labels are coded and rows of a class weighted, and the weight of every class."""
    labels, weights = counts.labels, counts.weights
    require_classes(labels, int(counts.counts.sum()), "y")
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
