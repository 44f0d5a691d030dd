"""Data: inspect the beginning of CSV files: their dialect, their columns and the types of these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from bayesvm.data.checks import is_number
from bayesvm.data.number_formats import DECIMALS, NumberFormat
from bayesvm.data.tables.arrow_parts import reading
from bayesvm.data.tables.column_reading import LARGEST_EXACT
from bayesvm.data.tables.csv_dialect import START_BYTES, CsvDialect, CsvOptions, SpacesJoined, checked, detected
from bayesvm.data.tables.files import SourceFile
from bayesvm.data.tables.schemas import TEXT_EXAMPLE, require_distinct
from bayesvm.data.texts import DOUBTFUL_TEXTS, MISSING_TEXTS, missing_among
from bayesvm.extras import optional

_BLOCK_BYTES = 2**23  # of text, parsed at a time; column types are inferred from the first block
_FEW_LINES = 10
_LONGEST_CELL = 1_000  # bytes of a text for missing values
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class CsvColumn:
    """A column, as inferred from the first block of the file."""

    name: str
    written: str  # the name as in the file, possibly with surrounding spaces
    kind: Any  # the Arrow type of its values
    form: NumberFormat | None = None  # of numbers that Arrow cannot parse
    example: str = ""  # a text in this format
    not_number: str = ""  # a text that is not a number, with its line
    missing: frozenset[str] = MISSING_TEXTS  # texts that mean a missing value
    doubtful: frozenset[str] = frozenset()  # those found in the column that could also be values
    leading_zeros: str = ""  # a text such as 00123, if it is read as a number
    is_rounded: bool = False  # whether it has integers that a float cannot represent
    refused: str = ""  # the error to raise if the column is used

    @property
    def field(self) -> Any:
        """The field of a schema."""
        metadata = {TEXT_EXAMPLE: self.not_number} if self.not_number else None
        return optional("pyarrow", "tables").field(self.name, self.kind, metadata=metadata)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file, its dialect and its columns."""

    file: SourceFile
    dialect: CsvDialect
    options: CsvOptions
    compression: str  # pyarrow's name; "detect" means by the file name
    columns: tuple[CsvColumn, ...] = ()

    @property
    def names(self) -> list[str]:
        """The column names, without surrounding spaces."""
        return [column.name for column in self.columns]

    @property
    def schema(self) -> Any:
        """The columns as an Arrow schema."""
        return optional("pyarrow", "tables").schema([column.field for column in self.columns])

    @property
    def has_names(self) -> bool:
        """Whether the first row has the column names."""
        return self.options.get("header", True)

    @property
    def first_line(self) -> int:
        """The number of the line with the first values."""
        return 1 + self.dialect.skipped + self.has_names

    @property
    def differences(self) -> list[str]:
        """How the file differs from plain CSV, except for what the user specified."""
        found = self.dialect.differences(self.options, _usual_separator(self.file))
        return found + (["compressed by gzip"] if self.compression == "gzip" and self.file.path.suffix != ".gz" else [])

    @property
    def doubtful_names(self) -> list[str]:
        """Numeric names, if most numeric columns have one: they may be values. Increasing names (years) are fine."""
        types = optional("pyarrow.types", "tables")
        numbers = [
            column.name for column in self.columns if types.is_integer(column.kind) or types.is_floating(column.kind)
        ]
        found = [name for name in numbers if is_number(name)]
        if not self.has_names or not found or 2 * len(found) < len(numbers):
            return []
        rising = len(found) > 1 and all(float(one) < float(next_one) for one, next_one in pairwise(found))
        return [] if rising else found

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """The numbers that the user declared to be missing values, however they are written."""
        return tuple(float(text) for text in self.options.get("missing", ()) if is_number(text))

    def unused_missing(self) -> list[str]:
        """The texts that the user declared to be missing values, but that no cell consists of."""
        texts = dict.fromkeys(text.strip() for text in self.options.get("missing", ()))
        cells = {text: _cell(text) for text in texts if text}
        rest = b""
        stream = self._stream() if cells else None
        while cells and stream is not None and (piece := stream.read(_BLOCK_BYTES)):
            part = rest + piece
            cells = {text: cell for text, cell in cells.items() if not cell.search(part)}
            rest = part[-_LONGEST_CELL:]
        return list(cells)

    def reader(self, types: Mapping[str, Any] | None = None) -> Any:
        """The record batches of some columns, by their names in the file; by default all, with inferred types."""
        csv, missing = optional("pyarrow.csv", "tables"), _missing(self.options)
        return csv.open_csv(
            self._stream(),
            csv.ReadOptions(
                block_size=_BLOCK_BYTES,
                use_threads=False,  # with threads, errors do not name the line
                skip_rows=self.dialect.skipped,
                column_names=None if self.has_names else self.names,
            ),
            csv.ParseOptions(
                delimiter=self.dialect.sep,
                quote_char=self.dialect.quote,
                escape_char=self.dialect.escape or False,
                newlines_in_values=True,
            ),
            csv.ConvertOptions(
                column_types=types,
                include_columns=list(types or ()),
                null_values=[*missing, *(f" {text}" for text in missing)],
                decimal_point=self.dialect.decimal,
            ),
        )

    def _stream(self) -> Any:
        """The text in UTF-8; if spaces are the separator, with runs of them collapsed."""
        pyarrow = optional("pyarrow", "tables")
        stream = pyarrow.input_stream(str(self.file.path), compression=self.compression)
        if self.dialect.encoding != "utf-8":
            stream = pyarrow.transcoding_input_stream(stream, self.dialect.encoding, "utf-8")
        return pyarrow.TransformInputStream(stream, SpacesJoined()) if self.dialect.sep == " " else stream

    def not_decoded(self, error: UnicodeDecodeError) -> str:
        """The message for text further down in another encoding, without a line, since many are decoded at once."""
        return f"{self.file}: text further down is not valid {self.dialect.encoding} ({error}); {ENCODING_REMEDY}"

    def not_in_utf8(self, line: int, name: str) -> str:
        """The message for a text that is not valid UTF-8."""
        where = f"{self.file}, line {line}, column {name!r}"
        return f"{where}: the text is not valid UTF-8, unlike the lines above; {ENCODING_REMEDY}"

    def explained(self, message: str, remedy: str = "") -> str:
        """Rewrite an error message of Arrow, which counts columns and rows, with column names and line numbers."""
        if found := re.search(
            r"column #(\d+): Row #(\d+): CSV conversion error to (.*): invalid (.*)", message, re.DOTALL
        ):
            number, line, kind, what = found.groups()
            name = self.columns[int(number)].name
            if what.startswith("UTF8"):
                return self.not_in_utf8(int(line), name)
            where = f"{self.file}, line {line}, column {name!r}"
            return not_as_before(where, what.removeprefix("value "), str(kind), remedy)
        if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", message, re.DOTALL):
            line, expected, got, row = found.groups()
            if int(expected) == 1 and int(got) > 1 and self.has_names and not self.options.get("sep"):
                return (
                    f"{self.file}, line {line}: {got} fields, but line {int(line) - 1} has one. If that is a title "
                    "above the column names, delete all lines above the names"
                )
            unnamed = int(got) == int(expected) + 1 and int(line) == self.first_line and self.has_names
            remedy = (
                "Give every column a name" if unnamed else "Correct the line (put quotes around text with separators)"
            )
            return (
                f"{self.file}, line {line}: expected {expected} field(s) like the first line, got {got}: {row[:80]!r}. "
                f"{remedy}, or specify the separator with sep= (--sep)"
            )
        line = re.search(r"Row #(\d+)", message)
        where = f", line {line[1]}" if line else ""
        return f"{self.file}{where} cannot be read: {message[:300]}. Correct it, or leave the file out"


