"""Estimators: checks of class labels, and class weights, from counts of labels."""

from __future__ import annotations

from numbers import Number, Real
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from bayesvm.data.checks import Locate
from bayesvm.estimators._targets import TargetKind
from bayesvm.estimators.columns import missing_targets
from bayesvm.estimators.labels import ClassEncoder, LabelCounts
from bayesvm.warn import warn_user

MOST_CLASSES = 500
MOST_NUMBERS = 200  # numeric labels that are accepted as classes,
ROWS_OF_A_NUMBER = 5  # with at least this many rows each, on average
ROWS_OF_A_CLASS = 2
FEW_CLASSES = 20  # always accepted, even with few rows
SPARSEST = 2  # steps between the least and the largest quantity, per distinct value
COSTLY_CLASSES = 50  # a fit with more warns about its cost


def require_few_classes(labels: np.ndarray, n_rows: int, target: str) -> None:
    """Require labels without fractions, and few enough of them to be classes."""
    require_no_fractions(labels, lambda _: "", target)
    check_classification_targets(np.repeat(labels, 2))  # distinct labels only would look like a continuous target
    if len(labels) > (MOST_NUMBERS if _are_numbers(labels) else MOST_CLASSES):
        raise ValueError(_too_many(labels, n_rows, target))


def require_classes(labels: np.ndarray, n_rows: int, target: str) -> None:
    """Require that the distinct labels of all rows are classes, not a regression target or an identifier."""
    require_few_classes(labels, n_rows, target)
    if _too_many_for(labels, n_rows):
        raise ValueError(_too_many(labels, n_rows, target))


def are_a_quantity(labels: np.ndarray, n_rows: int) -> bool:
    """Whether the distinct numeric labels of all rows are too many to be names of classes."""
    return len(labels) > MOST_NUMBERS or _too_many_for(labels, n_rows) or span_densely(labels)


def span_densely(labels: np.ndarray) -> bool:
    """Whether distinct labels are many whole numbers that fill a range, such as ages.

    Codes of classes usually start at 0 or 1 and have no gap.
    """
    if not _are_numbers(labels) or labels.dtype.kind == "b" or len(labels) <= FEW_CLASSES:
        return False
    numbers = np.sort(labels.astype(np.float64))
    steps = np.diff(numbers)
    if numbers[0] in {0, 1} and (steps == 1).all():
        return False
    if (numbers % 1).any():
        return False
    step = np.gcd.reduce(steps.astype(np.int64))
    return bool(np.ptp(numbers) <= SPARSEST * step * len(numbers))


def _too_many_for(labels: np.ndarray, n_rows: int) -> bool:
    rows_each = ROWS_OF_A_NUMBER if _are_numbers(labels) else ROWS_OF_A_CLASS
    return len(labels) > FEW_CLASSES and n_rows < len(labels) * rows_each


def _are_numbers(labels: np.ndarray) -> bool:
    return len(labels) > 0 and isinstance(labels.tolist()[0], Number)


def _too_many(labels: np.ndarray, n_rows: int, target: str) -> str:
    if _are_numbers(labels):
        return (
            f"{target} has {len(labels):,} distinct numeric values in {n_rows:,} rows; this looks like a regression "
            "target. Use BayesianSVR (--task regression) for regression; for classification, bin the target (above and "
            f"below a threshold, for example). Up to {MOST_NUMBERS} numeric values with {ROWS_OF_A_NUMBER} rows each "
            "are accepted as classes; if there are more, convert them to text: y.astype(str), a column of text, or "
            "--categories on the command line"
        )
    return (
        f"{target} has {len(labels):,} distinct labels in {n_rows:,} rows: is it an identifier? Up to {MOST_CLASSES} "
        f"classes with {ROWS_OF_A_CLASS} rows each are supported; choose another target column, or merge rare classes"
    )


def warn_if_costly(classes: np.ndarray, n_rows: int) -> None:
    """Warn before a fit whose many classes are probably a quantity, or take long."""
    is_quantity = span_densely(classes)
    if is_quantity:
        warn_user(
            f"y has {len(classes)} distinct whole numbers from {classes.min():g} to {classes.max():g}, and each "
            "becomes a class. If they are a quantity, use BayesianSVR (--task regression); if they are classes, "
            "convert them to text, which silences this warning"
        )
    if len(classes) > COSTLY_CLASSES:
        more = _are_numbers(classes) and not is_quantity
        hint = " If y is a regression target, use BayesianSVR (--task regression)" if more else ""
        warn_user(
            f"y has {len(classes)} classes: the fit trains one model per class, each class against the rest, over "
            f"{n_rows:,} rows; its time grows with the number of classes. Merge rare classes if it takes too long."
            f"{hint}",
        )


