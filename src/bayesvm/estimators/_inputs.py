"""Estimators: what ``fit`` may be given, and the source of blocks that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.data.blocks import RowNumbers, checksum, rows_to_hold, taken
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.tables import Table
from bayesvm.data.workers import Workers
from bayesvm.estimators._classes import encoder_for, require_few_classes, weighting_encoder
from bayesvm.estimators._dask import dask_rows
from bayesvm.estimators.columns import rows_with_targets
from bayesvm.estimators.completing import MissingValues, completed
from bayesvm.estimators.giveaways import warn_of_giveaways
from bayesvm.estimators.labels import LabelCounts
from bayesvm.estimators.tables import table_rows
from bayesvm.estimators.validation import row_weights, training_data
from bayesvm.inference.session import TrainingRows
from bayesvm.preparation import Frame


class CheckedRows(TrainingRows, Protocol):
    """What ``fit`` was given, checked."""

    def fingerprint(self) -> dict[str, Any]:
        """Plain values that tell these rows apart from others."""
        ...


class LabelledRows(CheckedRows, Protocol):
    """Rows whose classes are known; y has the number of each row's class."""

    @property
    def classes(self) -> np.ndarray: ...

    @property
    def totals(self) -> np.ndarray:
        """The weight of every class."""
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows in memory, those of weight zero left out."""

    X: Any
    codes: np.ndarray
    weight: np.ndarray | None
    classes: np.ndarray
    totals: np.ndarray
    kept: np.ndarray | None = None  # of the rows given; all of them unless some have weight zero
    groups: RowNumbers | None = None
    missing: MissingValues | None = None

    @classmethod
    def of(cls, rows: Block, classes: np.ndarray, totals: np.ndarray) -> ArrayRows:
        """Rows whose y are numbers of classes."""
        if rows.weight is None or rows.weight.all():
            return cls(*rows, classes, totals)
        kept = np.flatnonzero(rows.weight)
        return cls(*taken(rows, kept), classes, totals, kept)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> MemorySource:
        to_hold = rows_to_hold(self.n_rows, self.n_features, rng)
        return MemorySource(self.X, self.codes, self.weight, ColumnScaler(), workers, rows_per_block, to_hold=to_hold)

    def given(self, numbers: RowNumbers) -> RowNumbers:
        return numbers if self.kept is None else self.kept[numbers]

    def spread(self, numbers: RowNumbers, means: Callable[[Array], Sequence[Array]]) -> list[Array] | None:
        return None if self.missing is None else self.missing.spread(numbers, means)

    def fingerprint(self) -> dict[str, Any]:
        return {
            "the number of rows": self.n_rows,
            "the number of columns": self.n_features,
            "the checksum of the data": f"{checksum(self.X, self.codes, self.weight):08x}",
        }


def training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> LabelledRows:
    """What ``fit`` was given, checked."""
    if is_dask(X):
        return dask_rows(estimator, X, y, sample_weight)
    if isinstance(X, Table):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "a table has its labels and weights in it: open_table(…, target=…, weight=…), then fit(table)"
            )
        return table_rows(estimator, X)
    X, y, sample_weight, labelled = _with_targets(X, y, sample_weight)
    X, y = training_data(estimator, X, y)
    weight = row_weights(sample_weight, X)
    encoder, totals = encoder_for(estimator, LabelCounts.of(y, weight))
    codes, row_weight = encoder(y, weight)
    if estimator.recipe_ is not None:
        warn_of_giveaways(X, codes, estimator.recipe_)
    rows = completed(estimator, ArrayRows.of(Block(X, codes, row_weight), encoder.classes, totals))
    return rows if labelled is None else replace(rows, kept=labelled[rows.given(np.arange(rows.n_rows))])


def _with_targets(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, np.ndarray | None]:
    """The rows of a data frame that have a target, and their numbers if others have none."""
    frame = None if y is None else Frame.of(X)
    labelled = None if frame is None or len(y) != frame.n_rows else rows_with_targets(y)
    if frame is None or labelled is None:
        return X, y, sample_weight, None
    weight = None if sample_weight is None else np.asarray(sample_weight)[labelled]
    return frame.take(labelled), np.array(np.asarray(y)[labelled].tolist()), weight, labelled


def stream_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, *, first: bool) -> LabelledRows:
    """What ``partial_fit`` was given, checked; the classes are those that the estimator knows."""
    if is_dask(X) or isinstance(X, Table):
        raise TypeError(
            f"partial_fit takes rows in memory, part by part; fit learns from a {type(X).__name__} as a whole"
        )
    X, y = training_data(estimator, X, y, first=first)
    classes = estimator.classes_
    require_few_classes(classes, len(y), "`classes`")
    unseen = np.flatnonzero(~np.isin(y, classes))
    if len(unseen):
        row = int(unseen[0])
        raise ValueError(
            f"y has the label {y[row : row + 1].tolist()[0]!r} at row {row}, not among the classes {classes.tolist()}; "
            "rows to learn from must have them all (the first call of partial_fit takes them as `classes`)"
        )
    weight = row_weights(sample_weight, X)
    encoder, totals = weighting_encoder(estimator.class_weight, LabelCounts.of(y, weight, classes))
    return completed(estimator, ArrayRows.of(Block(X, *encoder(y, weight)), classes, totals), first=first)
