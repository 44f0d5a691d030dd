"""Columns of every type that Parquet and Arrow files have, as numbers; whole numbers that floats cannot hold."""

import json
import warnings
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from bayesvm.data.tables import open_table
from bayesvm.warn import ReadingNote


def values_of(path, column, **options):
    with open_table(path, columns=[column], **options) as table:
        return table.rows(np.arange(table.n_rows)).X[:, 0].tolist()


TYPES = {
    "half": (pa.array(np.array([1, 0.5, 2], np.float16)), [1, 0.5, 2]),
    "uint64": (pa.array([1, 2**53, 3], pa.uint64()), [1, 2**53, 3]),
    "decimal": (pa.array([Decimal("1.10"), Decimal("-2.25"), Decimal(0)]), [1.1, -2.25, 0]),
    "large decimal": (pa.array([Decimal("1.10"), Decimal("-2.25"), Decimal(0)], pa.decimal256(60, 2)), [1.1, -2.25, 0]),
    "bool": (pa.array([True, False, True]), [1, 0, 1]),
    "categories of numbers": (pa.array([7, 9, 7]).dictionary_encode(), [7, 9, 7]),
    "categories of decimals": (
        pa.array([Decimal("1.1"), Decimal("2.1")] * 2).dictionary_encode(),
        [1.1, 2.1, 1.1, 2.1],
    ),
}


@pytest.mark.parametrize(("column", "expected"), TYPES.values(), ids=TYPES)
def test_types_that_are_numbers(tmp_path, column, expected):
    parquet.write_table(pa.table({"x": column}), tmp_path / "a.parquet")
    assert values_of(tmp_path / "a.parquet", "x") == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_seconds(tmp_path, unit):
    column = pa.array([timedelta(seconds=90), timedelta(0), timedelta(days=-1), None], pa.duration(unit))
    parquet.write_table(pa.table({"x": column}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"x": column.slice(0, 3)}), tmp_path / "b.parquet")
    assert values_of(tmp_path / "b.parquet", "x") == [90, 0, -86400]
    np.testing.assert_array_equal(values_of(tmp_path / "a.parquet", "x"), [90, 0, -86400, np.nan])


