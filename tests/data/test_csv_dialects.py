"""One table in the dialects of CSV that people have: all of them are read as the same values."""

import bz2
import codecs
import csv
import gzip
import io
import warnings

import numpy as np
import pyarrow as pa
import pytest

from bayesvm.data.tables import open_table
from bayesvm.data.tables.csv_dialect import CsvDialect, SpacesJoined, detected
from bayesvm.preparation import open_files
from bayesvm.warn import ReadingNote

NAMES = ["price", "share", "town", "y"]
PRICES = [1169.5, 0.25, -12.0, 2500.75, 3.5, 12345.0]
SHARES = [1, 20, 300, 4, 5, 60]
TOWNS = ["Köln", "Bonn", None, "Ulm", "Köln", "Paris"]
Y = ["yes", "no", "no", "yes", "no", "yes"]


def plain(number):
    return repr(number)


def comma(number):
    return repr(number).replace(".", ",")


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def american(number):
    return f"{number:,.2f}"


def french(number):
    return f"{number:,.2f}".translate(str.maketrans({",": "\u202f", ".": ","}))


def swiss(number):
    return f"{number:,.2f}".replace(",", "'")


def accounting(number):
    return f"({-number:,.2f})" if number < 0 else f"{number:,.2f}"


def written(sep=",", price=plain, missing="", quoting=csv.QUOTE_MINIMAL, end="\n", share=str, **dialect):
    """The table as a naive writer has it."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sep, quoting=quoting, lineterminator=end, **dialect)
    writer.writerow(NAMES)
    for row in zip(map(price, PRICES), map(share, SHARES), TOWNS, Y, strict=True):
        writer.writerow([missing if value is None else value for value in row])
    return text.getvalue()


def aligned(gap="   "):
    rows = [NAMES, *zip(map(plain, PRICES), map(str, SHARES), TOWNS, Y, strict=True)]
    return "\n".join("  " + gap.join(f"{value or 'NA':>8}" for value in row) + " " for row in rows) + "\n"


DIALECTS = {
    "plain": (written(), ""),
    "dos": (written(end="\r\n"), ""),
    "mac": (written(end="\r"), ""),
    "no line end at the end": (written().removesuffix("\n"), ""),
    "all in quotes": (written(quoting=csv.QUOTE_ALL), ""),
    "text in quotes": (written(quoting=csv.QUOTE_NONNUMERIC), ""),
    "single quotes": (written(quoting=csv.QUOTE_ALL, quotechar="'"), "quote '"),
    "semicolons": (written(";"), "separator ';'"),
    "tabs": (written("\t"), "separator tab"),
    "pipes": (written("|"), "separator '|'"),
    "spaces": (aligned(), "separator spaces"),
    "tabs and spaces": (aligned().replace("   ", "\t", 2), "separator spaces"),
    "spaces after commas": (written().replace(",", ", "), ""),
    "spaces around names and texts": (written(";").replace(";", " ; "), "separator ';'"),
    "decimal commas": (written(";", comma), "separator ';', decimal comma"),
    "decimal commas and tabs": (written("\t", comma), "separator tab, decimal comma"),
    "decimal commas in quotes": (written(",", comma), "decimal comma"),
    "German": (written(";", german), "separator ';', decimal comma"),
    "German with Euro": (written(";", lambda x: german(x) + " €"), "separator ';', decimal comma"),
    "American": (written(",", american), ""),
    "American with Dollar": (
        written(",", lambda x: american(x).replace("-", "-$") if x < 0 else "$" + american(x)),
        "",
    ),
    "French": (written(";", french), "separator ';', decimal comma"),
    "Swiss": (written(";", swiss), "separator ';'"),
    "accounting": (written(",", accounting), ""),
    "plus signs": (written(",", lambda x: f"{x:+}"), ""),
    "percent": (written(share=lambda x: f"{x}%"), ""),
    "question marks": (written(missing="?"), ""),
    "dashes and spaces": (written(missing=" - "), ""),
    "not available": (written(missing="#N/A"), ""),
    "a line for Excel": ("sep=;\n" + written(";"), "separator ';'"),
    "a line for Excel with commas": ("sep=,\n" + written(), ""),
    "a line for Excel after a mark": ("\ufeffsep=;\n" + written(";", german), "separator ';', decimal comma"),
    "blank lines": ("\n\n" + written().replace("\n", "\n\n"), ""),
}


def read(path, **options):
    """The columns, and what was noted about the dialect."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opened = open_files(path, exact=["y"], **options)
    chunks = [chunk for _, chunk in opened.rows.chunks(NAMES)]
    columns = pa.Table.from_batches(chunks).to_pydict()
    opened.rows.close()
    notes = [str(each.message).split(": ", 1)[1] for each in caught if each.category is ReadingNote]
    return columns, [note for note in notes if not note.startswith("texts read as")]


