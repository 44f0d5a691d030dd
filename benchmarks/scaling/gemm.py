"""Scaling: what share of the machine's own matrix product a training pass and a whole default fit reach."""

import time
import warnings
from functools import partial

import numpy as np
from benchmarks.scaling.generated import D, fresh
from benchmarks.scaling.machine import CORES, gemm_rate, pass_flops, seconds
from experiments.registry.problems import collisions
from experiments.runs.spent import added_up
from sklearn.exceptions import ConvergenceWarning

from bayesvm import BayesianSVC
from bayesvm.core.posterior import DIAGONALISE_FROM
from bayesvm.inference.kernel_model import KernelModel
from bayesvm.kernels import RBF

SIZES = (64, 256, 512, 1024)
FITTED = (64, 256)  # whole fits, each followed by two of the precisions
PRECISION_ROWS = 100_000


def measured(quick):
    rate = gemm_rate()
    yield from passes(rate, quick)
    yield from whole_fits(rate, quick)


def passes(rate, quick):
    data = collisions(1_000_000 // (50 if quick else 1), 0)
    for m in SIZES:
        rows = len(data.y) if m == 64 else len(data.y) // 4 if m < 1024 else len(data.y) // 10
        few_rows = min(DIAGONALISE_FROM * m, rows // 2)  # so few still have all of a step's work of order M³
        one, few = (seconds_of_a_pass(data.X[:n], data.y[:n], m) for n in (rows, few_rows))
        yield {
            "what": "pass",
            "m": m,
            "n_rows": rows,
            "share": rows * pass_flops(m, D) / one / rate,
            "seconds_per_million": one / rows * 1e6,
            "step_seconds": max(few - few_rows * (one - few) / (rows - few_rows), 0.0),
        }


def seconds_of_a_pass(X, y, m):
    """From fits of two and of six passes, which share all else."""
    how = {"kernel": RBF(4.0, 4.0), "inducing": X[:m].astype(float), "scale": None, "tune": None, "link": "probit"}
    times = []
    for n in (2, 6):
        model = BayesianSVC(
            **how, inference="batch", precision="single", tol=0, max_iter=n, n_jobs=CORES, random_state=0
        )
        times.append(seconds(partial(model.fit, X, y)))
    return (times[1] - times[0]) / 4


def whole_fits(rate, quick):
    test = fresh(10_000)
    for m in FITTED:
        data = collisions((1_000_000 if m < 512 else 250_000) // (50 if quick else 1), 0)
        model = BayesianSVC(n_inducing=m, n_jobs=CORES, random_state=0)
        tuning = []
        start = time.perf_counter()
        with added_up(KernelModel, "prepare", tuning):
            model.fit(data.X, data.y)
        elapsed = time.perf_counter() - start
        flops = model.n_passes_ * len(data.y) * pass_flops(m, D)
        yield {
            "what": "fit",
            "m": m,
            "n_rows": len(data.y),
            "seconds": elapsed,
            "tuning_seconds": sum(tuning),
            "passes": model.n_passes_,
            "share": flops / elapsed / rate,
            "share_without_tuning": flops / (elapsed - sum(tuning)) / rate,
        } | precision_error(model, data, test.X)


def precision_error(found, data, X):
    """The largest difference of f between a fit in single and one in double precision, all else the same."""
    X_train, y_train = data.X[:PRECISION_ROWS], data.y[:PRECISION_ROWS]
    how = {
        "kernel": found.kernel_,
        "inducing": found.inducing_points_,
        "scale": found.scale_,
        "tune": None,
        "tol": 1e-7,
        "max_iter": 30,
        "n_jobs": CORES,
        "random_state": 0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the row tells it
        both = [BayesianSVC(**how, precision=name).fit(X_train, y_train) for name in ("single", "double")]
    single, double = (model.latent_mean_and_variance(X)[0] for model in both)
    return {
        "difference_of_f": float(np.abs(single - double).max()),
        "largest_f": float(np.abs(double).max()),
        "both_converged": all(model.converged_ for model in both),
    }
