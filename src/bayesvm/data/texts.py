"""Data: what texts of tables stand for: which are missing values, and which are spellings of the same category."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

# As people and programs write them. An empty cell, or one of spaces, is missing, too.
MISSING_TEXTS = frozenset(
    {"", "?", "-", "--", "."}
    | {"NA", "N/A", "n/a", "<NA>", "NaN", "nan", "-NaN", "-nan", "null", "Null", "NULL", "None"}
    | {"\\N", "#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
# Those that are reported, because they might mean something.
DOUBTFUL_TEXTS = frozenset({"?", "-", "--", ".", "None"})


def missing_among(texts: set[str], missing: frozenset[str] = MISSING_TEXTS) -> frozenset[str]:
    """Which texts are missing values in a column of these distinct texts: beside +, the text - is a value."""
    return missing - {"-"} if "+" in texts else missing


def merged_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Categories that differ only by case and surrounding spaces, each with the spelling that stands for all.

    That is the most frequent spelling without surrounding spaces; of equally frequent ones, the first in the order of
    the alphabet. Texts that stay as they are, are not listed.

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
