"""Core: class probability and entropy given f, averaged over f ~ N(m, s²), to split uncertainty (D11)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, ndtr

from bayesvm.core.linalg import Array
from bayesvm.core.links import BinaryLink

CELLS = 2**15  # of the table; linear interpolation is accurate to 1e-6
SURE = 6.0  # the score beyond which the entropy is below 1e-7
ROWS_AT_ONCE = 1024  # temporary arrays then fit the processor's caches

# Gauss-Hermite quadrature with 48 nodes, without the tail nodes whose weight is negligible.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
WEIGHTS /= WEIGHTS.sum()
NODES, WEIGHTS = NODES[WEIGHTS > 1e-9], WEIGHTS[WEIGHTS > 1e-9]


@dataclass(frozen=True)
class LatentExpectations:
    """P(second class) and its entropy for f from ``-reach`` to ``reach``; beyond, the class is certain.

    These are tables because evaluating the link at every node would take ten times as long as the rest of prediction.
    """

    reach: float
    probability: Array
    entropy: Array

    @classmethod
    def by(cls, link: BinaryLink) -> LatentExpectations:
        """Tabulate a link."""

        def score(f: Array) -> Array:
            return link.score(f, np.zeros(len(f)))

        reach = 2.0**-20  # a power of two, so that the kinks of the hinge at ±1 are points of the table
        while np.abs(score(np.array([-reach, reach]))).min() < SURE:
            reach *= 2
        z = score(np.linspace(-reach, reach, CELLS + 1))
        return cls(reach, ndtr(z), entr(ndtr(z)) + entr(ndtr(-z)))

    def mean_probability(self, m: Array, s: Array) -> Array:
        """``E p(f)`` for every row."""
        return self._mean(self.probability, m, s)

    def mean_entropy(self, m: Array, s: Array) -> Array:
        """``E H(p(f))`` for every row."""
        return self._mean(self.entropy, m, s)

    def _mean(self, table: Array, m: Array, s: Array) -> Array:
        means, rises, per_unit = np.empty(len(m)), np.diff(table), CELLS / (2 * self.reach)
        for start in range(0, len(m), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            place = np.multiply.outer(s[rows] * per_unit, NODES)
            place += (m[rows, None] + self.reach) * per_unit
            np.clip(place, 0, CELLS * (1 - 1e-12), out=place)
            cell = place.astype(np.int32)
            place -= cell
            place *= rises[cell]
            place += table[cell]
            means[rows] = place @ WEIGHTS
        return means
