"""Workflow: rows that are probably not observations: totals, and the only rows of a class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.data.tables import Table
from bayesvm.preparation.values import of_arrow
from bayesvm.warn import warn_user

TOTALS = {"total", "totals", "grand total", "sum", "gesamt", "summe", "insgesamt", "subtotal"}
MOST_NAMED = 3
LEAST_ROWS = 3  # to compare the last row with those above it


def warn_of_single_rows(table: Table, classes: npt.NDArray[np.intp] | None) -> None:
    """Warn about a last row of totals, and about classes with a single row, which cannot be held out.

    ``classes`` has the index of the class of each row; None for regression.
    """
    if table.names is not None and table.prepared_by is None and table.n_rows >= LEAST_ROWS:
        _warn_of_total(table)
    if classes is None:
        return
    counts = np.bincount(classes)
    single = np.flatnonzero(counts == 1)
    if not len(single) or len(single) == len(counts):
        return
    rows = np.sort([int(np.argmax(classes == code)) for code in single[:MOST_NAMED]])
    labels = np.concatenate([y for y, _ in table.subset(rows).targets()]).tolist()
    shown = ", ".join(f"{label!r} ({table.where(row)})" for label, row in zip(labels, rows.tolist(), strict=True))
    more = f", … ({len(single) - MOST_NAMED} more)" if len(single) > MOST_NAMED else ""
    subject = "1 class has" if len(single) == 1 else f"{len(single)} classes have"
    warn_user(
        f"{subject} a single row: {shown}{more}. It is learned from, but cannot be held out for evaluation; correct or "
        "remove the row, or merge the class with another"
    )


def _warn_of_total(table: Table) -> None:
    """Warn if the last row, and not the one before it, has the word total in a column."""
    rows, schemas = table.source
    wanted = [*(table.names or ()), *([] if table.target is None else [table.target])]
    names = [name for name in wanted if name in schemas[-1][1].names]
    last: dict[str, list[Any]] = {name: [] for name in names}
    for _, chunk in rows.subset(np.arange(table.n_rows - 2, table.n_rows)).chunks(names):
        for name in names:
            last[name] += of_arrow(chunk.column(name)).array.tolist()
    for name, (before, after) in last.items():
        if isinstance(after, str) and after.strip(" :").casefold() in TOTALS and before != after:
            warn_user(
                f"{table.where(table.n_rows - 1)}, column {name!r}: the last row has {after!r} and looks like a total "
                "of the others; remove it"
            )
            return
