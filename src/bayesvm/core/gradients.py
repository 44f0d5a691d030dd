"""Core: derivatives of the ELBO (D16) and of the leave-one-out log loss (D17) by what the features depend on.

Both are vector-Jacobian products: an objective's derivatives by the marginals of f at a row become derivatives by the
row's features, and those become sums (``FeatureGradient``), block after block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import NamedTuple, Self

import numpy as np

from bayesvm.core.features import FeatureGradient, InducingFeatures, LinearFeatures, RecordedFeatures
from bayesvm.core.leave_one_out import SMALLEST_SHARE
from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.links import Probit, Softmax, log_loss
from bayesvm.core.posterior import Gaussian
from bayesvm.core.statistics import Block
from bayesvm.core.workspace import Workspace

LearnableFeatures = InducingFeatures | LinearFeatures


@dataclass(frozen=True)
class Learner:
    """A machine while what its features depend on is learned: its q, and the q at which its rows' sites were taken."""

    label: int
    offset: float
    posterior: Gaussian
    before: Gaussian


class Response(NamedTuple):
    """How an objective changes with h and P of a machine, through the mean and covariance of its q (D17)."""

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
    """The leave-one-out log loss and its derivatives by the mean and covariance of every machine."""

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
    workspace: Workspace,  # noqa: ARG001  (the contract of functions of blocks)
    *,
    features: LearnableFeatures,
    machines: Sequence[Learner],
    likelihood: Likelihood,
) -> FeatureGradient:
    """At fixed q, ``phī = ∂B/∂m mu + 2 ∂B/∂v (S - I) phi`` and ``∂B/∂k(x,x) = ∂B/∂v = -w/2`` (D16)."""

    def of(block: Block) -> FeatureGradient:
        record = features.recorded(block.X)
        phi_bar, variance_bar = np.zeros_like(record.phi), np.zeros(len(block.y))
        for machine in machines:
            at = _Seen.of(record, machine.offset, machine.posterior)
            local = likelihood.update(at.mean, at.variance, block.signs(machine.label))
            weight = 1.0 if block.weight is None else block.weight
            by_mean, by_variance = weight * (local.linear - local.precision * at.mean), -0.5 * weight * local.precision
            phi_bar += at.pulled(record, by_mean, by_variance, by_variance)
            variance_bar += by_variance
        return record.pull(phi_bar, variance_bar)

    return reduce(iadd, map(of, blocks))


def block_loss(
    blocks: Iterable[Block],
    workspace: Workspace,  # noqa: ARG001
    *,
    features: LearnableFeatures,
    machines: Sequence[Learner],
    likelihood: Likelihood,
    link: Probit | Softmax,
) -> LossSums:
    """The loss, and ``mū = Σ m̄ phi``, ``S̄ = Σ t̄ phi phiᵀ`` (D17)."""

    def of(block: Block) -> LossSums:
        record = features.recorded(block.X)
        rows = _left_out(block, record, machines, likelihood, link)
        by_covariance: list[Array] = [(record.phi * row.by_explained[:, None]).T @ record.phi for row in rows.each]
        return LossSums(rows.loss, [record.phi.T @ row.by_mean for row in rows.each], by_covariance)

    return reduce(iadd, map(of, blocks))


def block_loss_gradient(
    blocks: Iterable[Block],
    workspace: Workspace,  # noqa: ARG001
    *,
    features: LearnableFeatures,
    machines: Sequence[Learner],
    likelihood: Likelihood,
    link: Probit | Softmax,
    responses: Sequence[Response] | None,
) -> FeatureGradient:
    """The derivative of the leave-one-out log loss by the features, link and sites held (D17).

    Without ``responses`` q is held too, in whitened weights. With them q follows the features as it would if the sites
    stayed as they are, ``P = I + Σ w phi phiᵀ`` and ``h = Σ γ phi``: to ``phī`` that adds ``2 w P̄ phi + γ h̄``.
    """

    def of(block: Block) -> FeatureGradient:
        record = features.recorded(block.X)
        phi_bar, variance_bar = np.zeros_like(record.phi), np.zeros(len(block.y))
        rows = _left_out(block, record, machines, likelihood, link)
        for i, row in enumerate(rows.each):
            phi_bar += row.at.pulled(record, row.by_mean, row.by_explained, row.by_residual)
            variance_bar += row.by_residual
            if responses is not None:
                linear, precision = responses[i]
                phi_bar += 2 * row.site_precision[:, None] * (record.phi @ precision)
                phi_bar += row.site_linear[:, None] * linear
        return record.pull(phi_bar, variance_bar)

    return reduce(iadd, map(of, blocks))