def count_labels(y: np.ndarray, weight: np.ndarray | None, locate: Locate, name: str = "y") -> LabelCounts:
    """Counts of the labels of a chunk of rows, in a first pass over the data.

    Numbers with a fraction are an error at once: they are not classes, and all distinct values of a large table may not
    fit into memory.
    """
    require_no_fractions(y, lambda row: f"{locate(row)}: ", name)
    return LabelCounts.of(y, weight)


def require_no_fractions(y: np.ndarray, locate: Locate, name: str) -> None:
    """Require labels that are no numbers with a fraction; scikit-learn's words for them are in the message."""
    if y.dtype.kind == "O" and all(isinstance(label, Real) for label in y.flat):
        y = y.astype(np.float64)
    if y.dtype.kind == "f" and (fractions := np.flatnonzero(np.isfinite(y) & (y != np.floor(y)))).size:
        row = int(fractions[0])
        raise ValueError(
            f"{locate(row)}{name} is {y.flat[row]:g} (Unknown label type: continuous). Labels must be classes, not "
            "numbers with a fraction: use BayesianSVR, or bin them, for example above and below a threshold"
        )


def _rows(n_rows: int) -> str:
    return "the only row has" if n_rows == 1 else f"all {n_rows} rows have"


def encoder_for(estimator: Any, counts: LabelCounts) -> tuple[ClassEncoder, np.ndarray]:
    """The encoder of the labels of a fit, with class weights, and the total weight of each class."""
    labels = counts.labels
    require_classes(labels, counts.n_rows, "y")
    if len(labels) == 1:
        raise ValueError(
            f"{type(estimator).__name__} needs two classes in y, but {_rows(counts.n_rows)} one class: "
            f"{labels.tolist()[0]!r}"
        )
    encoder, totals = weighting_encoder(estimator.class_weight, counts)
    if not totals.all():
        raise ValueError(f"all rows of class {labels[totals.argmin()]!r} have zero weight; drop these rows instead")
    return encoder, totals


def weighting_encoder(class_weight: Any, counts: LabelCounts) -> tuple[ClassEncoder, np.ndarray]:
    """The same for known classes; a part of a stream may not contain all of them."""
    labels, weights = counts.labels, counts.weights
    if not weights.any():
        raise ValueError("all sample weights are zero; some must be positive")
    if class_weight is None:
        return ClassEncoder(labels), weights
    if isinstance(class_weight, str):  # "balanced" takes sample weights into account
        there = weights > 0
        factors = np.divide(weights.sum(), len(labels) * weights, out=np.ones(len(labels)), where=there)
    else:
        factors = compute_class_weight(class_weight, classes=labels, y=labels)
        if not (factors * weights).any():
            raise ValueError("class_weight sets the weight of all rows to zero; some must be positive")
    return ClassEncoder(labels, factors), factors * weights


class Classes(TargetKind):
    """Labels of classes."""

    def require(self, y: Any) -> None:
        labels = np.asarray(y)
        if y is None or not labels.ndim:  # scikit-learn's errors say it
            return
        missing = np.ravel(missing_targets(y))
        if missing.any():
            more = int(missing.sum()) - 1
            also = f" (and in {more:,} other row{'s' * (more > 1)})" if more else ""
            raise ValueError(
                f"y, row {int(np.argmax(missing))}: the label is missing{also}. Fill the labels, or drop the rows "
                "without one"
            )
        require_no_fractions(labels, lambda row: f"row {row}: ", "y")

    def of(self, y: np.ndarray, weight: np.ndarray | None) -> LabelCounts:
        return LabelCounts.of(y, weight)

    def summarise(self, y: np.ndarray, weight: np.ndarray | None, locate: Locate, name: str = "y") -> LabelCounts:
        return count_labels(y, weight, locate, name)

    def require_part(self, found: LabelCounts, name: str) -> None:
        """Checked for each part: all distinct labels might not fit into memory."""
        require_few_classes(found.labels, found.n_rows, name)

    def require_all(self, found: LabelCounts, name: str) -> None:
        require_classes(found.labels, found.n_rows, name)

    def encoder(self, estimator: Any, found: LabelCounts) -> tuple[ClassEncoder, np.ndarray]:
        return encoder_for(estimator, found)


CLASSES = Classes()