def require_table(columns):
    assert columns["price"] == PRICES
    assert columns["share"] == SHARES
    assert columns["town"] == TOWNS
    assert columns["y"] == Y


@pytest.mark.parametrize(("text", "noted"), DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_is_the_same_table(tmp_path, text, noted):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    columns, notes = read(path)
    require_table(columns)
    assert notes == ([noted] if noted else [])


ENCODINGS = {
    "utf-8": "",
    "utf-8-sig": "",
    "utf-16": "encoding utf-16",
    "cp1252": "encoding cp1252",
    "latin-1": "encoding cp1252",  # a part of it
}


@pytest.mark.parametrize(("encoding", "noted"), ENCODINGS.items())
@pytest.mark.parametrize("sep", [",", ";"])
def test_encodings_are_detected(tmp_path, encoding, noted, sep):
    path = tmp_path / "a.csv"
    path.write_bytes(written(sep).encode(encoding))
    columns, notes = read(path)
    require_table(columns)
    noted = ", ".join(filter(None, ["" if sep == "," else "separator ';'", noted]))
    assert notes == ([noted] if noted else [])


def test_bytes_that_windows_does_not_know_are_latin_1():
    dialect, _ = detected("a,b\n1,\x81ä\n".encode("latin-1"), whole=True, usual=",", options={})
    assert dialect.encoding == "latin-1"


def test_a_line_for_excel_in_utf_16(tmp_path):
    (tmp_path / "a.csv").write_bytes(("sep=;\r\n" + written(";", german, end="\r\n")).encode("utf-16"))
    require_table(read(tmp_path / "a.csv")[0])


def test_big_endian_utf_16(tmp_path):
    (tmp_path / "a.csv").write_bytes(codecs.BOM_UTF16_BE + written().encode("utf-16-be"))
    require_table(read(tmp_path / "a.csv")[0])


@pytest.mark.parametrize(("name", "pack"), [("a.csv", gzip), ("a.csv.gz", gzip), ("a.csv.bz2", bz2), ("a.tsv", None)])
def test_names_and_compression(tmp_path, name, pack):
    content = written("\t" if name.endswith("tsv") else ",").encode()
    (tmp_path / name).write_bytes(content if pack is None else pack.compress(content))
    columns, notes = read(tmp_path / name)
    require_table(columns)
    assert notes == (["compressed by gzip"] if name == "a.csv" else [])


@pytest.mark.parametrize("sep", [";", "|", "tab", "space", "^", "~"])
def test_given_options_are_not_reported(tmp_path, sep):
    character = {"tab": "\t", "space": " "}.get(sep, sep)
    (tmp_path / "a.csv").write_text(written(character, comma, missing="NA"), encoding="cp1252")
    columns, notes = read(tmp_path / "a.csv", sep=sep, decimal=",", encoding="cp1252")
    require_table(columns)
    assert notes == []


def test_every_file_has_a_dialect_of_its_own_and_equal_ones_are_noted_once(tmp_path):
    for name, text in (("a", written()), ("b", written(";", german)), ("c", written(";", german)), ("d", aligned())):
        (tmp_path / f"{name}.csv").write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = open_table(tmp_path, "y", columns=["price"])
    np.testing.assert_array_equal(table.rows(np.arange(24)).X[:, 0], PRICES * 4)
    notes = [str(each.message).removeprefix(str(tmp_path) + "/") for each in caught]
    assert notes == [
        "b.csv and 1 more files: separator ';', decimal comma",
        "b.csv and 1 more files: texts read as numbers: 'price' ('1.169,50' is 1169.5)",
        "d.csv: separator spaces",
    ]


@pytest.mark.parametrize("seed", range(40))
def test_random_tables_in_random_dialects(seed):
    """Text with separators, quotes and line breaks in it; the dialect is found again, and so are the fields."""
    rng = np.random.default_rng(seed)
    sep, n_columns = rng.choice([",", ";", "\t", "|"]), int(rng.integers(2, 7))
    pieces = ["a", "Zug", " ", "1", "2.5", ",", ";", "|", '"', "\n", "é", "-"]

    def field():
        return "".join(rng.choice(pieces, rng.integers(1, 6))) if rng.random() < 0.5 else f"{rng.normal():.3f}"

    rows = [[f"n{k}" for k in range(n_columns)], *([field() for _ in range(n_columns)] for _ in range(30))]
    text = io.StringIO()
    csv.writer(text, delimiter=sep, lineterminator="\n").writerows(rows)
    dialect, found = detected(text.getvalue().encode(), whole=True, usual=",", options={})
    assert dialect.sep == sep
    assert found == rows


@pytest.mark.parametrize(
    ("text", "sep", "decimal"),
    [
        ("name;price,net\nA;1,5\nB;2,5\n", ";", ","),  # commas cut all rows into two fields, too
        ("a,b;c,d\n1,2;3,4\n5,6;7,8\n", ";", ","),
        ("full name,age\nJoe Smith,5\nAnn Lee,6\n", ",", "."),
        ("full name\nJoe Smith\nAnn Lee\n", ",", "."),  # words are no columns
        ("id\tnote\n1\ta, b\n2\tc, d\n", "\t", "."),
        ("x\n1\n2\n", ",", "."),
        ("x\n1,5\n2,5\n", ",", "."),  # a mistake, to be reported
        ("x,y\n1,a\n2\n", ",", "."),
        ("x;y\n1,234;a\n5,678;b\n", ";", ","),  # semicolons go with decimal commas
        ("x;y;z\n1,234;1.5;a\n5,678;2.5;b\n", ";", "."),
        ("x\ty\n1,234\ta\n5,678\tb\n", "\t", "."),
        ("x;y\n1.234;0,5\n5.678;1,5\n", ";", ","),
        ('t,x\n"say \\"hi\\", you",1\n"no",2\n', ",", "."),
        ("t,x\n'a, b',1\n'c',2\n", ",", "."),
        ("x y\n1 2\n3 4\n", " ", "."),
        ("it's,x\nyou're,1\nwe're,2\n", ",", "."),
    ],
)
def test_doubtful_cases(text, sep, decimal):
    dialect, rows = detected(text.encode(), whole=True, usual=",", options={})
    assert (dialect.sep, dialect.decimal) == (sep, decimal)
    if "\\" in text or "'a, b'" in text:
        assert {len(row) for row in rows} == {2}
    if "it's" in text:
        assert dialect == CsvDialect()


def test_a_start_that_is_cut_anywhere_is_read_the_same():
    content = written(";", german, quoting=csv.QUOTE_ALL).encode()
    for end in range(content.index(b"\n", 60), len(content)):
        dialect, rows = detected(content[:end], whole=False, usual=",", options={})
        assert (dialect.sep, dialect.encoding, rows[0]) == (";", "utf-8", NAMES)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_runs_of_spaces_in_pieces(size):
    text = b'  a \t b  "c  d"\r\n1   2 3 \n\n  x y\tz'
    join = SpacesJoined()
    pieces = [join(text[k : k + size]) for k in range(0, len(text), size)]
    assert b"".join([*pieces, join(b"")]) == b'a b "c  d"\r\n1 2 3\n\nx y z'


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"sep": ";;"}, "sep must be one character"),
        ({"sep": "a"}, "sep must be one character"),
        ({"decimal": "x"}, "decimal must be"),
        ({"sep": ",", "decimal": ","}, "both ','"),
        ({"encoding": "utf-99"}, "unknown encoding 'utf-99'"),
    ],
)
def test_options_that_make_no_sense(tmp_path, option, words):
    (tmp_path / "a.csv").write_text(written())
    with pytest.raises(ValueError, match=words):
        open_table(tmp_path / "a.csv", **option)


def test_missing_takes_a_list(tmp_path):
    (tmp_path / "a.csv").write_text(written())
    with pytest.raises(TypeError, match="missing must be a list of texts; got '-9'"):
        open_table(tmp_path / "a.csv", missing="-9")


@pytest.mark.filterwarnings("ignore::bayesvm.warn.ReadingNote")
@pytest.mark.parametrize("cell", ["-999", "-999.0", "-999.00", '"-999.0"'])
@pytest.mark.parametrize("others", [("1.5", "2"), ("3", "4"), ("$5.10", "$6")])
def test_missing_numbers_are_compared_as_numbers(tmp_path, cell, others):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{value},1\n" for value in (*others, cell)))
    with open_table(path, missing=["-999"]) as table:
        np.testing.assert_array_equal(np.isnan(next(table.batches(9)).X[:, 0]), [False, False, True])


def test_a_missing_value_that_never_occurs_is_reported(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n-9990,3\nunknown,4\n")
    with pytest.warns(UserWarning, match=r"t\.csv is '-999', given as a missing value with missing= \(--missing\)"):
        open_table(tmp_path / "t.csv", missing=["-999", "unknown"]).close()
