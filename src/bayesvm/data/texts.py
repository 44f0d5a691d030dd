"""Data: the meaning of texts in tables: which are missing values, and which spell the same category."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

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


_CODE = 2  # length up to which case may matter: genotypes Aa and AA, units M and m
_FLAGS = frozenset({"y", "n", "t", "f", "no"})  # short words in which it does not matter
_MOST_SHOWN = 5  # spellings in a note
_INNER_CAPITAL = re.compile(r"[^\W\d_A-Z][A-Z]")


def is_case_ignored(texts: Collection[str]) -> bool:
    """Whether the case of the texts of a column has no meaning.

    It may have one if all texts are codes of one or two characters, or if texts that differ only by case have a capital
    after a small letter, as in AaBb.
    """
    keys = [text.strip().casefold() for text in texts]
    if max(map(len, keys), default=0) <= _CODE and not _FLAGS.issuperset(keys):
        return False
    groups: dict[str, set[str]] = defaultdict(set)
    for key, text in zip(keys, texts, strict=True):
        groups[key].add(text.strip())
    return not any(len(group) > 1 and any(map(_INNER_CAPITAL.search, group)) for group in groups.values())


@dataclass(frozen=True)
class Spellings:
    """The known spellings of categories, and which of them another spelling stands for.

    Examples
    --------
    >>> known = Spellings(("Yes", "no"))
    >>> [known(text) for text in ("Yes", " YES ", "maybe")]
    ['Yes', 'Yes', 'maybe']
    """

    common: tuple[str, ...]
    ignores_case: bool = True

    def __call__(self, text: str) -> str:
        """The known spelling of a text, or else the text itself."""
        return text if text in self._exact else self._by_key.get(self._key(text), text)

    def _key(self, text: str) -> str:
        return text.strip().casefold() if self.ignores_case else text.strip()

    @cached_property
    def _exact(self) -> frozenset[str]:
        return frozenset(self.common)

    @cached_property
    def _by_key(self) -> dict[str, str]:
        """Only keys of one known spelling."""
        counts = Counter(map(self._key, self.common))
        return {key: text for text in self.common if counts[key := self._key(text)] == 1}

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> tuple[Spellings, dict[str, str]]:
        """The spellings of a column after merging, and the texts that change."""
        ignored = is_case_ignored(counts)
        merged = merged_spellings(counts, ignore_case=ignored)
        return cls(tuple(dict.fromkeys(merged.get(text, text) for text in counts)), ignored), merged


def merging(merged: Mapping[str, str], what: str) -> str:
    """The note that some spellings were merged; ``what`` is the column.

    >>> merging({"no ": "no", "YES": "yes"}, "column 'smoker'")
    "column 'smoker': 'YES' is read as 'yes', 'no ' as 'no', because they differ only by case or spaces"
    """
    shown = [f"{text!r} as {kept!r}" for text, kept in sorted(merged.items())[:_MOST_SHOWN]]
    shown[0] = shown[0].replace(" as ", " is read as ", 1)
    more = f", … ({len(merged) - _MOST_SHOWN} more)" if len(merged) > _MOST_SHOWN else ""
    return f"{what}: {', '.join(shown)}{more}, because they differ only by case or spaces"


def merged_spellings(counts: Mapping[str, int], *, ignore_case: bool = True) -> dict[str, str]:
    """Map spellings that differ only by case and surrounding spaces to one common spelling.

    The common spelling is the most frequent one without surrounding spaces; ties are broken alphabetically. Texts that
    do not change are not listed.

    Parameters
    ----------
    counts : mapping of texts to numbers of rows
    ignore_case : whether texts that differ by case are the same

    Examples
    --------
    >>> merged_spellings({"Yes": 5, "yes ": 2, "no": 3, "maybe": 1})
    {'yes ': 'Yes'}
    """

    def key(text: str) -> str:
        return text.strip().casefold() if ignore_case else text.strip()

    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for text, count in counts.items():
        groups[key(text)][text.strip()] += count
    kept = {key: min(spellings, key=lambda text: (-spellings[text], text)) for key, spellings in groups.items()}
    merged = {text: kept[key(text)] for text in counts}
    return {text: spelling for text, spelling in merged.items() if text != spelling}
