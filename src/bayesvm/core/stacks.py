"""Core: batches of many small models for leaves (D30): the formulas of D4 to D6 and D9 with an axis for the model.

A single model of a few hundred rows spends most of its time between matrix products, not in them. In a stack, every
call processes all models, and threads do not wait for the interpreter. Models are padded to the same size with rows of
weight zero and features that are zero everywhere, which have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bayesvm.core.heads.contract import Targets
from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.products import row_factors

LARGEST_STEP, SMALLEST_STEP, GROWTH = 1.0, 1e-4, 2.0
FASTEST, SLOWEST = 0.1, 0.95  # limits of the estimated rate at which gains shrink
SMALLEST_HALF = 40  # size of the smallest matrix that is inverted by halves


class Posteriors(NamedTuple):
    """``N(mean, root rootᵀ)`` for every model, from ``P`` and ``h``; the root is in single precision."""

    precision: Array  # models × M × M
    linear: Array  # models × M
    mean: Array
    root: Array
    log_det: Array  # of the precision

    @classmethod
    def of(cls, precision: Array, linear: Array) -> Posteriors:
        """``mu = S h``, ``S = root rootᵀ`` with ``root = L^-T``, ``P = L Lᵀ``; the mean is iteratively refined."""
        factor = np.linalg.cholesky(precision)
        inverse = inverted(factor.astype(np.float32))
        root = np.ascontiguousarray(np.swapaxes(inverse, 1, 2))
        mean = np.zeros(linear.shape)
        for _ in range(3):
            mean += _times(root, _times(inverse, (linear - _times(precision, mean)).astype(np.float32)))
        log_det = 2 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        return cls(precision, linear, mean, root, log_det)

    @classmethod
    def prior(cls, n_models: int, n_weights: int) -> Posteriors:
        """``N(0, I)`` for every model."""
        one, zero = np.tile(np.eye(n_weights), (n_models, 1, 1)), np.zeros((n_models, n_weights))
        return cls(one, zero, zero, one.astype(np.float32), np.zeros(n_models))

    def moved(self, target: tuple[Array, Array], rho: Array) -> Posteriors:
        """``P ← (1-ρ)P + ρP̂`` and ``h ← (1-ρ)h + ρĥ`` (D6), with one ρ per model."""
        precision, linear = target
        step = rho[:, None, None]
        return Posteriors.of(
            (1 - step) * self.precision + step * precision, (1 - rho[:, None]) * self.linear + rho[:, None] * linear
        )

    def divergence_from(self, prior: Posteriors) -> Array:
        """``KL(q || prior)`` for every model (D9)."""
        gap = self.mean - prior.mean
        trace = np.einsum(
            "ijk,ijk->i", self.root, prior.precision.astype(self.root.dtype) @ self.root, dtype=np.float64
        )
        squared = np.einsum("ij,ij->i", gap, _times(prior.precision, gap))
        return np.asarray(0.5 * (trace + squared - gap.shape[1] + self.log_det - prior.log_det))

    def divergence_from_standard(self) -> Array:
        """``KL(q || N(0, I))`` for every model, without matrix products."""
        trace = np.einsum("ijk,ijk->i", self.root, self.root, dtype=np.float64)
        squared = np.einsum("ij,ij->i", self.mean, self.mean)
        return np.asarray(0.5 * (trace + squared - self.mean.shape[1] + self.log_det))

    def take(self, which: Any) -> Posteriors:
        """Some of the models."""
        return Posteriors(*(part[which] for part in self))


@dataclass(frozen=True)
class Stack:
    """Rows of several models with their features, padded: arrays of models × rows, or models × rows × M.

    ``prior_mean`` has one column per function: ``f = prior_mean + phiᵀ beta + residual``.
    """

    phi: Array
    residual: Array
    prior_mean: Array
    y: Array
    weight: Array

    @property
    def n_models(self) -> int:
        """The length of the first axis."""
        return len(self.phi)

    @property
    def total_weight(self) -> Array:
        """The total weight of the rows of each model."""
        return np.asarray(self.weight.sum(axis=1))

    def take(self, which: Any) -> Stack:
        """Some of the models, in this order; repetitions are allowed."""
        return Stack(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def weighted(self, weight: Array) -> Stack:
        """The same rows with other weights."""
        return replace(self, weight=weight)

    def marginals(self, q: Posteriors, function: int) -> tuple[Array, Array]:
        """``m = c + phiᵀ mu`` and ``t = phiᵀ S phi`` for every row (D4)."""
        dtype = self.phi.dtype
        mean = self.prior_mean[:, :, function] + _times(self.phi, q.mean.astype(dtype))
        spread = self.phi @ q.root.astype(dtype)
        return mean, np.einsum("ijk,ijk->ij", spread, spread).astype(np.float64)


class Evaluation(NamedTuple):
    """The result of one pass: each model's ELBO (D9), the target of its step (D6) and the sites of its rows (D5)."""

    elbo: Array
    target: tuple[Array, Array]
    precision: Array  # ω w
    linear: Array  # γ = ω (g - w c)

    def take(self, which: Any) -> Evaluation:
        """The values of some models."""
        return Evaluation(
            self.elbo[which],
            (self.target[0][which], self.target[1][which]),
            self.precision[which],
            self.linear[which],
        )


