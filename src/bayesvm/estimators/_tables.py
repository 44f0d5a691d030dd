"""Estimators: tables in files, as rows to learn from and as rows to predict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import starmap
from operator import iadd
from typing import Any

import numpy as np

from bayesvm.data.blocks import BlockSource, RowNumbers, rows_to_hold
from bayesvm.data.labels import Coder, LabelCounts
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.streams import StreamSource, coded
from bayesvm.data.tables import Table
from bayesvm.data.workers import Workers
from bayesvm.estimators._classes import coder_for


@dataclass(frozen=True)
class TableRows:
    """Rows in files, whose labels were read once."""

    table: Table
    coder: Coder
    totals: np.ndarray  # the weight of every class

    @property
    def classes(self) -> np.ndarray:
        return self.coder.classes

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    @property
    def n_features(self) -> int:
        return self.table.n_features

    def source(self, workers: Workers, rows_per_block: int, rng: np.random.Generator) -> BlockSource:
        """A table that can be held is read once, for good; a larger one in every pass."""
        numbers = rows_to_hold(self.n_rows, self.n_features, rng)
        batch = self.table.rows(np.arange(self.n_rows) if numbers is None else numbers)
        X, codes, weight = coded(batch, self.coder)
        hand = MemorySource(X, codes, weight, ColumnScaler(), workers, rows_per_block, numbered=numbers)
        if numbers is None:
            return hand
        return StreamSource(self.n_rows, float(self.totals.sum()), hand, self.table, self.coder)

    def given(self, numbers: RowNumbers) -> RowNumbers:
        return numbers


def table_rows(estimator: Any, table: Table) -> TableRows:
    """A table to learn from, after a look at all labels."""
    if not table.has_labels:
        raise ValueError(f"{table} has no labels; name their column: open_table(…, target=…)")
    coder, totals = coder_for(estimator, reduce(iadd, starmap(LabelCounts.of, table.labels())))
    estimator.n_features_in_ = table.n_features
    if table.names is not None:
        estimator.feature_names_in_ = np.array(table.names, object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return TableRows(table, coder, totals)


def table_to_predict(estimator: Any, table: Table) -> Table:
    """The features that the estimator was fitted to, wherever they are in the table."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and table.names is not None:
        return table.with_features(names)
    if table.n_features != estimator.n_features_in_:
        remedy = "give open_table n_features" if table.sparse else "choose them with columns=[…]"
        raise ValueError(
            f"{table} has {table.n_features} features, but {type(estimator).__name__} was fitted to "
            f"{estimator.n_features_in_}; {remedy}"
        )
    return table
