"""Data: detect the dialect of a CSV file from its beginning: encoding, separator, quotes and decimal mark.

A separator is accepted if it splits all rows into the same number of fields as the first. If several do, the one whose
fields are numbers or contain no other separator wins.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypedDict

from bayesvm.data.number_formats import DECIMALS, NumberFormat, decimal_marks
from bayesvm.data.texts import MISSING_TEXTS

START_BYTES = 2**20  # of a file, used to detect its dialect
_ROWS = 1_000  # used for detection
_CONSISTENT = (
    0.9  # share of rows with as many fields as the first; others are errors, which are reported when they are read
)
SEPARATORS = (",", ";", "\t", "|")
_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
_SHOWN = {"\t": "tab", " ": "spaces"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHER_FORMATS = {
    b"PK\x03\x04": "an Excel workbook or another zip archive: save the sheet as CSV, or unpack the archive",
    b"\xd0\xcf\x11\xe0": "an Excel workbook: save the sheet as CSV",
    b"PAR1": "a Parquet file: give it a name that ends in .parquet",
    b"ARROW1": "an Arrow file: give it a name that ends in .arrow",
    b'{"': "JSON: convert it to CSV or Parquet, for example with pandas.read_json",
    b"[{": "JSON: convert it to CSV or Parquet, for example with pandas.read_json",
    b"<table": "an HTML page: save the table as CSV, for example with pandas.read_html",
    b"<!DOCTYPE": "an HTML page: save the table as CSV, for example with pandas.read_html",
    b"<html": "an HTML page: save the table as CSV, for example with pandas.read_html",
}


_ENCLOSED = re.compile(r"(?m)(?:^|(?<=[,;\t| ]))'[^'\n]*'(?=[,;\t| ]|\r?$)")  # fields in single quotes


class CsvOptions(TypedDict, total=False):
    """Options for CSV files; None means detect."""

    sep: str | None  # one character, or spaces
    decimal: str | None
    encoding: str | None
    missing: Collection[str]  # additional texts for missing values
    header: bool  # whether the first row has the column names


@dataclass(frozen=True)
class CsvDialect:
    """The dialect of a CSV file. A separator of one space means runs of spaces and tabs."""

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    quote: str = '"'
    escape: str | None = None
    skipped: int = 0  # lines above the column names

    def differences(self, options: CsvOptions, usual: str) -> list[str]:
        """Descriptions of what is neither usual nor specified by the user."""
        found = []
        if self.sep != usual and not options.get("sep"):
            found.append(f"separator {_SHOWN.get(self.sep, repr(self.sep))}")
        if self.decimal != "." and not options.get("decimal"):
            found.append("decimal comma")
        if self.encoding != "utf-8" and not options.get("encoding"):
            found.append(f"encoding {self.encoding}")
        if self.quote != '"':
            found.append(f"quote {self.quote}")
        if self.escape:
            found.append(f"escape {self.escape}")
        return found


def checked(options: CsvOptions) -> CsvOptions:
    """Validate the options, and convert the separator to one character."""
    sep, decimal, encoding = options.get("sep"), options.get("decimal"), options.get("encoding")
    if sep is not None:
        sep = _NAMES.get(sep, sep)
        if len(sep) != 1 or not sep.isascii() or sep.isalnum() or sep in "\"'\r\n":
            raise ValueError(f"sep must be one character such as ';', or one of {', '.join(_NAMES)}; got {sep!r}")
    if decimal is not None and decimal not in DECIMALS:
        raise ValueError(f"decimal must be '.' or ','; got {decimal!r}")
    if decimal is not None and decimal == sep:
        raise ValueError(f"the separator and the decimal mark are both {sep!r}; use two different characters")
    if encoding is not None:
        try:
            encoding = codecs.lookup(encoding).name
        except LookupError as error:
            raise ValueError(f"unknown encoding {encoding!r}; use one such as utf-8, cp1252 or utf-16") from error
    if isinstance(options.get("missing"), str):
        raise TypeError(f"missing must be a list of texts; got {options['missing']!r}")
    return {**options, "sep": sep, "decimal": decimal, "encoding": encoding}


def options_given(options: CsvOptions) -> dict[str, Any]:
    """The options set by the user, as plain values."""
    said = {name: value for name, value in options.items() if value and name not in {"header", "missing"}}
    said |= {"missing": list(options["missing"])} if options.get("missing") else {}
    return said | ({} if options.get("header", True) else {"header": False})


def require_csv(options: CsvOptions, otherwise: str) -> None:
    """Reject CSV options for files of other formats."""
    for name, value in options_given(options).items():
        raise ValueError(f"{name}={value!r} applies to CSV files only; {otherwise}: leave it out")


def detected(start: bytes, *, whole: bool, usual: str, options: CsvOptions) -> tuple[CsvDialect, list[list[str]]]:
    """Detect the dialect of a file from its beginning; also returns its first rows, including the column names.

    Parameters
    ----------
    start : the first bytes of the file
    whole : whether these are all bytes of the file
    usual : the separator that the file name suggests, which decides between equally plausible ones
    options : what the user specified
    """
    for magic, what in _OTHER_FORMATS.items():
        if start.lstrip()[: len(magic)].lower() == magic.lower():
            raise ValueError(f"it is {what}")
    encoding = options.get("encoding") or _encoding(start, whole=whole)
    text = codecs.getincrementaldecoder(encoding)("strict").decode(start, final=whole).removeprefix("\ufeff")
    if not whole:
        text = text[: text.rfind("\n") + 1] or text
    dialect, sep = CsvDialect(encoding=encoding), options.get("sep")
    if stated := re.match(r"sep=([^\w\s]|\t)\r?\n", text):  # written by Excel
        text, sep = text[stated.end() :], sep or stated[1]
        dialect = replace(dialect, skipped=1)
    dialect, rows = _separated(dialect, text, sep, usual, whole=whole)
    decimal = options.get("decimal") or _decimal(rows[1:], dialect.sep, MISSING_TEXTS | set(options.get("missing", ())))
    return replace(dialect, decimal=decimal), rows


def _encoding(start: bytes, *, whole: bool) -> str:
    """The encoding: from the byte order mark; else UTF-8 if valid; else Windows-1252, a superset of Latin-1.

    Without a mark, UTF-16 shows in zero bytes at every other position.
    """
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    zeros = [start[first::2].count(0) for first in (0, 1)]
    if max(zeros) > len(start) // 4 and min(zeros) == 0:
        return "utf-16-be" if zeros[0] else "utf-16-le"
    for encoding in ("utf-8", "cp1252"):
        try:
            codecs.getincrementaldecoder(encoding)("strict").decode(start, final=whole)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def _separated(
    plain: CsvDialect, text: str, sep: str | None, usual: str, *, whole: bool
) -> tuple[CsvDialect, list[list[str]]]:
    """The most plausible separator and quotes, and the resulting rows."""
    quotes: list[tuple[str, str | None]] = [('"', None)]
    quotes += [('"', "\\")] if '\\"' in text else []
    if '"' not in text and (enclosed := len(_ENCLOSED.findall(text))):
        is_usual = enclosed >= text.count("\n") / 2
        quotes.insert(0 if is_usual else len(quotes), ("'", None))
    found = []
    for quote, escape in quotes:
        for each in [sep] if sep else sorted(SEPARATORS, key=lambda one: one != usual):
            dialect = replace(plain, sep=each, quote=quote, escape=escape)
            rows = _rows(dialect, text, whole=whole)
            found.append((_plausibility(rows, each), dialect, rows))
    best = max(found, key=lambda each: each[0])  # the first one of ties
    if best[0][0] or sep:
        return best[1:]
    spaced = replace(plain, sep=" ")
    rows = _rows(spaced, text, whole=whole)
    if _plausibly_spaced(rows):
        return spaced, rows
    one_column = not best[0][1]
    return next((dialect, rows) for _, dialect, rows in found if dialect.sep == usual) if one_column else best[1:]


def _rows(dialect: CsvDialect, text: str, *, whole: bool) -> list[list[str]]:
    """The first rows, without empty lines."""
    if dialect.sep == " ":
        join = SpacesJoined()
        text = (join(text.encode()) + join(b"")).decode()
    lines = csv.reader(
        io.StringIO(text, newline=""), delimiter=dialect.sep, quotechar=dialect.quote, escapechar=dialect.escape
    )
    rows: list[list[str]] = []
    try:
        rows.extend(islice(lines, _ROWS))
    except csv.Error:  # an unclosed quote turns the rest of the text into one field
        pass
    else:
        rows = rows if whole or len(rows) == _ROWS or len(rows) == 1 else rows[:-1]
    return [row for row in rows if len(row) > 1 or (row and row[0].strip())]


def _plausibility(rows: Sequence[Sequence[str]], sep: str) -> tuple[bool, bool, float, float]:
    """A sort key: whether nearly all rows have as many fields as the first, and whether the first has several.

    Then the share of fields that are numbers or contain no other separator, and the share of consistent rows.
    """
    if not rows or len(rows[0]) < 2:
        return False, False, 0.0, 0.0
    regular = [row for row in rows if len(row) == len(rows[0])]
    share = len(regular) / len(rows)
    others = [other for other in SEPARATORS if other != sep]
    fields = [field for row in (regular[1:] or regular) for field in row]
    clean = [not any(other in field for other in others) or bool(decimal_marks([field])) for field in fields]
    return share >= _CONSISTENT, True, sum(clean) / len(fields), share


def _plausibly_spaced(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have the same number of fields, more than one, and some column has only numbers.

    This excludes plain prose. R writes row names without a column name; the rows are then longer than the first, which
    is reported.
    """
    widths = {len(row) for row in rows[1:]}
    if len(widths) != 1 or min(widths) < 2 or min(widths) - len(rows[0]) not in {0, 1}:
        return False
    return any(decimal_marks(texts) for texts in _columns(rows[1:], MISSING_TEXTS))


