"""Tables in files: the same numbers from every format, whatever the cuts; only what is needed is read and kept."""

import bz2
import gzip
import json
import os
import subprocess
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, ipc, parquet
from sklearn.datasets import dump_svmlight_file

from bayesvm.data.tables import Batch, open_table, rows

rng = np.random.default_rng(0)
X = rng.standard_normal((1000, 3))
X[rng.random(X.shape) < 0.3] = 0
y = rng.integers(0, 3, 1000)
weight = rng.random(1000)
NAMES = ("a", "b", "c")


def arrow(rows=slice(None), **more):
    columns = {name: X[rows, number] for number, name in enumerate(NAMES)}
    return pa.table({**columns, "y": y[rows], "w": weight[rows]} | more)


def write(path, table, **options):
    """The table in the format given by the extension of the path."""
    name = path.name
    if name.endswith(".parquet"):
        parquet.write_table(table, path, **options)
    elif name.endswith((".arrow", ".feather")):
        feather.write_feather(table, str(path), **options)
    elif ".libsvm" in name:
        features = np.column_stack([table[name].to_numpy() for name in NAMES])
        opener = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
        with opener(path, "wb") as file:
            dump_svmlight_file(features, table["y"].to_numpy(), file, **({"zero_based": False} | options))
    else:
        separator = "\t" if ".tsv" in name else ","
        compression = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix)
        with pa.output_stream(str(path), compression=compression) as file:
            csv.write_csv(table, file, csv.WriteOptions(delimiter=separator))
    return path


def together(batches):
    """All batches as one."""
    Xs, ys, weights = zip(*batches, strict=True)
    dense = [part.toarray() if hasattr(part, "toarray") else part for part in Xs]
    return Batch(
        np.concatenate(dense),
        None if ys[0] is None else np.concatenate(ys),
        None if weights[0] is None else np.concatenate(weights),
    )


def all_labels(table):
    return np.concatenate([labels for labels, _ in table.targets()])


