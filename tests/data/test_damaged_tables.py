"""Tables that are damaged, or changed while they are read: an error names the file, and the process lives."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from bayesvm.data.tables import open_table
from bayesvm.preparation import learn, open_files
from bayesvm.workflow import fit_table
from tests.attack.tables import READ, REFUSED, Reader, attack, damaged, whole_files


@pytest.fixture(scope="module")
def reader():
    found = Reader()
    yield found
    found.close()


def save(path, table, rows_each=None):
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=rows_each)
    else:
        with ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=rows_each)
    return path


def test_no_damage_ends_the_process():
    counts = attack(48, seed=1)
    assert set(counts) == {READ, REFUSED}
    assert counts.total() == 48
    assert counts[REFUSED] > 20


def test_the_attack_reads_what_is_whole_and_is_seeded(tmp_path, reader):
    for name, content in whole_files().items():
        (tmp_path / name).write_bytes(content)
        assert reader.outcome(tmp_path / name) == READ
        first, second, other = (damaged(content, np.random.default_rng(seed)) for seed in (7, 7, 8))
        assert first == second
        assert len({first, other, content}) == 3


@pytest.mark.parametrize("column", ["text", "y"])
def test_an_offset_out_of_bounds_is_an_error_that_names_the_record_batch(tmp_path, reader, column):
    texts = ["one", "two", "three", "four"] * 5
    path = save(tmp_path / "a.arrow", pa.table({"x": np.arange(20.0), "text": texts, "y": texts}), 10)
    offsets = np.cumsum([0, 3, 3, 5, 4, 3, 3, 5, 4, 3, 3]).astype("<i4").tobytes()
    content = bytearray(path.read_bytes())
    place = content.index(offsets)
    place = place if column == "text" else content.index(offsets, place + 1)
    content[place + 8 : place + 12] = np.int32(2**31 - 1).tobytes()
    path.write_bytes(content)
    assert reader.outcome(path) == REFUSED
    with pytest.raises(OSError, match=r"a\.arrow, record batch 0 \(rows 0 to 9\) cannot be read: .*ffset.*corrupt"):
        list(open_table(path, columns=["x"]).columns([column]))
    if column == "text":
        np.testing.assert_array_equal(
            np.concatenate([y for y, _ in open_table(path, "y", columns=["x"]).targets()]), texts
        )


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_text_that_is_not_in_utf_8_is_named(tmp_path, suffix):
    table = pa.table({"x": np.arange(20.0), "y": ["first", "other"] * 10})
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path, compression="none", write_statistics=False)
    else:
        save(path, table)
    path.write_bytes(path.read_bytes().replace(b"first", b"f\xffrst"))
    with pytest.raises(OSError, match=rf"a\.{suffix}, (record batch|row group) 0 .* cannot be read: .*UTF-?8"):
        list(open_table(path, "y").targets())


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
@pytest.mark.parametrize("change", ["cut", "replaced", "overwritten"])
def test_a_file_that_changes_during_a_pass(tmp_path, suffix, change):
    table = pa.table({"x": np.arange(200_000.0), "y": np.arange(200_000) % 2})
    path = save(tmp_path / f"a.{suffix}", table, 10_000)
    opened = open_table(path, "y")
    batches = opened.batches(10_000)
    next(batches)
    if change == "cut":
        os.truncate(path, path.stat().st_size // 2)
    elif change == "replaced":
        save(tmp_path / f"b.{suffix}", table.slice(1), 10_000)
        (tmp_path / f"b.{suffix}").replace(path)
    else:
        path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(OSError, match=rf"a\.{suffix} has changed since open_table read it .*call open_table again"):
        list(batches)


def test_rows_in_memory_outlive_their_file(tmp_path):
    path = save(tmp_path / "a.arrow", pa.table({"x": np.arange(50_000.0), "y": ["a", "b"] * 25_000}), 10_000)
    held = open_table(path, "y").in_memory()
    os.truncate(path, 0)
    np.testing.assert_array_equal(np.concatenate([batch.X for batch in held.batches(7_000)]).ravel(), np.arange(50_000))


# Views, as polars writes text


def nested():
    """Text and bytes at several depths, long enough not to lie within a view."""
    long = "a text that is longer than a view of it holds inline"
    return {
        "text": pa.array(["a", long, None] * 4),
        "bytes": pa.array([b"a", long.encode(), None] * 4),
        "category": pa.array(["a", long, None] * 4).dictionary_encode(),
        "list": pa.array([["a", long], [], None] * 4),
        "pair": pa.array([["a", long], ["b", None], None] * 4, pa.list_(pa.string(), 2)),
        "struct": pa.array([{"deep": ["a", long], "other": 1}, {"deep": None, "other": 2}, None] * 4),
        "map": pa.array([[("a", long)], [], None] * 4, pa.map_(pa.string(), pa.string())),
    }


def viewed(kind):
    """The type with views in place of text and bytes."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.string_view() if pa.types.is_string(kind) else pa.binary_view()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, viewed(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(viewed(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(viewed(kind.key_type), viewed(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(viewed(kind.value_type), kind.list_size)
    return pa.list_(viewed(kind.value_type)) if pa.types.is_list(kind) else kind


needs_views = pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no views")


@needs_views
@pytest.mark.parametrize("name", nested())
def test_views_at_any_depth_are_read_as_what_they_show(tmp_path, name):
    column = nested()[name]
    target = viewed(column.type)
    if name == "category":
        views = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(target.value_type))
    else:
        views = pa.array(column.to_pylist(), target)
    assert "view" in str(views.type)
    path = save(tmp_path / "a.arrow", pa.table({"x": np.arange(12.0), "column": views, "y": [0, 1] * 6}))
    table = open_table(path, "y", columns=["x"]).subset(np.arange(1, 12))  # rows are taken, not only sliced
    found = [value for batch in table.columns(["column"]) for value in batch.column("column").to_pylist()]
    assert found == column.to_pylist()[1:]


@needs_views
@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_frames_that_polars_wrote(tmp_path, suffix):
    polars = pytest.importorskip("polars")
    text = ["red", "green", "a colour with a name of more than twelve letters"]
    values = [text[row // 5 % 3] for row in range(120)]
    frame = polars.DataFrame(
        {
            "x": [row % 7 + row / 100 for row in range(120)],
            "text": values,
            "category": polars.Series(values, dtype=polars.Categorical),
            "enum": polars.Series(values, dtype=polars.Enum(text)),
            "note": [[value] for value in values],
            "y": polars.Series([f"class {row % 2}" for row in range(120)], dtype=polars.Categorical),
        }
    )
    path = tmp_path / f"a.{suffix}"
    frame.write_parquet(path) if suffix == "parquet" else frame.write_ipc(path)
    opened = open_files(path)
    recipe = learn(opened, ["y"], drop=["note"])
    rows = opened.table(recipe, "y").rows(np.arange(0, 120, 5))
    assert rows.y.tolist() == frame["y"].to_list()[::5]
    for column in ("text", "category", "enum"):
        for level in set(values):
            feature = recipe.names.index(f"{column}={level}")
            assert rows.X[:, feature].tolist() == [value == level for value in values[::5]]
    model = fit_table(path, "y", drop=["note"], holdout=0, seed=0)
    copy = shutil.copy(path, tmp_path / f"b.{suffix}")
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(copy))
