"""Core, heads: the common base of the heads for two classes and for more classes."""

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

RARE_ROWS = 50  # rows of the rarest class that a sample should have


class ClassHead(Head):
    """y is a class number. ``rates`` are the base rates: the class probabilities of a row whose X is unknown."""

    rates: tuple[float, ...]
    possible_functions: ClassVar[range]  # allowed numbers of latent functions

    @property
    def n_functions(self) -> int:
        """The number of classes, one per base rate."""
        return len(self.rates)

    @property
    def n_classes(self) -> int:
        """The number of classes: two, or the number of latent functions if that is larger."""
        return max(2, self.n_functions)

    def __post_init__(self) -> None:
        if not all(0 < rate < 1 for rate in self.rates) or len(self.rates) not in self.possible_functions:
            raise ValueError(f"invalid base rates for {type(self).__name__}: {self.rates}")

    def require(self, y: npt.NDArray[Any], labels: npt.NDArray[Any] | None) -> None:
        """Require codes below the number of classes, and one label per class."""
        if labels is None or len(labels) != self.n_classes:
            raise ValueError(f"{type(self).__name__} needs {self.n_classes} labels, one per class")
        if y.dtype.kind not in "iu" or not 0 <= y.min(initial=0) <= y.max(initial=0) < self.n_classes:
            raise ValueError(f"y must contain class numbers from 0 to {self.n_classes - 1}")

    def strata(self, y: Codes) -> npt.NDArray[np.intp]:
        """The classes."""
        return y.astype(np.intp)

    def rows_needed(self, y: Codes, at_least: int) -> int:
        """More rows if a class is rare."""
        rarest = np.bincount(y, minlength=2).min() / len(y)
        return max(at_least, int(RARE_ROWS / max(rarest, 1e-9)))

    @property
    def evenness(self) -> float:
        """``K/(K-1) Σ π (1-π)`` of the base rates (D29): about four times the share of a rare class."""
        p = np.array(self.rates) if self.n_functions > 1 else np.array([self.rates[0], 1 - self.rates[0]])
        return float(self.n_classes / (self.n_classes - 1) * np.sum(p * (1 - p)))

    def residuals(self, link: Any, rows: OutOfSample) -> tuple[Array, Array]:
        """The residuals; for two classes, those of the second class."""
        p = link.probabilities(rows.mean, rows.variance)
        is_class = np.eye(self.n_classes)[rows.y]
        if self.n_functions == 1:
            p, is_class = p[:, 1:], is_class[:, 1:]
        weight = rows.effective_weight[:, None]
        return weight * (is_class - p), weight * p * (1 - p)

    @abstractmethod
    def decision_of(self, probabilities: Array) -> Array:
        """The value of a link's ``decision`` that corresponds to these probabilities."""

    @abstractmethod
    def uncertainty(self, link: Any) -> Callable[[Array, Array], dict[str, Array]]:
        """A function of m and v that splits predictive uncertainty by source; precomputes what all rows share."""

    def probabilities(self, parts: Sequence[MemberMoments]) -> Array:
        """The mean of the members' class probabilities, one column per class."""
        mean = mixed(parts, lambda part: part.link.probabilities(part.mean, part.variance))
        return np.minimum(mean, 1.0)  # rounding can make the shares sum to slightly more than one

    def decision(self, parts: Sequence[MemberMoments]) -> Array:
        """Decision values, in the same order as the probabilities."""
        if len(parts) == 1:
            decision: Array = parts[0].link.decision(parts[0].mean, parts[0].variance)
            return decision
        return self.decision_of(self.probabilities(parts))

    def mixed_losses(self, parts: Sequence[MemberMoments], y: Codes) -> Array:
        """``-log p(y)`` of every row, with p the mean of the members' probabilities."""
        right = self.probabilities(parts)[np.arange(len(y)), y]
        return -np.log(np.maximum(right, 1e-300))

    def is_calibrated(self, link: Any) -> bool:
        """Whether a link has fitted parameters."""
        return hasattr(link, "bias") and link not in PLAIN_LINKS.values()

    def uncertainty_of(self, links: Sequence[Any]) -> Callable[[Sequence[MemberMoments]], dict[str, Array]]:
        """A function of moments that splits predictive uncertainty by source; precomputes what all rows share.

        The total is the entropy of the predicted probabilities. The aleatoric part is the mean of the members'
        aleatoric parts, so disagreement between members is epistemic (D25).
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
        """A credible interval for the probability, for heads that predict a single probability."""
        return {}
