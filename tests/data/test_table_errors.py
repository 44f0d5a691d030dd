"""Tables that cannot be read: every error names the file, the place in it, and what to do."""

import errno
import os
import re
import sys
from datetime import date, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from bayesvm.data.tables import open_table
from bayesvm.warn import ReadingNote


def table(**columns):
    return pa.table({"x1": np.arange(10.0), "x2": np.ones(10), "y": np.arange(10) % 2} | columns)


def save(path, **columns):
    parquet.write_table(table(**columns), path)
    return path


def save_arrow(path, content):
    with ipc.new_file(str(path), content.schema) as writer:
        writer.write_table(content)


def read(opened):
    for _ in opened.batches(4):
        pass


# Files


def test_files_given_twice(tmp_path, monkeypatch):
    path = save(tmp_path / "a.parquet")
    (tmp_path / "link.parquet").symlink_to(path)
    save(tmp_path / "b.parquet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"a\.parquet is listed twice: its rows would count twice; list it once"):
        open_table([path, "b.parquet", path])
    for source in ([path, "a.parquet"], [path, tmp_path / "link.parquet"], tmp_path, "*.parquet"):
        with pytest.raises(ValueError, match=r"a\.parquet is listed twice, also as .*\.parquet: its rows"):
            open_table(source)
    assert open_table(["b.parquet", "a.parquet"]).n_rows == 20


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.parquet does not exist"):
        open_table(tmp_path / "a.parquet")
    with pytest.raises(FileNotFoundError, match=r"no file matches '.*\*\.parquet'"):
        open_table(str(tmp_path / "*.parquet"))
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(FileNotFoundError, match=r"folder .* has no files .*use a pattern"):
        open_table(tmp_path)
    with pytest.raises(ValueError, match="list of files is empty"):
        open_table([])
    (tmp_path / "b.parquet").mkdir()
    with pytest.raises(FileNotFoundError, match="is a folder; pass it alone"):
        open_table([tmp_path / "b.parquet"])


@pytest.mark.parametrize("name", ["notes.md", "table", "t.csv.rar", "t.parquet.gz", "t.svm.zst"])
def test_unknown_formats(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=rf"format of .*{name} cannot be determined.*\.parquet.*Rename"):
        open_table(tmp_path)


def test_mixed_formats(tmp_path):
    save(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("x1,y\n1,2\n")
    with pytest.raises(ValueError, match=r"a\.parquet is Parquet, but .*b\.csv is CSV; .* one format"):
        open_table(tmp_path)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_an_empty_file_among_many_is_named(tmp_path, suffix):
    for name in "ac":
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "parquet":
            save(path)
        elif suffix == "csv":
            path.write_text("x1,y\n1,2\n")
        else:
            save_arrow(path, table())
    (tmp_path / f"b.{suffix}").touch()
    with pytest.raises((OSError, ValueError), match=rf"b\.{suffix} .*(corrupt|leave it out)"):
        open_table(tmp_path, "y")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_truncated_file_is_named(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    save(path) if suffix == "parquet" else save_arrow(path, table())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(OSError, match=rf"a\.{suffix} cannot be read: .*corrupt"):
        open_table(path, "y")


@pytest.mark.parametrize(("start", "hint"), [(b"FEA1", r"version 1.*to_parquet"), (b"\xff\xff\xff\xff", "new_file")])
def test_other_formats_under_the_name_of_arrow(tmp_path, start, hint):
    (tmp_path / "a.feather").write_bytes(start + bytes(100))
    with pytest.raises(ValueError, match=rf"a\.feather is .*{hint}"):
        open_table(tmp_path / "a.feather")


def test_a_corrupt_row_group_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    content = pa.table({"x": np.arange(3000.0), "y": np.zeros(3000, int)})
    parquet.write_table(
        content, path, row_group_size=1000, compression="none", use_dictionary=False, write_page_checksum=True
    )
    chunk = parquet.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset + 4000] ^= 0xFF
    path.write_bytes(content)
    opened = open_table(path, "y")
    batches = opened.batches(900)
    next(batches)
    with pytest.raises(
        OSError, match=r"a\.parquet, row group 1 \(rows 1000 to 1999\) cannot be read.*checksum"
    ) as found:
        next(batches)
    assert isinstance(found.value.__cause__, OSError)
    assert len(opened.rows(np.arange(2000, 3000)).X) == 1000  # the other row groups are whole


def test_files_that_change_after_they_were_opened(tmp_path):
    path = save(tmp_path / "a.parquet")
    opened = open_table(path, "y")
    save(path, x3=np.ones(10))
    with pytest.raises(OSError, match=r"a\.parquet has changed since open_table .*again"):
        read(opened)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.parquet has disappeared since open_table"):
        read(opened)


def test_a_change_that_size_and_time_do_not_show_is_seen_in_the_rows(tmp_path, monkeypatch):
    path = save(tmp_path / "a.parquet")
    opened = open_table(path, "y")
    parquet.write_table(table().slice(0, 9), path)
    monkeypatch.setattr("bayesvm.data.tables.files.SourceFile.require_unchanged", lambda self: None)
    with pytest.raises(OSError, match=r"a\.parquet, row group 0 .* open_table counted 10 rows, but 9 were read"):
        read(opened)


def test_tables_without_rows(tmp_path):
    parquet.write_table(table().slice(0, 0), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"nothing to read: .*a\.parquet has no rows"):
        open_table(tmp_path, "y")
    (tmp_path / "a.csv").write_text("x,y\n")
    with pytest.raises(ValueError, match="no rows"):
        open_table(tmp_path / "a.csv", "y")
    (tmp_path / "a.svm").write_text("# nothing\n")
    with pytest.raises(ValueError, match="no row of .* has a feature|no rows"):
        open_table(tmp_path / "a.svm")


# Columns


def test_names_that_are_not_there(tmp_path):
    path = save(tmp_path / "a.parquet")
    for choice in ({"target": "z"}, {"columns": ["x1", "z"]}, {"weight": "z"}):
        with pytest.raises(ValueError, match=r"a\.parquet has no column 'z'; it has 'x1', 'x2', 'y'"):
            open_table(path, **choice)
    wide = save(tmp_path / "wide.parquet", **{f"c{number}": np.ones(10) for number in range(100)})
    with pytest.raises(ValueError, match=r"'c8', … \(91 more\)"):
        open_table(wide, "z")


def test_a_column_has_one_role(tmp_path):
    path = save(tmp_path / "a.parquet")
    for choice in ({"columns": ["x1", "y"]}, {"columns": ["x1"], "weight": "y"}, {"weight": "y"}):
        with pytest.raises(ValueError, match="list a column more than once: 'y'"):
            open_table(path, "y", **choice)
    with pytest.raises(ValueError, match="list a column more than once: 'x1'"):
        open_table(path, "y", columns=["x1", "x1"])
    with pytest.raises(ValueError, match="no column of .* remains as a feature"):
        open_table(path, "y", columns=[])


def test_columns_of_one_name(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["x", "y", "x"])
    parquet.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet has several columns named 'x'"):
        open_table(tmp_path, "y")
    (tmp_path / "a.csv").write_text("x,y,x\n1,2,3\n")
    with pytest.raises(ValueError, match=r"a\.csv has several .* 'x': 'x' is column 1 and column 3; rename"):
        open_table(tmp_path / "a.csv", "y")


def test_files_of_different_columns(tmp_path):
    save(tmp_path / "a.parquet")
    parquet.write_table(table(x9=np.ones(10)).drop_columns(["x2"]), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has no column 'x2' and has 'x9', which .*a\.parquet lacks"):
        open_table(tmp_path, "y")
    assert open_table(tmp_path, "y", columns=["x1"]).n_rows == 20
    with pytest.raises(ValueError, match=r"b\.parquet has no column 'x2'; leave out the file"):
        open_table(tmp_path, "y", columns=["x2"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["u"] * 10, "string; encode"),
        (pa.array(["u"] * 10).dictionary_encode(), "dictionary.*encode"),
        ([date(2020, 1, 1)] * 10, "date32.*days since"),
        ([[1.0, 2.0]] * 10, "list.*each of its parts"),
        ([{"a": 1.0}] * 10, "struct.*each of its parts"),
        ([time(12)] * 10, "time64.*days since"),
        ([b"u"] * 10, "binary; write text or numbers"),
        (pa.array([b"u"] * 10, pa.binary(1)), "binary.*; write text or numbers"),
    ],
)
def test_features_that_are_no_numbers(tmp_path, values, words):
    path = save(tmp_path / "a.parquet", odd=values)
    with pytest.raises(TypeError, match=rf"column 'odd' of .*a\.parquet is not numeric.*{words}.*columns="):
        open_table(path, "y")
    assert open_table(path, "y", columns=["x1"]).n_features == 1


def test_targets_that_are_no_labels(tmp_path):
    path = save(tmp_path / "a.parquet", y=[date(2020, 1, 1)] * 10)
    with pytest.raises(TypeError, match=r"target 'y' of .* type date32.*numbers, bools or text"):
        open_table(path, "y")
    save(path)
    save(tmp_path / "b.parquet", y=["u"] * 10)
    with pytest.raises(TypeError, match=r"numbers in .*a\.parquet, but text in .*b\.parquet"):
        open_table(tmp_path, "y")


# Values


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.inf, "infinity.*Replace"),
        (-1e101, r"too large \(-1e\+101.*Rescale"),
    ],
)
def test_unusable_features_are_found_wherever_they_are(tmp_path, value, words):
    save(tmp_path / "a.parquet")
    save(tmp_path / "b.parquet", x2=pa.array([1.0] * 7 + [value] + [1.0] * 2))
    opened = open_table(tmp_path, "y")
    for at_once in (1, 4, 100):
        with pytest.raises(ValueError, match=rf"b\.parquet, row 7 \(row 17 of all\), column 'x2': .*{words}"):
            list(opened.batches(at_once))
    with pytest.raises(ValueError, match=r"b\.parquet, row 7 \(row 17 of all\), column 'x2'"):
        opened.rows(np.array([18, 2, 17]))
    assert len(opened.rows(np.array([18, 2])).X) == 2