class _Seen(NamedTuple):
    """f at some rows, as a Gaussian q sees it (D4)."""

    q: Gaussian
    mean: Array
    explained: Array
    residual: Array
    spread: Array  # Phi S

    @property
    def variance(self) -> Array:
        return self.explained + self.residual

    @classmethod
    def of(cls, record: RecordedFeatures, offset: float, q: Gaussian) -> _Seen:
        phi, spread = record.phi, record.phi @ q.covariance
        residual = np.zeros(len(phi))
        if record.prior_variance is not None:
            residual = np.maximum(record.prior_variance - np.einsum("ij,ij->i", phi, phi), 0.0)
        return cls(q, offset + phi @ q.mean, np.einsum("ij,ij->i", spread, phi), residual, spread)

    def pulled(self, record: RecordedFeatures, by_mean: Array, by_explained: Array, by_residual: Array) -> Array:
        """``phī = m̄ mu + 2 t̄ S phi - 2 r̄ phi`` from ``m = c + phiᵀmu``, ``t = phiᵀSphi``, ``r = k(x,x) - |phi|²``."""
        phi_bar: Array = np.outer(by_mean, self.q.mean)
        phi_bar += 2 * by_explained[:, None] * self.spread
        if record.prior_variance is not None:
            phi_bar -= 2 * by_residual[:, None] * record.phi
        return phi_bar


class _LeftOut(NamedTuple):
    """One machine's rows with their own sites removed: the loss's derivatives by m, t and r; the sites in q."""

    at: _Seen
    by_mean: Array
    by_explained: Array
    by_residual: Array
    site_precision: Array
    site_linear: Array


class _LeftOutRows(NamedTuple):
    loss: float
    each: list[_LeftOut]


def _left_out(
    block: Block,
    record: RecordedFeatures,
    machines: Sequence[Learner],
    likelihood: Likelihood,
    link: Probit | Softmax,
) -> _LeftOutRows:
    """Cavities (D10), the loss of the link there, and its derivatives through them.

    With ``o = 1 - w t`` and γ = g - w c: ``∂m₋/∂m = 1/o``, ``∂m₋/∂t = (w (m-c) - γ)/o²``, ``∂t₋/∂t = 1/o²``; where o is
    held at its floor, ``-γ/o`` and ``1/o``.
    """
    weight = np.ones(len(block.y)) if block.weight is None else block.weight
    seen, sites, means, variances, shares = [], [], [], [], []
    for machine in machines:
        before = _Seen.of(record, machine.offset, machine.before)
        at = before if machine.before is machine.posterior else _Seen.of(record, machine.offset, machine.posterior)
        local = likelihood.update(before.mean, before.variance, block.signs(machine.label))
        w, gamma = weight * local.precision, weight * (local.linear - local.precision * machine.offset)
        share = np.maximum(1 - w * at.explained, SMALLEST_SHARE)
        means.append(machine.offset + (at.mean - machine.offset - at.explained * gamma) / share)
        variances.append(at.explained / share + at.residual)
        seen.append(at)
        sites.append((w, gamma))
        shares.append(share)
    loss, by_means, by_variances = log_loss(link, np.column_stack(means), np.column_stack(variances), block.y, weight)
    each = []
    for i, machine in enumerate(machines):
        (w, gamma), share, at = sites[i], shares[i], seen[i]
        m_bar, v_bar = by_means[:, i], by_variances[:, i]
        free = (m_bar * (w * (at.mean - machine.offset) - gamma) + v_bar) / share**2
        by_explained = np.where(share > SMALLEST_SHARE, free, (v_bar - m_bar * gamma) / share)
        each.append(_LeftOut(at, m_bar / share, by_explained, v_bar, w, gamma))
    return _LeftOutRows(loss, each)
