"""Scaling: the paper's algorithm 1 in plain NumPy: minibatches, the augmented bound, natural gradient steps.

The formulas are D3 to D7, with the sums of a minibatch times N/|S|, which the printed algorithm forgets. Whitened
weights have the same steps as the paper's, and cost less. Kernel, inducing points, prior mean and link are given.
"""

import time
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.special import log_ndtr

from bayesvm.core.links import fit_probit
from bayesvm.core.workspace import Workspace

BATCH = 100  # rows, as in the paper
JITTER = 1e-10
PREDICTED_AT_ONCE = 4096


@dataclass
class Algorithm1:
    """q(beta) = N(mean, covariance) over whitened weights, by its natural parameters P and h."""

    kernel: object
    points: np.ndarray
    offset: float = 0.0  # c, the prior mean of f

    def __post_init__(self):
        m = len(self.points)
        gram = self.kernel(self.points)
        factor = np.linalg.cholesky(gram + JITTER * np.mean(np.diag(gram)) * np.eye(m))
        self.whitening = linalg.solve_triangular(factor, np.eye(m), lower=True).T  # L^-T
        self.cross = self.kernel.against(self.points)
        self.variance = float(self.kernel.diagonal(self.points[:1])[0])
        self.precision, self.linear = np.eye(m), np.zeros(m)
        self._solve()

    def _solve(self):
        factor = linalg.cholesky(self.precision, lower=True, check_finite=False)
        self.covariance, _ = linalg.lapack.dpotri(factor, lower=1)
        self.covariance = np.tril(self.covariance) + np.tril(self.covariance, -1).T
        self.mean = self.covariance @ self.linear

    def features(self, X):
        """``phi = L^-1 k(Z, x)`` in rows, and ``r = k(x,x) - |phi|²`` (D3)."""
        phi = self.cross(X, Workspace()) @ self.whitening
        return phi, np.maximum(self.variance - np.einsum("ij,ij->i", phi, phi), 0.0)

    def marginals(self, phi, residual):
        """Mean and variance of f (D4)."""
        return self.offset + phi @ self.mean, np.einsum("ij,ij->i", phi @ self.covariance, phi) + residual

    def step(self, X, y, n_rows, rho):
        """One step towards what this batch says, as if it were repeated N/|S| times (D6, D7)."""
        phi, residual = self.features(X)
        m, v = self.marginals(phi, residual)
        w = 1 / np.sqrt((1 - y * m) ** 2 + v)
        g = y * (1 + w) - w * self.offset
        times = n_rows / len(y)
        self.precision = (1 - rho) * self.precision + rho * (np.eye(len(self.mean)) + times * (phi.T * w) @ phi)
        self.linear = (1 - rho) * self.linear + rho * times * (g @ phi)
        self._solve()

    def predicted(self, X):
        """Mean and variance of f at many rows."""
        blocks = [X[start : start + PREDICTED_AT_ONCE] for start in range(0, len(X), PREDICTED_AT_ONCE)]
        m, v = zip(*(self.marginals(*self.features(block)) for block in blocks), strict=True)
        return np.concatenate(m), np.concatenate(v)


def held_out_loss(model, X, y, link):
    """Log loss, the better of two: with the link given, and with a probit fitted to these very rows."""
    m, v = model.predicted(X)
    own = fit_probit(m, v, y.astype(float), np.ones(len(y)))
    return float(min(np.mean(-log_ndtr(y * each.score(m, v))) for each in (link, own)))


def heard_until(model, rows, power, is_good, limit, growth=1.2):
    """Steps of ``rho = (t+1)^-power`` until it is good or ``limit`` seconds are over.

    Rows come in the order they lie in, which must be random. ``is_good(model)`` gives (yes or no, figure) and is asked
    off the clock, whenever the time has grown by a fifth. Returns (seconds, steps, figure) of every answer.
    """
    X, y = rows
    spent, asked, heard, t, place = 0.0, 0.02, [], 0, 0
    while spent < limit:
        start = time.perf_counter()
        while spent + time.perf_counter() - start < asked:
            batch = slice(place, place + BATCH)
            model.step(X[batch], y[batch], len(y), (t + 1.0) ** -power)
            t, place = t + 1, place + BATCH if place + 2 * BATCH <= len(y) else 0
        spent += time.perf_counter() - start
        asked = spent * growth
        good, figure = is_good(model)
        heard.append((spent, t, figure))
        if good:
            break
    return heard
