"""Estimators: predictions of a fitted regressor for rows with known targets, including the rows left out."""

from __future__ import annotations

import numpy as np

from bayesvm.core.heads import Regression
from bayesvm.estimators._predicting import Parts
from bayesvm.inference.fitted import Fitted


def number_head(fitted: Fitted) -> Regression:
    """The head of a regression model."""
    if not isinstance(fitted.head, Regression):
        raise TypeError(f"{type(fitted.head).__name__} is not for regression")
    return fitted.head


def _left_out_residuals(fitted: Fitted) -> np.ndarray:
    head = number_head(fitted)
    return head.centre + head.spread * fitted.left_out_y - head.mean(fitted.left_out_moments)


def left_out_predictions(fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
    """Predicted means and standard deviations of the rows left out."""
    head, parts = number_head(fitted), fitted.left_out_moments
    return head.mean(parts), np.sqrt(head.variances(parts)["total"])


def left_out_rmse(fitted: Fitted) -> float:
    """Root mean squared error of the rows left out."""
    return float(np.sqrt(np.average(_left_out_residuals(fitted) ** 2, weights=fitted.left_out_weight)))


def left_out_checks(fitted: Fitted) -> dict[str, np.ndarray]:
    """The result of ``predictive_checks`` for the rows left out, each predicted without itself, and their targets."""
    head = number_head(fitted)
    y = head.centre + head.spread * fitted.left_out_y
    return {"y": y} | checks_of(fitted, fitted.left_out_moments, y)


def checks_of(fitted: Fitted, parts: Parts, y: np.ndarray) -> dict[str, np.ndarray]:
    """The result of ``predictive_checks`` for given moments and targets."""
    head = number_head(fitted)
    variances = head.variances(parts)
    return {
        "mean": head.mean(parts),
        "std": np.sqrt(variances["total"]),
        "epistemic": variances["epistemic"],
        "log_density": head.log_densities(parts, y),
        "below": fitted.calibrated_shares.inverse(head.distribution(parts, y).clip(0, 1)),
    }
