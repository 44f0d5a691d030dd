"""Data: numbers formatted for people, such as $1,169.00 or 39,1 or (1 234): detect the format of a text column.

It needs no other library, so files and data frames are parsed in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

DECIMALS = (".", ",")
_SYMBOLS = "$€£¥¢₹₽₩₪₫₺₴₦₱฿¤%"
_ALIKE = str.maketrans(dict.fromkeys("\t\u00a0\u2007\u2009\u202f", " ") | {"\u2212": "-", "’": "'"})
_FEW = 100  # texts that usually suffice to rule out that a column is numeric


@dataclass(frozen=True)
class NumberFormat:
    """The format of the numbers in a column; the default is the usual machine format.

    A currency symbol or % must be in every text, before or after the number. It is dropped: 28% is read as 28. A sign,
    or parentheses around a negative number, is optional.

    Attributes
    ----------
    decimal : the decimal mark, ``"."`` or ``","``
    thousands : the separator of groups of three digits: ``","``, ``"."``, ``" "``, ``"'"``, or ``""`` for none
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
        """Detect the common format of all texts; None if there is no such format, or no text.

        If several decimal marks are possible, the first one in ``decimals`` is used: ``1,234`` is 1234 because its
        group has three digits, unless the comma comes first. Numbers with leading zeros, such as 00123, are treated as
        codes and have no format.

        Parameters
        ----------
        texts : the texts of a column, or its distinct texts, without missing values
        decimals : the possible decimal marks, most likely first
        """
        texts = list(texts)
        if not texts:
            return None
        symbol = next((character for character in texts[0] if character in _SYMBOLS), "")
        for decimal in decimals:
            for thousands in ("", "." if decimal == "," else ",", " ", "'"):
                form = cls(decimal, thousands, symbol)
                if form._all(texts[:_FEW]) and form._all(texts):
                    return form
        return None

    def numbers(self, texts: Iterable[str | None]) -> npt.NDArray[np.float64]:
        """Parse texts into numbers, with NaN for None. Raises ``ValueError`` for a text in another format."""
        texts = list(texts)
        held = [text for text in texts if text is not None]
        if not self._all(held):
            other = next(text for text in held if not self.holds(text))
            raise ValueError(f"{other[:60]!r} is not a number written {self}")
        dropped = str.maketrans(dict.fromkeys(f" ){self.thousands}{self.symbol}") | {"(": "-"} | {self.decimal: "."})
        lines = "\n".join(held).translate(_ALIKE).translate(dropped)
        numbers = np.full(len(texts), np.nan)
        numbers[[text is not None for text in texts]] = list(map(float, lines.split("\n"))) if held else []
        return numbers

    def holds(self, text: str) -> bool:
        """Whether a text has this format."""
        return self._all([text])

    def _all(self, texts: Sequence[str]) -> bool:
        """Whether all texts have this format, tested on the joined lines to avoid a Python loop."""
        lines = "\n".join(texts)
        if lines.count("\n") >= max(len(texts), 1):  # a text contains a line break
            return False
        return len(self._line.findall(lines.translate(_ALIKE))) == len(texts)

    @cached_property
    def _line(self) -> re.Pattern[str]:
        point, mark, symbol = map(re.escape, (self.decimal, self.thousands, self.symbol))
        groups = rf"|[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" if self.thousands else ""
        ending = r"\.?" if self.decimal == "." else ""  # some programs write 5.
        number = rf"(?:(?:(?:0|[1-9][0-9]*){groups})(?:{point}[0-9]+|{ending})|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        if self.symbol:
            forms = [
                rf"[+-]? *{symbol} *{number}",
                rf"{symbol} *[+-] *{number}",
                rf"[+-]? *{number} *{symbol}",
                rf"\( *(?:{symbol} *{number}|{number} *{symbol}) *\)",
                rf"{symbol} *\( *{number} *\)",
            ]
        else:
            forms = [rf"[+-]? *{number}", rf"\( *{number} *\)"]
        return re.compile(rf"(?m)^ *(?:{'|'.join(forms)}) *$")

    def __str__(self) -> str:
        """An example of the format: ``like $1,234.5``."""
        number = f"1{self.thousands}234{self.decimal}5"
        return "like " + (f"{number}%" if self.symbol == "%" else self.symbol + number)


def decimal_marks(texts: Sequence[str]) -> set[str]:
    """The decimal marks for which all texts are numbers; both if none is used or if it is ambiguous."""
    return {mark for mark in DECIMALS if NumberFormat.of(texts, [mark]) is not None}