WITHOUT_NAMES = "read it without column names: header=False (--no-header)"
ENCODING_REMEDY = "specify the encoding of the file with encoding= (--encoding), such as cp1252 or utf-8"


def not_as_before(where: str, value: str, kind: str, remedy: str) -> str:
    """The message for a value whose type differs from that of the lines above."""
    return (
        f"{where}: {value[:60]} cannot be read as {kind}, unlike the lines above. "
        f"Correct it, declare it a missing value with missing= (--missing), or leave the column out{remedy}"
    )


def look_at(file: SourceFile, options: CsvOptions) -> CsvFile:
    """Inspect the beginning of a file."""
    pyarrow, options = optional("pyarrow", "tables"), checked(options)
    with reading(file):
        with file.path.open("rb") as opened:
            compression = "gzip" if opened.read(2) == _GZIP else "detect"
        with pyarrow.input_stream(str(file.path), compression=compression) as stream:
            start, size = b"", START_BYTES
            while len(start) < size and (more := stream.read(size - len(start))):
                start += more
                if start.count(b"\n") < _FEW_LINES:  # detection needs several rows even of very wide tables
                    size = min(2 * size, _BLOCK_BYTES)
    if not start.strip():
        raise ValueError(f"{file} is empty: write it again, or leave it out")
    whole = len(start) < size
    try:
        dialect, rows = detected(start, whole=whole, usual=_usual_separator(file), options=options)
    except UnicodeDecodeError as error:
        line = start[: error.start].count(b"\n") + 1
        encoding = options.get("encoding")
        raise ValueError(f"{file}, line {line}: text is not valid {encoding} ({error}); {ENCODING_REMEDY}") from error
    except ValueError as error:
        raise ValueError(f"{file} cannot be read as CSV: {error}") from error
    if not rows:
        raise ValueError(f"{file} cannot be read as CSV: it has no lines, or a quote in the first line is never closed")
    csv = CsvFile(file, dialect, options, compression)
    names = [name.strip() for name in rows[0]] if csv.has_names else [f"c{n}" for n in range(1, len(rows[0]) + 1)]
    if csv.has_names and all(is_number(name.replace(",", ".")) for name in names):
        raise ValueError(
            f"the first line of {file} has numbers ({', '.join(names[:3])}, …) instead of column names; "
            f"insert a line of names above it, or {WITHOUT_NAMES}"
        )
    remedy = "rename one of them"
    if csv.has_names and any(count > 1 and _is_like_a_value(name) for name, count in Counter(names).items()):
        remedy = f"if the first line has values instead of names, {WITHOUT_NAMES}"
    require_distinct(names, f"{file} has several columns named", remedy)
    kinds = [pyarrow.null()] * len(names)
    csv = replace(csv, columns=tuple(map(CsvColumn, names, names, kinds)))
    return replace(csv, columns=_columns(csv, rows[csv.has_names :]))


