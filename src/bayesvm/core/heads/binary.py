"""Core, heads: two classes. One latent function; its sign is the side of the decision boundary (D11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, ndtr, ndtri
from scipy.stats import norm

from bayesvm.core.heads.classes import ClassHead
from bayesvm.core.heads.contract import OutOfSample
from bayesvm.core.latent_expectations import LatentExpectations
from bayesvm.core.linalg import Array
from bayesvm.core.links import (
    PLAIN_LINKS,
    BinaryLink,
    Codes,
    Hinge,
    Paper,
    Probit,
    TwoProbits,
    fit_probit,
    fit_two_probits,
    signs,
)
from bayesvm.core.members import MemberMoments, mixed

TWO_PROBITS_FROM = 2_000  # rows; with fewer, two probits overfit
REACH = float(norm.ppf(0.975))  # half-width of a 95% interval in standard deviations


@dataclass(frozen=True)
class Binary(ClassHead):
    """y is 0 or 1; f is above zero where 1 is more probable."""

    rates: tuple[float, ...]  # one entry: the share of ones
    links: ClassVar = (Probit, TwoProbits, Paper, Hinge)
    possible_functions: ClassVar = range(1, 2)

    def target(self, y: Codes, number: int) -> Array:
        return signs(y)

    def named_link(self, name: str) -> BinaryLink:
        return PLAIN_LINKS[name]

    def fit_link(self, rows: OutOfSample) -> Probit:
        return fit_probit(rows.mean[:, 0], rows.variance[:, 0], signs(rows.y), rows.effective_weight)

    def refine_link(self, link: Probit, rows: OutOfSample) -> TwoProbits:
        """Two probits in place of one. Tuning skips this: it is slow and rarely changes which model is better."""
        weight = rows.effective_weight
        if weight.sum() < TWO_PROBITS_FROM:
            return TwoProbits((link.scale, link.scale), (link.bias, link.bias), 0.5)
        return fit_two_probits(rows.mean[:, 0], rows.variance[:, 0], signs(rows.y), weight, link)

    def prior_means(self, prior_variance: float, link: Probit | None = None) -> list[float]:
        """Uses the plain probit if there is no fitted link."""
        link = link or Probit()
        spread = np.sqrt(1 + link.scale**2 * prior_variance)
        return [float(c) for c in (spread * ndtri(self.rates) - link.bias) / link.scale]

    def decision_of(self, probabilities: Array) -> Array:
        """The probit of the second column."""
        return np.asarray(ndtri(probabilities[:, 1]))

    def uncertainty(self, link: BinaryLink) -> Callable[[Array, Array], dict[str, Array]]:
        """The aleatoric and epistemic uncertainty, and a 95% credible interval for P(second class)."""
        expectations = LatentExpectations.by(link)

        def parts(m: Array, v: Array) -> dict[str, Array]:
            m, v = m[:, 0], v[:, 0]
            s = np.sqrt(v)
            stated = np.asarray(ndtr(link.score(m, v)))
            mean = stated if link.averages_f else expectations.mean_probability(m, s)
            total = entr(mean) + entr(1 - mean)
            aleatoric = np.minimum(expectations.mean_entropy(m, s), total)
            lower, upper = (ndtr(link.score(m + sign * REACH * s, np.zeros(len(m)))) for sign in (-1, 1))
            return {
                "total": total,
                "aleatoric": aleatoric,
                "epistemic": total - aleatoric,
                "lower": np.minimum(lower, stated),
                "upper": np.maximum(upper, stated),
            }

        return parts

    def interval(self, parts: Sequence[MemberMoments]) -> dict[str, Array]:
        """``p̄ ± √Σ ν ((end - p)² + z² (p - p̄)²)``: each member's own width, combined with their disagreement (D25).

        Members differ in the scale of f, so moments of f over all members say little about probabilities. The interval
        never extends beyond the intervals of all members.
        """
        stated = self.probabilities(parts)[:, 1]

        def end(side: float) -> Array:
            farthest = stated.copy()

            def squares(part: MemberMoments) -> Array:
                m, v = part.mean[:, 0], part.variance[:, 0]
                own = ndtr(part.link.score(m, v))
                reach = np.maximum(
                    side * (ndtr(part.link.score(m + side * REACH * np.sqrt(v), np.zeros(len(m)))) - own), 0.0
                )
                farthest[:] = side * np.maximum(side * farthest, side * own + reach)
                return np.asarray(reach**2 + (REACH * (own - stated)) ** 2)

            found = stated + side * np.sqrt(mixed(parts, squares))
            return np.asarray(np.clip(side * np.minimum(side * found, side * farthest), 0.0, 1.0) + 0.0)  # no -0.0

        return {"lower": end(-1.0), "upper": end(1.0)}
