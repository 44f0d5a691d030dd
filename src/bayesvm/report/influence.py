"""Report: which columns matter, and how the probabilities go with them, in the values of the table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.evaluation.formatting import shortened
from bayesvm.inspection import EffectDisplay, PartialDependenceDisplay, RelevanceDisplay
from bayesvm.inspection.colours import CLASSES
from bayesvm.inspection.partial_dependence import FEW_VALUES, moved_rows, partial_dependence
from bayesvm.preparation import Recipe
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.encoding import CategoryColumn
from bayesvm.report.svg import drawn
from bayesvm.workflow import Judged, TableModel

BACKGROUND = 50  # rows whose other columns stay as they are
MOST_ASKED = 2e7  # numbers in all rows of all settings
GRID = 16  # settings of a number with many values
MOST_TRIED = 64  # columns, where only trying shows which ones matter
TOP = 15  # bars
COARSE = 5  # settings, to see which columns matter
CLASSES_SHOWN = 3  # in one plot
DRAWS = 200  # from the posterior, for a band
LEAST_HEIGHT = 0.3  # of the axis of probabilities: no small movement shall look large
ROOM = 0.16  # share of it for a legend


@dataclass(frozen=True)
class Setting:
    """What the features of a column are set to, and the names of these settings on the axis, if they are no numbers."""

    features: list[int]
    values: npt.NDArray[Any]  # (settings, features)
    labels: list[str] | None  # of categories


def background(model: TableModel, judged: Judged) -> npt.NDArray[Any] | None:
    """Rows that others are like: some of the judged ones, or the inducing points if there are none."""
    X: Any = judged.X
    if not len(X):
        X = getattr(model.estimator, "inducing_points_", None)
        if X is None:
            return None
    elif len(X) > BACKGROUND + 20:
        # The most and the least certain rows were kept because they are not like others.
        order = np.argsort(judged.predictions.doubt[judged.sample], kind="stable")
        X = X[np.sort(order[10:-10])]
    n_rows = int(np.clip(MOST_ASKED / (GRID * X.shape[1]), 5, BACKGROUND))
    if len(X) <= n_rows:
        return np.asarray(X)
    return np.asarray(X)[np.sort(np.random.default_rng(0).choice(len(X), n_rows, replace=False))]


def relevance(model: TableModel) -> tuple[list[str], npt.NDArray[Any]] | None:
    """Shares of the columns in the variation of f, if something was learned about them: length-scales or effects."""
    estimator = model.estimator
    if getattr(estimator, "relevance_", None) is None:
        return None
    if not (estimator.kernel_.has_relevance or estimator.effects_):
        return None
    shares = _shares(model)
    return list(shares), np.array(list(shares.values()))


def movement(model: TableModel, X: npt.NDArray[Any], values: npt.NDArray[Any]) -> tuple[list[str], npt.NDArray[Any]]:
    """How far the probability of a class goes in a row while a column is moved: the mean of the rows X.

    Of many columns only those that could matter most are tried. Unlike length-scales this sees a column that works
    evenly, and unlike the movement of a mean one that works in different rows in opposite directions.
    """
    estimator, groups = model.estimator, model.recipe.groups
    if getattr(estimator, "relevance_", None) is None:
        weight = np.var(values, axis=0)
        if hasattr(estimator, "coef_"):
            weight = weight * np.square(estimator.coef_).sum(axis=0)
        amounts = [float(weight[group].sum()) for group in groups.values()]
    else:
        amounts = list(_shares(model).values())
    likely = np.argsort(-np.array(amounts), kind="stable")
    names = [list(groups)[i] for i in np.sort(likely[:MOST_TRIED])]
    moves = []
    for name in names:
        at = setting(model.recipe, name, values, COARSE)
        with _features_without_names():
            said = np.array([estimator.predict_proba(rows) for rows in moved_rows(X, at.features, at.values)])
        moves.append(np.ptp(said, axis=0).mean(axis=0).max())
    return names, np.array(moves)


def _shares(model: TableModel) -> dict[str, float]:
    """Share of every column that is used in the variation of f."""
    shares = dict(zip(model.recipe.inputs, model.estimator.relevance_.tolist(), strict=True))
    return {name: shares[name] for name in model.recipe.groups}


def bars(name: str, label: str, axis: str, found: tuple[list[str], npt.NDArray[Any]]) -> str:
    """Columns and how much they matter, the largest on top."""
    names, amounts = found

    def draw(ax: Any) -> None:
        RelevanceDisplay(amounts, [shortened(name, 24) for name in names]).plot(ax=ax, top=TOP)
        ax.set_xlabel(axis)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)

    return drawn(name, label, draw, (5.0, 1.0 + 0.26 * min(len(names), TOP + 1)))


def setting(recipe: Recipe, name: str, X: npt.NDArray[Any], n_values: int = GRID) -> Setting:
    """What a column may be set to: categories, or numbers that occur among some rows."""
    features = recipe.groups[name]
    column = next((column for column in recipe.columns if column.name == name), None)
    if isinstance(column, CategoryColumn):
        labels = [shortened(category, 16) for category in column.shown[:FEW_VALUES]]
        values = np.array([[0.0], [1.0]]) if len(column.shown) == 2 else np.eye(len(column.shown))
        return Setting(features, values[:FEW_VALUES], labels)
    if isinstance(column, DateColumn):
        numbers = X[:, features[-1]]  # the days
        low, high = np.percentile(numbers, (2, 98))
        days = np.unique(np.floor(np.linspace(low, high, n_values)))
        return Setting(features, *column.on_days(days))
    numbers = X[:, features[0]]
    if len(features) == 2 and not (X[:, features[1]] > 0.5).all():
        numbers = numbers[X[:, features[1]] <= 0.5]
    distinct = np.unique(numbers)
    if len(distinct) > min(FEW_VALUES, n_values):
        low, high = np.percentile(numbers, (2, 98))
        distinct = np.linspace(low, high, n_values)
    values = np.zeros((len(distinct), len(features)))  # a second feature says that the number is missing; it is not
    values[:, 0] = distinct
    return Setting(features, values, None)


def dependence(
    model: TableModel, names: Sequence[str], X: npt.NDArray[Any], values: npt.NDArray[Any]
) -> list[tuple[str, str]]:
    """Of some columns: name and plot of the mean probabilities, all with the same axis of probabilities.

    The mean is taken over the rows X; ``values`` are more rows, which show what the columns may be set to.
    """
    labels = [str(label) for label in model.estimator.classes_]
    drawings, low, high = list[Callable[..., None]](), 1.0, 0.0
    for name in names:
        at = setting(model.recipe, name, values)
        with _features_without_names():
            bands = partial_dependence(model.estimator, X, at.features, at.values, DRAWS, 0)
        moves = np.argsort(-np.ptp(bands[0], axis=0), kind="stable")
        shown = [1] if len(labels) == 2 else sorted(moves[:CLASSES_SHOWN].tolist())
        deciles = np.quantile(values[:, at.features[0]], np.arange(1, 10) / 10) if at.labels is None else None
        drawings.append(partial(_draw, at=at, bands=bands, shown=shown, labels=labels, deciles=deciles))
        low, high = min(low, float(bands[1][:, shown].min())), max(high, float(bands[2][:, shown].max()))
    middle, half = (low + high) / 2, max(LEAST_HEIGHT / 2, 0.54 * (high - low))
    bottom, top = max(-0.02, middle - half), min(1.02, middle + half)
    limits = (bottom, top + (ROOM * (top - bottom) if len(labels) > 2 else 0))
    return [
        (name, drawn(f"dependence{i}", f"Mean probability against {name}", partial(draw, limits=limits), (5.0, 3.3)))
        for i, (name, draw) in enumerate(zip(names, drawings, strict=True))
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
        # The colour of the class, as long as each has its own.
        colour = 0 if len(labels) == 2 else k if len(labels) <= len(CLASSES) else rank
        curve = [band[:, k] for band in bands]
        display = PartialDependenceDisplay(
            at.values[:, 0], *curve, labels=at.labels, deciles=None if rank else deciles
        ).plot(ax, color=CLASSES[colour])
        display.line_.set_label(shortened(labels[k], 14))
    ax.set(xlabel="", ylabel=f"P({shortened(labels[1], 20)})" if len(labels) == 2 else "probability")
    if at.labels is None:
        ax.locator_params(axis="x", nbins=6)
        if 10_000 <= np.abs(at.values[:, 0]).max() < 10_000_000:
            ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylim(*limits)
    if len(shown) > 1:
        ax.legend(ncols=len(shown), loc="upper center", columnspacing=1.0, handlelength=1.2)


def effect_plots(model: TableModel, judged: Judged) -> list[tuple[str, str]]:
    """Of each admitted effect: the columns of the table that it is of, and its plot."""
    estimator, plots = model.estimator, []
    for i, effect in enumerate(getattr(estimator, "effects_", ())):
        names = list(effect.factor_names())
        axes = [shortened(name, 24) for name in names]
        # Of many classes, the one that the effect does most for.
        means = np.atleast_2d(effect.mean_and_variance(effect.points)[0].T)
        target = int(np.ptp(means, axis=1).argmax()) if len(means) > 1 else 1

        def draw(ax: Any, effect: Any = effect, axes: list[str] = axes, target: int = target) -> None:
            with _features_without_names():
                EffectDisplay.from_estimator(
                    estimator,
                    effect,
                    X=judged.X if len(judged.X) else None,
                    target=estimator.classes_[target],
                    feature_names=model.recipe.names,
                    factor_names=axes,
                    ax=ax,
                )

        title = " × ".join(names)
        plots.append((title, drawn(f"effect{i}", f"Effect of {title} on f", draw, (5.0, 3.6))))
    return plots


@contextmanager
def _features_without_names() -> Any:
    """Arrays of features have no column names, and equal rows a singular covariance: neither does harm here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
