"""Core, heads: what the heads for two and for more classes share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from bayesvm.core.heads.contract import Head, OutOfSample
from bayesvm.core.linalg import Array
from bayesvm.core.links import PLAIN_LINKS, Codes
from bayesvm.core.members import MemberMoments, mixed

RARE_ROWS = 50  # of the rarest class that a sample should have


class ClassHead(Head):
    """y is the number of a class. ``rates`` are base rates: what is known of a row without its X."""

    rates: tuple[float, ...]
    possible_functions: ClassVar[range]  # how many latent functions such a head may have

    @property
    def n_functions(self) -> int:
        """One for each base rate."""
        return len(self.rates)

    @property
    def n_classes(self) -> int:
        """Two, or as many as there are functions."""
        return max(2, self.n_functions)

    def __post_init__(self) -> None:
        if not all(0 < rate < 1 for rate in self.rates) or len(self.rates) not in self.possible_functions:
            raise ValueError(f"{type(self).__name__} cannot have the base rates {self.rates}")

    def require(self, y: npt.NDArray[Any], labels: npt.NDArray[Any] | None) -> None:
        """Codes below the number of classes, and a label for each class."""
        if labels is None or len(labels) != self.n_classes:
            raise ValueError(f"{type(self).__name__} needs {self.n_classes} labels, one for every class")
        if y.dtype.kind not in "iu" or not 0 <= y.min(initial=0) <= y.max(initial=0) < self.n_classes:
            raise ValueError(f"y must be numbers of {self.n_classes} classes")

    def strata(self, y: Codes) -> npt.NDArray[np.intp]:
        """The classes."""
        return y.astype(np.intp)

    def rows_needed(self, y: Codes, at_least: int) -> int:
        """More where a class is rare."""
        rarest = np.bincount(y, minlength=2).min() / len(y)
        return max(at_least, int(RARE_ROWS / max(rarest, 1e-9)))

    @property
    def evenness(self) -> float:
        """``K/(K-1) Σ π (1-π)`` of the base rates (D29): about four times the share of a rare class."""
        p = np.array(self.rates) if self.n_functions > 1 else np.array([self.rates[0], 1 - self.rates[0]])
        return float(self.n_classes / (self.n_classes - 1) * np.sum(p * (1 - p)))

    def residuals(self, link: Any, rows: OutOfSample) -> tuple[Array, Array]:
        """Of two classes, those of the second."""
        p = link.probabilities(rows.mean, rows.variance)
        is_class = np.eye(self.n_classes)[rows.y]
        if self.n_functions == 1:
            p, is_class = p[:, 1:], is_class[:, 1:]
        weight = rows.effective_weight[:, None]
        return weight * (is_class - p), weight * p * (1 - p)

    @abstractmethod
    def decision_of(self, probabilities: Array) -> Array:
        """What ``decision`` of a link would be for these probabilities."""

    @abstractmethod
    def uncertainty(self, link: Any) -> Callable[[Array, Array], dict[str, Array]]:
        """A function of m and v that says how uncertain predictions are, and why; what rows share is done once."""

    def probabilities(self, parts: Sequence[MemberMoments]) -> Array:
        """A column for each class: the mean of what the members say."""
        mean = mixed(parts, lambda part: part.link.probabilities(part.mean, part.variance))
        return np.minimum(mean, 1.0)  # shares may add up to a last digit more than one

    def decision(self, parts: Sequence[MemberMoments]) -> Array:
        """Ordered like the probabilities."""
        if len(parts) == 1:
            decision: Array = parts[0].link.decision(parts[0].mean, parts[0].variance)
            return decision
        return self.decision_of(self.probabilities(parts))

    def mixed_losses(self, parts: Sequence[MemberMoments], y: Codes) -> Array:
        """``-log p(y)`` of every row, p the mean of what the members say."""
        right = self.probabilities(parts)[np.arange(len(y)), y]
        return -np.log(np.maximum(right, 1e-300))

    def is_calibrated(self, link: Any) -> bool:
        """Whether a link has parameters that were fitted."""
        return hasattr(link, "bias") and link not in PLAIN_LINKS.values()

    def uncertainty_of(self, links: Sequence[Any]) -> Callable[[Sequence[MemberMoments]], dict[str, Array]]:
        """A function of moments that says how uncertain predictions are, and why; what rows share is done once.

        The total is the entropy of what is stated, the aleatoric part the mean of the members' own; so their
        disagreement is epistemic (D25).
        """
        own_parts = {id(link): self.uncertainty(link) for link in links}

        def parts_of(parts: Sequence[MemberMoments]) -> dict[str, Array]:
            first = parts[0]
            if len(parts) == 1:
                return own_parts[id(first.link)](first.mean, first.variance)
            total = entr(self.probabilities(parts)).sum(axis=1)
            own = mixed(parts, lambda part: own_parts[id(part.link)](part.mean, part.variance)["aleatoric"])
            aleatoric = np.minimum(own, total)
            return {"total": total, "aleatoric": aleatoric, "epistemic": total - aleatoric} | self.interval(parts)

        return parts_of

    def interval(self, parts: Sequence[MemberMoments]) -> dict[str, Array]:
        """A credible interval for a probability, where there is one probability to speak of."""
        return {}
