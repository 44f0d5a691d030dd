"""Estimators: the headline of a fitted model, which notebooks show above the parameter table of scikit-learn."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from bayesvm.inference.fitted import Fitted


def headline(estimator: Any) -> list[tuple[str, str]]:
    """Names and values of the main facts about a fitted model; empty before ``fit``."""
    fitted: Fitted | None = getattr(estimator, "fitted_", None)
    if fitted is None:
        return []
    n_samples = getattr(estimator, "n_samples_", fitted.n_samples)  # of one class, without the background
    size = [] if n_samples is None else [f"{n_samples:,} rows"]
    size.append(f"{estimator.n_features_in_:,} columns")
    if hasattr(estimator, "classes_"):
        size.append(f"{len(estimator.classes_)} classes")
    lines = [
        ("fitted to", ", ".join(size)),
        *_quality(estimator),
        ("kernel", _kernels(fitted)),
        ("members", str(len(fitted.members))),
    ]
    leaves = sum(member.leaves.tree.n_leaves for member in fitted.members if member.leaves is not None)
    if leaves:
        lines.append(("local models", f"{leaves:,}"))
    if not fitted.training.converged:
        reason = "Ctrl-C" if fitted.training.interrupted else "the budget"
        lines.append(("not converged", f"stopped by {reason}"))
    return lines


def _quality(estimator: Any) -> list[tuple[str, str]]:
    """Leave-one-out metrics; for one class, the rate of false alarms and its threshold."""
    if hasattr(estimator, "contamination"):
        offset = estimator.offset_
        outliers = (estimator.loo_scores_ < offset).mean()
        threshold = (
            f"score {offset:.4g}; {outliers:.1%} of the training rows are below it, each left out"
            if np.isfinite(offset)
            else "none, because there are too few rows"
        )
        return [("contamination", f"{estimator.contamination:g}"), ("threshold", threshold)]
    if hasattr(estimator, "loo_rmse_"):
        return [("leave-one-out", f"RMSE {estimator.loo_rmse_:.4g}, log density {estimator.loo_log_density_:.4f}")]
    return [("leave-one-out", f"log loss {estimator.loo_log_loss_:.4f}, error {estimator.loo_error_:.2%}")]


def headline_html(estimator: Any) -> str:
    """The same as one line of HTML."""
    parts = [f"<b>{escape(name)}</b> {escape(value)}" for name, value in headline(estimator)]
    return f'<p class="bayesvm-headline">{" · ".join(parts)}</p>' if parts else ""


def _kernels(fitted: Fitted) -> str:
    """Distinct names of the kernels of all members; a tuned kernel is a sum with a broad component."""
    kernels = [getattr(member.features, "kernel", None) for member in fitted.members]
    parts = [part for kernel in kernels for part in getattr(kernel, "kernels", [kernel])]
    names = ["linear" if part is None else type(part).__name__ for part in parts]
    return ", ".join(dict.fromkeys(names))
