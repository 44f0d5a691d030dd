"""Estimators: tables in files, as training rows and as rows to predict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from bayesvm.data.blocks import BlockSource, RowNumbers, rounded_sum, rows_to_hold
from bayesvm.data.checks import MissingTargetError, is_number
from bayesvm.data.completion import MeanAndVariance, MomentsOf
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.streams import StreamSource, encoded
from bayesvm.data.tables import Table
from bayesvm.data.targets import CompletingEncoder
from bayesvm.data.texts import Spellings, merging
from bayesvm.data.workers import Workers
from bayesvm.estimators._classes import CLASSES, MOST_NUMBERS, are_a_quantity
from bayesvm.estimators._numbers import NUMBERS
from bayesvm.estimators._targets import TargetKind
from bayesvm.estimators.columns import recipe_of, report_left_out, set_columns, use_recipe
from bayesvm.estimators.completing import MissingValues, changes_of
from bayesvm.estimators.labels import LabelCounts
from bayesvm.preparation import MixedTable, Recipe, encoded_table
from bayesvm.preparation.mixed import numbers_of_table
from bayesvm.warn import ReadingNote, warn_user

TableType = TypeVar("TableType", bound=Table)

FEW_NUMBERS, MOST_TEXTS = (
    20,
    0.05,
)  # distinct numbers that may be names of classes; texts among more numbers, as a share


@dataclass(frozen=True)
class TableRows:
    """Training rows in files; their labels have been read once."""

    table: Table
    encoder: Any  # of the targets
    totals: np.ndarray  # total weight of the rows, or of the rows of each class
    kept: RowNumbers | None = None  # indices of the rows used; None if all are
    groups: RowNumbers | None = None
    missing: MissingValues | None = None

    @property
    def classes(self) -> np.ndarray:
        found: np.ndarray = self.encoder.classes
        return found

    @property
    def n_rows(self) -> int:
        return self.table.n_rows if self.kept is None else len(self.kept)

    @property
    def n_features(self) -> int:
        return self.table.n_features

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> BlockSource:
        """A table that fits into memory is read once; a larger table is streamed in every pass."""
        encoder = self.encoder if self.missing is None else CompletingEncoder(self.encoder, self.missing.completion)
        table = self.table if self.kept is None else self.table.subset(self.kept)
        numbers = rows_to_hold(self.n_rows, self.n_features, rng)
        if numbers is None:
            rows = encoded(table.rows(np.arange(self.n_rows)), encoder)
            return MemorySource(*rows, ColumnScaler(), workers, rows_per_block)
        return StreamSource.survey(
            table, encoder, float(rounded_sum(self.totals.sum())), numbers, workers, rows_per_block
        )

    def given(self, numbers: RowNumbers) -> RowNumbers:
        return numbers if self.kept is None else self.kept[numbers]

    def changes(self, numbers: RowNumbers, moments: MomentsOf) -> list[MeanAndVariance] | None:
        return changes_of(self.missing, numbers, moments)

    def raw(self, numbers: RowNumbers) -> Any:
        return self.table.rows(self.given(numbers)).X

    def targets(self, numbers: RowNumbers) -> np.ndarray:
        found: np.ndarray = self.encoder(self.table.rows(self.given(numbers)).y, None)[0]
        return found

    def marked(self, recipe: Recipe) -> TableRows:
        return replace(self, table=encoded_table(self.table, recipe))

    def incomplete(self) -> RowNumbers:
        return np.zeros(0, np.intp)

    def completed(self, missing: MissingValues) -> TableRows:
        return replace(self, missing=missing)

    def fingerprint(self) -> dict[str, Any]:
        return {f"the table's {name}": value for name, value in self.table.fingerprint().items()}


def table_rows(estimator: Any, table: Table, kind: TargetKind) -> TableRows:
    """The training rows of a table, after a check of all labels."""
    if not table.has_target:
        raise ValueError(f"{table} has no labels; name their column with open_table(…, target=…)")
    try:
        labelled, (found, zeros) = None, target_summary(table, kind)
    except MissingTargetError:  # rare, so not checked before
        labelled = table.rows_with_target()
        found, zeros = target_summary(table if labelled is None else table.subset(labelled), kind)
    if kind is CLASSES and (merged := with_merged_spellings(table, found)) is not table:
        table = merged
        found, zeros = target_summary(table if labelled is None else table.subset(labelled), kind)
    encoder, totals = kind.encoder(estimator, found)
    table = _features_to_learn(estimator, table if labelled is None else table.subset(labelled), table)
    kept = labelled
    if len(zeros):
        kept = np.delete(np.arange(table.n_rows) if labelled is None else labelled, zeros)
    return TableRows(table, encoder, totals, kept)


def target_summary(table: Table, kind: TargetKind) -> tuple[Any, RowNumbers]:
    """The summary of the checked targets of a table, and the indices of its rows of weight zero."""
    target = "the label" if table.target is None else f"the target {table.target!r}"
    found, zeros = kind.of(np.empty(0), None), [np.zeros(0, np.intp)]
    for y, weight in table.targets():
        before = found.n_rows
        found += kind.summarise(y, weight, partial(_where, table, before), target)
        if weight is not None:
            zeros.append(before + np.flatnonzero(weight == 0))
        kind.require_part(found, target)
    kind.require_all(found, target)
    return found, np.concatenate(zeros)


def label_counts(table: Table) -> tuple[LabelCounts, RowNumbers]:
    """The checked labels of a table, and the indices of its rows of weight zero."""
    found, zeros = target_summary(table, CLASSES)
    return found, zeros


def with_merged_spellings(table: TableType, counts: LabelCounts) -> TableType:
    """A table whose classes of text have one spelling each, with a note; ``counts`` are those of its labels.

    Labels that the user declared to be categories stay as they are.
    """
    explicit = isinstance(table, MixedTable) and table.has_text_labels
    if explicit or counts.labels.dtype.kind != "U" or table.spelled is not None:
        return table
    spellings, merged = Spellings.of(dict(zip(counts.labels.tolist(), counts.counts.tolist(), strict=True)))
    if not merged:
        return table
    warn_user(merging(merged, f"the target {table.target!r}"), ReadingNote)
    return table.with_spelling(spellings)


def holds_a_quantity(table: Table) -> bool:
    """Whether the target is numeric, with fractions or with more different whole numbers than classes may have."""
    distinct, n_rows = np.empty(0), 0
    for y, _ in table.targets():
        if y.dtype.kind not in "iuf":
            return False
        n_rows += len(y)
        distinct = np.union1d(distinct, y)
        # Infinity is no class; the check of numbers names its row.
        if not np.isfinite(distinct).all() or (distinct % 1).any() or len(distinct) > MOST_NUMBERS:
            return True
    return are_a_quantity(distinct, n_rows)


def require_no_text_in_a_quantity(table: Table, name: str) -> None:
    """If nearly all of a target are numbers that are no classes, name the first row that is text."""
    distinct = set[str]()
    for y, _ in table.targets():
        if y.dtype.kind != "U":
            return
        distinct.update(np.unique(y).tolist())
    numbers = np.array([float(text) for text in distinct if is_number(text)])
    others = [text for text in distinct if not is_number(text)]
    are_names = len(numbers) <= FEW_NUMBERS or not (len(numbers) > MOST_NUMBERS or (numbers % 1).any())
    if not others or are_names or len(others) > MOST_TEXTS * len(numbers):
        return
    first = 0
    for y, _ in table.targets():
        rows = np.flatnonzero(np.isin(y, others))
        if len(rows):
            raise ValueError(
                f"{table.where(first + int(rows[0]))}: {name} is the text {str(y[rows[0]])!r}, but {len(numbers):,} "
                "other values are numbers: correct it, drop the row, or say that it stands for a missing value "
                "(--missing, missing=); --task classification (task='classification') takes all of them for classes"
            )
        first += len(y)


def require_numbers(table: Table) -> None:
    """Require a target of finite numbers."""
    target_summary(table, NUMBERS)


def _where(table: Table, before: int, row: int) -> str:
    return table.where(before + row)


def _features_to_learn(estimator: Any, labelled: Table, table: Table) -> Table:
    """The features of a table; sets the recipe of the estimator, learned from rows with a target if needed."""
    if isinstance(table.prepared_by, Recipe):
        recipe = table.prepared_by
    elif estimator.warm_start and recipe_of(estimator) is not None:
        recipe = estimator.recipe_
    elif isinstance(labelled, MixedTable):
        recipe = labelled.learned()
        if not labelled.quiet:
            report_left_out(recipe, "the table")
    else:
        estimator.recipe_ = None
        set_columns(estimator, table.names, table.n_features)
        return table
    use_recipe(estimator, recipe)
    return encoded_table(table, recipe)


def table_to_predict(estimator: Any, table: Table) -> Table:
    """The features that the estimator was fitted to, in any order in the table."""
    recipe = recipe_of(estimator)
    if recipe is not None:
        return encoded_table(table, recipe)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and isinstance(table, MixedTable):
        return numbers_of_table(table, [str(name) for name in names])
    if names is not None and table.names is not None:
        return table.with_features(names)
    if table.n_features != estimator.n_features_in_:
        remedy = "set n_features in open_table" if table.sparse else "select them with columns=[…]"
        raise ValueError(
            f"{table} has {table.n_features} features, but {type(estimator).__name__} was fitted to "
            f"{estimator.n_features_in_}; {remedy}"
        )
    return table
