"""Report: which columns matter, and what each may be set to."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.inspection import RelevanceDisplay
from bayesvm.inspection.relevance import added_up, has_many_length_scales
from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import RARE, CategoryColumn
from bayesvm.report.svg import drawn
from bayesvm.report.words import short
from bayesvm.workflow import Judged, TableModel

BACKGROUND = 50  # rows whose other columns stay as they are
MOST_VALUES = 2e7  # numbers in all rows that are asked at a time
GRID = 16  # settings of a number with many values
FEW_VALUES = 12  # a number with no more distinct values, or a column of categories, is asked for each
MOST_TRIED = 64  # columns, where only trying tells which ones matter
TOP = 15  # bars
COARSE = 5  # settings, to see which columns matter


@dataclass(frozen=True)
class Setting:
    """What some features of a column are set to, and its name or number on the axis."""

    features: list[int]
    values: npt.NDArray[Any]  # (settings, features)
    labels: list[str] | None  # of categories


def background(model: TableModel, judged: Judged) -> npt.NDArray[Any] | None:
    """Rows that others are like: some of the judged ones, or the inducing points if there are none."""
    X = judged.X
    if not len(X):
        points = getattr(model.estimator, "inducing_points_", None)
        return None if points is None else _some(np.asarray(points))
    order = np.argsort(judged.predictions.doubt[judged.sample], kind="stable")
    # The most and the least certain rows were kept because they are not like others.
    usual = np.sort(order[10:-10]) if len(X) > BACKGROUND + 20 else np.arange(len(X))
    return _some(X[usual])


def _some(X: npt.NDArray[Any]) -> npt.NDArray[Any]:
    n_rows = int(np.clip(MOST_VALUES / (GRID * X.shape[1]), 5, BACKGROUND))
    if len(X) <= n_rows:
        return X
    return X[np.sort(np.random.default_rng(0).choice(len(X), n_rows, replace=False))]


def relevance(model: TableModel) -> tuple[list[str], npt.NDArray[Any]] | None:
    """Shares of the columns in the distances that the kernel sees, if it has learned a length-scale for each."""
    estimator, recipe = model.estimator, model.recipe
    if getattr(estimator, "relevance_", None) is None or not has_many_length_scales(estimator.kernel_):
        return None
    shares, names = added_up(estimator.relevance_, recipe.names, recipe.groups)
    return names, shares


def movement(model: TableModel, X: npt.NDArray[Any], values: npt.NDArray[Any]) -> tuple[list[str], npt.NDArray[Any]]:
    """How far the probability of a class goes in a row while a column is moved: the mean of the rows X.

    Of many columns only those that could matter most are tried. Unlike length-scales this sees a column that works
    evenly, and unlike the movement of a mean one that works in different rows in opposite directions.
    """
    estimator, groups = model.estimator, model.recipe.groups
    each = getattr(estimator, "relevance_", None)
    weight = np.var(values, axis=0) if each is None else each
    if hasattr(estimator, "coef_"):
        weight = weight * np.square(estimator.coef_).sum(axis=0)
    likely = np.argsort([-weight[group].sum() for group in groups.values()], kind="stable")
    names = [list(groups)[i] for i in np.sort(likely[:MOST_TRIED])]
    moves = [
        np.ptp(moved(estimator.predict_proba, X, setting(model.recipe, name, values, COARSE)), axis=0)
        .mean(axis=0)
        .max()
        for name in names
    ]
    return names, np.array(moves)


def bars(name: str, label: str, axis: str, found: tuple[list[str], npt.NDArray[Any]]) -> str:
    """Columns and how much they matter, the largest on top."""
    names, amounts = found

    def draw(ax: Any) -> None:
        RelevanceDisplay(amounts, [short(name, 24) for name in names]).plot(ax=ax, top=TOP)
        ax.set_xlabel(axis)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)

    return drawn(name, label, draw, (5.0, 1.0 + 0.26 * min(len(names), TOP + 1)))


def setting(recipe: Recipe, name: str, X: npt.NDArray[Any], n_values: int = GRID) -> Setting:
    """What a column may be set to: categories, or numbers that occur among some rows."""
    features = recipe.groups[name]
    column = next((column for column in recipe.columns if column.name == name), None)
    if isinstance(column, CategoryColumn):
        categories = [*column.categories, *([RARE] if column.rare else [])]
        values = np.array([[0.0], [1.0]]) if len(categories) == 2 else np.eye(len(categories))
        return Setting(features, values[:FEW_VALUES], [short(category, 16) for category in categories[:FEW_VALUES]])
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


def moved(ask: Any, X: npt.NDArray[Any], at: Setting) -> npt.NDArray[Any]:
    """What ``ask`` says of all rows at all settings: (settings, rows, classes), after the axis of draws, if any."""
    rows = np.tile(X, (len(at.values), 1))
    rows[:, at.features] = np.repeat(at.values, len(X), axis=0)
    with warnings.catch_warnings():
        # Features have no names here, and equal rows have a singular covariance: neither does harm.
        warnings.simplefilter("ignore", UserWarning)
        said = np.asarray(ask(rows))
    return said.reshape(*said.shape[:-2], len(at.values), len(X), said.shape[-1])
