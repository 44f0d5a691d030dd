"""Preparation: find columns whose missing values are informative about the target, by a corrected test per column.

Fisher's exact test of two classes, a chi-squared test of more, and a rank test of numbers; with Bonferroni's
correction.
A test is marginal: an indicator may be redundant given the other columns, which does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2_contingency, fisher_exact, mannwhitneyu

SIGNIFICANT = 0.001  # probability of an indicator for any column, if no missingness is informative
LEAST_ROWS = 10  # with a missing value, and without
FEW_NUMBERS = 20  # distinct numbers of a target that are classes
LEAST_EXPECTED = 5.0  # rows of a class, for the approximation by chi-squared; rarer classes are tested together

Mask = npt.NDArray[np.bool_]


def informative(missing: Mapping[str, Mask], y: npt.NDArray[Any]) -> list[str]:
    """The columns whose missing values are associated with the target.

    Parameters
    ----------
    missing : masks of the rows with a missing value, by column
    y : the target, numbers or objects; rows without one (NaN, None) are ignored

    Examples
    --------
    >>> y = np.arange(100) % 2
    >>> informative({"x": y == 1, "z": np.arange(100) < 50}, y)
    ['x']
    """
    labelled = ~np.isnan(y) if y.dtype.kind == "f" else np.array([value is not None for value in y.tolist()], bool)
    y = y[labelled]
    distinct, codes = np.unique(y if y.dtype.kind in "iufb" else y.astype(str), return_inverse=True)
    are_numbers = y.dtype.kind in "iuf" and len(distinct) > FEW_NUMBERS
    tested: dict[bytes, tuple[str, Mask]] = {}  # columns that are missing together are tested once
    for name, mask in missing.items():
        part = mask[labelled]
        if LEAST_ROWS <= part.sum() <= len(part) - LEAST_ROWS:
            tested.setdefault(np.packbits(part).tobytes(), (name, part))
    limit = SIGNIFICANT / max(len(tested), 1)
    found = []
    for name, part in tested.values():
        chance = mannwhitneyu(y[part], y[~part]).pvalue if are_numbers else _of_classes(codes, part)
        if chance < limit:
            found.append(name)
    return found


def _of_classes(codes: npt.NDArray[np.intp], missing: Mask) -> float:
    """The probability of such an association by chance."""
    sizes = np.bincount(codes)
    small = sizes * min(missing.mean(), 1 - missing.mean()) < LEAST_EXPECTED
    if len(sizes) > 2 and small.any():
        codes = np.unique(np.where(small[codes], -1, codes), return_inverse=True)[1]
    counts = np.array([np.bincount(codes[part], minlength=codes.max() + 1) for part in (missing, ~missing)])
    if counts.shape[1] < 2:
        return 1.0
    if counts.shape[1] == 2:
        return float(fisher_exact(counts).pvalue)
    return float(chi2_contingency(counts).pvalue)
