"""Core: gradients of the ELBO (D16) and of the leave-one-out loss (D17) with respect to the feature parameters.

Both are vector-Jacobian products. Derivatives with respect to the marginals of f at a row become derivatives with
respect to the row's features. These are summed block by block (``FeatureGradient``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import NamedTuple, Self

import numpy as np

from bayesvm.core.cavities import LeftOut
from bayesvm.core.features import FeatureGradient, InducingFeatures, LinearFeatures, RecordedFeatures
from bayesvm.core.heads.contract import FittedLink, Targets
from bayesvm.core.latent import Block, View, pull_marginals
from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.posterior import Gaussian
from bayesvm.core.products import lower_products, mirrored, row_factors
from bayesvm.core.statistics import sites_at
from bayesvm.core.workspace import Workspace

LearnableFeatures = InducingFeatures | LinearFeatures


class Response(NamedTuple):
    """Derivatives of an objective with respect to h and P of a function, through the mean and covariance of q (D17)."""

    linear: Array
    precision: Array

    @classmethod
    def of(cls, q: Gaussian, by_mean: Array, by_covariance: Array) -> Response:
        """``h̄ = S mū``, ``P̄ = -S S̄ S - ½ (h̄ muᵀ + mu h̄ᵀ)``, from ``mu = S h`` and ``S = P^-1``."""
        linear = q.covariance @ by_mean
        outer = np.outer(linear, q.mean)
        return cls(linear, -q.covariance @ by_covariance @ q.covariance - 0.5 * (outer + outer.T))


@dataclass
class LossSums:
    """The leave-one-out loss and its derivatives with respect to the mean and covariance of every function."""

    loss: float
    by_mean: list[Array]
    by_covariance: list[Array]

    def __iadd__(self, other: Self) -> Self:
        self.loss += other.loss
        self.by_mean = list(map(np.add, self.by_mean, other.by_mean))
        self.by_covariance = list(map(np.add, self.by_covariance, other.by_covariance))
        return self


def block_elbo_gradient(
    blocks: Iterable[Block],
    workspace: Workspace,
    *,
    features: LearnableFeatures,
    view: View,
    head: Targets,
    likelihood: Likelihood,
) -> FeatureGradient:
    """At fixed q, ``phī = ∂B/∂m mu + 2 ∂B/∂v (S - I) phi`` and ``∂B/∂k(x,x) = ∂B/∂v = -w/2`` (D16)."""

    def of(block: Block) -> FeatureGradient:
        workspace.reset()
        record = features.recorded(block.X)
        phi_bar, variance_bar = np.zeros_like(record.phi), np.zeros(len(block.y))
        marginals = view.marginals_of(block.X, record.phi, record.prior_variance, workspace)
        for target, where, at in zip(view.targets, view.coordinates, marginals, strict=True):
            site = sites_at(block, at, head.target(block.y, target), likelihood)
            by_mean = site.linear - site.precision * (at.mean - at.prior_mean)
            by_variance = -0.5 * site.precision
            phi_bar += pull_marginals(where.mean, at, by_mean, by_variance, _if_residual(record, by_variance))
            variance_bar += by_variance
        return record.pull(phi_bar, variance_bar)

    return reduce(iadd, map(of, blocks))


def loss_sums(block: Block, phi: Array, left: Sequence[LeftOut], link: FittedLink) -> LossSums:
    """The leave-one-out loss, with ``mū = Σ m̄ phi`` and ``S̄ = Σ t̄ phi phiᵀ`` (D17)."""
    loss, pulled = _pulled(block, left, link)
    dtype = phi.dtype
    by_covariance: list[Array] = [
        mirrored(lower_products(phi * row_factors(by_explained, dtype)[:, None], phi)).astype(np.float64)
        for _, by_explained, _ in pulled
    ]
    by_mean: list[Array] = [(phi.T @ row_factors(by_mean, dtype)).astype(np.float64) for by_mean, _, _ in pulled]
    return LossSums(loss, by_mean, by_covariance)


def loss_gradient(
    block: Block,
    record: RecordedFeatures,
    left: Sequence[LeftOut],
    final: View,
    link: FittedLink,
    responses: Sequence[Response] | None,
) -> FeatureGradient:
    """The derivative of the leave-one-out loss with respect to the features, for a fixed link and fixed sites (D17).

    Without ``responses``, q in whitened weights is fixed too. With them, q depends on the features through
    ``P = I + Σ w phi phiᵀ`` and ``h = Σ γ phi`` at fixed sites, which adds ``2 w P̄ phi + γ h̄`` to ``phī``.
    """
    phi, dtype = record.phi, record.phi.dtype
    phi_bar, variance_bar, scratch = np.zeros_like(phi), np.zeros(len(block.y)), np.empty_like(phi)
    _, pulled = _pulled(block, left, link)

    def add(factor: Array, columns: Array | None = None) -> None:
        """Add ``factor · (phi columns)``, row by row."""
        product = phi if columns is None else np.matmul(phi, columns, out=scratch)
        nonlocal phi_bar
        phi_bar += np.multiply(product, row_factors(factor, dtype)[:, None], out=scratch)

    for i, (row, (by_mean, by_explained, by_residual)) in enumerate(zip(left, pulled, strict=True)):
        where = final.coordinates[i]
        # phī = m̄ mu + 2 t̄ S phi - 2 r̄ phi, as in ``pull_marginals``
        by_row, by_weight = [by_mean], [where.mean]
        add(2 * by_explained, where.spread)
        if record.prior_variance is not None:
            add(-2 * by_residual)
        variance_bar += by_residual
        if responses is not None:
            linear, precision = (part.astype(dtype) for part in responses[i])
            add(2 * row.site.precision, precision)
            by_row, by_weight = [by_mean, row.site.linear], [where.mean, linear]
        phi_bar += np.matmul(row_factors(np.column_stack(by_row), dtype), np.stack(by_weight), out=scratch)
    return record.pull(phi_bar, variance_bar)


def _if_residual(record: RecordedFeatures, by_residual: Array) -> Array | None:
    return None if record.prior_variance is None else by_residual


def _pulled(block: Block, left: Sequence[LeftOut], link: FittedLink) -> tuple[float, list[tuple[Array, Array, Array]]]:
    """The loss of the link and, for every function, its derivatives with respect to m, t and r."""
    means, variances = (
        np.column_stack(column) for column in zip(*((row.mean, row.variance) for row in left), strict=True)
    )
    loss, by_mean, by_variance = link.loss(means, variances, block.y, block.weights)
    return loss, [row.pull(by_mean[:, i], by_variance[:, i]) for i, row in enumerate(left)]
