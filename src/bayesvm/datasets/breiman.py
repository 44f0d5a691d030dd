"""Datasets: Breiman's waveform, twonorm and ringnorm, each with its exact class probability.

The densities are known, and so are the best possible log loss, error and Brier score.
Breiman et al. 1984, *Classification and Regression Trees*; Breiman 1996, *Bias, variance and arcing
classifiers*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, logsumexp

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Rows, labels ±1, and P(y = +1) of each row."""

    X: Array
    y: npt.NDArray[np.int8]
    probability: Array


def waveform(n_rows: int, random_state: int | None = None) -> Problem:
    """Generate waveform: mixtures of two of three triangular waves at 21 points plus noise; class 1 against the rest.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    random_state : int or None
        Seed; use another seed for test rows.

    Returns
    -------
    Problem
        An object with ``X`` of shape (n_rows, 21), ``y`` (±1), and ``probability``, the true P(y = 1) of each row.

    See Also
    --------
    twonorm, ringnorm : Easier problems with normal distributions.
    people : A table with text and missing values.

    Examples
    --------
    >>> from bayesvm.datasets import waveform
    >>> waveform(1000, random_state=0).X.shape
    (1000, 21)
    """
    rng = np.random.default_rng(random_state)
    kind = rng.integers(0, 3, n_rows)
    share = rng.random((n_rows, 1))
    first, second = _WAVES[_PAIRS[kind, 0]], _WAVES[_PAIRS[kind, 1]]
    X = share * first + (1 - share) * second
    X += rng.standard_normal(X.shape)
    densities = np.stack([_log_segment_density(X, _WAVES[a], _WAVES[b]) for a, b in _PAIRS])
    probability = np.exp(densities[0] - logsumexp(densities, axis=0))
    return Problem(X, np.where(kind == 0, 1, -1).astype(np.int8), probability)


def twonorm(n_rows: int, random_state: int | None = None) -> Problem:
    """Generate twonorm: two unit normals in 20 dimensions with means ±(a, …, a), a = 2/√20; Bayes error 2.3%.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    random_state : int or None
        Seed; use another seed for test rows.

    Returns
    -------
    Problem
        An object with ``X`` of shape (n_rows, 20), ``y`` (±1), and ``probability``, the true P(y = 1) of each row.

    See Also
    --------
    ringnorm : One normal distribution within a wider one.
    waveform : Mixtures of waves.

    Examples
    --------
    >>> from bayesvm.datasets import twonorm
    >>> data = twonorm(1000, random_state=0)
    >>> bool(((data.probability > 0.5) == (data.y == 1)).mean() > 0.95)  # the Bayes classifier
    True
    """
    rng = np.random.default_rng(random_state)
    y = rng.choice(np.array([-1, 1], np.int8), n_rows)
    a = 2 / np.sqrt(20)
    X = rng.standard_normal((n_rows, 20)) + a * y[:, None]
    return Problem(X, y, expit(2 * a * X.sum(axis=1)))


def ringnorm(n_rows: int, random_state: int | None = None) -> Problem:
    """Generate ringnorm: N((a, …, a), I), class +1, and N(0, 4I) in 20 dimensions, a = 2/√20; Bayes error 1.2%.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    random_state : int or None
        Seed; use another seed for test rows.

    Returns
    -------
    Problem
        An object with ``X`` of shape (n_rows, 20), ``y`` (±1), and ``probability``, the true P(y = 1) of each row.

    See Also
    --------
    twonorm : Two normal distributions with different means.
    waveform : Mixtures of waves.

    Examples
    --------
    >>> from bayesvm.datasets import ringnorm
    >>> ringnorm(1000, random_state=0).X.shape
    (1000, 20)
    """
    rng = np.random.default_rng(random_state)
    y = rng.choice(np.array([-1, 1], np.int8), n_rows)
    a = 2 / np.sqrt(20)
    wide = (y == -1)[:, None]
    X = np.where(wide, 2.0, 1.0) * rng.standard_normal((n_rows, 20)) + np.where(wide, 0.0, a)
    log_ratio = 20 * np.log(2) + np.sum(X**2, axis=1) / 8 - np.sum((X - a) ** 2, axis=1) / 2
    return Problem(X, y, expit(log_ratio))


_POINTS = np.arange(1, 22)
_WAVES = np.stack([np.maximum(6.0 - np.abs(_POINTS - peak), 0.0) for peak in (11, 15, 7)])
_PAIRS = np.array([[0, 1], [0, 2], [1, 2]])


def _log_segment_density(X: Array, a: Array, b: Array) -> Array:
    """log of ``∫_0^1 N(x; b + u(a-b), I) du`` up to a constant common to all segments.

    Along the segment the integrand is a normal density in u; across it, a constant.
    """
    length = float(np.linalg.norm(a - b))
    along = (X - b) @ (a - b) / length  # the projection, measured from b
    across = np.sum((X - b) ** 2, axis=1) - along**2
    # log(ncdf(length - along) - ncdf(-along)), in the tail without cancellation
    upper = np.where(along > length / 2, along, length - along)
    lower = upper - length
    log_mass = log_ndtr(upper) + np.log1p(-np.exp(log_ndtr(lower) - log_ndtr(upper)))
    density: Array = -0.5 * across + log_mass - np.log(length)
    return density