@dataclass(frozen=True)
class StackProblem:
    """The problem that each model of a stack solves, for one function of the head; the prior defaults to N(0, I)."""

    stack: Stack
    head: Targets
    likelihood: Likelihood
    function: int
    prior: Posteriors | None = None

    def evaluated(self, q: Posteriors) -> Evaluation:
        """One pass over the rows of all models."""
        stack = self.stack
        mean, explained = stack.marginals(q, self.function)
        target = self.head.target(stack.y, self.function)
        local = self.likelihood.update(mean, explained + stack.residual, target)
        w = stack.weight * local.precision
        gamma = stack.weight * local.linear - w * stack.prior_mean[:, :, self.function]
        kl = q.divergence_from_standard() if self.prior is None else q.divergence_from(self.prior)
        elbo = np.einsum("ij,ij->i", stack.weight, local.bound) - kl
        return Evaluation(elbo, self.natural(w, gamma), w, gamma)

    def natural(self, w: Array, gamma: Array) -> tuple[Array, Array]:
        """``P̂ = P₀ + Σ w phi phiᵀ`` and ``ĥ = h₀ + Σ γ phi`` (D6)."""
        phi, dtype = self.stack.phi, self.stack.phi.dtype
        scaled = phi * row_factors(np.sqrt(w), dtype)[:, :, None]
        precision = (np.swapaxes(scaled, 1, 2) @ scaled).astype(np.float64)
        linear = _times(np.swapaxes(phi, 1, 2), row_factors(gamma, dtype)).astype(np.float64)
        if self.prior is None:
            precision += np.eye(phi.shape[2])
            return precision, linear
        return precision + self.prior.precision, linear + self.prior.linear

    def take(self, which: Any) -> StackProblem:
        """Some of the models."""
        return replace(self, stack=self.stack.take(which), prior=None if self.prior is None else self.prior.take(which))


class Ascended(NamedTuple):
    """The best posterior of each model, its evaluation, whether the ascent converged, and the ρ of the next step."""

    best: Posteriors
    at: Evaluation
    converged: Array
    rho: Array  # of the next step

    def settled(self) -> Posteriors:
        """The posteriors after a full step, so that q is the prior times the sites, as D10 requires.

        Far from convergence a full step can be far too long. Where full steps overshot, the next step is taken instead.
        """
        return self.best.moved(self.at.target, np.where(self.converged, 1.0, np.minimum(self.rho, 1.0)))


def ascended(problem: StackProblem, start: Posteriors, updates: int, enough: float) -> Ascended:
    """Coordinate ascent with a guard, until the expected remaining gain is at most ``enough`` nats per unit of weight.

    If gains shrink by κ per step, the gains after a gain of g sum to ``g κ/(1-κ)`` (D30). A step that lowers the ELBO
    is halved. Models that have converged are left out of further passes.
    """
    n_models = problem.stack.n_models
    best, at = Posteriors(*map(np.array, start)), problem.evaluated(start)
    rho, gain, done = np.ones(n_models), np.full(n_models, np.inf), np.zeros(n_models, bool)
    limit, accepted_rho = enough * problem.stack.total_weight, rho.copy()
    noise = np.finfo(problem.stack.phi.dtype).eps
    for _ in range(updates):
        going = np.flatnonzero(~done)
        if not len(going):
            break
        q = best.take(going).moved(at.take(going).target, rho[going])
        found = problem.take(going).evaluated(q) if len(going) < n_models else problem.evaluated(q)
        gained = found.elbo - at.elbo[going]
        better = gained >= -noise * np.abs(at.elbo[going])
        accepted = going[better]
        for mine, theirs in ((best, q), (at, found)):
            _assign(mine, theirs, accepted, better)
        shrinks = np.clip(np.maximum(gained, 0) / gain[going], FASTEST, SLOWEST)
        # Gains of equal steps show how fast gains shrink. Where full steps keep overshooting, shorter steps are used.
        left = np.maximum(gained, 0) * shrinks / (1 - shrinks) / rho[going]
        done[going] = better & (rho[going] == accepted_rho[going]) & (left <= limit[going])
        accepted_rho[accepted] = rho[accepted]
        done[going] |= rho[going] < SMALLEST_STEP
        gain[accepted] = np.maximum(gained[better], 1e-300)
        rho[going] = np.where(better, np.minimum(GROWTH * rho[going], LARGEST_STEP), 0.5 * rho[going])
    return Ascended(best, at, done, rho)


def inverted(lower: Array) -> Array:
    """The inverses of lower triangular matrices, computed by halves, so that most of the work is matrix products."""
    size = lower.shape[-1]
    if size <= SMALLEST_HALF:
        return np.tril(np.linalg.inv(lower))
    first, second = slice(0, size // 2), slice(size // 2, size)
    found = np.zeros_like(lower)
    found[:, first, first] = inverted(lower[:, first, first])
    found[:, second, second] = inverted(lower[:, second, second])
    found[:, second, first] = -found[:, second, second] @ (lower[:, second, first] @ found[:, first, first])
    return found


def _assign(mine: Any, theirs: Any, where: Any, which: Any) -> None:
    """Copy some models from another tuple of arrays, in place."""
    for own, other in zip(mine, theirs, strict=True):
        if isinstance(own, tuple):
            _assign(own, other, where, which)
        else:
            own[where] = other[which]


def _times(matrices: Array, vectors: Array) -> Array:
    """The matrix-vector product for every model."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def padded(parts: Sequence[Array], n_rows: int) -> Array:
    """Stack arrays along a new axis, padded with zeros to a common length."""
    found = np.zeros((len(parts), n_rows, *parts[0].shape[1:]), parts[0].dtype)
    for own, part in zip(found, parts, strict=True):
        own[: len(part)] = part
    return found