@pytest.mark.parametrize("values", [[True, None], [1, None], [Decimal(1), None], [np.float32(1), None]])
def test_nulls_of_every_type_are_missing_values(tmp_path, values):
    parquet.write_table(pa.table({"x": values}), tmp_path / "a.parquet")
    np.testing.assert_array_equal(open_table(tmp_path).rows(np.arange(2)).X[:, 0], [1, np.nan])


def test_large_single_precision_numbers_are_usable(tmp_path):
    largest = np.full(10, np.finfo(np.float32).max)
    parquet.write_table(pa.table({"x": largest}), tmp_path / "a.parquet")
    np.testing.assert_array_equal(next(open_table(tmp_path).batches(10)).X[:, 0], largest)


@pytest.mark.parametrize("labels", [[1, None, 2], [1.0, np.nan, 2.0], ["u", None, "v"], [True, None, False]])
def test_missing_labels(tmp_path, labels):
    for values in (pa.array(labels), pa.array(labels).dictionary_encode()):
        parquet.write_table(pa.table({"x": np.ones(3), "y": values}), tmp_path / "a.parquet")
        opened = open_table(tmp_path, "y")
        for reading in (opened.batches(2), opened.targets()):
            with pytest.raises(ValueError, match=r"a\.parquet, row 1, column 'y': the target is missing"):
                list(reading)
        assert len(list(opened.batches(2, targets=False))) == 2


