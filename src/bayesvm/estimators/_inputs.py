"""Estimators: the accepted inputs of ``fit``, checked and turned into sources of blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bayesvm.core.latent import Block
from bayesvm.data.blocks import RowNumbers, checksum, rows_to_hold, taken
from bayesvm.data.completion import MeanAndVariance, MomentsOf, incomplete
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.tables import Table
from bayesvm.data.texts import Spellings
from bayesvm.data.workers import Workers
from bayesvm.estimators._classes import CLASSES, require_few_classes, weighting_encoder
from bayesvm.estimators._dask import dask_rows
from bayesvm.estimators._numbers import NUMBERS
from bayesvm.estimators._targets import TargetKind
from bayesvm.estimators.columns import rows_with_targets
from bayesvm.estimators.completing import MissingValues, RowsToComplete, changes_of
from bayesvm.estimators.labels import LabelCounts
from bayesvm.estimators.leakage import warn_of_leakage
from bayesvm.estimators.tables import table_rows
from bayesvm.estimators.validation import row_weights, training_data
from bayesvm.inference.session import TrainingRows
from bayesvm.preparation import Frame, Recipe
from bayesvm.warn import warn_user


class CheckedRows(TrainingRows, RowsToComplete, Protocol):
    """The checked arguments of ``fit``."""

    def fingerprint(self) -> dict[str, Any]:
        """Plain values that identify these rows."""
        ...


class NumberedRows(CheckedRows, Protocol):
    """Rows with numeric targets, in the units of the encoder."""

    @property
    def encoder(self) -> Any: ...


class LabelledRows(CheckedRows, Protocol):
    """Rows with labels; y holds the index of the class of each row."""

    @property
    def classes(self) -> np.ndarray: ...

    @property
    def totals(self) -> np.ndarray:
        """The total weight of each class."""
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows in memory, without those of weight zero."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    encoder: Any  # of the targets
    totals: np.ndarray
    kept: np.ndarray | None = None  # indices among the given rows; None if no row has weight zero
    groups: RowNumbers | None = None
    missing: MissingValues | None = None

    @classmethod
    def of(cls, X: Any, y: np.ndarray, weight: np.ndarray | None, encoder: Any, totals: np.ndarray) -> ArrayRows:
        """Encode y, and leave out rows of weight zero."""
        rows = Block(X, *encoder(y, weight))
        if rows.weight is None or rows.weight.all():
            return cls(*rows, encoder, totals)
        kept = np.flatnonzero(rows.weight)
        return cls(*taken(rows, kept), encoder, totals, kept)

    @property
    def classes(self) -> np.ndarray:
        found: np.ndarray = self.encoder.classes
        return found

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> MemorySource:
        to_hold = rows_to_hold(self.n_rows, self.n_features, rng)
        return MemorySource(self.X, self.y, self.weight, ColumnScaler(), workers, rows_per_block, to_hold=to_hold)

    def given(self, numbers: RowNumbers) -> RowNumbers:
        return numbers if self.kept is None else self.kept[numbers]

    def changes(self, numbers: RowNumbers, moments: MomentsOf) -> list[MeanAndVariance] | None:
        return changes_of(self.missing, numbers, moments)

    def raw(self, numbers: RowNumbers) -> Any:
        return self.X[numbers]

    def targets(self, numbers: RowNumbers) -> np.ndarray:
        return self.y[numbers]

    def marked(self, recipe: Recipe) -> ArrayRows:
        return replace(self, X=recipe.encoded_numbers(self.X))

    def incomplete(self) -> RowNumbers:
        return incomplete(self.X)

    def completed(self, missing: MissingValues) -> ArrayRows:
        return replace(self, X=missing.completion(self.X), missing=missing)

    def fingerprint(self) -> dict[str, Any]:
        return {
            "the number of rows": self.n_rows,
            "the number of columns": self.n_features,
            "the checksum of the data": f"{checksum(self.X, self.y, self.weight):08x}",
        }


def training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, kind: TargetKind = CLASSES) -> Any:
    """Check the arguments of ``fit``: returns ``LabelledRows`` or ``NumberedRows``."""
    if is_dask(X):
        return dask_rows(estimator, X, y, sample_weight, kind)
    if isinstance(X, Table):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "a table contains its labels and weights: use open_table(…, target=…, weight=…), then fit(table)"
            )
        return table_rows(estimator, X, kind)
    X, y, sample_weight, labelled = _with_targets(X, y, sample_weight)
    kind.require(y)
    X, y = training_data(estimator, X, y)
    weight = row_weights(sample_weight, X)
    encoder, totals = kind.encoder(estimator, kind.of(y, weight))
    _warn_of_spellings(encoder.classes)
    rows = ArrayRows.of(X, y, weight, encoder, totals)
    if estimator.recipe_ is not None:
        warn_of_leakage(rows.X, rows.y, estimator.recipe_, numbers=kind is not CLASSES)
    return rows if labelled is None else replace(rows, kept=labelled[rows.given(np.arange(rows.n_rows))])


def _warn_of_spellings(classes: np.ndarray) -> None:
    """Warn about classes that differ only by case or spaces; the caller's labels stay as they are."""
    if classes.dtype.kind not in "UO" or not all(isinstance(label, str) for label in classes.tolist()):
        return
    _, merged = Spellings.of(dict.fromkeys(classes.tolist(), 1))
    for one, other in list(merged.items())[:1]:
        warn_user(
            f"y has classes that differ only by case or spaces, such as {one!r} and {other!r}: if they are the same, "
            "spell them alike, for example with y.str.strip().str.lower()"
        )


