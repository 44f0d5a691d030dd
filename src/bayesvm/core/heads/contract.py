"""Core, heads: the interface of a head, which maps y to targets of latent functions, and marginals to predictions.

A kind of prediction consists of a likelihood, a head and an estimator. Below the estimators, only heads and the links
that they fit know what y means.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from bayesvm.core.linalg import Array


class Targets(Protocol):
    """The part of a head that sums over rows need."""

    def target(self, y: npt.NDArray[Any], number: int) -> Array:
        """The target values of latent function ``number``, one per row."""
        ...


class OutOfSample(Protocol):
    """Marginals of f at rows that were not used to train it, one column per function, with y and weights."""

    @property
    def mean(self) -> Array: ...

    @property
    def variance(self) -> Array: ...

    @property
    def y(self) -> npt.NDArray[Any]: ...

    @property
    def effective_weight(self) -> Array: ...


class Link(Protocol):
    """Maps marginals of f, one column per function, to a prediction."""

    def row_losses(self, m: Array, v: Array, y: npt.NDArray[Any]) -> Array:
        """``-log p(y)`` of every row."""
        ...


class FittedLink(Link, Protocol):
    """A link with parameters, differentiable for tuning."""

    def loss(self, m: Array, v: Array, y: npt.NDArray[Any], weight: Array) -> tuple[float, Array, Array]:
        """``-Σ ω log p(y)``, and its derivatives with respect to m and v (D17)."""
        ...


class Head(Targets, Protocol):
    """A kind of prediction. A head is a dataclass of plain values, so it can be stored in files."""

    links: ClassVar[tuple[type, ...]]  # the link classes that it supports
    learns_noise: ClassVar[bool] = False  # whether the link determines parameters of the bound (D32)
    averages_completions: ClassVar[bool] = False  # whether missing values change the mean of f (D33)
    has_log_odds: ClassVar[bool] = True  # whether ``residuals`` are residuals of log odds

    @property
    def n_functions(self) -> int:
        """The number of latent functions that it needs."""
        ...

    def named_link(self, name: str) -> Any:
        """The link of this name; it has no fitted parameters."""
        ...

    def fit_link(self, rows: OutOfSample) -> Any:
        """Fit the link with few parameters to these rows; tuning compares models with it."""
        ...

    def refine_link(self, link: Any, rows: OutOfSample) -> Any:
        """Replace the link with one that has more parameters, if there are enough rows to learn them."""
        ...

    @property
    def evenness(self) -> float:
        """Information of a row about f, relative to a row of equally frequent outcomes; at most one (D29)."""
        ...

    def residuals(self, link: Any, rows: OutOfSample) -> tuple[Array, Array]:
        """Residual R and information W of rows under a link, one column per function (D27).

        For classes these are ``y - p`` and ``p (1-p)``, those of the log odds.
        """
        ...

    def likelihood_after(self, likelihood: Any, link: Any, rows: OutOfSample) -> Any:
        """The bound to train with after this link was fitted to the left-out rows; unchanged if it need not change."""
        return likelihood

    def prior_means(self, prior_variance: float, link: Any = None) -> list[float]:
        """Prior means c such that rows far from all data, with f ~ N(c, σ²), get the prediction without X (D11)."""
        ...

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The stratum of every row; rows of a stratum have similar y. Inducing points are allocated by stratum."""
        ...

    def rows_needed(self, y: npt.NDArray[Any], at_least: int) -> int:
        """The number of random rows that a sample needs to contain rows of every stratum."""
        ...

    def require(self, y: npt.NDArray[Any], labels: npt.NDArray[Any] | None) -> None:
        """Raise ``ValueError`` unless y, with these labels if any, is a valid target for this head."""
        ...

    def mixed_losses(self, parts: Any, y: npt.NDArray[Any]) -> Array:
        """``-log p(y)`` of every row, for the average of several members."""
        ...
