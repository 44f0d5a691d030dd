"""Inference: choose the kernel of an effect by the evidence of its cells (D27).

A search over length-scale and variance would fit the whole model in every trial. Here the log odds of the rows are
fixed to their leave-one-out values, and only the effect of each cell is fitted: this needs matrices of the size of the
number of cells, and no pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.special import expit, log_expit, logit

from bayesvm.core.features import Effect, InducingFeatures
from bayesvm.core.heads import Head
from bayesvm.core.kernels import Matern
from bayesvm.core.linalg import Array
from bayesvm.inference.judgements import Judgement
from bayesvm.inference.screening import PAIR_POINTS, POINTS, Cells, Found, Residuals

LENGTH_SCALE, PAIR_LENGTH_SCALE = 0.2, 0.5  # typical values for effects of one and of two columns
FACTORS = (0.4, 1.0, 2.5, 6.0)  # candidate multiples of the typical length-scale
VARIANCES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # candidate variances of the log odds
LARGEST_VARIANCE = 1e4  # a jump between neighbouring points needs a large variance
NEWTON_STEPS, SETTLED, SMALLEST_STEP = 15, 0.01, 0.03  # maximum number; tolerance in nats; smallest fraction of a step
TINY = 1e-9


class LogOdds(NamedTuple):
    """Leave-one-out log odds of rows, their outcomes as ±1 and their weights; one column per function.

    ``slope`` is the average derivative of the log odds with respect to f.
    """

    value: Array
    outcome: Array
    weight: Array
    slope: float

    @classmethod
    def of(cls, residuals: Residuals, by_mean: Array) -> LogOdds:
        """Compute from R, W and the derivative of the loss with respect to the mean of f, which is ``-R dη/dm``.

        ``W/|R|`` is the probability of what was observed.
        """
        size = np.maximum(np.abs(residuals.difference), TINY)
        observed = np.clip(residuals.weight / size, TINY, 1 - TINY)
        outcome = np.where(residuals.difference > 0, 1.0, -1.0)
        slope = float(np.sum(np.abs(by_mean) * size) / np.sum(size**2))
        return cls(outcome * logit(observed), outcome, size / (1 - observed), slope)

    def evidence(self, covariance: Array, cells: Cells, rows: npt.NDArray[np.bool_]) -> float:
        """The evidence of cell effects for some rows, summed over functions."""
        columns = zip(self.value[rows].T, self.outcome[rows].T, self.weight[rows].T, strict=True)
        return sum(evidence(covariance, cells, *column) for column in columns)


class Normal(NamedTuple):
    """The counterpart for regression: slopes R and information W of f, in units of f times ``slope``."""

    residuals: Residuals
    slope: float

    @classmethod
    def of(cls, residuals: Residuals, by_mean: Array) -> Normal:
        """Compute from R, W and the derivative of the loss with respect to the mean of f, R times ``slope``."""
        return cls(residuals, float(np.linalg.norm(by_mean) / np.linalg.norm(residuals.difference)))

    def evidence(self, covariance: Array, cells: Cells, rows: npt.NDArray[np.bool_]) -> float:
        """``½ Rᵀ(K^-1 + W)^-1 R - ½ log|I + W^½ K W^½|``, R and W summed by cell: D27 with cells correlated by K."""
        n_cells, total = len(covariance), 0.0
        for R, W in zip(self.residuals.difference[rows].T, self.residuals.weight[rows].T, strict=True):
            pull, root = np.bincount(cells, R, n_cells), np.sqrt(np.bincount(cells, W, n_cells))
            L = linalg.cholesky(np.eye(n_cells) + root[:, None] * covariance * root, lower=True, check_finite=False)
            drawn = covariance @ pull
            solved = linalg.solve_triangular(L, root * drawn, lower=True, check_finite=False)
            total += 0.5 * float(pull @ drawn - solved @ solved) - float(np.log(np.diag(L)).sum())
        return total


def residuals_of(head: Head, judgement: Judgement) -> Residuals:
    """The residuals of the leave-one-out predictions of a judgement."""
    return Residuals(*head.residuals(judgement.link, judgement.cavities))


def effects_of(found: Sequence[Found], head: Head, judgement: Judgement, X: Array) -> tuple[Effect, ...]:
    """The effects found by screening, with kernels fitted to the residuals of a judgement of scaled rows."""
    rows = judgement.cavities
    _, by_mean, _ = judgement.link.loss(rows.mean, rows.variance, rows.y, rows.effective_weight)
    response = LogOdds if head.has_log_odds else Normal
    odds = response.of(residuals_of(head, judgement), by_mean)
    return tuple(effect_of(one, X, odds) for one in found)


def effect_of(found: Found, X: Array, odds: LogOdds | Normal) -> Effect:
    """An effect on scaled rows: a rough kernel with points at the means of the largest cells.

    The evidence determines first the variance, then the length-scale.
    """
    alone = found.factors == 1
    count = np.bincount(found.cells)
    points = np.stack([np.bincount(found.cells, column) / count for column in X[:, found.columns].T], axis=1)
    fullest = np.argsort(-count, kind="stable")[: POINTS if alone else PAIR_POINTS]
    number = np.full(len(count), -1, np.intp)
    number[fullest] = np.arange(len(fullest))
    rows = number[found.cells] >= 0
    cells, points = number[found.cells][rows], points[fullest]

    def best(tries: list[tuple[float, float]]) -> tuple[float, float]:
        def total(of: tuple[float, float]) -> float:
            return odds.evidence(_kernel(*of)(points), cells, rows)

        return max(tries, key=total)

    usual = LENGTH_SCALE if alone else PAIR_LENGTH_SCALE
    _, variance = best([(usual, variance) for variance in VARIANCES])
    length_scale, variance = best([(factor * usual, variance) for factor in FACTORS])
    kernel = _kernel(length_scale, variance / odds.slope**2)
    return Effect(found.columns, InducingFeatures.build(kernel, np.unique(points, axis=0), np.float32))


def _kernel(length_scale: float, variance: float) -> Matern:
    return Matern(length_scale, variance, nu=0.5, variance_bounds=(1e-2, LARGEST_VARIANCE))


def evidence(covariance: Array, cells: Cells, log_odds: Array, outcome: Array, weight: Array) -> float:
    """``log ∫ Π p(y | η + e) N(e; 0, K) de - log Π p(y | η)`` by Laplace's method (D27), with η the log odds.

    At the mode e it is the gain in log likelihood minus ``½ eᵀ K^-1 e + ½ log|B|``, with W the sum of ``p (1-p)`` in
    each cell and ``B = I + W^½ K W^½``. Newton's method: Rasmussen and Williams (2006), algorithm 3.1.
    """
    n_cells = len(covariance)
    before = log_expit(outcome * log_odds)

    def gain(drawn: Array) -> float:
        effect = covariance @ drawn
        after = log_expit(outcome * (log_odds + effect[cells]))
        return float(weight @ (after - before)) - 0.5 * float(drawn @ effect)

    drawn: Array = np.zeros(n_cells)  # K^-1 e
    reached = log_determinant = 0.0
    for _ in range(NEWTON_STEPS):
        effect = covariance @ drawn
        p = expit(log_odds + effect[cells])
        curvature = np.bincount(cells, weight * p * (1 - p), n_cells)
        pull = np.bincount(cells, weight * ((outcome > 0) - p), n_cells) + curvature * effect
        root = np.sqrt(curvature)
        factor = linalg.cho_factor(np.eye(n_cells) + root[:, None] * covariance * root, lower=True, check_finite=False)
        log_determinant = float(2 * np.log(np.diag(factor[0])).sum())
        solved = linalg.cho_solve(factor, root * (covariance @ pull), check_finite=False)
        towards, step = pull - root * solved - drawn, 1.0
        while (found := gain(drawn + step * towards)) < reached and step > SMALLEST_STEP:
            step /= 2
        if found - reached < SETTLED:
            break
        drawn, reached = drawn + step * towards, found
    return reached - 0.5 * log_determinant
