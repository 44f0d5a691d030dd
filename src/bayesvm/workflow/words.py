"""Workflow: what the command line and the report call the parts of a model, so that both say the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

METRICS = {
    "error": "error",
    "brier": "Brier score",
    "log_loss": "log loss",
    "auc": "AUC",
    "calibration_error": "calibration error",
}
SCALINGS = {
    "standard": "standard: each feature to mean 0 and standard deviation 1",
    "common": "common: all features divided by the same number",
    "quantile": "quantile: each feature by its ranks, to a bell curve",
    None: "none",
}
LINKS = {
    "Probit": "one probit",
    "TwoProbits": "a mean of two probits, fitted to leave-one-out marginals",
    "Softmax": "a softmax, fitted to leave-one-out marginals",
    "Normalised": "each class against the rest, divided by the sum",
    "Hinge": "the normalised pseudo-likelihood",
    "Paper": "the paper's printed formula",
}


def decimal(value: float) -> str:
    """A metric: four decimals, or a dash for what there is not.

    >>> decimal(0.12345), decimal(float("nan"))
    ('0.1235', '–')
    """
    return "–" if math.isnan(value) else f"{value:.4f}"


def percent(share: float) -> str:
    """Three digits, and no more than it has.

    >>> percent(1.0), percent(0.95), percent(0.9517)
    ('100%', '95%', '95.2%')
    """
    return f"{100 * share:.3g}%"


def link(estimator: Any) -> str:
    """How a probability is made of the posterior."""
    return LINKS[type(estimator._link).__name__]  # noqa: SLF001


def scaling(estimator: Any) -> str:
    """What becomes of the features first."""
    return SCALINGS[scaling_of(estimator)]


def scaling_of(estimator: Any) -> str | None:
    """That of the fit which was kept: tuning may try others after it."""
    report = getattr(estimator, "tuning_report_", None)
    fits = [] if report is None else [trial for trial in report.trials if trial.what == "fit"]
    if fits:
        name: str | None = fits[-1].scale
        return name
    return "standard" if estimator.scale == "auto" else estimator.scale


def kernel(estimator: Any) -> str:
    """Which rows it takes for similar; of the linear model, how large its weights may be."""
    if hasattr(estimator, "kernel_"):
        return _kernel(estimator.kernel_)
    variance = np.asarray(estimator.prior_variance_)
    each = np.unique(np.diag(variance) if variance.ndim == 2 else variance)
    told = f"{each[0]:.3g}" + (f" to {each[-1]:.3g}" if len(each) > 1 else "")
    return f"none: linear in the features, prior variance {told}"


def _kernel(kernel: Any) -> str:
    parts = getattr(kernel, "kernels", None)
    if parts is not None:
        return "sum of: " + "; ".join(map(_kernel, parts))
    kind = type(kernel).__name__
    names = {"RBF": "RBF (very smooth)", "Linear": "linear: the classes are parted by a plane"}
    words = f"Matérn {2 * kernel.nu:.0f}/2 (less smooth)" if kind == "Matern" else names.get(kind, kind.lower())
    if hasattr(kernel, "length_scale"):
        scales = np.atleast_1d(kernel.length_scale)
        words += (
            f", with a length-scale of its own for every feature, from {scales.min():.3g} to {scales.max():.3g}"
            if len(scales) > 1
            else f", with one length-scale for all features: {scales[0]:.3g}"
        )
    return words + (f", variance {float(kernel.variance):.3g}" if hasattr(kernel, "variance") else "")
