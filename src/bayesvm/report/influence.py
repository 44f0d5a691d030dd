"""Report: the importance of columns and the dependence of predictions on them, in the values of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.evaluation import formatting
from bayesvm.evaluation.formatting import column_label, shortened
from bayesvm.inspection import EffectDisplay, PartialDependenceDisplay
from bayesvm.inspection.colours import CLASSES
from bayesvm.inspection.partial_dependence import FEW_VALUES, mean_and_band
from bayesvm.preparation import Recipe
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.encoding import MISSING, CategoryColumn
from bayesvm.report.svg import drawn
from bayesvm.workflow import EvaluatedRows, TableModel
from bayesvm.workflow.describing import effect_columns
from bayesvm.workflow.probing import joint_draws, responses, without_warnings

GRID = 16  # settings of a numeric column with many values
TOP = 15  # bars
CLASSES_SHOWN = 3  # in one plot
DRAWS = 200  # posterior draws for a band
LEAST_HEIGHT = 0.3  # minimum range of the axis (in deviations, for regression), so that small changes do not look large
BESIDE = 0.12  # relative to the distance of two categories
ROOM = 0.16  # share of the height for a legend


@dataclass(frozen=True)
class Setting:
    """The settings of the features of a column, and their names on the axis unless they are numbers."""

    features: list[int]
    values: npt.NDArray[Any]  # (settings, features)
    labels: list[str] | None  # of categories
    missing: npt.NDArray[Any] | None = None  # (features,) of a missing number, in addition to settings without labels


def bars(name: str, label: str, axis: str, found: tuple[Sequence[str], npt.NDArray[Any]]) -> str:
    """Importance of the columns as bars, largest first."""
    names, amounts = found

    def draw(ax: Any) -> None:
        ax.barh(np.arange(len(names)), amounts)
        ax.set_yticks(np.arange(len(names)), [shortened(column_label(name), 24) for name in names], parse_math=False)
        ax.invert_yaxis()
        ax.set_xlabel(axis)
        ax.set_xlim(left=0)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)

    return drawn(name, label, draw, (5.0, 1.0 + 0.26 * len(names)))


def setting(recipe: Recipe, name: str, X: npt.NDArray[Any]) -> Setting:
    """The settings of a column: its categories, or numbers that occur in some rows."""
    features = recipe.groups[name]
    column = next((column for column in recipe.columns if column.name == name), None)
    if isinstance(column, CategoryColumn):
        labels = [shortened(category, 16) for category in column.shown[:FEW_VALUES]]
        values = np.array([[0.0], [1.0]]) if len(column.shown) == 2 else np.eye(len(column.shown))
        return Setting(features, values[:FEW_VALUES], labels)
    if isinstance(column, DateColumn):
        days = X[~np.isnan(X[:, features[-1]]), features[-1]]
        low, high = np.percentile(days, (2, 98))
        return Setting(features, *column.on_days(np.unique(np.floor(np.linspace(low, high, FEW_VALUES)))))
    is_missing = np.isnan(X[:, features[0]])
    missing = np.full(len(features), np.nan)
    if len(features) == 2:  # the second feature marks a missing number
        is_missing |= X[:, features[1]] > 0.5
        missing = np.array([np.median(X[is_missing, features[0]]) if is_missing.any() else np.nan, 1.0])
    numbers = X[~is_missing, features[0]]
    distinct = np.unique(numbers)
    if len(distinct) > FEW_VALUES:
        low, high = np.percentile(numbers, (2, 98))
        distinct = np.linspace(low, high, GRID)
    values = np.zeros((len(distinct), len(features)))
    values[:, 0] = distinct
    if len(distinct) > 2:
        return Setting(features, values, None, missing if is_missing.any() else None)
    # A line between two values, such as no and yes as 0 and 1, would have no meaning.
    labels = [formatting.cell(float(value)) for value in distinct]
    if is_missing.any():
        values, labels = np.vstack([values, missing]), [*labels, MISSING]
    return Setting(features, values, labels)


def dependence(
    model: TableModel, names: Sequence[str], X: npt.NDArray[Any], values: npt.NDArray[Any]
) -> list[tuple[str, str]]:
    """Names and plots of mean responses to some columns, all with the same scale.

    The mean is taken over the rows X; ``values`` are more rows, from which the settings are chosen.
    """
    numbers = model.is_regression
    labels = ["prediction"] if numbers else [str(label) for label in model.estimator.classes_]
    drawings, low, high = list[Callable[..., None]](), np.inf, -np.inf
    for name in names:
        at = setting(model.recipe, name, values)
        bands = mean_and_band(
            lambda rows: responses(model, rows),
            lambda rows: joint_draws(model, rows, DRAWS),
            X,
            at.features,
            at.values if at.missing is None else np.vstack([at.values, at.missing]),
        )
        moves = np.argsort(-np.ptp(bands[0], axis=0), kind="stable")
        shown = [len(labels) - 1] if len(labels) <= 2 else sorted(moves[:CLASSES_SHOWN].tolist())
        deciles = np.nanquantile(values[:, at.features[0]], np.arange(1, 10) / 10) if at.labels is None else None
        drawings.append(partial(_draw, at=at, bands=bands, shown=shown, labels=labels, deciles=deciles))
        low, high = min(low, float(bands[1][:, shown].min())), max(high, float(bands[2][:, shown].max()))
    least = LEAST_HEIGHT * float(responses(model, X).std()) if numbers else LEAST_HEIGHT
    middle, half = (low + high) / 2, max(least / 2, 0.54 * (high - low)) or 1.0
    bottom, top = middle - half, middle + half
    if not numbers:
        bottom, top = max(-0.02, bottom), min(1.02, top)
    limits = (bottom, top + (ROOM * (top - bottom) if len(labels) > 2 else 0))
    title = "prediction" if numbers else "probability"
    return [
        (name, drawn(f"dependence{i}", f"Mean {title} against {name}", partial(draw, limits=limits), (5.0, 3.3)))
        for i, (name, draw) in enumerate(zip(map(column_label, names), drawings, strict=True))
    ]


def _draw(
    ax: Any,
    *,
    at: Setting,
    bands: Sequence[npt.NDArray[Any]],
    shown: list[int],
    labels: list[str],
    deciles: npt.NDArray[Any] | None,
    limits: tuple[float, float],
) -> None:
    for rank, k in enumerate(shown):
        # The colour of the class, if every class has its own.
        colour = 0 if len(labels) <= 2 else k if len(labels) <= len(CLASSES) else rank
        curve = [band[: len(at.values), k] for band in bands]
        display = PartialDependenceDisplay(
            at.values[:, 0], *curve, labels=at.labels, deciles=None if rank else deciles
        ).plot(ax, color=CLASSES[colour])
        display.line_.set_label(shortened(labels[k], 14))
        if at.labels is not None and len(shown) > 1:  # side by side
            beside = BESIDE * (rank - (len(shown) - 1) / 2)
            display.line_.set_xdata(np.arange(len(at.labels)) + beside)
            display.band_.set_segments(np.array(display.band_.get_segments()) + np.array([beside, 0.0]))
        if at.missing is not None:
            _draw_missing(ax, at, [float(band[-1, k]) for band in bands], rank - (len(shown) - 1) / 2, CLASSES[colour])
    if at.labels is None:
        ax.locator_params(axis="x", nbins=6)
    if at.missing is not None:
        ax.set_xticks([tick for tick in ax.get_xticks() if at.values[0, 0] <= tick <= at.values[-1, 0]])
        ax.text(_beyond(at), limits[0], "missing", ha="center", va="bottom", fontsize=9)
    axis = {1: labels[0], 2: f"P({shortened(labels[-1], 20)})"}.get(len(labels), "probability")
    ax.set(xlabel="", ylabel=axis)
    if at.labels is None and 10_000 <= np.abs(at.values[:, 0]).max() < 10_000_000:
        ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylim(*limits)
    if len(shown) > 1:
        ax.legend(ncols=len(shown), loc="upper center", columnspacing=1.0, handlelength=1.2)


def _beyond(at: Setting) -> float:
    """Position of a missing value on a numeric axis."""
    low, high = float(at.values[0, 0]), float(at.values[-1, 0])
    return high + 0.12 * (high - low)


def _draw_missing(ax: Any, at: Setting, band: Sequence[float], rank: float, colour: str) -> None:
    """Draw a point with its interval, to the right of the curve."""
    mean, low, high = band
    x = _beyond(at) + 0.02 * rank * float(np.ptp(at.values[:, 0]))
    ax.vlines([x], low, high, colors=colour, alpha=0.6, linewidth=2)
    ax.plot([x], [mean], marker="o", linestyle="", color=colour)


def effect_plots(model: TableModel, evaluated: EvaluatedRows) -> list[tuple[str, str]]:
    """The columns and the plot of each effect."""
    estimator, plots = model.estimator, list[tuple[str, str]]()
    if model.is_regression:  # the displays of effects use labels of classes
        return plots
    for i, effect in enumerate(getattr(estimator, "effects_", ())):
        names = effect_columns(effect, model.recipe)
        axes = [shortened(column_label(name), 24) for name in names]
        complete = ~np.isnan(evaluated.X[:, effect.columns]).any(axis=1)
        # For many classes, the one that the effect changes most.
        means = np.atleast_2d(effect.mean_and_variance(effect.points)[0].T)
        target = int(np.ptp(means, axis=1).argmax()) if len(means) > 1 else 1

        rows = evaluated.X[complete] if complete.any() else None

        def draw(ax: Any, effect: Any = effect, axes: Any = axes, target: int = target, rows: Any = rows) -> None:
            with without_warnings():
                EffectDisplay.from_estimator(
                    estimator,
                    effect,
                    X=rows,
                    target=estimator.classes_[target],
                    feature_names=model.recipe.names,
                    factor_names=axes,
                    ax=ax,
                )

        title = " × ".join(map(column_label, names))
        plots.append((title, drawn(f"effect{i}", f"Effect of {title} on f", draw, (5.0, 3.6))))
    return plots
