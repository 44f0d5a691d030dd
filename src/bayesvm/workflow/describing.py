"""Workflow: what is in a model, as plain values and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bayesvm import persistence
from bayesvm.evaluation import metrics
from bayesvm.preparation.encoding import MISSING, CategoryColumn
from bayesvm.workflow import words
from bayesvm.workflow.judging import Judged
from bayesvm.workflow.model import TableModel


def described(model: TableModel, path: Path | None = None) -> dict[str, Any]:
    """All that people may want to know of a model; ``path`` is its file."""
    estimator = model.estimator
    judged = model.holdout or Judged.left_out(estimator)
    return {
        "file": None if path is None else _file(path),
        "card": model.card,
        "estimator": type(estimator).__name__,
        "classes": estimator.classes_,
        "columns": _columns(model),
        "left_out": model.recipe.left_out,
        "kernel": words.kernel(estimator),
        "inducing_points": len(estimator.inducing_points_) if hasattr(estimator, "inducing_points_") else None,
        "scaling": words.scaling(estimator),
        "link": words.link(estimator),
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
        "tuning": _tuning(estimator),
    }


def _file(path: Path) -> dict[str, Any]:
    return {"path": str(path), "bytes": path.stat().st_size, "format_version": persistence.version_of(path)}


def _columns(model: TableModel) -> list[dict[str, Any]]:
    """Of each column that is learned from: its kind, its categories, and what becomes of a missing value."""
    if model.recipe.numbered is not None:
        return []  # numbered features, as many as the file said
    told = []
    for column in model.recipe.columns:
        known: dict[str, Any] = {"name": column.name, "kind": column.kind, "features": len(column.names)}
        if isinstance(column, CategoryColumn):
            known |= {"categories": column.categories, "rare_categories": column.rare}
            missing = "a category of its own" if MISSING in column.categories else column.unknown
        elif np.isnan(column.fill):
            missing = "refused"
        else:
            missing = f"{column.fill:g}" + (", and a feature says so" if column.indicator else "")
        told.append(known | {"missing": missing})
    return told


def _relevance(model: TableModel) -> dict[str, float] | None:
    """Share of every column in the squared distances, the largest first; None where there are no distances."""
    shares = getattr(model.estimator, "relevance_", None)
    if shares is None:
        return None
    summed = {name: float(shares[features].sum()) for name, features in model.recipe.groups.items()}
    return dict(sorted(summed.items(), key=lambda item: -item[1]))


def _tuning(estimator: Any) -> dict[str, Any] | None:
    report = getattr(estimator, "tuning_report_", None)
    if report is None:
        return None
    return {"trials": [vars(trial) for trial in report.trials], "chosen": report.chosen, "failed": report.failed}
