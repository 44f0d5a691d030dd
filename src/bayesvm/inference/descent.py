"""Inference: a minimiser for expensive objectives, where each evaluation is a fit.

BFGS with a trust region and box constraints (Nocedal and Wright, 2006, chapters 4 and 6). Unlike a line search, it
never evaluates the same direction twice, and failed steps still improve the curvature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from bayesvm.core.linalg import Array

GOOD, BAD = 0.75, 0.25  # ratios of actual to predicted gain above or below which the region grows or shrinks
GROWTH, SHRINKAGE = 2.0, 0.35
LEAST_SHARE = 0.2  # share of the curvature along a step that an update keeps (Powell's damping)
LARGEST_FACTOR = 10.0  # limit of the correction of the initial curvature after the first step
SMALLEST_STEP = 1e-3

Objective = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True)
class Point:
    """A vector, the objective at this point, and its gradient."""

    x: Array
    value: float
    slope: Array


@dataclass(frozen=True)
class Curvature:
    """A positive definite approximation of the Hessian."""

    matrix: Array

    @classmethod
    def guessed(cls, slope: Array, length: float) -> Curvature:
        """The multiple of the identity for which a descent step has this length."""
        return cls(np.eye(len(slope)) * max(float(np.linalg.norm(slope)), 1e-12) / length)

    def step(self, at: Point, low: Array, high: Array, region: float) -> Array:
        """The step to the minimum of the quadratic model, restricted to the region and the box."""
        held = ((at.x <= low) & (at.slope > 0)) | ((at.x >= high) & (at.slope < 0))
        free = np.flatnonzero(~held)
        step = np.zeros(len(at.x))
        if len(free):
            factor = linalg.cho_factor(self.matrix[np.ix_(free, free)], check_finite=False)
            step[free] = -linalg.cho_solve(factor, at.slope[free], check_finite=False)
        step *= min(1.0, region / max(float(np.linalg.norm(step)), 1e-300))
        return np.asarray(np.clip(at.x + step, low, high) - at.x)

    def promised(self, at: Point, step: Array) -> float:
        """The gain of a step that the quadratic model predicts."""
        return -float(at.slope @ step + 0.5 * step @ self.matrix @ step)

    def corrected(self, step: Array, change: Array) -> Curvature:
        """The initial curvature, rescaled to match the first step."""
        seen, guessed = float(step @ change), float(step @ self.matrix @ step)
        factor = np.clip(seen / guessed, 1 / LARGEST_FACTOR, LARGEST_FACTOR) if seen > 0 else 1.0
        return Curvature(self.matrix * factor)

    def updated(self, step: Array, change: Array) -> Curvature:
        """The curvature updated with the change of the gradient along a step."""
        drawn = self.matrix @ step
        before, seen = float(step @ drawn), float(step @ change)
        if seen < LEAST_SHARE * before:
            share = (1 - LEAST_SHARE) * before / (before - seen)
            change = share * change + (1 - share) * drawn
            seen = float(step @ change)
        return Curvature(self.matrix - np.outer(drawn, drawn) / before + np.outer(change, change) / seen)


def descend(objective: Objective, x: Array, low: Array, high: Array, most: int, region: float) -> Point:
    """The lowest point found from ``x`` with at most ``most`` evaluations; the first step has length ``region``.

    A failed evaluation returns infinity.
    """
    at = Point(x, *objective(x))
    model = Curvature.guessed(at.slope, region)
    first = True
    for _ in range(most - 1):
        step = model.step(at, low, high, region)
        length = float(np.linalg.norm(step))
        if length < SMALLEST_STEP:
            break
        there = Point(at.x + step, *objective(at.x + step))
        if not np.isfinite(there.value):
            region = SHRINKAGE * length
            continue
        ratio = (at.value - there.value) / max(model.promised(at, step), 1e-300)
        change = there.slope - at.slope
        model, first = (model.corrected(step, change) if first else model).updated(step, change), False
        if ratio < BAD:
            region = SHRINKAGE * length
        elif ratio > GOOD and length > 0.8 * region:
            region *= GROWTH
        at = there if there.value < at.value else at
    return at