@pytest.mark.parametrize(
    ("column", "is_rounded"),
    [
        (pa.array([2**53, -(2**53)]), False),
        (pa.array([0, 2**53 + 1]), True),
        (pa.array([-(2**53) - 1, 0]), True),
        (pa.array([0, 2**64 - 1], pa.uint64()), True),
        (pa.array([0, 2**31 - 1], pa.int32()), False),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_whole_numbers_that_are_rounded_are_reported(tmp_path, column, is_rounded, suffix):
    path, table = tmp_path / f"a.{suffix}", pa.table({"x": column})
    if suffix == "parquet":
        parquet.write_table(table, path)
    elif suffix == "arrow":
        feather.write_feather(table, path)
    else:
        path.write_text("x\n" + "".join(f"{value}\n" for value in column.to_pylist()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert values_of(path, "x") == [float(value) for value in column.to_pylist()]
    expected = ["column 'x' has integers above 2**53, which are rounded"] * is_rounded
    assert [str(each.message).split(";")[0] for each in caught] == expected


def test_missing_values_do_not_hide_that_others_are_rounded(tmp_path):
    parquet.write_table(pa.table({"x": pa.array([None, 2**60 + 1])}), tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="above 2..53"):
        X = table.rows(np.arange(2)).X
    np.testing.assert_array_equal(X[:, 0], [np.nan, 2.0**60])


def test_large_whole_numbers_of_a_target_are_kept(tmp_path):
    (tmp_path / "a.csv").write_text(f"x,y\n1,{2**60 + 1}\n2,{2**60 + 2}\n")
    with open_table(tmp_path / "a.csv", "y") as table:
        assert next(table.targets())[0].tolist() == [2**60 + 1, 2**60 + 2]


# Missing values and numbers in text


def column_of(path, name, **options):
    """A column of a CSV file as it is kept."""
    with open_table(path, name, columns=["n"], **options) as table:
        return next(iter(table.columns([name]))).column(0).to_pylist()


@pytest.mark.parametrize(
    "missing", ["", " ", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "-", "--", "."]
)
def test_texts_for_missing_values(tmp_path, missing):
    path = tmp_path / "a.csv"
    path.write_text(
        "n,number,word,price\n" + f"1,5,a,$5\n2,{missing},{missing},{missing}\n3, {missing}, {missing} ,$7\n"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert column_of(path, "number") == [5, None, None]
        assert column_of(path, "word") == ["a", None, None]
        assert column_of(path, "price") == [5, None, 7]
    noted = {str(each.message).split(": ", 2)[-1] for each in caught if "missing values: " in str(each.message)}
    expected = {f"'{name}' ({missing!r})" for name in ("number", "word", "price")}
    assert noted == (expected if missing in {"?", "-", "--", ".", "None"} else set())


def test_texts_for_missing_values_of_ones_own(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n,number,word\n1,5,a\n2,-999,unknown\n3,-999,b\n")
    assert column_of(path, "number", missing=["-999", "unknown"]) == [5, None, None]
    assert column_of(path, "word", missing=["-999", "unknown"]) == ["a", None, "b"]
    assert column_of(path, "number") == [5, -999, -999]


def test_what_is_named_as_missing_is_not_reported(tmp_path):
    (tmp_path / "a.csv").write_text("n,word,number\n1,a,1\n2,?,?\n")
    for name in ("word", "number"):
        assert column_of(tmp_path / "a.csv", name, missing=["?"])[1] is None


def test_plus_and_minus_are_two_values(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n,y\n1,+\n2,-\n3,?\n")
    with pytest.warns(ReadingNote, match=r"missing values: 'y' \('\?'\)$"):
        assert column_of(path, "y") == ["+", "-", None]


def test_codes_with_leading_zeros_are_numbers_of_csv_files(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n,code\n1,00123\n2,10115\n")
    with pytest.warns(ReadingNote, match=r"leading zeros dropped, .*: 'code' \('00123'\)"):
        assert values_of(path, "code") == [123, 10115]


def test_a_note_lists_a_few_columns(tmp_path):
    names = [f"p{k}" for k in range(8)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(["$5"] * 8) + "\n")
    with pytest.warns(ReadingNote, match=r"'p4' \('\$5' is 5\), … \(3 more\)$"):
        open_table(tmp_path / "a.csv")
    with pytest.warns(ReadingNote, match=r"numbers: 'p7' \('\$5' is 5\)$"):  # only what is used
        open_table(tmp_path / "a.csv", columns=["p7"])


def test_a_fingerprint_identifies_how_a_file_was_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x;z\n1,234;2\n")
    options = [{}, {"sep": ";", "decimal": "."}, {"sep": ";", "decimal": ","}, {"sep": ";", "missing": ["1,234"]}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingNote)
        found = [open_table(path, **each).fingerprint() for each in options]
    assert all(json.loads(json.dumps(each)) == each for each in found)
    assert len({json.dumps(each, sort_keys=True) for each in found}) == 4


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_longer_than_the_beginning(tmp_path, monkeypatch, end):
    monkeypatch.setattr("bayesvm.data.tables.csv_files.START_BYTES", 2**8)
    names = [f"name {k}" for k in range(500)]
    rows = [";".join(names), *(";".join(f"{k},5" for k in range(row, row + 500)) for row in range(3))]
    (tmp_path / "a.csv").write_bytes((end.join(rows) + end).encode())
    with pytest.warns(ReadingNote, match="separator ';', decimal comma"):
        table = open_table(tmp_path / "a.csv")
    assert table.names == tuple(names)
    np.testing.assert_array_equal(table.rows(np.arange(3)).X, np.add.outer(range(3), range(500)) + 0.5)


def test_numbers_in_text_of_many_blocks(tmp_path, monkeypatch):
    """By a plain loop, over blocks whose distinct texts differ."""
    monkeypatch.setattr("bayesvm.data.tables.csv_files._BLOCK_BYTES", 2**8)
    prices = np.round(np.random.default_rng(0).uniform(-9999, 9999, 500), 2)
    texts = [f"${price:,.2f}" if price > 0 else f"(${-price:,.2f})" for price in prices]
    texts[::7] = [" ? "] * len(texts[::7])
    (tmp_path / "a.csv").write_text("n,price\n" + "".join(f'{n},"{text}"\n' for n, text in enumerate(texts)))
    with pytest.warns(ReadingNote):
        found = column_of(tmp_path / "a.csv", "price", missing=["?"])
    expected = [None if k % 7 == 0 else price for k, price in enumerate(prices.tolist())]
    assert found == expected[: len(found)]
    assert len(found) > 5


def test_hexadecimal_numbers_are_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("n,hash\n1,0xff\n2,0x10\n")
    assert column_of(path, "hash") == ["0xff", "0x10"]


@pytest.mark.parametrize(
    ("names", "noted"),
    [
        ("39,State-gov,77516,13", "'39', '77516', '13'; if"),
        ("5.1,setosa,a,b", None),  # one of three
        ("5.1,setosa,0.3,b", "'5.1', '0.3'; if"),
        ("1990,country,1991,1992", None),
        ("age,job,income,hours", None),
    ],
)
def test_names_that_look_like_values_are_reported(tmp_path, names, noted):
    (tmp_path / "a.csv").write_text(names + "\n1,a,2.5,3\n4,b,5,6\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        open_table(tmp_path / "a.csv", columns=[names.split(",")[0]])
    notes = [str(each.message).split("read as column names: ")[-1][: len(noted or "")] for each in caught]
    assert notes == ([] if noted is None else [noted])


def test_quantities_are_rounded_without_a_word(tmp_path):
    (tmp_path / "a.csv").write_text("half_life,n\n123456789012345678901234,1\n0.5,2\n")
    assert values_of(tmp_path / "a.csv", "half_life") == [1.23456789012345678e23, 0.5]
