"""Preparation: the formats of dates in text, such as 31.01.2012 14:30 or Jan 31, 2012: detect and parse them.

All values of a column have one format, because 03/04/2012 alone may be in March or in April.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

ISO, COMPACT = "iso", "yMD"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = "january|february|march|april|june|july|august|september|october|november|december|sept|" + "|".join(_MONTHS)
_CLOCK = r"(?P<h>\d{1,2}):(?P<min>\d\d)(?::(?P<s>\d\d)(?:[.,](?P<us>\d{1,9}))?)?(?: ?(?P<half>[AaPp]\.?[Mm]\.?))?"
_TIME = rf"(?:(?:[T ]|, ?| +){_CLOCK})?"
_ISO = re.compile(r"\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?)?\s*(Z|[+-]\d\d:?\d\d)?\s*")
_PARTS = {
    "y": r"(?P<y>\d{4})",
    "m": r"(?P<m>\d{1,2})",
    "d": r"(?P<d>\d{1,2})",
    "M": r"(?P<m>\d\d)",
    "D": r"(?P<d>\d\d)",
    ",": ",?",
    "b": rf"(?P<b>(?i:{_NAME}))\.?",
}
# Parts and separators, with an example. Of two formats with the same digits, the more usual one comes first.
EXAMPLES = {
    ISO: "2024-04-03",
    "y/m/d": "2024/04/03",
    "y.m.d": "2024.04.03",
    "m/d/y": "04/23/2024",
    "d/m/y": "23/04/2024",
    "d.m.y": "23.04.2024",
    "d-m-y": "23-04-2024",
    "m-d-y": "04-23-2024",
    "d-b-y": "23-Apr-2024",
    "d b y": "23 Apr 2024",
    "b d, y": "Apr 23, 2024",
    "y-b-d": "2024-Apr-23",
    "y-M": "2024-04",
    "y/M": "2024/04",
    "M/y": "04/2024",
    "b y": "Apr 2024",
    COMPACT: "20240423",
}
TWINS = {"m/d/y": "d/m/y", "d-m-y": "m-d-y"}  # formats whose day and month may be interchanged
EARLIEST, LATEST = 1900, 2100  # years of a whole number such as 20240403
LEAST_COMPACT = 8  # minimum number of distinct whole numbers of this form; fewer may be dates by chance


@dataclass(frozen=True)
class DateFormat:
    """The format of the dates of a column, optionally with a time.

    Examples
    --------
    >>> form = DateFormat.of(["01/31/2012", "02/01/2012 14:30"])
    >>> form.name, str(form.time("02/01/2012 2:30 PM"))
    ('m/d/y', '2012-02-01T14:30:00.000000')
    """

    name: str = ISO

    @classmethod
    def of(cls, texts: Sequence[str]) -> DateFormat | None:
        """The first format that all texts have; None if there is none, or no text."""
        return next((form for form in map(cls, EXAMPLES) if texts and all(map(form.holds, texts))), None)

    @property
    def example(self) -> str:
        """A date in this format."""
        return EXAMPLES[self.name]

    def is_ambiguous(self, texts: Sequence[str]) -> bool:
        """Whether day and month of all texts could be interchanged, and are not always equal."""
        twin = TWINS.get(self.name)
        if twin is None or not all(map(DateFormat(twin).holds, texts)):
            return False
        return any(self.time(text) != DateFormat(twin).time(text) for text in texts)

    def holds(self, text: str) -> bool:
        """Whether a text is a date in this format."""
        return not np.isnat(self.time(text))

    def time(self, text: str) -> np.datetime64:
        """A date as a local time; NaT for other text. Time zones are ignored."""
        with suppress(ValueError):
            if self.name == ISO:
                if _ISO.fullmatch(text):
                    return np.datetime64(datetime.fromisoformat(text.strip()).replace(tzinfo=None), "us")
            elif found := self._pattern.fullmatch(text.strip()):
                return np.datetime64(_datetime(found), "us")
        return np.datetime64("NaT")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = [_PARTS.get(character, re.escape(character)) for character in self.name]
        return re.compile("".join(parts) + ("" if self.name == COMPACT else _TIME))


def _datetime(found: re.Match[str]) -> datetime:
    parts = found.groupdict()
    month = _MONTHS.index(parts["b"][:3].lower()) + 1 if parts.get("b") else int(parts["m"])
    hour, half = int(parts.get("h") or 0), (parts.get("half") or "").lower()[:1]
    if half:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + 12 * (half == "p")
    micro = int((parts.get("us") or "0").ljust(6, "0")[:6])
    clock = int(parts.get("min") or 0), int(parts.get("s") or 0), micro
    return datetime(int(parts["y"]), month, int(parts.get("d") or 1), hour, *clock)  # noqa: DTZ001


def best_format(texts: Sequence[str]) -> tuple[DateFormat, float]:
    """The format that most of the texts have, and the share of the texts that are dates in any format."""
    forms = list(map(DateFormat, EXAMPLES))
    held = np.array([[form.holds(text) for text in texts] for form in forms])
    return forms[int(held.sum(axis=1).argmax())], float(held.any(axis=0).mean())


def are_compact(numbers: Sequence[float]) -> bool:
    """Whether distinct numbers are all dates such as 20240403."""
    form = DateFormat(COMPACT)
    return len(numbers) >= LEAST_COMPACT and all(
        EARLIEST * 10_000 <= number <= LATEST * 10_000 and number % 1 == 0 and form.holds(str(int(number)))
        for number in numbers
    )