def _with_targets(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, np.ndarray | None]:
    """The rows of a data frame that have a target, and their indices if other rows have none."""
    frame = None if y is None else Frame.of(X)
    labelled = None if frame is None or len(y) != frame.n_rows else rows_with_targets(y)
    if frame is None or labelled is None:
        return X, y, sample_weight, None
    weight = None if sample_weight is None else np.asarray(sample_weight)[labelled]
    return frame.take(labelled), np.array(np.asarray(y)[labelled].tolist()), weight, labelled


def _require_memory_rows(X: Any) -> None:
    if is_dask(X) or isinstance(X, Table):
        raise TypeError(f"partial_fit takes rows in memory, part by part; use fit for a whole {type(X).__name__}")


def stream_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, *, first: bool) -> LabelledRows:
    """Check the arguments of ``partial_fit``; the estimator knows the classes."""
    _require_memory_rows(X)
    CLASSES.require(y)
    X, y = training_data(estimator, X, y, first=first)
    classes = estimator.classes_
    require_few_classes(classes, len(y), "`classes`")
    unseen = np.flatnonzero(~np.isin(y, classes))
    if len(unseen):
        row = int(unseen[0])
        raise ValueError(
            f"y has the label {y[row : row + 1].tolist()[0]!r} at row {row}, which is not among the classes "
            f"{classes.tolist()}; pass all classes to the first call of partial_fit as `classes`"
        )
    weight = row_weights(sample_weight, X)
    encoder, totals = weighting_encoder(estimator.class_weight, LabelCounts.of(y, weight, classes))
    return ArrayRows.of(X, y, weight, encoder, totals)


def stream_of_numbers(estimator: Any, X: Any, y: Any, sample_weight: Any, encoder: Any | None) -> NumberedRows:
    """The same for numbers; later parts use the units of the first."""
    _require_memory_rows(X)
    NUMBERS.require(y)
    X, y = training_data(estimator, X, y, first=encoder is None)
    weight = row_weights(sample_weight, X)
    if encoder is None:
        encoder, _ = NUMBERS.encoder(estimator, NUMBERS.of(y, weight))
    return ArrayRows.of(X, y, weight, encoder, np.zeros(1))
