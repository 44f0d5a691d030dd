"""Core, heads: more than two classes, with one latent function per class against the rest (D11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, log_softmax, ndtri
from scipy.stats import norm, qmc

from bayesvm.core.heads.classes import ClassHead
from bayesvm.core.heads.contract import OutOfSample
from bayesvm.core.linalg import Array
from bayesvm.core.links import PLAIN_LINKS, Codes, ManyClassLink, Normalised, Softmax, fit_softmax

DRAWS = 64  # quasi-random points of the latent functions, for uncertainty


@dataclass(frozen=True)
class OneVsRest(ClassHead):
    """y is a class number; function k is positive where class k is likely."""

    rates: tuple[float, ...]  # the share of every class
    links: ClassVar = (Softmax, Normalised)
    possible_functions: ClassVar = range(3, 10**9)

    def target(self, y: Codes, number: int) -> Array:
        return np.where(y == number, 1.0, -1.0)

    def named_link(self, name: str) -> Normalised:
        return Normalised(PLAIN_LINKS[name])

    def fit_link(self, rows: OutOfSample) -> Softmax:
        return fit_softmax(rows.mean, rows.variance, rows.y, rows.effective_weight)

    def refine_link(self, link: Softmax, rows: OutOfSample) -> Softmax:
        """The link itself: it already has one parameter per class."""
        return link

    def prior_means(self, prior_variance: float, link: Softmax | None = None) -> list[float]:
        """Uses the plain probit if there is no fitted link."""
        rates, root = np.array(self.rates), float(np.sqrt(1 + prior_variance))
        plain = ndtri(rates)
        if link is None:
            return [float(c) for c in root * plain]
        wanted = log_softmax(np.log(rates)) - np.array(link.bias)
        shift = np.mean(wanted / link.scale - plain)  # softmax ignores a common constant; stay near the plain values
        return [float(c) for c in root * (wanted / link.scale - shift)]

    def decision_of(self, probabilities: Array) -> Array:
        """Logarithms."""
        return np.log(np.maximum(probabilities, 1e-300))

    def uncertainty(self, link: ManyClassLink) -> Callable[[Array, Array], dict[str, Array]]:
        """The aleatoric and epistemic uncertainty.

        The total is the entropy of the predicted probabilities; quasi-random points determine how it splits.
        """
        draws = normal_draws(self.n_classes)

        def parts(m: Array, v: Array) -> dict[str, Array]:
            s, no_variance = np.sqrt(v), np.zeros(m.shape)
            mean, aleatoric = np.zeros(m.shape), np.zeros(len(m))
            for draw in draws:
                p = link.probabilities(m + s * draw, no_variance)
                mean += p / DRAWS
                aleatoric += entr(p).sum(axis=1) / DRAWS
            total = entr(link.probabilities(m, v)).sum(axis=1)
            whole = entr(mean).sum(axis=1)
            share = np.minimum(np.divide(aleatoric, whole, out=np.ones(len(m)), where=whole > 0), 1.0)
            return {"total": total, "aleatoric": share * total, "epistemic": (1 - share) * total}

        return parts


def normal_draws(n_classes: int) -> Array:
    """Quasi-random points of N(0, I), one per row."""
    points = qmc.Sobol(n_classes, scramble=False).random(DRAWS) + 0.5 / DRAWS  # the centres of the cells of a fine grid
    draws: Array = norm.ppf(points)
    return draws