def _is_like_a_value(text: str) -> bool:
    """Whether a text is a number, in any format, or a missing value."""
    return NumberFormat.of([text]) is not None or is_number(text) or (text in MISSING_TEXTS and text != "")


def _usual_separator(file: SourceFile) -> str:
    """The separator that the file name suggests."""
    return "\t" if ".tsv" in (suffix.lower() for suffix in file.path.suffixes[-2:]) else ","


def _cell(text: str) -> re.Pattern[bytes]:
    """A cell with a text, or with an equal number."""
    forms = [re.escape(text)]
    if is_number(text) and (number := float(text)).is_integer() and abs(number) < LARGEST_EXACT:
        forms.append(rf"{int(number)}(?:[.,]0*)?")
    return re.compile(rf"(?<![\w.+-])(?:{'|'.join(forms)})(?![\w.])".encode())


def _missing(options: CsvOptions) -> frozenset[str]:
    """The texts that mean a missing value."""
    return MISSING_TEXTS | {text.strip() for text in options.get("missing", ())}


def _columns(csv: CsvFile, rows: Sequence[Sequence[str]]) -> tuple[CsvColumn, ...]:
    """The columns with the types inferred from the first block."""
    pyarrow = optional("pyarrow", "tables")
    with reading(csv.file):
        try:
            with csv.reader() as reader:
                schema, first = reader.schema, next(iter(reader), None)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(csv.explained(str(error))) from error
        except UnicodeDecodeError as error:
            raise ValueError(csv.not_decoded(error)) from error
    first = pyarrow.RecordBatch.from_pylist([], schema=schema) if first is None else first
    found = []
    for number, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)):
        column = CsvColumn(name.strip(), name, kind, missing=_missing(csv.options))
        if pyarrow.types.is_string(kind):
            column = _column_of_text(csv, column, first.column(number))
        elif pyarrow.types.is_binary(kind):
            column = _column_of_bytes(csv, column, first.column(number))
        else:
            texts = [row[number].strip() for row in rows if number < len(row)]
            if any(text[:2] in {"0x", "0X"} for text in texts):  # Arrow reads them as integers, but not as floats
                column = replace(column, kind=pyarrow.string())
            column = _column_of_numbers(column, first.column(number), texts)
        said = {text.strip() for text in csv.options.get("missing", ())}
        found.append(replace(column, doubtful=column.doubtful - said))
    return tuple(found)


