"""Inference: where the inducing points lie. The one room below the estimators that uses scikit-learn's clustering."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from bayesvm.core.linalg import Array
from bayesvm.data.blocks import BlockSource

SAMPLE_ROWS = 4_000  # k-means sees at most this many rows, or
SAMPLE_ROWS_PER_POINT = 8  # this many per inducing point, whichever is more


def select(source: BlockSource, how: str, n_points: int, rng: np.random.Generator) -> Array:
    """``n_points`` inducing points from a bounded random sample; fewer if the sample has fewer distinct rows.

    Repeated rows are merged first and counted by weight, so that a weight of two and a row given twice
    lead to the same points.
    """
    limit = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_POINT * n_points)
    sample = source.subset(limit, rng) if source.n_rows > limit else source
    rows, weight = _distinct(sample)
    if n_points >= len(rows):
        return rows
    if how == "random":
        return rows[rng.choice(len(rows), n_points, replace=False)]
    return _kmeans(rows, weight, n_points, int(rng.integers(2**31)))


def every_row(source: BlockSource) -> Array:
    """All distinct rows: the paper's full batch model."""
    return _distinct(source)[0]


def _distinct(source: BlockSource) -> tuple[Array, Array]:
    block = source.gathered()
    rows, which = np.unique(np.asarray(block.X, np.float64), axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), block.weight, minlength=len(rows)).astype(np.float64)
    return rows, weight


def _kmeans(rows: Array, weight: Array, n_points: int, seed: int) -> Array:
    # One thread: scikit-learn adds up partial sums in the order in which its threads finish.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct clusters than asked: handled below
        # Few iterations: points need to cover the data, not to be the best clustering.
        found = KMeans(n_points, n_init=1, max_iter=5, random_state=seed).fit(rows, sample_weight=weight)
    return np.unique(np.asarray(found.cluster_centers_, np.float64), axis=0)
