"""Data: the meaning of texts in tables: which are missing values, and which spell the same category."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

# Common spellings of a missing value. Empty or blank cells are missing, too.
MISSING_TEXTS = frozenset(
    {"", "?", "-", "--", "."}
    | {"NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "null", "Null", "NULL", "None"}
    | {"\\N", "#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
# Ambiguous texts, which are reported because they could be values.
DOUBTFUL_TEXTS = frozenset({"?", "-", "--", ".", "None"})


def missing_among(texts: set[str], missing: frozenset[str] = MISSING_TEXTS) -> frozenset[str]:
    """The missing values among the distinct texts of a column. If + occurs too, - is a value."""
    return missing - {"-"} if "+" in texts else missing


def merged_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Map spellings that differ only by case and surrounding spaces to one common spelling.

    The common spelling is the most frequent one without surrounding spaces; ties are broken alphabetically. Texts that
    do not change are not listed.

    Parameters
    ----------
    counts : mapping of texts to numbers of rows

    Examples
    --------
    >>> merged_spellings({"Yes": 5, "yes ": 2, "no": 3, "maybe": 1})
    {'yes ': 'Yes'}
    """
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for text, count in counts.items():
        groups[text.strip().casefold()][text.strip()] += count
    kept = {key: min(spellings, key=lambda text: (-spellings[text], text)) for key, spellings in groups.items()}
    merged = {text: kept[text.strip().casefold()] for text in counts}
    return {text: spelling for text, spelling in merged.items() if text != spelling}
