"""Inference: fit a diagonal covariance by L-BFGS, for linear models too wide for a full covariance (D14).

The ELBO is jointly concave in the means and standard deviations, so a quasi-Newton method finds its only optimum. With
correlated features, mean-field coordinate updates would converge slowly or diverge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import optimize

from bayesvm.core.latent import LatentFunction
from bayesvm.core.linalg import Array
from bayesvm.core.posterior import DiagonalGaussian
from bayesvm.core.statistics import Statistics
from bayesvm.data.blocks import BlockSource
from bayesvm.data.stopping import Stopped
from bayesvm.inference.problem import Problem, checked

SMALLEST_DEVIATION = 1e-8
SMALLEST_SLOPE = 1e-100  # of the ELBO; guards a division, and is not a stopping criterion


def maximise(
    problem: Problem,
    source: BlockSource,
    target: int,
    *,
    max_passes: int,
    tol: float,
    on_pass: Callable[[float], None],
    remembered: Callable[[Callable[[], Statistics]], Statistics] = lambda sums: sums(),
    stop: Callable[[], bool] = lambda: False,
) -> tuple[DiagonalGaussian, float, bool]:
    """The best mean field for one target, its ELBO, and whether the optimiser converged.

    One evaluation is one pass; ``on_pass`` is called with each ELBO, and ``remembered`` may already have its sums. Sums
    over a part of the rows are scaled up to all rows. If a pass is stopped on request, the best result before it is
    returned.
    """
    width = problem.features.n_weights
    per_row, scale = 1 / problem.total_weight, problem.total_weight / source.total_weight
    best: tuple[float, Array] | None = None

    def pass_at(q: DiagonalGaussian) -> Statistics:
        view, _ = problem.view([LatentFunction(target, 0.0, q)], source.n_rows)
        return source.reduce(
            partial(problem.engine.mean_field_gradient, view=view, **problem.head_and_likelihood)
        ).each[0]

    def loss(parameters: Array) -> tuple[float, Array]:
        mean, deviation = parameters[:width], parameters[width:]
        q = DiagonalGaussian(mean, deviation**2)
        nonlocal best
        sums = remembered(lambda: pass_at(q))
        elbo = checked(scale * sums.bound - q.kl_from_prior())
        on_pass(elbo)
        # D14: dELBO/dmu = Σ ∂B/∂m phi - mu;  dELBO/ds = -s Σ w phi² - s + 1/s
        linear, curvature = scale * sums.linear, scale * sums.curvature
        gradient = np.concatenate([linear - mean, 1 / deviation - deviation * (1 + curvature)])
        if best is None or elbo > best[0]:
            best = elbo, parameters.copy()
        return -elbo * per_row, -gradient * per_row

    def after_step(_: Array) -> None:
        if stop():
            raise StopIteration

    bounds = [(None, None)] * width + [(SMALLEST_DEVIATION, None)] * width
    options = {"maxfun": max_passes, "maxiter": max_passes, "ftol": tol * 1e-2, "gtol": SMALLEST_SLOPE, "maxcor": 20}
    try:
        found = optimize.minimize(  # type: ignore[call-overload]
            loss,
            np.concatenate([np.zeros(width), np.ones(width)]),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=after_step,
            options=options,
        )
    except Stopped:
        if best is None:
            raise
        elbo, parameters = best
        return DiagonalGaussian(parameters[:width], parameters[width:] ** 2), elbo, False
    q = DiagonalGaussian(found.x[:width], found.x[width:] ** 2)
    return q, float(-found.fun / per_row), bool(found.status == 0)