def _columns(rows: Sequence[Sequence[str]], missing: Collection[str]) -> list[list[str]]:
    """The distinct texts of every column, without missing values; ignores rows of a different length."""
    width = len(rows[0]) if rows else 0
    columns = zip(*(row for row in rows if len(row) == width), strict=True)
    return [list(dict.fromkeys(text.strip() for text in column if text.strip() not in missing)) for column in columns]


def _decimal(rows: Sequence[Sequence[str]], sep: str, missing: Collection[str]) -> str:
    """The decimal mark that most columns need; if undecided, a comma found in numbers of a semicolon-separated file."""
    columns = [texts for texts in _columns(rows, missing) if NumberFormat.of(texts)]
    marks = [decimal_marks(texts) for texts in columns]
    points, commas = marks.count({"."}), marks.count({","})
    if points == commas == 0:
        written = "".join(text for texts in columns for text in texts)
        return "," if sep == ";" and "," in written and "." not in written else "."
    return "," if commas > points else "."


class SpacesJoined:
    """Collapse runs of spaces and tabs outside quotes into one space, for text in pieces; the last piece is empty."""

    def __init__(self) -> None:
        self._rest = b""  # the beginning of an incomplete line

    def __call__(self, piece: bytes) -> bytes:
        text = self._rest + bytes(piece)
        end = text.rfind(b"\n") + 1 if piece else len(text)
        lines, self._rest = text[:end], text[end:]
        lines = re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", lines)
        return re.sub(rb'("[^"\n]*")|[ \t]+', lambda found: found[1] or b" ", lines)
