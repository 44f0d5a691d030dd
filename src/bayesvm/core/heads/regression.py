"""Core, heads: regression. y is f plus noise; given the marginal of f, its density is a tube (D31, D32)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayesvm.core.heads.contract import Head, OutOfSample
from bayesvm.core.likelihoods import EpsilonInsensitive
from bayesvm.core.linalg import Array
from bayesvm.core.members import MemberMoments, mixed, mixed_moments
from bayesvm.core.tube import AnyTube, Tube, VaryingTube, fit_tube, fit_varying_tube

SAME_NOISE = 0.15  # tolerance between bound and link: of s relative to itself, of ε relative to s
LEAST_NOISE = 0.1  # lower bound of s, relative to the errors of left-out rows
LABELS_IN_A_NUMBER = 4.0  # class labels that are as informative about length-scales as one numeric target
QUANTILE_STEPS = 100
QUANTILE_ACCURACY, DRAW_ACCURACY = 1e-10, 1e-5  # in standard deviations


@dataclass(frozen=True)
class Regression(Head):
    """y is ``(number - centre) / spread``: rows store y in these units; predictions are in the user's units."""

    centre: float
    spread: float
    links: ClassVar = (Tube, VaryingTube)
    learns_noise: ClassVar = True
    averages_completions: ClassVar = True
    has_log_odds: ClassVar = False

    @property
    def n_functions(self) -> int:
        return 1

    @property
    def evenness(self) -> float:
        """A numeric target is more informative than a label."""
        return LABELS_IN_A_NUMBER

    def __post_init__(self) -> None:
        if not (np.isfinite(self.centre) and np.isfinite(self.spread) and self.spread > 0):
            raise ValueError(f"invalid centre {self.centre} or spread {self.spread} of the targets")

    def require(self, y: npt.NDArray[Any], labels: npt.NDArray[Any] | None) -> None:
        """Require finite numbers, without labels."""
        if labels is not None:
            raise ValueError("a numeric target has no labels")
        if y.dtype.kind != "f" or not np.isfinite(y).all():
            raise ValueError("y must contain finite numbers")

    def target(self, y: npt.NDArray[Any], number: int) -> Array:
        return y

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """A single stratum: inducing points depend on X only."""
        return np.zeros(len(y), np.intp)

    def rows_needed(self, y: npt.NDArray[Any], at_least: int) -> int:
        return at_least

    def named_link(self, name: str) -> Tube:
        raise ValueError(f"regression has no link {name!r}")

    def fit_link(self, rows: OutOfSample) -> Tube:
        """Fit ε and s; the variance of f is unchanged."""
        return fit_tube(rows.mean[:, 0], rows.variance[:, 0], rows.y, rows.effective_weight)

    def refine_link(self, link: Tube, rows: OutOfSample) -> VaryingTube:
        """Also fit a factor on the variance of f, and noise that grows with m and v. Tuning skips this."""
        return fit_varying_tube(rows.mean[:, 0], rows.variance[:, 0], rows.y, rows.effective_weight, link)

    def likelihood_after(self, likelihood: EpsilonInsensitive, link: AnyTube, rows: OutOfSample) -> EpsilonInsensitive:
        """The likelihood with the ε and s that fit the left-out rows best, bounded below by their errors (D32)."""
        errors = float(np.average(np.abs(rows.y - rows.mean[:, 0]), weights=rows.effective_weight))
        scale = max(link.scale, LEAST_NOISE * 2 * errors)  # without a tube, the mean absolute noise is s/2
        same = abs(np.log(scale / likelihood.scale)) < SAME_NOISE and (
            abs(link.epsilon - likelihood.epsilon) < SAME_NOISE * likelihood.scale
        )
        return likelihood if same else EpsilonInsensitive(link.epsilon, scale)

    def residuals(self, link: Tube, rows: OutOfSample) -> tuple[Array, Array]:
        """``∂ log p/∂f`` and its mean square, in units of f where the information of a row is 1/4, as for log odds."""
        weight = rows.effective_weight
        slope = link.score(rows.mean[:, 0], rows.variance[:, 0], rows.y)
        unit = 2 * np.sqrt(np.average(slope**2, weights=weight))
        return (weight * slope / unit)[:, None], np.asarray(0.25 * weight)[:, None]

    def prior_means(self, prior_variance: float, link: Any = None) -> list[float]:
        """The centre."""
        return [0.0]

    def mixed_losses(self, parts: Sequence[MemberMoments], y: npt.NDArray[Any]) -> Array:
        """``-log p(y)`` of every row, with p the mean of the members' densities."""
        return _losses(parts, y)

    def mean(self, parts: Sequence[MemberMoments]) -> Array:
        """The predicted mean, in the user's units."""
        return self.centre + self.spread * mixed_moments(parts).mean[:, 0]

    def variances(self, parts: Sequence[MemberMoments]) -> dict[str, Array]:
        """Variances of a new observation, in the user's units. The variance of f is epistemic, the noise aleatoric.

        The spread between the members' means is epistemic (D25).
        """
        mean = mixed(parts, lambda part: part.mean[:, 0])
        epistemic = mixed(parts, lambda p: p.link.variance(p.variance[:, 0]) + (p.mean[:, 0] - mean) ** 2)
        aleatoric = mixed(parts, _noise)
        square = self.spread**2
        return {
            "total": square * (epistemic + aleatoric),
            "aleatoric": square * aleatoric,
            "epistemic": square * epistemic,
        }

    def log_densities(self, parts: Sequence[MemberMoments], y: Array) -> Array:
        """The log density of targets in the user's units."""
        return np.asarray(-_losses(parts, (y - self.centre) / self.spread) - np.log(self.spread))

    def distribution(self, parts: Sequence[MemberMoments], y: Array) -> Array:
        """The probability of less than y, in the user's units."""
        return _distribution(parts, (y - self.centre) / self.spread)

    def quantiles_at(self, parts: Sequence[MemberMoments], shares: Array, start: Array) -> Array:
        """The quantile of every row for its own share, in the user's units, for draws; ``start`` is a guess."""
        return self.centre + self.spread * _quantile(parts, shares, (start - self.centre) / self.spread, DRAW_ACCURACY)

    def quantiles(self, shares: Sequence[float]) -> Callable[[Sequence[MemberMoments]], Array]:
        """A function of moments that returns quantiles in the user's units, one column per entry of ``shares``."""

        def of(parts: Sequence[MemberMoments]) -> Array:
            return self.centre + self.spread * np.column_stack([_quantile(parts, share) for share in shares])

        return of


