"""Reproduction: how far each bound (D7, D8) is from the posterior itself, which the Gibbs sampler of D21 draws from."""

import time

import numpy as np
from sklearn.metrics import log_loss

from bayesvm import BayesianSVC
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.kernels import RBF
from experiments.competitors.gibbs import GibbsClassifier


def measure_truth(X, y, *, length_scale, variance=4.0, n_draws=20_000, burn_in=500, n_kept=500, random_state=0):
    """A record of plain numbers for each bound: its f and its leave-one-out beside the sampler's, on the same rows.

    Every row is an inducing point and nothing is scaled or tuned, so that both have the same prior; probabilities are
    those of the plain probit link. Differences are bound minus sampler, ratios bound over sampler. What holds of the
    sampler alone has the prefix ``sampler_`` and is the same in every record. ``monte_carlo_error`` is what the mean
    of f is off by chance: a gap of that size means nothing.
    """
    started = time.perf_counter()
    how = {"length_scale": length_scale, "variance": variance, "n_draws": n_draws, "burn_in": burn_in}
    sampler = GibbsClassifier(**how, n_kept=n_kept, random_state=random_state).fit(X, y)
    of_sampler = {"sampler_seconds": time.perf_counter() - started}
    left_out = sampler.leave_one_out()
    of_sampler |= {
        "n_rows": len(X),
        "sampler_draws": n_draws,
        "sampler_effective_min": float(sampler.effective_sample_size_.min()),
        "sampler_effective_median": float(np.median(sampler.effective_sample_size_)),
        "sampler_loo_effective_min": float(left_out.effective_draws.min()),
        "sampler_loo_log_loss": float(log_loss(y, left_out.probability, labels=sampler.classes_)),
        "monte_carlo_error": _root_mean_square(np.sqrt(sampler.f_variance_ / sampler.effective_sample_size_)),
    }
    return [_record(bound, X, y, sampler, left_out) | of_sampler for bound in LIKELIHOODS]


def fitted(bound, X, y, length_scale, variance):
    """The library's model of the same prior, converged as far as double precision carries."""
    kernel = RBF(length_scale, variance)
    how = {"n_inducing": None, "tune": None, "scale": None, "link": "probit", "inference": "batch"}
    return BayesianSVC(kernel, bound=bound, precision="double", tol=1e-9, max_iter=2000, n_jobs=1, **how).fit(X, y)


def _record(bound, X, y, sampler, left_out):
    started = time.perf_counter()
    model = fitted(bound, X, y, sampler.length_scale, sampler.variance)
    seconds = time.perf_counter() - started
    m, v = model.latent_mean_and_variance(X)
    gap, loo_gap = m - sampler.f_mean_, model.loo_proba_[:, 1] - left_out.probability
    cavity_ratio = np.sqrt(model._cavities.variance[:, 0] / left_out.variance)  # noqa: SLF001  (not public)
    return {
        "bound": bound,
        "mean_rmse": _root_mean_square(gap),
        "mean_max_abs": float(np.abs(gap).max()),
        "deviation_ratio": float(np.mean(np.sqrt(v / sampler.f_variance_))),
        "loo_mean_rmse": _root_mean_square(model._cavities.mean[:, 0] - left_out.mean),  # noqa: SLF001  (not public)
        "loo_deviation_ratio": float(np.mean(cavity_ratio)),
        "loo_probability_rmse": _root_mean_square(loo_gap),
        "loo_log_loss": float(model.loo_log_loss_),
        "seconds": seconds,
    }


def _root_mean_square(x):
    return float(np.sqrt(np.mean(np.square(x))))