@pytest.mark.parametrize("bad", [-1.0, np.inf, None])
def test_bad_weights(tmp_path, bad):
    path = save(tmp_path / "a.parquet", w=pa.array([1.0] * 8 + [bad, bad]))
    with pytest.raises(ValueError, match=r"a\.parquet, row 8, column 'w': the weight .*; 1 more rows"):
        read(open_table(path, "y", weight="w"))


def test_batches_have_rows(tmp_path):
    with pytest.raises(ValueError, match="n_rows must be 1 or more; got 0"):
        next(open_table(save(tmp_path / "a.parquet")).batches(0))


# Text


def csv_file(folder, text):
    path = folder / "a.csv"
    path.write_text(text)
    return path


def test_text_in_csv(tmp_path, monkeypatch):
    path = csv_file(tmp_path, "x,town,y\n1,7,0\n2,Rome,1\n")
    with pytest.raises(TypeError, match=r"column 'town' of .*a\.csv .*contains the text 'Rome' .line 3.; encode"):
        open_table(path, "y", copy_to=tmp_path)
    monkeypatch.setattr("bayesvm.data.tables.csv_files._BLOCK_BYTES", 64)
    path = csv_file(tmp_path, "x,town,y\n" + "1,7,0\n" * 50 + "2,Rome,1\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 52, column 'town': 'Rome' cannot be read as double"):
        open_table(path, "y", copy_to=tmp_path)
    path = csv_file(tmp_path, "x,y\n" + "1,0\n" * 50 + "2\n")
    with pytest.raises(
        ValueError, match=r"a\.csv, line 52: expected 2 field\(s\) like the first line, got 1: '2'\. Corr"
    ):
        open_table(path, "y", copy_to=tmp_path)
    path = csv_file(tmp_path, "0.5,1.5\n" + "1,0\n" * 50)
    with pytest.raises(ValueError, match=r"first line of .*a\.csv has numbers \(0\.5, 1\.5, …\).*line of names"):
        open_table(path, "y", copy_to=tmp_path)
    assert [child.name for child in tmp_path.iterdir()] == ["a.csv"]


