"""Core, heads: what is predicted. A head turns y into targets of latent functions, and marginals of f into predictions.

A task is a likelihood, a head and an estimator. Everything below the estimators that knows what y means is in a head
and in the links that it fits.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import Array


class Targets(Protocol):
    """What sums over rows need of a head."""

    def target(self, y: npt.NDArray[Any], number: int) -> Array:
        """The values, for every row, that latent function ``number`` is trained on."""
        ...


class OutOfSample(Protocol):
    """Marginals of f at rows that it was not trained on, a column for each function, with y and weights."""

    @property
    def mean(self) -> Array: ...

    @property
    def variance(self) -> Array: ...

    @property
    def y(self) -> npt.NDArray[Any]: ...

    @property
    def effective_weight(self) -> Array: ...


class Link(Protocol):
    """From marginals of f, a column for each function, to a prediction."""

    def row_losses(self, m: Array, v: Array, y: npt.NDArray[Any]) -> Array:
        """``-log p(y)`` of every row."""
        ...


class FittedLink(Link, Protocol):
    """A link with parameters, which tuning can follow."""

    def loss(self, m: Array, v: Array, y: npt.NDArray[Any], weight: Array) -> tuple[float, Array, Array]:
        """``-Σ ω log p(y)``, and its derivatives by m and v (D17)."""
        ...


class Head(Targets, Protocol):
    """One kind of prediction. A head is a dataclass of plain values, by which files keep it."""

    links: ClassVar[tuple[type, ...]]  # that it may have
    learns_noise: ClassVar[bool] = False  # whether the bound has parameters that follow from the link (D32)
    has_log_odds: ClassVar[bool] = True  # whether ``residuals`` are those of log odds

    @property
    def n_functions(self) -> int:
        """How many latent functions it needs."""
        ...

    def named_link(self, name: str) -> Any:
        """A link without parameters of its own."""
        ...

    def fit_link(self, rows: OutOfSample) -> Any:
        """The link with few parameters that suits these rows best; tuning compares models by it."""
        ...

    def refine_link(self, link: Any, rows: OutOfSample) -> Any:
        """A link with more parameters in its place, where there are rows enough to learn them."""
        ...

    @property
    def evenness(self) -> float:
        """What a row says about f, relative to a row where all outcomes are equally frequent; at most one (D29)."""
        ...

    def residuals(self, link: Any, rows: OutOfSample) -> tuple[Array, Array]:
        """Slope R and information W of rows under a link, a column for each function (D27).

        Of classes ``y - p`` and ``p (1-p)``, those of log odds.
        """
        ...

    def likelihood_after(self, likelihood: Any, link: Any) -> Any:
        """The bound to train with once this link suits the rows left out; the same one if it need not change."""
        return likelihood

    def prior_means(self, prior_variance: float, link: Any = None) -> list[float]:
        """Prior means c for which a row far from all data, with f ~ N(c, σ²), gets what is known without X (D11)."""
        ...

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """A number for every row: rows of one stratum are alike in y. Inducing points are shared out among strata."""
        ...

    def rows_needed(self, y: npt.NDArray[Any], at_least: int) -> int:
        """How many random rows a sample needs to have some of every stratum."""
        ...

    def require(self, y: npt.NDArray[Any], labels: npt.NDArray[Any] | None) -> None:
        """Raise ``ValueError`` unless this can be predicted, with these labels for its outcomes if it has any."""
        ...

    def mixed_losses(self, parts: Any, y: npt.NDArray[Any]) -> Array:
        """``-log p(y)`` of every row where several members are averaged."""
        ...
