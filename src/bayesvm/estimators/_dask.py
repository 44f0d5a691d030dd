"""Estimators: Dask collections: training rows, and lazy predictions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesvm.data.blocks import RowNumbers, rounded_sum, rows_to_hold
from bayesvm.data.completion import MeanAndVariance, MomentsOf
from bayesvm.data.dask_rows import (
    DaskSource,
    DaskTable,
    EncodedDaskTable,
    columns_of,
    is_dask,
    is_frame,
    one_column_chunk,
)
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.targets import CompletingEncoder
from bayesvm.data.workers import Workers
from bayesvm.estimators._targets import TargetKind
from bayesvm.estimators.columns import n_features, recipe_of
from bayesvm.estimators.completing import MissingValues, changes_of
from bayesvm.extras import optional
from bayesvm.preparation import Recipe


@dataclass(frozen=True)
class DaskRows:
    """Rows on a cluster, without those of weight zero."""

    table: EncodedDaskTable
    totals: np.ndarray
    groups: RowNumbers | None = None
    missing: MissingValues | None = None

    @property
    def encoder(self) -> Any:
        """The encoder of the targets."""
        found = self.table.encoder
        while isinstance(found, CompletingEncoder):
            found = found.encoder
        return found

    @property
    def classes(self) -> np.ndarray:
        found: np.ndarray = self.encoder.classes
        return found

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    @property
    def n_features(self) -> int:
        return self.table.table.columns.n_features

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> DaskSource:
        numbers = rows_to_hold(self.n_rows, self.n_features, rng)
        rows = self.table.fetch(np.arange(self.n_rows) if numbers is None else numbers)
        sample = MemorySource(*rows, ColumnScaler(), workers, rows_per_block, numbered=numbers)
        return DaskSource(self.n_rows, float(rounded_sum(self.totals.sum())), sample, self.table)

    def given(self, numbers: RowNumbers) -> RowNumbers:
        return self.table.given(numbers)

    def changes(self, numbers: RowNumbers, moments: MomentsOf) -> list[MeanAndVariance] | None:
        return changes_of(self.missing, numbers, moments)

    def raw(self, numbers: RowNumbers) -> Any:
        return self.table.fetch(numbers).X

    def targets(self, numbers: RowNumbers) -> np.ndarray:
        return np.asarray(self.table.fetch(numbers).y)

    def marked(self, recipe: Recipe) -> DaskRows:
        table = self.table.table
        wider = replace(table, columns=replace(table.columns, n_features=len(recipe.names)))
        return self._with_step(recipe.encoded_numbers, wider)

    def _with_step(self, step: Callable[[Any], Any], table: DaskTable | None = None) -> DaskRows:
        """The same rows, with another step after those that their partitions have already."""
        encoder = CompletingEncoder(self.table.encoder, step)
        return replace(self, table=replace(self.table, table=table or self.table.table, encoder=encoder))

    def incomplete(self) -> RowNumbers:
        return np.zeros(0, np.intp)

    def completed(self, missing: MissingValues) -> DaskRows:
        return replace(self._with_step(missing.completion), missing=missing)

    def fingerprint(self) -> dict[str, Any]:
        return {
            "the number of columns": self.n_features,
            "the rows of each partition": list(self.table.rows.given),
            "the checksums of the partitions": list(self.table.rows.checksums),
        }


def dask_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, kind: TargetKind) -> DaskRows:
    """The arguments of ``fit``, checked in one pass. After an error the estimator is unchanged."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    table = DaskTable.of(X, y, sample_weight)
    rows, counts = table.survey(kind.summarise)
    encoder, totals = kind.encoder(estimator, counts)
    validate_data(estimator, _outline(X), reset=True, skip_check_array=True)
    estimator.recipe_ = None
    return DaskRows(EncodedDaskTable(table, rows, encoder), totals)


def lazy_on_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a prediction method: it is lazy for Dask collections."""

    @wraps(method)
    def either(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if is_dask(X):
            return lazy_prediction(self, partial(_said, method.__name__, args, kwargs), X)
        return method(self, X, *args, **kwargs)

    return either


def _said(method: str, args: tuple[Any, ...], kwargs: dict[str, Any], model: Any, X: Any) -> Any:
    return getattr(model, method)(X, *args, **kwargs)


def lazy_prediction(model: Any, said: partial[Any], X: Any) -> Any:
    """The result of a prediction method for a Dask array or data frame, as lazy Dask arrays.

    The model is one node of the graph, a copy of its current state: a later fit does not change it.
    """
    check_is_fitted(model)
    method = said.args[0]
    if method.startswith("sample_"):
        raise TypeError(
            f"{method} draws all rows jointly and needs them in memory: select at most 5,000 rows and pass "
            "their X.compute()"
        )
    validate_data(model, _outline(X), reset=False, skip_check_array=True)
    if recipe_of(model) is None:
        columns_of(X)
    model, unnamed = copy(model), copy(model)
    vars(unnamed).pop("feature_names_in_", None)  # otherwise each partition of an array would warn that it has no names
    model.n_jobs = unnamed.n_jobs = 1
    example = said(unnamed, np.zeros((1, n_features(model))))
    form = _as_columns(example)[:0]
    node = optional("dask", "dask").delayed(model if is_frame(X) else unnamed, traverse=False, pure=False)
    X, how = one_column_chunk(X), {"model": node, "said": said, "form": form, "meta": form}
    if is_frame(X):
        found = X.map_partitions(_of_partition, **how)
    elif form.ndim == 1:
        found = X.map_blocks(_of_partition, drop_axis=1, **how)
    else:
        found = X.map_blocks(_of_partition, chunks=(X.chunks[0], (form.shape[1],)), **how)
    if isinstance(example, dict):
        return {name: found[:, column] for column, name in enumerate(example)}
    if isinstance(example, tuple):
        half = form.shape[1] // 2
        return (found[:, 0], found[:, 1]) if half == 1 else (found[:, :half], found[:, half:])
    return found


def _outline(X: Any) -> Any:
    """The object from which scikit-learn reads names and number of columns."""
    return X._meta if is_frame(X) else X  # noqa: SLF001  (an empty data frame of pandas)


def _of_partition(X: Any, model: Any, said: partial[Any], form: np.ndarray) -> np.ndarray:
    """The prediction for one partition, as one array."""
    return _as_columns(said(model, X)) if X.shape[0] else form


def _as_columns(found: Any) -> np.ndarray:
    """The result of a prediction method, as one array."""
    parts = list(found.values()) if isinstance(found, dict) else found
    return np.column_stack(parts) if isinstance(parts, list | tuple) else parts
