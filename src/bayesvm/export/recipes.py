"""Export: the recipe of a model, from columns of any kind to features."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesvm.export.graph import Graph, Value, concatenated, where
from bayesvm.preparation import Recipe
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.encoding import CategoryColumn, NumberColumn


def features_of(recipe: Recipe, graph: Graph, dtype: np.dtype[Any]) -> Value:
    """One input per column, and its features; missing numbers stay missing."""
    return concatenated([COLUMNS[type(column)](column, graph, dtype) for column in recipe.columns])


def features_of_array(recipe: Recipe, graph: Graph, dtype: np.dtype[Any]) -> Value:
    """The input ``X`` with all columns, and its features: the columns, and marks of missing values."""
    given = graph.input("X", dtype, len(recipe.inputs))
    missing = given.apply("IsNaN", dtype=np.bool_).cast(dtype)
    order = [
        number + part * len(recipe.inputs)
        for number, column in enumerate(recipe.columns)
        for part in range(len(column.names))
    ]
    return concatenated([given, missing]).columns(order)


def _number(column: NumberColumn, graph: Graph, dtype: np.dtype[Any]) -> Value:
    given = graph.input(column.name, dtype, 1)
    if column.fill is None:
        return given
    missing = given.apply("IsNaN", dtype=np.bool_)
    filled = where(missing, graph.constant(column.fill, dtype), given)
    return concatenated([filled, missing.cast(dtype)]) if column.indicator else filled


def _category(column: CategoryColumn, graph: Graph, dtype: np.dtype[Any]) -> Value:
    """Look up text in a table of features, with one row per category and a last row for all other text."""
    given = graph.input(column.name, np.object_, 1)
    n_categories = len(column.categories)
    rows = np.eye(n_categories + 1)[:, : n_categories + column.rare]  # other text is a separate category, or none
    if rows.shape[1] == 2:
        rows = rows[:, 1:]
    number = given.apply(
        "LabelEncoder",
        dtype=np.int64,
        domain="ai.onnx.ml",
        keys_strings=list(column.categories),
        values_int64s=list(range(n_categories)),
        default_int64=n_categories,
    )
    return graph.constant(rows, dtype).at(number.flat())


def _date(column: DateColumn, graph: Graph, dtype: np.dtype[Any]) -> Value:
    """A graph has no dates: one input per part, with its name."""
    return concatenated([graph.input(name, dtype, 1) for name in column.names])


COLUMNS: dict[type, Any] = {NumberColumn: _number, CategoryColumn: _category, DateColumn: _date}
