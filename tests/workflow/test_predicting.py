"""Columns that are copied beside predictions."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesvm.preparation import Recipe, prepared
from bayesvm.workflow.predicting import CopiedColumns


def kept(folder, cuts, names=("id",)):
    """What the columns are after they were cut into parts, and the type of each part."""
    with prepared(folder, Recipe.plain(["x"])) as table:
        beside = CopiedColumns(table, names)
        parts = [beside.next(n_rows) for n_rows in cuts]
    assert [len(part["id"]) for part in parts] == list(cuts)
    (kind,) = {str(part["id"].type).split("<")[0] for part in parts}
    return [value for part in parts for value in part["id"].to_pylist()], kind


def write(path, ids, **options):
    pq.write_table(pa.table({"x": [0.0] * len(ids), "id": ids}), path, **options)


@pytest.mark.parametrize("cuts", [(10, 1, 29, 5, 15), (60,), (1, 59), (30, 30)])
def test_rows_are_cut_as_the_predictions_are(tmp_path, cuts):
    write(tmp_path / "0.parquet", pa.array(range(40)), row_group_size=7)
    write(tmp_path / "1.parquet", pa.array(range(40, 60)), row_group_size=7)
    assert kept(tmp_path, cuts) == (list(range(60)), "int64")


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (pa.array([1, 2]), pa.array([3.5, None]), "double"),
        (pa.array([1, 2], pa.int8()), pa.array([3, 4]), "int64"),
        (pa.array([1, 2]), pa.nulls(2), "int64"),
        (pa.array(["a", "b"]), pa.array(["c", None]).dictionary_encode(), "string"),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "d"]).dictionary_encode(), "string"),
        (pa.array(["a", "b"]), pa.array(["c", "d"], pa.large_string()), "large_string"),
        (pa.array([["a"], []]), pa.array([["b"], None]), "list"),
    ],
)
def test_files_with_different_types_get_one(tmp_path, first, second, kind):
    write(tmp_path / "0.parquet", first)
    write(tmp_path / "1.parquet", second)
    assert kept(tmp_path, (1, 2, 1)) == (first.to_pylist() + second.to_pylist(), kind)


def test_numbers_beside_text_become_text(tmp_path):
    write(tmp_path / "0.parquet", pa.array([1, 2]))
    write(tmp_path / "1.parquet", pa.array(["x3", None]))
    assert kept(tmp_path, (3, 1)) == (["1", "2", "x3", None], "large_string")


@pytest.mark.parametrize("first", [pa.array([["a"]]), pa.array([2**53 + 1])])
def test_what_cannot_be_of_one_type_is_reported(tmp_path, first):
    write(tmp_path / "0.parquet", first)
    write(tmp_path / "1.parquet", pa.array([1.5]))
    with pytest.raises(TypeError, match="column 'id' has different types in the files.*write it with the same type"):
        kept(tmp_path, (2,))
