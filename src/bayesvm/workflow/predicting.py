"""Workflow: write predictions for a table to a file or a stream, abstaining on the least certain rows if asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, BinaryIO

import numpy as np

from bayesvm.data.tables import Table
from bayesvm.data.tables.writing import CsvWriter, Part, writing_table
from bayesvm.evaluation import DoubtHistogram
from bayesvm.extras import optional
from bayesvm.workflow.model import TableModel

Watch = Callable[[int, int], None]  # rows done, rows in all


def no_progress(done: int, n_rows: int) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Predicted:
    """Summary of the written predictions."""

    n_rows: int
    n_kept: int  # rows with a prediction
    expected_error: float  # their expected error rate; NaN for regression


def predict_table(
    model: TableModel,
    table: Table,
    out: str | PathLike[str] | BinaryIO,
    *,
    abstain: float | None = None,
    uncertainty: bool = True,
    coverage: float | None = None,
    keep: Sequence[str] = (),
    watch: Watch = no_progress,
) -> Predicted:
    """Write class, probabilities and uncertainty of each row; ``keep`` names columns to copy beside them.

    For a regressor: the mean and, with ``uncertainty``, the standard deviation, the parts of the variance, and
    intervals with the probability ``coverage``, 0.9 by default.

    With ``abstain``, the least certain rows get no prediction: as many as needed for an expected error rate of the
    others of at most ``abstain``. The rows are then read twice. With ``coverage``, the column ``set`` has the classes
    of ``predict_set``, separated by ``|``.
    """
    if abstain is not None and not 0 < abstain < 1:
        raise ValueError(f"abstain must be an error rate between 0 and 1; got {abstain}")
    if model.is_regression and abstain is not None:
        raise ValueError("abstain is for classification; for regression, use std and the intervals")
    if isinstance(out, str | PathLike) and table.is_made_of(out):
        raise ValueError(f"{out} is a file of the table itself; write the predictions to another file")
    others = CopiedColumns(table, keep)
    done = kept = 0
    expected = 0.0
    predictions = model.estimator.predictions(table, uncertainty=uncertainty, coverage=coverage)
    with _writing(out) as append, closing(predictions) as parts:
        most = np.inf if abstain is None else _most_doubt(model, table, abstain)
        for part in parts:
            doubt = np.zeros(len(part["prediction"])) if model.is_regression else _doubt(part)
            certain = doubt <= most
            n_rows = len(doubt)
            beside = others.next(n_rows)
            if twice := sorted(set(beside) & set(part)):
                raise ValueError(f"column {twice[0]!r} cannot be kept: predictions have a column of that name, too")
            if not certain.all():
                part["prediction"] = optional("pyarrow", "tables").array(part["prediction"], mask=~certain)
            append(beside | part)
            done, kept, expected = done + n_rows, kept + int(certain.sum()), expected + float(doubt[certain].sum())
            watch(done, table.n_rows)
    return Predicted(done, kept, expected / kept if kept and not model.is_regression else np.nan)


class CopiedColumns:
    """Columns to copy beside the predictions, in parts with given numbers of rows."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self._names, self._batches = list(names), table.columns(names) if names else iter(())
        self._waiting: list[Any] = []

    def next(self, n_rows: int) -> dict[str, Any]:
        """The values of the next rows."""
        if not self._names:
            return {}
        while sum(batch.num_rows for batch in self._waiting) < n_rows:
            self._waiting.append(next(self._batches))
        joined = optional("pyarrow", "tables").Table.from_batches(self._waiting)
        self._waiting = joined.slice(n_rows).to_batches()
        return {name: joined.column(name).slice(0, n_rows).combine_chunks() for name in self._names}


def _doubt(part: Mapping[str, np.ndarray]) -> np.ndarray:
    """The probability that the most probable class is wrong."""
    return 1 - np.max([values for name, values in part.items() if name.startswith("probability_")], axis=0)


def _most_doubt(model: TableModel, table: Table, rate: float) -> float:
    histogram = DoubtHistogram()
    with closing(model.estimator.predictions(table, uncertainty=False)) as parts:
        for part in parts:
            histogram.add(_doubt(part))
    return histogram.threshold(rate)


@contextmanager
def _writing(out: str | PathLike[str] | BinaryIO) -> Iterator[Callable[[Part], None]]:
    """Write to a file, which appears when it is complete, or CSV to a stream."""
    if isinstance(out, str | PathLike):
        with writing_table(out) as append:
            yield append
        return
    pyarrow = optional("pyarrow", "tables")
    writer = None

    def write(part: Part) -> None:
        nonlocal writer
        batch = pyarrow.RecordBatch.from_pydict({name: pyarrow.array(values) for name, values in part.items()})
        writer = CsvWriter(out, batch.schema) if writer is None else writer
        writer.write_batch(batch)

    yield write
    if writer is not None:
        writer.close()
