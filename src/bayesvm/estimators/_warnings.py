"""Estimators: what a user should know about the weights and copies of a table."""

from __future__ import annotations

import warnings

from bayesvm.data.repetition import Repetition

SOME_COPIES = 0.01  # of the rows, from which a warning names them
FEW_EFFECTIVE = 0.1  # rows of equal weight that a row is worth, below which a warning says so


def warn_of_repetition(found: Repetition, stacklevel: int) -> None:
    """Warn about copies and about very uneven weights."""
    if found.copied >= SOME_COPIES:
        warnings.warn(
            f"{found.copied:.1%} of the rows are exact copies of other rows. Copies are left out together, so that "
            "leave-one-out does not predict a row from its own copy. If they come from oversampling, give every row "
            "once and use sample_weight or class_weight.",
            UserWarning,
            stacklevel=stacklevel,
        )
    effective = found.evenness * found.n_rows
    if effective < max(FEW_EFFECTIVE * found.n_rows, min(100, found.n_rows / 4)):
        warnings.warn(
            f"the weights are so uneven that {found.n_rows:,} rows count as {effective:,.0f} of equal weight; the fit "
            "is as uncertain as one on that many rows. Cap the largest weights, or use fewer of the light rows.",
            UserWarning,
            stacklevel=stacklevel,
        )
