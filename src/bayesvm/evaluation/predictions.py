"""Evaluation: what was predicted, and what was true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bayesvm.evaluation.rows import Floats, RowPredictions, checked_columns

Numbers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

SUM_TOLERANCE = 1e-3  # by which probabilities may miss a sum of one: some come from files with few digits


@dataclass(frozen=True, eq=False)
class Predictions(RowPredictions):
    """Probabilities for rows whose classes are known; ``of`` makes them from labels, and checks them.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        Labels, sorted.
    y : array of shape (n_rows,)
        Number of each row's true class among the classes.
    proba : array of shape (n_rows, n_classes)
        Stated probabilities.
    weight : array of shape (n_rows,) or None
        A row of weight zero does not count.
    aleatoric, epistemic : array of shape (n_rows,) or None
        In nats, as ``predict_uncertainty`` gives them.

    See Also
    --------
    metrics : How good they are.
    reliability : Whether things happen as often as stated.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, metrics
    >>> said = Predictions.of(["no", "yes"], ["yes", "no"], [[0.2, 0.8], [0.6, 0.4]])  # classes_, y, predict_proba(X)
    >>> metrics(said, n_bootstrap=0)["error"].value
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
        """Predictions for rows with these labels, checked.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            Labels, sorted, as ``classes_`` of a classifier.
        labels : array-like of shape (n_rows,)
            The true ones.
        proba : array-like of shape (n_rows, n_classes)
            A column for each class, in their order, as ``predict_proba`` gives them.
        weight : array-like of shape (n_rows,) or None
            Of the rows; None for ones.
        aleatoric, epistemic : array-like of shape (n_rows,) or None
            In nats, as ``predict_uncertainty`` gives them.

        Returns
        -------
        Predictions
            With numbers in the place of labels.

        Raises
        ------
        ValueError
            If there are no rows, lengths differ, a label is none of the classes, or a number cannot be what it claims.
        """
        classes, labels, proba = np.asarray(classes), np.asarray(labels), np.asarray(proba, np.float64)
        _require_classes(classes)
        if labels.ndim != 1 or proba.shape != (len(labels), len(classes)):
            raise ValueError(
                f"{len(classes)} classes and labels of shape {labels.shape} need probabilities of shape "
                f"(rows, {len(classes)}); got {proba.shape}"
            )
        if not len(labels):
            raise ValueError("there are no rows to judge predictions by")
        given = {"weight": weight, "aleatoric": aleatoric, "epistemic": epistemic}
        checked = checked_columns(given, len(labels))
        return cls(classes, class_numbers(classes, labels), _probabilities(proba), **checked)

    @property
    def positive(self) -> Floats:
        """The probability of the second class, of two."""
        if len(self.classes) != 2:
            raise ValueError(f"only of two classes one is the positive one; there are {len(self.classes)}")
        return self.proba[:, 1]

    @property
    def predicted(self) -> Numbers:
        """The number of the most probable class; of equally probable ones, the first."""
        number: Numbers = self.proba.argmax(axis=1)
        return number

    @property
    def correct(self) -> Flags:
        """Whether the most probable class is the true one."""
        is_true: Flags = self.predicted == self.y
        return is_true

    @property
    def doubt(self) -> Floats:
        """The stated probability that the most probable class is not the true one."""
        doubt: Floats = 1 - self.proba.max(axis=1)
        return doubt


def _require_classes(classes: npt.NDArray[Any]) -> None:
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(f"at least two classes are needed; got {classes.tolist()!r}")
    if not np.all(classes[:-1] < classes[1:]):
        raise ValueError(
            f"classes must be sorted and differ, as classes_ of a classifier are; got {classes.tolist()!r}"
        )


def class_numbers(classes: npt.NDArray[Any], labels: Any) -> Numbers:
    """The number of each label among the classes."""
    labels = np.asarray(labels)
    number = {label: k for k, label in enumerate(classes.tolist())}
    numbers = np.fromiter((number.get(label, -1) for label in labels.tolist()), np.intp, len(labels))
    strange = np.flatnonzero(numbers < 0)
    if len(strange):
        names = list(dict.fromkeys(map(repr, labels[strange].tolist())))
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise ValueError(
            f"{len(strange)} rows, the first of them row {strange[0]}, have labels that are not among the classes "
            f"{classes.tolist()!r}: {shown}"
        )
    return numbers


def _probabilities(proba: Floats) -> Floats:
    # A NaN is not within anything.
    broken = ~(
        ((proba >= -SUM_TOLERANCE) & (proba <= 1 + SUM_TOLERANCE)).all(axis=1)
        & (abs(proba.sum(axis=1) - 1) <= SUM_TOLERANCE)
    )
    if broken.any():
        row = int(np.argmax(broken))
        raise ValueError(
            f"{broken.sum()} rows of proba are no probabilities that add up to one; the first is row {row}: "
            f"{proba[row].tolist()}"
        )
    return np.clip(proba, 0.0, 1.0)
