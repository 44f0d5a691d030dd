"""Workflow: describe a model, as plain values and in words, for the command line and the report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayesvm import persistence
from bayesvm.data.quantiles import QuantileScaler
from bayesvm.estimators.effects import column_name
from bayesvm.evaluation import metrics
from bayesvm.evaluation.formatting import column_label, listed, three_digits
from bayesvm.inference.calibrating import mean_loss
from bayesvm.inference.effects import local_spreads
from bayesvm.preparation import Recipe
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.encoding import MISSING, CategoryColumn, NumberColumn
from bayesvm.workflow.model import TableModel
from bayesvm.workflow.splitting import CLASSIFICATION, REGRESSION

MOST_LINES = 4  # columns that are left out for the same reason
LITTLE = 0.1  # standard deviation of a local model below which it is negligible
SCALING_DESCRIPTIONS = {
    "standard": "standard: each feature to mean 0 and standard deviation 1",
    "common": "common: all features divided by the same number",
    "quantile": "quantile: each feature by its ranks, to normal scores",
    None: "none",
}
LINK_DESCRIPTIONS = {
    "Probit": "one probit",
    "TwoProbits": "a mean of two probits, fitted to leave-one-out marginals",
    "Softmax": "a softmax, fitted to leave-one-out marginals",
    "Normalised": "each class against the rest, divided by the sum",
    "Hinge": "the normalised pseudo-likelihood",
    "Paper": "the paper's printed formula",
    "Tube": "a density with a tube, fitted to leave-one-out marginals",
    "VaryingTube": "a density with a tube and varying noise, fitted to leave-one-out marginals",
}


def described(model: TableModel, path: Path | None = None) -> dict[str, Any]:
    """All facts about a model; ``path`` is its file."""
    estimator = model.estimator
    evaluated = model.default_evaluation
    report = getattr(estimator, "tuning_report_", None)
    return {
        "file": None
        if path is None
        else {"path": str(path), "bytes": path.stat().st_size, "format_version": persistence.version_of(path)},
        "card": model.card,
        "estimator": type(estimator).__name__,
        "task": REGRESSION if model.is_regression else CLASSIFICATION,
        "classes": getattr(estimator, "classes_", None),
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
        "leave_one_out": left_out(model),
        "evaluated_on": evaluated.source,
        "n_evaluated": evaluated.predictions.n_rows,
        "metrics": metrics(evaluated.predictions),
        "effects": effects(model),
        "members": members(estimator),
        "tuning": None
        if report is None
        else {"trials": [vars(trial) for trial in report.trials], "chosen": report.chosen, "failed": report.failed},
    }


def left_out_lines(reasons: Mapping[str, str]) -> list[str]:
    """One line for each column that is left out, or for each reason if it has many columns."""
    groups: dict[str, list[str]] = {}
    for name, why in reasons.items():
        groups.setdefault(re.sub(r" \([^)]*\)", "", why), []).append(name)
    lines = []
    for why, names in groups.items():
        if len(names) <= MOST_LINES:
            lines += [f"left out: {column_label(name)} ({reasons[name]})" for name in names]
        else:
            shown = listed([column_label(name) for name in names], MOST_LINES)
            lines.append(f"left out: {len(names):,} columns ({why}): {shown}")
    return lines


def left_out(model: TableModel) -> dict[str, float]:
    """Leave-one-out estimates of the fit, by name."""
    estimator = model.estimator
    if model.is_regression:
        return {"rmse": estimator.loo_rmse_, "log_density": estimator.loo_log_density_}
    return {"log_loss": estimator.loo_log_loss_, "error": estimator.loo_error_}


def _columns(model: TableModel) -> list[dict[str, Any]]:
    """For each column that is used: its kind, its categories, and the treatment of missing values."""
    found = []
    for column in model.recipe.columns:
        facts: dict[str, Any] = {"name": column.name, "kind": column.kind, "features": len(column.names)}
        if isinstance(column, DateColumn):
            facts["parts"] = column.parts
        if isinstance(column, CategoryColumn):
            facts |= {"categories": column.categories, "rare_categories": column.rare}
            missing = "a category of its own" if MISSING in column.categories else column.unknown
        elif isinstance(column, NumberColumn) and column.marks_missing:
            missing = "completed from the other columns, and marked by a feature"
        elif isinstance(column, NumberColumn) and column.fill is not None:
            missing = f"{column.fill:g}" + (", and marked by a feature" if column.indicator else "")
        elif getattr(model.estimator, "completion_", None) is None:
            missing = "refused"
        else:
            missing = "completed from the other columns"
        found.append(facts | {"missing": missing})
    return found


def effects(model: TableModel) -> list[dict[str, Any]]:
    """Effects with their columns (one or two columns of the table) and shares, largest share first."""
    return [
        {"columns": list(effect.factor_names()), "share": effect.share, "variance": effect.variance}
        for effect in getattr(model.estimator, "effects_", ())
    ]


def effect_columns(effect: Any, recipe: Recipe) -> list[str]:
    """The column of the table, or both columns, of an effect."""
    return [column_name(factor, recipe) for factor in effect.factors]


def members(estimator: Any) -> list[dict[str, Any]]:
    """The members of a committee, heaviest first; empty for a single model."""
    fitted = estimator.fitted_
    if len(fitted.members) < 2:
        return []
    total = sum(member.weight for member in fitted.members)
    return [
        {
            "weight": member.weight / total,
            "scaling": estimator.scale_ if member.scaler is None else _scaling(member.scaler),
            "kernel": _short_kernel(getattr(member.features, "kernel", None)),
            "inducing_points": len(getattr(member.features, "inducing_points", ())),
            "leaves": 0 if member.leaves is None else member.leaves.tree.n_leaves,
            "leave_one_out_log_loss": mean_loss(link, left),
        }
        for member, link, left in zip(fitted.members, fitted.links, fitted.left_out, strict=True)
    ]


def _scaling(scaler: Any) -> str | None:
    """The name of a scaling, as in the parameter ``scale``."""
    if isinstance(scaler, QuantileScaler):
        return "quantile"
    if scaler.scale is None:
        return None
    return "common" if len(scaler.scale) > 1 and np.ptp(scaler.scale) == 0 else "standard"


def _short_kernel(kernel: Any) -> str:
    """The kind of a kernel and the number of its length-scales; for a sum, those of its first part."""
    if kernel is None:
        return "linear"
    first = next(iter(getattr(kernel, "kernels", [kernel])))
    kind = f"Matérn {2 * first.nu:.0f}/2" if hasattr(first, "nu") else type(first).__name__
    if first.length_scales is None:
        return kind
    return f"{kind}, {'one length-scale per feature' if first.has_relevance else 'one length-scale'}"


def describe_kernel(estimator: Any) -> str:
    """The kernel in words; for the linear model, the prior variance of its weights."""
    if hasattr(estimator, "kernel_"):
        return _kernel(estimator.kernel_) + _local(estimator.fitted_.member)
    variance = np.asarray(estimator.prior_variance_)
    each = np.unique(np.diag(variance) if variance.ndim == 2 else variance)
    span = three_digits(each[0]) + (f" to {three_digits(each[-1])}" if len(each) > 1 else "")
    return f"none: linear in the features, prior variance {span}"


def _local(member: Any) -> str:
    """The local models of a member in words, and how many of them are negligible."""
    if member.leaves is None:
        return ""
    points = sum(leaf.features.n_weights for leaf in member.leaves.leaves)
    quiet = sum(spread < LITTLE for spread in local_spreads(member.leaves))
    silent = f"; in {quiet:,} of them the local model is negligible" if quiet else ""
    return (
        f"; plus local models in {member.leaves.tree.n_leaves:,} leaves, {points:,} inducing points in total, "
        f"variance {three_digits(member.leaves.kernel.variance)}{silent}"
    )


def _kernel(kernel: Any, weight: float = 1.0) -> str:
    parts = getattr(kernel, "kernels", None)
    if parts is not None:
        weights = kernel.checked_weights()
        return "sum of: " + "; ".join(_kernel(part, weight * w) for part, w in zip(parts, weights, strict=True))
    kind = type(kernel).__name__
    names = {
        "RBF": "RBF (very smooth)",
        "Laplacian": "Laplacian (rough, column by column)",
        "Linear": "linear in the features",
    }
    words = f"Matérn {2 * kernel.nu:.0f}/2 (less smooth)" if kind == "Matern" else names.get(kind, kind.lower())
    if hasattr(kernel, "length_scale"):
        scales = np.atleast_1d(kernel.length_scale)
        low, high = three_digits(scales.min()), three_digits(scales.max())
        words += (
            f", with one length-scale per feature, from {low} to {high}"
            if len(scales) > 1
            else f", with one length-scale for all features: {low}"
        )
    variance = weight * float(getattr(kernel, "variance", 1.0))
    return words + (f", variance {three_digits(variance)}" if hasattr(kernel, "variance") or weight != 1 else "")
