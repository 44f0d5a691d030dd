"""Evaluation: other classifiers on the same rows. The package does not import it, because it loads many modules."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesvm.evaluation.predictions import Numbers, Predictions

N_FOLDS = 5  # of the cross-validation that calibrates an SVC; a class needs at least as many rows
ENOUGH_TO_STOP_EARLY = 10_000  # rows, as in scikit-learn; with fewer, holding out a tenth costs accuracy


@dataclass(frozen=True)
class Peer:
    """Another classifier or regressor, to compare with.

    Parameters
    ----------
    name : str
        Name in tables.
    factory : callable
        ``factory(n_features, n_points, seed, n_rows=…)`` creates an unfitted pipeline whose last step is "classifier"
        or "regressor".
    most_rows : int or None
        Maximum number of training rows; None for no limit.

    See Also
    --------
    evaluate_peer : Train and evaluate a peer.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import Pipeline
    >>> from bayesvm.evaluation.peers import Peer
    >>> peer = Peer("naive Bayes", lambda *_, **__: Pipeline([("classifier", GaussianNB())]))
    """

    name: str
    factory: Callable[..., Pipeline]
    most_rows: int | None = None


class Outcome(NamedTuple):
    """The result of a peer.

    Parameters
    ----------
    predictions : Predictions or RegressionPredictions
        The predictions for the test rows.
    seconds : float
        Duration of the training.
    n_rows : int
        Number of training rows.

    See Also
    --------
    evaluate_peer : Train and evaluate a peer.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions
    >>> from bayesvm.evaluation.peers import Outcome
    >>> Outcome(Predictions.of([0, 1], [1], [[0.3, 0.7]]), seconds=0.1, n_rows=500).n_rows
    500
    """

    predictions: Any
    seconds: float
    n_rows: int


def evaluate_peer(
    peer: Peer,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    n_points: int,
    seed: int,
    weight: Any = None,
    weight_test: Any = None,
) -> Outcome:
    """Train a peer and predict the test rows.

    If there are more than ``most_rows`` rows, the peer is trained on a stratified random choice of them. A class of
    fewer than five rows is left out of the training, because it cannot be cross-validated; its predicted probability is
    its share of the rows. ``PEERS`` is a dict of the peers by name.

    Parameters
    ----------
    peer : Peer
        The peer to train.
    X : array-like of shape (n_rows, n_features)
        Training rows.
    y : array-like of shape (n_rows,)
        Their labels.
    X_test : array-like of shape (n_test, n_features)
        Rows to predict.
    y_test : array-like of shape (n_test,)
        Their labels.
    n_points : int
        Number of features of the Nystroem approximation, usually the number of inducing points.
    seed : int
        Controls the choice of rows and the randomness of the peer.
    weight : array-like of shape (n_rows,), optional
        Weights of the training rows.
    weight_test : array-like of shape (n_test,), optional
        Weights of the test rows.

    Returns
    -------
    Outcome
        The predictions, and the cost of training.

    Raises
    ------
    ValueError
        If fewer than two classes have at least five rows.

    See Also
    --------
    bayesvm.evaluation.metrics : Compute metrics of the predictions.

    Examples
    --------
    >>> from bayesvm.datasets import twonorm
    >>> from bayesvm.evaluation import metrics
    >>> from bayesvm.evaluation.peers import PEERS, evaluate_peer
    >>> train, test = twonorm(200, random_state=0), twonorm(200, random_state=1)
    >>> found = evaluate_peer(PEERS["SVC + Platt"], train.X, train.y, test.X, test.y, n_points=50, seed=0)
    >>> metrics(found.predictions, n_bootstrap=0)["error"].value < 0.1
    True
    """
    X, y = np.asarray(X), np.asarray(y)
    weight = None if weight is None else np.asarray(weight, np.float64)
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    learnable = counts >= N_FOLDS
    if learnable.sum() < 2:
        raise ValueError(
            f"{peer.name} needs two classes of at least {N_FOLDS} rows; "
            f"there are {dict(zip(classes.tolist(), counts.tolist(), strict=True))}"
        )
    rows = chosen_rows(np.where(learnable[codes], codes, -1), peer.most_rows, seed)
    classifier = peer.factory(X.shape[1], n_points, seed, n_rows=len(rows))
    how = {} if weight is None else {"classifier__sample_weight": weight[rows]}
    start = time.perf_counter()
    classifier.fit(X[rows], codes[rows], **how)
    seconds = time.perf_counter() - start
    shares = np.bincount(codes, weight) / (len(y) if weight is None else weight.sum())
    proba = np.tile(shares, (len(X_test), 1))
    proba[:, learnable] = shares[learnable].sum() * classifier.predict_proba(np.asarray(X_test))
    return Outcome(Predictions.of(classes, y_test, proba, weight=weight_test), seconds, len(rows))


def chosen_rows(codes: Numbers, most: int | None, seed: int) -> Numbers:
    """A stratified choice of rows with codes from 0 on, with at least as many rows of each code as there are folds."""
    available = np.flatnonzero(codes >= 0)
    if most is None or len(available) <= most:
        return available
    counts = np.bincount(codes[available])
    wanted = np.maximum(most * counts // len(available), np.minimum(counts, N_FOLDS))
    largest = np.argmax(counts)
    wanted[largest] = min(counts[largest], wanted[largest] + most - wanted.sum())
    rng = np.random.default_rng(seed)
    each = [rng.choice(np.flatnonzero(codes == k), size, replace=False) for k, size in enumerate(wanted)]
    return np.sort(np.concatenate(each))


def _svc(n_features: int, n_points: int, seed: int, n_rows: int | None = None) -> Pipeline:  # noqa: ARG001
    calibrated = CalibratedClassifierCV(SVC(), method="sigmoid", cv=N_FOLDS, ensemble=False)
    return Pipeline([("scale", StandardScaler()), ("classifier", calibrated)])


def _nystroem(n_features: int, n_points: int, seed: int, n_rows: int | None = None) -> Pipeline:
    n_components = n_points if n_rows is None else min(n_points, n_rows)
    features = Nystroem(gamma=1 / n_features, n_components=n_components, random_state=seed)
    # Features of length one need larger weights than C = 1 allows: the log loss on digits is 0.18 instead of 0.44.
    regression = LogisticRegression(C=10, max_iter=1000)
    return Pipeline([("scale", StandardScaler()), ("features", features), ("classifier", regression)])


def filled_and_scaled() -> list[tuple[str, Any]]:
    """First steps of a pipeline for rows with missing values."""
    return [
        ("fill", SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)),
        ("scale", StandardScaler()),
    ]


def _logistic_regression(n_features: int, n_points: int, seed: int, n_rows: int | None = None) -> Pipeline:  # noqa: ARG001
    return Pipeline([*filled_and_scaled(), ("classifier", LogisticRegression(max_iter=200))])


def _boosting(n_features: int, n_points: int, seed: int, n_rows: int | None = None) -> Pipeline:  # noqa: ARG001
    if n_rows is None or n_rows > ENOUGH_TO_STOP_EARLY:
        boosting = HistGradientBoostingClassifier(max_iter=1000, early_stopping=True, random_state=seed)
    else:
        boosting = HistGradientBoostingClassifier(early_stopping=False, random_state=seed)
    return Pipeline([("classifier", boosting)])


PEERS = {
    peer.name: peer
    for peer in (
        Peer("SVC + Platt", _svc, most_rows=10_000),  # its time grows at least with the square of the number of rows
        Peer("Nystroem + logistic regression", _nystroem),
        Peer("gradient boosting", _boosting),
    )
}
# Common and fast to train: a report compares the model with these.
BASELINES = (Peer("logistic regression", _logistic_regression), PEERS["gradient boosting"])
