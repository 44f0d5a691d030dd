"""Data: numbers as people write them, such as $1,169.00 or 39,1 or (1 234): the form that the texts of a column share.

Needs no other library, so that files and data frames are read alike.
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
_FEW = 100  # texts that mostly tell that a column is none of numbers


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
        """The numbers, NaN for None. A text of another form is a ``ValueError``."""
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
        """Whether a text has this form."""
        return self._all([text])

    def _all(self, texts: Sequence[str]) -> bool:
        """Whether all texts have this form: the lines of one text, which takes no loop of ours."""
        lines = "\n".join(texts)
        if lines.count("\n") >= max(len(texts), 1):  # a line break in a text
            return False
        return len(self._line.findall(lines.translate(_ALIKE))) == len(texts)

    @cached_property
    def _line(self) -> re.Pattern[str]:
        point, mark, symbol = map(re.escape, (self.decimal, self.thousands, self.symbol))
        groups = rf"|[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" if self.thousands else ""
        ending = r"\.?" if self.decimal == "." else ""  # 5. is what some programs write
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
        """As an example: ``like $1,234.5``."""
        number = f"1{self.thousands}234{self.decimal}5"
        return "like " + (f"{number}%" if self.symbol == "%" else self.symbol + number)


def decimal_marks(texts: Sequence[str]) -> set[str]:
    """The decimal marks with which all texts are numbers; both where none is used, or where it cannot be told."""
    return {mark for mark in DECIMALS if NumberFormat.of(texts, [mark]) is not None}