def _quantile(
    parts: Sequence[MemberMoments],
    share: float | Array,
    start: Array | None = None,
    accuracy: float = QUANTILE_ACCURACY,
) -> Array:
    """The quantile of the members' mean distribution function, by bracketed Newton steps."""
    means = np.stack([part.mean[:, 0] for part in parts])
    sizes = np.stack([np.sqrt(part.link.variance(part.variance[:, 0]) + _noise(part)) for part in parts])
    size = sizes.max(axis=0)
    reach = 1 / np.sqrt(np.minimum(share, 1 - np.asarray(share)))  # Cantelli's inequality
    low, high = (means - reach * sizes).min(axis=0), (means + reach * sizes).max(axis=0)
    at = mixed(parts, lambda part: part.mean[:, 0]) if start is None else np.clip(start, low, high)
    settled = np.zeros(len(at), bool)
    for _ in range(QUANTILE_STEPS):
        excess = _distribution(parts, at) - share
        low, high = np.where(excess < 0, at, low), np.where(excess > 0, at, high)
        density = np.exp(-_losses(parts, at))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = at - excess / density
        inside = (step > low) & (step < high)
        after = np.where(inside, step, 0.5 * (low + high))
        after = np.where(settled | (excess == 0), at, after)  # so that no row depends on the other rows
        settled |= np.abs(after - at) <= accuracy * size
        at = after
        if settled.all():
            break
    return at


def _noise(part: MemberMoments) -> Array:
    noise: Array = part.link.noise(part.mean[:, 0], part.variance[:, 0])
    return noise


def _distribution(parts: Sequence[MemberMoments], y: Array) -> Array:
    return mixed(parts, lambda part: part.link.distribution(part.mean[:, 0], part.variance[:, 0], y))


def _losses(parts: Sequence[MemberMoments], y: Array) -> Array:
    each = np.stack([part.link.row_losses(part.mean, part.variance, y) for part in parts])
    return -np.asarray(logsumexp(-each, axis=0, b=np.array([[part.share] for part in parts])))
