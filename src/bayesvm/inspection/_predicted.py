"""Inspection: displays of predictions for rows with known classes, from any classifier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesvm.evaluation import Predictions
from bayesvm.inspection._display import Display
from bayesvm.inspection._pipelines import ModelInPipeline


class PredictionDisplay(Display, ABC):
    """A plot of predictions from an estimator, from probabilities, or from ``evaluation.Predictions``."""

    _of_uncertainty: ClassVar[bool] = False  # whether the plot needs ``predict_uncertainty``

    @classmethod
    @abstractmethod
    def of(cls, predictions: Predictions, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw predictions."""

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the predictions of a fitted classifier for rows with known labels.

        Parameters
        ----------
        estimator : fitted classifier or pipeline
            A classifier with ``predict_proba``.
        X : array, data frame or sparse matrix
            Rows.
        y : array-like of shape (n_rows,)
            True labels.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of the rows.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``of``.

        Returns
        -------
        display
            The display, with the plotted data.
        """
        check_is_fitted(estimator)
        split = {}
        if cls._of_uncertainty:
            fitted = ModelInPipeline.of(estimator)
            found = fitted.model.predict_uncertainty(fitted.prepared(X))
            split = {name: found[name] for name in ("aleatoric", "epistemic")}
        proba = estimator.predict_proba(X)
        return cls.of(Predictions.of(estimator.classes_, y, proba, weight=sample_weight, **split), ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        aleatoric: Any = None,
        epistemic: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw given probabilities and true labels.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            True labels.
        proba : array-like of shape (n_rows, n_classes) or (n_rows,)
            Probabilities of all classes, or of the second of two classes.
        classes : array-like of shape (n_classes,) or None
            Labels of the columns, sorted; by default the distinct values of ``y_true``.
        sample_weight : array-like of shape (n_rows,) or None
            Weights of the rows.
        aleatoric, epistemic : array-like of shape (n_rows,) or None
            Parts of the uncertainty from ``predict_uncertainty``, for plots that show them.
        ax : matplotlib axes, optional
            Axes to draw on; by default a new figure.
        **kwargs : dict
            Passed to ``of``.

        Returns
        -------
        display
            The display, with the plotted data.
        """
        split = {"aleatoric": aleatoric, "epistemic": epistemic}
        predictions = Predictions.of(*labelled(y_true, proba, classes), weight=sample_weight, **split)
        return cls.of(predictions, ax=ax, **kwargs)


def labelled(y_true: Any, proba: Any, classes: Any) -> tuple[Any, Any, Any]:
    """Classes, labels, and probabilities with one column per class."""
    labels, proba = np.asarray(y_true), np.asarray(proba, np.float64)
    columns = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    names = np.unique(labels) if classes is None else np.asarray(classes)
    if classes is None and columns.ndim == 2 and columns.shape[1] != len(names):
        raise ValueError(
            f"proba has {columns.shape[1]} classes, but y_true has {len(names)}: {names.tolist()}; pass the labels of "
            "all columns as classes"
        )
    return names, labels, columns


def against_the_rest(predictions: Predictions, pos_label: Any) -> Predictions:
    """One class against the rest, as the two classes False and True."""
    labels = predictions.classes.tolist()
    if pos_label not in labels:
        raise ValueError(f"pos_label {pos_label!r} is not a class; the classes are {labels}")
    number = labels.index(pos_label)
    p = predictions.proba[:, number]
    y, proba = (predictions.y == number).astype(np.intp), np.column_stack([1 - p, p])
    return replace(predictions, classes=np.array([False, True]), y=y, proba=proba)
