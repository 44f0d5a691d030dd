"""Workflow: what is in a model, as plain values and in words. The command line and the report use the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bayesvm import persistence
from bayesvm.evaluation import metrics
from bayesvm.preparation.encoding import MISSING, CategoryColumn
from bayesvm.workflow.model import TableModel

SCALING_DESCRIPTIONS = {
    "standard": "standard: each feature to mean 0 and standard deviation 1",
    "common": "common: all features divided by the same number",
    "quantile": "quantile: each feature by its ranks, to a bell curve",
    None: "none",
}
LINK_DESCRIPTIONS = {
    "Probit": "one probit",
    "TwoProbits": "a mean of two probits, fitted to leave-one-out marginals",
    "Softmax": "a softmax, fitted to leave-one-out marginals",
    "Normalised": "each class against the rest, divided by the sum",
    "Hinge": "the normalised pseudo-likelihood",
    "Paper": "the paper's printed formula",
}


def described(model: TableModel, path: Path | None = None) -> dict[str, Any]:
    """All that people may want to know of a model; ``path`` is its file."""
    estimator = model.estimator
    judged = model.judged_by_default
    report = getattr(estimator, "tuning_report_", None)
    return {
        "file": None
        if path is None
        else {"path": str(path), "bytes": path.stat().st_size, "format_version": persistence.version_of(path)},
        "card": model.card,
        "estimator": type(estimator).__name__,
        "classes": estimator.classes_,
        "columns": _columns(model),
        "left_out": model.recipe.left_out,
        "kernel": describe_kernel(estimator),
        "inducing_points": len(estimator.inducing_points_) if hasattr(estimator, "inducing_points_") else None,
        "scaling": SCALING_DESCRIPTIONS[estimator.scale_],
        "link": LINK_DESCRIPTIONS[type(estimator.fitted_.link).__name__],
        "elbo": estimator.elbo_,
        "updates": estimator.n_iter_,
        "passes": estimator.n_passes_,
        "converged": estimator.converged_,
        "interrupted": getattr(estimator, "interrupted_", False),
        "leave_one_out": {"log_loss": estimator.loo_log_loss_, "error": estimator.loo_error_},
        "judged_on": judged.source,
        "judged_rows": judged.predictions.n_rows,
        "metrics": metrics(judged.predictions),
        "relevance": _relevance(model),
        "tuning": None
        if report is None
        else {"trials": [vars(trial) for trial in report.trials], "chosen": report.chosen, "failed": report.failed},
    }


def _columns(model: TableModel) -> list[dict[str, Any]]:
    """Of each column that is learned from: its kind, its categories, and what becomes of a missing value."""
    found = []
    for column in model.recipe.columns:
        facts: dict[str, Any] = {"name": column.name, "kind": column.kind, "features": len(column.names)}
        if isinstance(column, CategoryColumn):
            facts |= {"categories": column.categories, "rare_categories": column.rare}
            missing = "a category of its own" if MISSING in column.categories else column.unknown
        elif np.isnan(column.fill):
            missing = "refused"
        else:
            missing = f"{column.fill:g}" + (", and a feature says so" if column.indicator else "")
        found.append(facts | {"missing": missing})
    return found


def _relevance(model: TableModel) -> dict[str, float] | None:
    """Share of every column in the squared distances, the largest first; None where there are no distances."""
    shares = getattr(model.estimator, "relevance_", None)
    if shares is None:
        return None
    summed = {name: float(shares[features].sum()) for name, features in model.recipe.groups.items()}
    return dict(sorted(summed.items(), key=lambda item: -item[1]))


def describe_kernel(estimator: Any) -> str:
    """Which rows it takes for similar; of the linear model, how large its weights may be."""
    if hasattr(estimator, "kernel_"):
        return _kernel(estimator.kernel_)
    variance = np.asarray(estimator.prior_variance_)
    each = np.unique(np.diag(variance) if variance.ndim == 2 else variance)
    span = f"{each[0]:.3g}" + (f" to {each[-1]:.3g}" if len(each) > 1 else "")
    return f"none: linear in the features, prior variance {span}"


def _kernel(kernel: Any, weight: float = 1.0) -> str:
    parts = getattr(kernel, "kernels", None)
    if parts is not None:
        weights = kernel.checked_weights()
        return "sum of: " + "; ".join(_kernel(part, weight * w) for part, w in zip(parts, weights, strict=True))
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
    variance = weight * float(getattr(kernel, "variance", 1.0))
    return words + (f", variance {variance:.3g}" if hasattr(kernel, "variance") or weight != 1 else "")