def _column_of_bytes(csv: CsvFile, column: CsvColumn, values: Any) -> CsvColumn:
    """A column with text that is not valid UTF-8, below the part used to detect the encoding."""
    for line, text in enumerate(values.to_pylist(), csv.first_line):
        try:
            text.decode()
        except UnicodeDecodeError:
            return replace(column, kind=_number(), refused=csv.not_in_utf8(line, column.name))
    return column


def _number() -> Any:
    """The type of rejected columns, too, so that only the reason of the rejection is reported."""
    return optional("pyarrow", "tables").float64()


def _column_of_numbers(column: CsvColumn, values: Any, texts: Sequence[str]) -> CsvColumn:
    """Inspect the texts of some rows: Arrow has dropped missing values and rounded large integers."""
    types, compute = optional("pyarrow.types", "tables"), optional("pyarrow.compute", "tables")
    if types.is_integer(column.kind):
        largest = (
            max(map(abs, compute.min_max(values).as_py().values()), default=0) if values.null_count < len(values) else 0
        )
    else:
        held = [text for text in texts if text not in column.missing]
        whole = all(re.fullmatch(r"[+-]?\d{1,300}", text) for text in held)
        largest = max((abs(int(text)) for text in held), default=0) if whole else 0
    doubtful = frozenset() if types.is_null(column.kind) else DOUBTFUL_TEXTS.intersection(texts)
    zeros = next((text for text in texts if re.fullmatch(r"0\d{2,}", text)), "")
    return replace(column, is_rounded=largest > LARGEST_EXACT, doubtful=doubtful, leading_zeros=zeros)


def _column_of_text(csv: CsvFile, column: CsvColumn, values: Any) -> CsvColumn:
    """A text column, unless all texts are numbers in one format, or missing values with surrounding spaces."""
    dialect, asked = csv.dialect, csv.options.get("decimal")
    distinct = dict.fromkeys(text.strip() for text in values.unique().to_pylist())
    numbers = csv.missing_numbers
    equal = {text for text in distinct if numbers and is_number(text) and float(text) in numbers}
    missing = missing_among(set(distinct), column.missing) | equal
    held = [text for text in distinct if text not in missing]
    doubtful = DOUBTFUL_TEXTS.intersection(missing, distinct) if held else frozenset()
    column = replace(column, missing=missing, doubtful=doubtful)
    decimals = [dialect.decimal, *(mark for mark in DECIMALS if mark != dialect.decimal)]
    form = NumberFormat.of(held, decimals[:1] if asked else decimals) if held else NumberFormat(dialect.decimal)
    if form is not None:
        return replace(column, kind=_number(), form=form, example=held[0] if held else "")

    def line(text: str) -> int:
        return csv.first_line + next(row for row, value in enumerate(values) if value.as_py().strip() == text)

    if asked and (form := NumberFormat.of(held, decimals)) is not None:
        text = next(text for text in held if NumberFormat.of([text], decimals[:1]) is None)
        refused = (
            f"{csv.file}, line {line(text)}, column {column.name!r}: {text[:60]!r} is a number "
            f"with the decimal mark {form.decimal!r}, but decimal={asked!r} (--decimal) was given; leave it out "
            "to detect the mark"
        )
        return replace(column, kind=_number(), refused=refused)
    text = next((text for text in held if not is_number(text)), None)
    such_as = "" if text is None else f"the text {text[:40]!r} (line {line(text)})"
    return replace(column, not_number=such_as)