SUFFIXES = ["parquet", "pq", "arrow", "feather", "csv", "tsv", "csv.gz", "tsv.bz2", "csv.zst"]
SPARSE = ["libsvm", "libsvm.gz", "libsvm.bz2"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_numbers(tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    if suffix == "pq":
        parquet.write_table(arrow(), path)
    else:
        write(path, arrow())
    with open_table(path, "y", weight="w") as table:
        assert (table.names, table.n_rows, len(table), table.n_features) == (NAMES, 1000, 1000, 3)
        assert (table.target, table.weight, table.sparse, table.dtype) == ("y", "w", False, np.float64)
        batches = list(table.batches(300))
        assert [len(batch.X) for batch in batches] == [300, 300, 300, 100]
        assert all(batch.X.flags.c_contiguous and batch.X.flags.owndata for batch in batches)
        found = together(batches)
        np.testing.assert_array_equal(found.X, X)
        np.testing.assert_array_equal(found.y, y)
        assert found.y.dtype == np.int64
        np.testing.assert_array_equal(found.weight, weight)
        np.testing.assert_array_equal(all_labels(table), y)
        assert all(batch.y is None for batch in table.batches(300, targets=False))


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("suffix", SPARSE)
def test_libsvm_gives_sparse_rows_whether_it_counts_from_0_or_from_1(tmp_path, suffix, zero_based, monkeypatch):
    monkeypatch.setattr("bayesvm.data.tables.libsvm_copy._BLOCK_BYTES", 5000)  # several pieces
    write(tmp_path / f"a.{suffix}", arrow(slice(0, 600)), zero_based=zero_based)
    write(tmp_path / f"b.{suffix}", arrow(slice(600, None)), zero_based=zero_based)
    with open_table(tmp_path) as table:
        assert (table.names, table.n_rows, table.n_features, table.sparse) == (None, 1000, 3, True)
        batches = list(table.batches(300))
        assert {batch.X.format for batch in batches} == {"csr"}
        assert [batch.X.shape[0] for batch in batches] == [300, 300, 300, 100]
        found = together(batches)
        np.testing.assert_allclose(found.X, X, rtol=1e-15)  # the file has 16 digits
        np.testing.assert_array_equal(found.y, y)
        np.testing.assert_array_equal(all_labels(table), y)
        chosen = rng.permutation(1000)[:200]
        np.testing.assert_array_equal(table.rows(chosen).X.toarray(), found.X[chosen])
        np.testing.assert_array_equal(table.rows(chosen).y, y[chosen])


def test_libsvm_with_comments_empty_rows_and_a_width_of_its_own(tmp_path):
    path = tmp_path / "few.svm"
    path.write_text("# a comment\n+1 2:5 # another\n\n-1\n-1 1:0.5 3:1e3\n")
    with open_table(path, n_features=5) as table:
        batch = next(table.batches(10))
        np.testing.assert_array_equal(batch.X.toarray(), [[0, 5, 0, 0, 0], [0] * 5, [0.5, 0, 1e3, 0, 0]])
        np.testing.assert_array_equal(batch.y, [1, -1, -1])


@pytest.mark.parametrize("cuts", [(1000,), (1, 999), (300, 0, 400, 300), (7,) * 142 + (6,)])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_batches_do_not_depend_on_files_and_row_groups(tmp_path, cuts, suffix):
    edges = np.cumsum([0, *cuts])
    for number, (start, stop) in enumerate(pairwise(edges)):
        option = {"row_group_size": 37} if suffix == "parquet" else {"chunksize": 37}
        write(tmp_path / f"part-{number:03}.{suffix}", arrow(slice(start, stop)), **option)
    table = open_table(str(tmp_path / f"part-*.{suffix}"), "y", weight="w")
    assert table.n_rows == 1000
    for n_rows in (1, 64, 1000, 5000):
        batches = list(table.batches(n_rows))
        assert all(len(batch.X) == n_rows for batch in batches[:-1])
        found = together(batches)
        for part, given in zip(found, (X, y, weight), strict=True):
            np.testing.assert_array_equal(part, given)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_chosen_rows_come_in_the_order_requested(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(rows, "MOST_ROWS_AT_ONCE", 30)
    paths = []
    for start in range(0, 1000, 250):
        option = {"row_group_size": 50} if suffix == "parquet" else {}
        paths.append(write(tmp_path / f"{start}.{suffix}", arrow(slice(start, start + 250)), **option))
    with open_table(paths, "y", weight="w") as table:
        for indices in (rng.permutation(1000), rng.permutation(1000)[:10], np.array([999]), np.array([3, 0])):
            found = table.rows(indices)
            np.testing.assert_array_equal(found.X, X[indices])
            np.testing.assert_array_equal(found.y, y[indices])
            np.testing.assert_array_equal(found.weight, weight[indices])
        for wrong in ([1000], [-1], [3, 3], []):
            with pytest.raises(IndexError, match="distinct, at least one, and between 0 and 999"):
                table.rows(np.array(wrong, np.intp))


def test_row_groups_without_chosen_rows_are_not_read(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", arrow(), row_group_size=100)
    read = []
    real = parquet.ParquetFile.iter_batches

    def spied(self, size, groups, *rest, **options):
        read.extend(groups)
        return real(self, size, groups, *rest, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", spied)
    open_table(path, "y").rows(np.array([950, 120, 130]))
    assert read == [1, 9]


def test_columns_are_chosen_and_ordered_by_name_in_every_file(tmp_path):
    write(tmp_path / "a.parquet", arrow(slice(0, 500)))
    write(tmp_path / "b.parquet", arrow(slice(500, None)).select(["w", "c", "y", "b", "a"]))
    table = open_table(tmp_path, "y", columns=["c", "a"])
    assert table.names == ("c", "a")
    np.testing.assert_array_equal(together(table.batches(128)).X, X[:, [2, 0]])
    everything = open_table(tmp_path)
    assert everything.names == ("a", "b", "c", "y", "w")
    assert not everything.has_target
    assert next(everything.batches(10)).y is None
    with pytest.raises(ValueError, match="no labels; name their column"):
        next(everything.targets())


def test_the_index_that_pandas_saves_is_no_feature(tmp_path):
    frame = arrow().to_pandas().iloc[::2]
    frame.to_parquet(tmp_path / "a.parquet")
    assert open_table(tmp_path / "a.parquet", "y").names == ("a", "b", "c", "w")


KINDS = {
    "int8": pa.array([1, -1, 1, 1], pa.int8()),
    "uint64": pa.array([0, 5, 0, 0], pa.uint64()),
    "double": pa.array([0.0, 1.0, 0.0, 0.0]),
    "bool": pa.array([True, False, True, True]),
    "text": pa.array(["no", "yes", "no", "no"]),
    "large text": pa.array(["no", "yes", "no", "no"], pa.large_string()),
    "categories": pa.array(["no", "yes", "no", "no"]).dictionary_encode(),
    "whole categories": pa.array([7, 9, 7, 7]).dictionary_encode(),
    "decimal": pa.array([Decimal("1.5"), Decimal(2), Decimal("1.5"), Decimal("1.5")]),
}


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_may_be_numbers_bools_text_and_categories(tmp_path, kind, suffix):
    column = KINDS[kind]
    path = write(tmp_path / f"t.{suffix}", pa.table({"x": np.arange(4.0), "y": column}))
    table = open_table(path, "y")
    expected = np.array([float(v) if isinstance(v, Decimal) else v for v in column.to_pylist()])
    for found in (together(table.batches(3)).y, all_labels(table), table.rows(np.arange(4)).y):
        assert found.dtype.kind == expected.dtype.kind or kind == "uint64"
        np.testing.assert_array_equal(found, expected)


def test_files_of_polars(tmp_path):
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "s": ["u", "v", "u"]})
    frame = frame.with_columns(k=pl.col("s").cast(pl.Categorical))
    frame.write_ipc(tmp_path / "t.arrow")
    frame.write_parquet(tmp_path / "t.parquet")
    for path in tmp_path.iterdir():
        for target in "sk":
            table = open_table(path, target, columns=["x"])
            np.testing.assert_array_equal(together(table.batches(2)).y, ["u", "v", "u"])
            np.testing.assert_array_equal(table.rows(np.array([2, 1])).y, ["u", "v"])


def test_single_precision_is_kept_only_where_it_loses_nothing(tmp_path):
    small = {"f": np.ones(3, np.float32), "h": np.ones(3, np.float16), "i": np.ones(3, np.int16), "b": [True] * 3}
    path = write(tmp_path / "a.parquet", pa.table(small))
    assert open_table(path).dtype == np.float32
    np.testing.assert_array_equal(next(open_table(path).batches(3)).X, np.ones((3, 4), np.float32))
    large = small | {"i": np.full(3, 2**40 + 1)}
    write(tmp_path / "b.parquet", pa.table(large))
    both = open_table(tmp_path)
    assert both.dtype == np.float64
    assert together(both.batches(4)).X[-1, 2] == 2**40 + 1
    decimals = write(tmp_path / "c.parquet", pa.table({"d": [Decimal("1.25"), Decimal("2.50")]}))
    np.testing.assert_array_equal(next(open_table(decimals).batches(3)).X, [[1.25], [2.5]])


def test_a_csv_column_of_whole_numbers_may_have_others_further_down(tmp_path, monkeypatch):
    monkeypatch.setattr("bayesvm.data.tables.csv_files._BLOCK_BYTES", 64)
    path = tmp_path / "t.csv"
    path.write_text("x,flag,y\n" + "1,true,no\n" * 100 + "0.5,false,yes\n")
    with open_table(path, "y") as table:
        found = together(table.batches(1000))
        np.testing.assert_array_equal(found.X, [[1, 1]] * 100 + [[0.5, 0]])
        np.testing.assert_array_equal(found.y, ["no"] * 100 + ["yes"])


def test_a_csv_file_without_rows_among_others(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n")
    (tmp_path / "b.csv").write_text("x,y\n1,2\n")
    with open_table(tmp_path, "y") as table:
        assert table.n_rows == 1
        assert table.where(0) == f"{tmp_path / 'b.csv'}, line 2"


def test_folders_leave_out_hidden_files_and_are_sorted(tmp_path):
    for number in (2, 0, 1):
        write(tmp_path / f"part-{number}.parquet", arrow(slice(number, number + 1)))
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.parquet.crc").touch()
    table = open_table(tmp_path, "y", weight="w")
    np.testing.assert_array_equal(together(table.batches(10)).X, X[:3])
    assert [table.where(row) for row in range(3)] == [f"{tmp_path}/part-{row}.parquet, row 0" for row in range(3)]
    with pytest.raises(IndexError, match="no row 3"):
        table.where(3)


def test_the_fingerprint_is_plain_and_changes_with_the_files_and_the_choice(tmp_path):
    path = write(tmp_path / "a.parquet", arrow())
    first = open_table(path, "y").fingerprint()
    assert json.loads(json.dumps(first)) == first == open_table(path, "y").fingerprint()
    assert open_table(path, "y", columns=["a"]).fingerprint() != first
    assert open_table(path, "y", weight="w").fingerprint() != first
    os.utime(path, ns=(1, 1))
    assert open_table(path, "y").fingerprint() != first


def test_repr(tmp_path):
    write(tmp_path / "a.parquet", arrow())
    write(tmp_path / "b.parquet", arrow())
    expected = "<Table of 2,000 rows × 4 features (float64), target 'y'; Parquet: a.parquet and 1 more>"
    assert repr(open_table(tmp_path, "y")) == expected


def test_the_working_copy_goes_with_the_table(tmp_path, capsys, monkeypatch):
    write(tmp_path / "a.csv", arrow())
    with open_table(tmp_path / "a.csv", "y", verbose=1):
        assert capsys.readouterr().err == ""
    monkeypatch.setattr(rows, "REPORTED_FROM", 0.001)
    place = tmp_path / "place"
    place.mkdir()
    with open_table(tmp_path / "a.csv", "y", copy_to=place, verbose=1) as table:
        assert len(list(place.iterdir())) == 1
    assert list(place.iterdir()) == []
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert told[0].startswith("copying 1 CSV file(s) for fast reading")
    with pytest.raises(ValueError, match="table was closed"):
        next(table.batches(10))
    forgotten = open_table(tmp_path / "a.csv", "y", copy_to=place)
    assert len(list(place.iterdir())) == 1
    del forgotten
    assert list(place.iterdir()) == []


def test_nothing_is_left_when_the_program_ends(tmp_path):
    write(tmp_path / "a.csv", arrow())
    place = tmp_path / "place"
    place.mkdir()
    code = (
        "import sys; from bayesvm.data.tables import open_table\n"
        "table = open_table(sys.argv[1], 'y', copy_to=sys.argv[2])\n"
        "rows = table.batches(10); next(rows); sys.exit(3)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "a.csv"), str(place)]
    assert subprocess.run(arguments, check=False).returncode == 3  # noqa: S603
    assert list(place.iterdir()) == []


def test_a_huge_row_group_is_read_in_small_parts(tmp_path):
    n_rows = 1_000_000
    columns = {f"x{number}": rng.standard_normal(n_rows) for number in range(4)}
    path = write(tmp_path / "a.parquet", pa.table(columns), row_group_size=n_rows, compression="none")
    del columns
    before, most = pa.total_allocated_bytes(), 0
    for _ in open_table(path).batches(10_000):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < path.stat().st_size / 2


def test_labels_alone_are_read_alone(tmp_path):
    path = write(tmp_path / "a.parquet", arrow(a=np.full(1000, np.nan)))
    np.testing.assert_array_equal(all_labels(open_table(path, "y")), y)


def test_arrow_files_of_other_writers(tmp_path):
    """One large uncompressed record batch, as ``write_table`` makes it."""
    path = Path(tmp_path / "a.arrow")
    with ipc.new_file(str(path), arrow().schema) as writer:
        writer.write_table(arrow())
    np.testing.assert_array_equal(together(open_table(path, "y", columns=["b"]).batches(99)).X, X[:, [1]])


def test_lines_may_be_broken_inside_quotes(tmp_path, monkeypatch):
    monkeypatch.setattr("bayesvm.data.tables.csv_files._BLOCK_BYTES", 256)
    path = tmp_path / "a.csv"
    path.write_text("note,x,y\n" + '"one\ntwo, three",1.5,0\n"x",2.5,1\n' * 60)
    with open_table(path, "y", columns=["x"]) as table:
        assert together(table.batches(50)).X.ravel().tolist() == [1.5, 2.5] * 60


def test_the_first_feature_may_be_missing_in_libsvm_rows(tmp_path):
    path = tmp_path / "new.libsvm"
    path.write_text("1 1:5 2:7\n0 2:3\n")
    with open_table(path, n_features=3) as one, open_table(path, n_features=3, zero_based=True) as zero:
        assert together(one.batches(9)).X.tolist() == [[5, 7, 0], [0, 3, 0]]
        assert together(zero.batches(9)).X.tolist() == [[0, 5, 7], [0, 0, 3]]
    path.write_text("1 0:5\n")
    with pytest.raises(ValueError, match="has the index 0, but zero_based=False"):
        open_table(path, zero_based=False)
