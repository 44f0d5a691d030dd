"""Evaluation: predicted probabilities and true classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bayesvm.evaluation.rows import Floats, RowPredictions, checked_columns

Numbers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

SUM_TOLERANCE = 1e-3  # tolerance of the sum of probabilities, which may come from files with few digits


@dataclass(frozen=True, eq=False)
class Predictions(RowPredictions):
    """Predicted probabilities for rows with known classes; ``of`` creates them from labels and checks them.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        Labels, sorted.
    y : array of shape (n_rows,)
        Index of the true class of each row.
    proba : array of shape (n_rows, n_classes)
        Predicted probabilities.
    weight : array of shape (n_rows,), optional
        Weights of the rows; rows of weight zero are ignored.
    aleatoric, epistemic : array of shape (n_rows,), optional
        Parts of the uncertainty in nats, from ``predict_uncertainty``.

    See Also
    --------
    metrics : Compute metrics of predictions.
    reliability : Compare predicted probabilities with observed frequencies.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, metrics
    >>> predicted = Predictions.of(["no", "yes"], ["yes", "no"], [[0.2, 0.8], [0.6, 0.4]])  # classes, y, probabilities
    >>> metrics(predicted, n_bootstrap=0)["error"].value
    0.0
    """

    _of_all_rows: ClassVar[tuple[str, ...]] = ("classes",)

    classes: npt.NDArray[Any]
    y: Numbers
    proba: Floats
    weight: Floats | None = None
    aleatoric: Floats | None = None
    epistemic: Floats | None = None

    @classmethod
    def of(
        cls,
        classes: Any,
        labels: Any,
        proba: Any,
        *,
        weight: Any = None,
        aleatoric: Any = None,
        epistemic: Any = None,
    ) -> Self:
        """Create predictions from labels, and check them.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            Labels, sorted, as ``classes_`` of a classifier.
        labels : array-like of shape (n_rows,)
            True labels.
        proba : array-like of shape (n_rows, n_classes)
            Probabilities from ``predict_proba``, a column per class in the order of ``classes``.
        weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        aleatoric, epistemic : array-like of shape (n_rows,), optional
            Parts of the uncertainty in nats, from ``predict_uncertainty``.

        Returns
        -------
        Predictions
            The checked predictions, with labels encoded as indices.

        Raises
        ------
        ValueError
            If there are no rows, lengths differ, a label is not among the classes, or a number is out of range.
        """
        classes, labels, proba = np.asarray(classes), np.asarray(labels), np.asarray(proba, np.float64)
        _require_classes(classes)
        if labels.ndim != 1 or proba.shape != (len(labels), len(classes)):
            raise ValueError(
                f"{len(classes)} classes and labels of shape {labels.shape} need probabilities of shape "
                f"(rows, {len(classes)}); got {proba.shape}"
            )
        if not len(labels):
            raise ValueError("there are no rows to evaluate")
        given = {"weight": weight, "aleatoric": aleatoric, "epistemic": epistemic}
        checked = checked_columns(given, len(labels))
        return cls(classes, class_numbers(classes, labels), _probabilities(proba), **checked)

    @property
    def positive(self) -> Floats:
        """The probability of the second of two classes."""
        if len(self.classes) != 2:
            raise ValueError(f"a positive class needs two classes; there are {len(self.classes)}")
        return self.proba[:, 1]

    @property
    def predicted(self) -> Numbers:
        """The index of the most probable class, the first one if several are equally probable."""
        number: Numbers = self.proba.argmax(axis=1)
        return number

    @property
    def correct(self) -> Flags:
        """Whether the most probable class is the true class."""
        is_true: Flags = self.predicted == self.y
        return is_true

    @property
    def doubt(self) -> Floats:
        """The predicted probability that the most probable class is not the true class."""
        doubt: Floats = 1 - self.proba.max(axis=1)
        return doubt


def _require_classes(classes: npt.NDArray[Any]) -> None:
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(f"at least two classes are needed; got {classes.tolist()!r}")
    if not np.all(classes[:-1] < classes[1:]):
        raise ValueError(
            f"classes must be sorted and distinct, like classes_ of a classifier; got {classes.tolist()!r}"
        )


def class_numbers(classes: npt.NDArray[Any], labels: Any) -> Numbers:
    """The index of each label among the classes."""
    labels = np.asarray(labels)
    number = {label: k for k, label in enumerate(classes.tolist())}
    numbers = np.fromiter((number.get(label, -1) for label in labels.tolist()), np.intp, len(labels))
    strange = np.flatnonzero(numbers < 0)
    if len(strange):
        names = list(dict.fromkeys(map(repr, labels[strange].tolist())))
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise ValueError(
            f"{len(strange)} rows (first: row {strange[0]}) have labels that are not among the classes "
            f"{classes.tolist()!r}: {shown}"
        )
    return numbers


def _probabilities(proba: Floats) -> Floats:
    # NaN fails all comparisons.
    broken = ~(
        ((proba >= -SUM_TOLERANCE) & (proba <= 1 + SUM_TOLERANCE)).all(axis=1)
        & (abs(proba.sum(axis=1) - 1) <= SUM_TOLERANCE)
    )
    if broken.any():
        row = int(np.argmax(broken))
        raise ValueError(
            f"{broken.sum()} rows of proba are not probabilities that add up to one (first: row {row}, "
            f"{proba[row].tolist()})"
        )
    return np.clip(proba, 0.0, 1.0)
