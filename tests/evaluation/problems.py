"""Predictions for the tests of this package."""

import numpy as np

from bayesvm.evaluation import Predictions


def calibrated(n, n_classes=2, *, seed=0, sharpness=1.0, **more):
    """Labels drawn from probabilities; predicted are those probabilities to the power of ``sharpness``, normalised."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(n_classes, 0.7), n)
    y = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, n_classes - 1)
    predicted = true**sharpness
    return Predictions.of(np.arange(n_classes), y, predicted / predicted.sum(axis=1, keepdims=True), **more)


def weights(n, seed=1):
    """Weights, some of which are zero."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, n) * rng.uniform(0.5, 1.5, n)


def tied(predictions):
    """The same with few distinct probabilities."""
    P = np.round(predictions.proba, 1) + 1e-3
    P /= P.sum(axis=1, keepdims=True)
    return Predictions.of(predictions.classes, predictions.y, P, weight=predictions.weight)