def test_an_empty_cell_of_csv_is_a_missing_value(tmp_path):
    path = csv_file(tmp_path, "x,y\n1,0\n,1\n")
    with open_table(path, "y") as opened:
        np.testing.assert_array_equal(opened.rows(np.arange(2)).X[:, 0], [1, np.nan])


def test_a_broken_compressed_file(tmp_path):
    for name in ("a.csv.gz", "a.libsvm.gz"):
        path = tmp_path / name
        path.write_bytes(b"\x1f\x8b\x08\x00" + bytes(20))
        with pytest.raises((OSError, ValueError), match=rf"{name} cannot be read"):
            open_table(path)
        path.unlink()


def test_libsvm_lines(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("# rows\n" + "1 1:2\n" * 100 + "1 3:x\n" + "1 1:2\n" * 30)
    with pytest.raises(ValueError, match=r"a\.libsvm, line 102, .*label index:value.*1 3:x"):
        open_table(path, copy_to=tmp_path)
    path.write_text("1 1:2\n1 3:nan\n")
    with open_table(path) as opened, pytest.raises(ValueError, match=r"a\.libsvm, row 1, column 2: a missing value"):
        read(opened)
    with pytest.raises(ValueError, match=r"a\.libsvm has the index 3 \(indices start at 1\), but n_features=2"):
        open_table(path, n_features=2, copy_to=tmp_path)
    for choice in ({"target": "y"}, {"columns": ["a"]}, {"weight": "w"}):
        with pytest.raises(ValueError, match=f"LIBSVM files have a label .* leave out {next(iter(choice))}"):
            open_table(path, **choice)
    assert [child.name for child in tmp_path.iterdir()] == ["a.libsvm"]


def test_n_features_is_for_libsvm(tmp_path):
    with pytest.raises(ValueError, match=r"n_features and zero_based apply to LIBSVM files; .*a\.parquet is Parquet"):
        open_table(save(tmp_path / "a.parquet"), n_features=3)


@pytest.mark.parametrize("name", ["a.csv", "a.libsvm"])
def test_a_full_disk(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_text("x,y\n1,2\n" if name == "a.csv" else "1 1:2\n")
    place = tmp_path / "place"
    place.mkdir()

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if name == "a.csv":
        monkeypatch.setattr("pyarrow.ipc.new_file", full)
    else:
        monkeypatch.setattr("scipy.sparse.save_npz", full)
    words = (
        rf"no space is left for the working copy in {re.escape(str(place))}: .* MB were written, 0 of 1 files.*copy_to="
    )
    with pytest.raises(OSError, match=words) as found:
        open_table(path, copy_to=place)
    assert found.value.errno == errno.ENOSPC
    assert list(place.iterdir()) == []


def test_the_place_for_copies_must_exist(tmp_path):
    with pytest.raises(NotADirectoryError, match="copy_to='.*nowhere' is not a folder"):
        open_table(csv_file(tmp_path, "x\n1\n"), copy_to=tmp_path / "nowhere")


def test_pyarrow_is_required(tmp_path, monkeypatch):
    path = save(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pyarrow.*pip install "bayesvm\[tables\]"'):
        open_table(path)


def test_a_wrong_separator_is_reported(tmp_path):
    path = csv_file(tmp_path, "x;y\n1;0\n2;1\n")
    with pytest.raises(
        ValueError, match=r"has no column 'y'; it has 'x;y'. If the separator is wrong, specify it with sep"
    ):
        open_table(path, "y", sep=",")
    path = csv_file(tmp_path, "x,y\n1;0\n2;1\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 2: expected 2 field.* got 1: '1;0'.*sep="):
        open_table(path, "y", sep=",")
    path = csv_file(tmp_path, "x;y\n1;0\n2,5;1\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 3: expected 1 field.* got 2: '2,5;1'.*sep="):
        open_table(path, "y", sep=",")


@pytest.mark.parametrize("block", [64, 2**23])
def test_a_wrong_decimal_mark_is_reported(tmp_path, monkeypatch, block):
    monkeypatch.setattr("bayesvm.data.tables.csv_files._BLOCK_BYTES", block)
    path = csv_file(tmp_path, "x,y\n" + "1.0,0\n" * 3 + "2.5,1\n" * 20)
    with pytest.raises(
        ValueError, match=r"a\.csv, line 2, column 'x': '1\.0' is a number with the decimal mark '\.'.*','"
    ):
        open_table(path, "y", decimal=",")
    path = csv_file(tmp_path, "x;y\n" + "1;0\n" * 50 + "2,5;1\n")
    if block == 64:  # the first block shows whole numbers only
        with pytest.raises(ValueError, match=r"a\.csv, line 52, column 'x': '2,5' cannot be read as double.*--missing"):
            open_table(path, "y", sep=";", decimal=".")


def test_a_wrong_encoding_is_reported(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes("x,y\n1,a\n2,ö\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"a\.csv, line 3: text is not valid utf-8 .*--encoding"):
        open_table(path, "y", encoding="utf-8")
    path.write_bytes("x,y\n1,a\n2,ö\n".encode())
    with pytest.raises(ValueError, match=r"a\.csv, line 3: text is not valid ascii .*--encoding"):
        open_table(path, "y", encoding="ascii")
    for module in ("csv_files._BLOCK_BYTES", "csv_files.START_BYTES"):
        monkeypatch.setattr(f"bayesvm.data.tables.{module}", 64)
    path.write_bytes(b"x,y\n" + b"1,a\n" * 50 + "2,ö\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"a\.csv, line 52, column 'y': the text is not valid UTF-8.*--encoding"):
        open_table(path, "y")
    monkeypatch.setattr("bayesvm.data.tables.csv_files._BLOCK_BYTES", 2**10)
    with pytest.raises(ValueError, match=r"a\.csv, line 52, column 'y': the text is not valid UTF-8.*--encoding"):
        open_table(path, "y")
    assert open_table(path, columns=["x"]).n_rows == 51
    path.write_bytes("x,y\n1,ö\n".encode("cp1252") + b"1,a\n" * 50 + b"2,\x81\n")
    with pytest.raises(ValueError, match=r"a\.csv: text further down is not valid cp1252 .*--encoding"):
        open_table(path, "y")


def test_numbers_in_text_are_reported_if_further_down_they_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr("bayesvm.data.tables.csv_files._BLOCK_BYTES", 64)
    path = csv_file(tmp_path, "x,y\n" + "$5,0\n$6,1\n" * 25 + "cheap,1\n")
    with (
        pytest.warns(ReadingNote, match=r"'x' \('\$5' is 5\)"),
        pytest.raises(
            ValueError, match=r"a\.csv, line 52, column 'x': 'cheap' cannot be read as a number like \$1234\.5"
        ),
    ):
        open_table(path, "y")
    with pytest.warns(ReadingNote):
        table = open_table(path, "y", missing=["cheap"])
    with table:
        np.testing.assert_array_equal(np.isnan(table.rows(np.arange(51)).X[:, 0]), np.arange(51) == 50)


def test_names_of_rows_that_r_writes(tmp_path):
    for text in ('"x" "y"\n"1" 5 0\n"2" 6 1\n', '"x","y"\n"1",5,0\n"2",6,1\n', "x;y\n1;5;0\n2;6;1\n"):
        with pytest.raises(ValueError, match=r"a\.csv, line 2: expected 2 field.* got 3: .*Give every column a name"):
            open_table(csv_file(tmp_path, text), "y")


def test_a_file_without_names(tmp_path):
    path = csv_file(tmp_path, "0.5,1\n1.5,2\n")
    for text in ("0.5,1\n1.5,2\n", "0,5;1\n1,5;2\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"first line of .*a\.csv has numbers .*header=False \(--no-header\)"):
            open_table(path, "y")
    path.write_text("0.5,1\n1.5,2\n")
    with open_table(path, "c2", header=False) as table:
        assert table.names == ("c1",)
        assert table.rows(np.arange(2)).X[:, 0].tolist() == [0.5, 1.5]
    path.write_text("0.5,1\n1.5\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 2: expected 2 field.* got 1"):
        open_table(path, "c2", header=False)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"PK\x03\x04" + bytes(20), "Excel workbook or another zip archive: save the sheet as CSV"),
        (b"\xd0\xcf\x11\xe0" + bytes(20), "Excel workbook: save"),
        (b'"x,y\n' + b"1,2\n" * 50_000, "a quote in the first line is never closed"),
        (b"PAR1" + bytes(20), "a Parquet file: give it a name"),
    ],
)
def test_files_that_are_no_csv(tmp_path, content, words):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"a\.csv .*{words}"):
        open_table(tmp_path)


def test_an_excel_file_is_reported_with_a_remedy(tmp_path):
    (tmp_path / "a.xlsx").touch()
    with pytest.raises(ValueError, match=r"a\.xlsx is an Excel workbook: save the sheet as CSV"):
        open_table(tmp_path / "a.xlsx")


@pytest.mark.parametrize("option", [{"sep": ";"}, {"decimal": ","}, {"missing": ["x"]}, {"header": False}])
def test_options_of_csv_are_for_csv(tmp_path, option):
    with pytest.raises(
        ValueError, match=rf"{next(iter(option))}=.* applies to CSV files only; .*a\.parquet is Parquet"
    ):
        open_table(save(tmp_path / "a.parquet"), **option)


@pytest.mark.parametrize(("given", "error"), [(None, TypeError), ("s3://bucket/a.parquet", ValueError)])
def test_what_is_no_file(given, error):
    with pytest.raises(error, match="takes a path|only local files"):
        open_table(given)


def test_a_frame_is_no_file():
    with pytest.raises(TypeError, match="pass the RecordBatch|pass the Table"):
        open_table(pa.table({"x": [1.0]}))


def test_a_forked_child_leaves_the_working_copy(tmp_path):
    table = open_table(csv_file(tmp_path, "x,y\n1,0\n2,1\n"), "y")
    remove, (_, pid), _ = table._rows.copy.remove.peek()[1:]
    remove(table._rows.copy.folder, pid + 1)  # as in another process
    assert table._rows.copy.folder.exists()
    table.close()
    assert not table._rows.copy.folder.exists()
