"""Data: numbers as people write them, such as $1,169.00 or 39,1 or (1 234): the form that the texts of a column share.

Needs no other library, so that files and data frames are read alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

DECIMALS = (".", ",")
_SYMBOL = r"[$€£¥¢₹₽₩₪₫₺₴₦₱฿¤%]"
_WRITTEN = re.compile(
    rf"(?P<open>\()?\s*(?P<outer>[+-])?\s*(?P<before>{_SYMBOL})?\s*(?P<inner>[+-])?\s*"
    rf"(?P<body>[.,]?\d(?:[\d.,' ]*\d)?\.?)(?P<exponent>[eE][+-]?\d+)?\s*(?P<after>{_SYMBOL})?\s*(?P<close>\))?"
)
_ALIKE = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | {"\u2212": "-", "’": "'"})


class _Parts(NamedTuple):
    """A text taken apart; ``body`` has the digits with the marks between them."""

    minus: str
    symbol: str
    body: str
    exponent: str


def _parts(text: str) -> _Parts | None:
    found = _WRITTEN.fullmatch(text.strip().translate(_ALIKE))
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    marks = [mark for mark in (found["outer"], found["inner"]) if mark]
    symbols = [symbol for symbol in (found["before"], found["after"]) if symbol]
    if len(marks) + bool(found["open"]) > 1 or len(symbols) > 1:
        return None
    return _Parts(
        "-" if found["open"] or "-" in marks else "", "".join(symbols), found["body"], found["exponent"] or ""
    )


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written; the default is how programs write them.

    A symbol, a currency or %, stands in every text, before or after the number, and is dropped: 28% is 28. A sign, or
    parentheses around a negative number, may be there or not.

    Attributes
    ----------
    decimal : the decimal mark, ``"."`` or ``","``
    thousands : what stands between groups of three digits: ``","``, ``"."``, ``" "``, ``"'"``, or ``""`` for nothing
    symbol : a currency symbol, ``"%"``, or ``""``

    Examples
    --------
    >>> prices = ["$1,169.00", "($80.50)"]
    >>> form = NumberFormat.of(prices)
    >>> form
    NumberFormat(decimal='.', thousands=',', symbol='$')
    >>> form.numbers(prices)
    array([1169. ,  -80.5])
    >>> NumberFormat.of(["12", "a dozen"]) is None
    True
    """

    decimal: str = "."
    thousands: str = ""
    symbol: str = ""

    @classmethod
    def of(cls, texts: Iterable[str], decimals: Sequence[str] = DECIMALS) -> NumberFormat | None:
        """The form that all texts have, none of them missing; None if there is none, or no text.

        Where several decimal marks fit, the first of ``decimals`` counts: ``1,234`` is 1234, because each group has
        three digits, unless the comma comes first. Numbers with leading zeros, such as 00123, are codes and have no
        form.

        Parameters
        ----------
        texts : the texts of a column, or the distinct ones
        decimals : the decimal marks that there may be, the likeliest first
        """
        parts: list[_Parts] = []
        for text in texts:
            found = _parts(text)
            if found is None or re.match(r"0\d", found.body) or (parts and found.symbol != parts[0].symbol):
                return None
            parts.append(found)
        if not parts:
            return None
        for decimal in decimals:
            for thousands in ("", "." if decimal == "," else ",", " ", "'"):
                form = cls(decimal, thousands, parts[0].symbol)
                if all(form._body.fullmatch(each.body) for each in parts):
                    return form
        return None

    @cached_property
    def _body(self) -> re.Pattern[str]:
        point, mark = re.escape(self.decimal), re.escape(self.thousands)
        groups = rf"|[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" if self.thousands else ""
        ending = r"\.?" if self.decimal == "." else ""  # 5. is what some programs write
        return re.compile(rf"(?:\d+{groups})(?:{point}\d+|{ending})|{point}\d+")

    def numbers(self, texts: Iterable[str | None]) -> npt.NDArray[np.float64]:
        """The numbers, NaN for None. A text of another form is a ``ValueError``."""
        return np.array([np.nan if text is None else self.number(text) for text in texts], np.float64)

    def number(self, text: str) -> float:
        """One of them."""
        parts = _parts(text)
        if parts is None or parts.symbol != self.symbol or not self._body.fullmatch(parts.body):
            raise ValueError(f"{text[:60]!r} is not a number written {self}")
        body = parts.body.replace(self.thousands, "") if self.thousands else parts.body
        return float(parts.minus + body.replace(self.decimal, ".") + parts.exponent)

    def holds(self, text: str) -> bool:
        """Whether a text has this form."""
        parts = _parts(text)
        return parts is not None and parts.symbol == self.symbol and self._body.fullmatch(parts.body) is not None

    def __str__(self) -> str:
        """As an example: ``like $1,234.5``."""
        number = f"1{self.thousands}234{self.decimal}5"
        return "like " + (f"{number}%" if self.symbol == "%" else self.symbol + number)


def decimal_marks(texts: Sequence[str]) -> set[str]:
    """The decimal marks with which all texts are numbers; both where none is used, or where it cannot be told."""
    return {mark for mark in DECIMALS if NumberFormat.of(texts, [mark]) is not None}
