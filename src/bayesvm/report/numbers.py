"""Report: the conclusion, metrics and plots of a regression model."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesvm.evaluation import Metric, RegressionPredictions, interval_coverage, metrics
from bayesvm.evaluation.formatting import column_label, in_units
from bayesvm.report.conclusion import joined_words, named_columns
from bayesvm.report.svg import INK, drawn
from bayesvm.workflow import TableModel
from bayesvm.workflow.importance import Importance

MOST_DOTS = 600  # of a scatter plot; more points cannot be distinguished and make the file large
LEAST_CHANGE = 0.005  # change of a prediction, in deviations of the target, below which a column does not matter
CURVE = np.linspace(0.02, 0.98, 49)  # coverages in the plot


def quality(model: TableModel, said: RegressionPredictions, *, given: bool) -> dict[str, Any]:
    """The metrics of the model, of the mean, and of baseline models on the same rows.

    Baselines are available for the held-out rows only, not for a table that is ``given``.
    """
    used = said.counted()
    mean = np.average(used.y, weights=used.weight)
    error = float(np.average(np.abs(used.y - mean), weights=used.weight))
    spread = float(np.sqrt(np.average((used.y - mean) ** 2, weights=used.weight)))
    return {
        "metrics": metrics(said),
        "usual": float(mean),
        "usual_mae": error,
        "usual_rmse": spread,
        "baselines": [] if given else model.card.get("baselines") or [],
        "intervals": interval_coverage(said),
    }


def conclusion(
    model: TableModel, evaluated: str, found: dict[str, Any], important: Importance | None
) -> tuple[str, str]:
    """Two sentences: what is predicted and how well; whether intervals can be trusted, and which columns matter."""
    mae, r2, coverage = (found["metrics"][name] for name in ("mae", "r2", "coverage"))
    half = (mae.high - mae.low) / 2
    target = column_label(model.card["target"]) if model.card.get("target") else "a numeric target"
    others = [f"always predicting the mean by {in_units(found['usual_mae'], half)}"]
    others += [f"{each['name']} by {in_units(each['mae'], half)}" for each in found["baselines"]]
    share = "" if np.isnan(r2.value) else f" and explains {100 * r2.value:.1f}% of its variance"
    first = (
        f"This model predicts {target}, is off by {in_units(mae.value, half)} on average "
        f"(95%: {in_units(mae.low, half)} to {in_units(mae.high, half)}){share}, evaluated {evaluated}; "
        f"{joined_words(others)}{' on the same rows' if found['baselines'] else ''}."
    )
    least = LEAST_CHANGE * found["usual_rmse"]
    second = f"{_trust(coverage)}{named_columns(important, least, 'it')}."
    return first, second


def _trust(coverage: Metric) -> str:
    low, high = f"{100 * coverage.low:.1f}", f"{100 * coverage.high:.1f}"
    return f"Its 90% intervals contain {100 * coverage.value:.1f}% of the rows (95%: {low} to {high})"


def plots(said: RegressionPredictions) -> dict[str, str]:
    """Plots that need only predicted distributions and true values."""
    said = said.counted()
    found = {
        "predicted": ("True against predicted values", lambda ax: _predicted(ax, said)),
        "intervals": (
            "Share of the rows inside intervals, against the probability of the intervals",
            lambda ax: _intervals(ax, said),
        ),
        "residuals": ("Errors in standard deviations against predicted values", lambda ax: _residuals(ax, said)),
    }
    return {name: drawn(name, title, draw, (5.0, 4.2)) for name, (title, draw) in found.items()}


def _some(said: RegressionPredictions) -> RegressionPredictions:
    if said.n_rows <= MOST_DOTS:
        return said
    return said.take(np.sort(np.random.default_rng(0).choice(said.n_rows, MOST_DOTS, replace=False)))


def _predicted(ax: Any, said: RegressionPredictions) -> None:
    some = _some(said)
    ends = [float(min(some.y.min(), some.mean.min())), float(max(some.y.max(), some.mean.max()))]
    ax.plot(ends, ends, color=INK, alpha=0.45, linewidth=1)
    ax.plot(some.mean, some.y, marker="o", markersize=3, linestyle="", alpha=0.5)
    ax.set(xlabel="predicted", ylabel="true")
    ax.locator_params(nbins=6)


def _intervals(ax: Any, said: RegressionPredictions) -> None:
    found = np.array(interval_coverage(said, CURVE.tolist()))
    ax.plot([0, 1], [0, 1], color=INK, alpha=0.45, linewidth=1)
    ax.fill_between(found[:, 0], found[:, 2], found[:, 3], alpha=0.25, linewidth=0)
    ax.plot(found[:, 0], found[:, 1])
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set(xlabel="probability of the interval", ylabel="share of the rows in it")


def _residuals(ax: Any, said: RegressionPredictions) -> None:
    some = _some(said)
    ax.axhline(0, color=INK, alpha=0.45, linewidth=1)
    ax.plot(some.mean, (some.y - some.mean) / some.std, marker="o", markersize=3, linestyle="", alpha=0.5)
    ax.set(xlabel="predicted", ylabel="error / standard deviation")
    ax.locator_params(nbins=6)
