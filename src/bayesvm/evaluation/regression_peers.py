"""Evaluation: other regressors on the same rows. The package does not import it, because it loads many modules."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from bayesvm.evaluation.peers import ENOUGH_TO_STOP_EARLY, N_FOLDS, Outcome, Peer, chosen_rows, filled_and_scaled
from bayesvm.evaluation.regression_predictions import RegressionPredictions

LEAST_DEVIATION = 1e-9  # minimum standard deviation of residuals, relative to that of y, since a density needs one


def evaluate_regression_peer(
    peer: Peer,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    n_points: int = 0,
    seed: int,
    weight: Any = None,
    weight_test: Any = None,
) -> Outcome:
    """Train a regressor and predict the test rows; ``PEERS`` is a dict of the regressors by name.

    Since they predict no distribution, each gets a normal distribution with the same standard deviation for all rows:
    that of its residuals in five-fold cross-validation on the training rows.

    Parameters
    ----------
    peer : Peer
        The regressor to train.
    X : array-like of shape (n_rows, n_features)
        Training rows.
    y : array-like of shape (n_rows,)
        Their targets.
    X_test : array-like of shape (n_test, n_features)
        Rows to predict.
    y_test : array-like of shape (n_test,)
        Their targets.
    n_points : int
        Ignored; for compatibility with ``bayesvm.evaluation.peers.evaluate_peer``.
    seed : int
        Controls the choice of rows, the folds and the randomness of the regressor.
    weight : array-like of shape (n_rows,) or None
        Weights of the training rows.
    weight_test : array-like of shape (n_test,) or None
        Weights of the test rows.

    Returns
    -------
    Outcome
        The predictions, and the cost of training.

    See Also
    --------
    bayesvm.evaluation.metrics : Compute metrics of the predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm.evaluation import metrics
    >>> from bayesvm.evaluation.regression_peers import PEERS, evaluate_regression_peer
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X.sum(axis=1)
    >>> found = evaluate_regression_peer(PEERS["linear regression"], X[:100], y[:100], X[100:], y[100:], seed=0)
    >>> metrics(found.predictions, n_bootstrap=0)["rmse"].value < 1e-9
    True
    """
    X, y = np.asarray(X), np.asarray(y, np.float64)
    if len(y) < N_FOLDS:
        raise ValueError(f"{peer.name} needs at least {N_FOLDS} rows; there are {len(y)}")
    weights = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    rows = chosen_rows(np.zeros(len(y), np.intp), peer.most_rows, seed)
    X, y, weights = X[rows], y[rows], weights[rows]
    unfitted = peer.factory(X.shape[1], n_points, seed, n_rows=len(rows))

    def fitted(train: Any) -> Pipeline:
        return clone(unfitted).fit(X[train], y[train], regressor__sample_weight=weights[train])

    start = time.perf_counter()
    regressor = fitted(slice(None))
    squares = np.empty(len(y))
    for train, left in KFold(N_FOLDS, shuffle=True, random_state=seed).split(X):
        squares[left] = (y[left] - fitted(train).predict(X[left])) ** 2
    seconds = time.perf_counter() - start
    spread = np.sqrt(np.cov(y, aweights=weights))
    deviation = max(float(np.sqrt(np.average(squares, weights=weights))), LEAST_DEVIATION * float(spread))
    mean = regressor.predict(np.asarray(X_test))
    said = RegressionPredictions.of(y_test, mean, np.full(len(mean), deviation), weight=weight_test)
    return Outcome(said, seconds, len(rows))


def _filled_and_scaled(regressor: Callable[[], Any]) -> Callable[..., Pipeline]:
    def factory(n_features: int, n_points: int, seed: int, n_rows: int | None = None) -> Pipeline:  # noqa: ARG001
        return Pipeline([*filled_and_scaled(), ("regressor", regressor())])

    return factory


def _boosting(n_features: int, n_points: int, seed: int, n_rows: int | None = None) -> Pipeline:  # noqa: ARG001
    if n_rows is None or n_rows > ENOUGH_TO_STOP_EARLY:
        boosting = HistGradientBoostingRegressor(max_iter=1000, early_stopping=True, random_state=seed)
    else:
        boosting = HistGradientBoostingRegressor(early_stopping=False, random_state=seed)
    return Pipeline([("regressor", boosting)])


def _svr() -> Any:
    """An SVR for a standardised target, which suits its values of C and ε."""
    return TransformedTargetRegressor(SVR(), transformer=StandardScaler())


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "SVR", _filled_and_scaled(_svr), most_rows=10_000
        ),  # its time grows with the square of the rows, or faster
        Peer("gradient boosting", _boosting),
        Peer("linear regression", _filled_and_scaled(LinearRegression)),
    )
}
# Common and fast to train: a report compares the model with these.
BASELINES = (PEERS["linear regression"], PEERS["gradient boosting"])
