"""Columns of data frames as plain values: the same from pandas, polars, Arrow and files, whatever they hold."""

import sys
import warnings
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesvm.preparation import Frame, Recipe, learn_frame
from bayesvm.preparation.dates import DateColumn
from bayesvm.preparation.encoding import MISSING, CategoryColumn, NumberColumn
from bayesvm.preparation.mixed import encoded_table, mixed_table

N = 90
RNG = np.random.default_rng(0)
DAYS = [date(2024, 1, 15) + timedelta(days=5 * k) for k in range(N)]
COLUMNS = {
    "number": RNG.normal(size=N).tolist(),
    "gap": [None if k % 7 == 3 else float(k % 11) + 0.5 for k in range(N)],
    "flag": [k % 3 == 0 for k in range(N)],
    "maybe": [None if k % 5 == 0 else k % 2 == 0 for k in range(N)],
    "text": [("a", "b", None)[k % 3] for k in range(N)],
    "day": [None if k == 4 else day for k, day in enumerate(DAYS)],
    "at": [datetime(2024, 3, 1, k % 24, 30) for k in range(N)],  # noqa: DTZ001
    "took": [timedelta(hours=k % 9) for k in range(N)],
    "clock": [time(k % 24, 15) for k in range(N)],
    "id": [f"row {k}" for k in range(N)],
    "index": list(range(N)),
    "same": ["x"] * N,
    "nothing": [None] * N,
}
FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas of Arrow": lambda: pa.table(COLUMNS).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(COLUMNS, strict=False),
    "Arrow": lambda: pa.table(COLUMNS),
}


def of_day(day):
    return [day.year, day.month, day.isoweekday()]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_columns_of_every_library_become_the_same_features(make):
    frame = Frame.of(make())
    recipe = learn_frame(frame)
    assert [(column.name, column.kind) for column in recipe.columns] == [
        *((name, "number") for name in ("number", "gap", "flag", "maybe")),
        ("text", "category"),
        ("day", "date"),
        ("at", "date"),
        ("took", "number"),
        ("clock", "number"),
    ]
    assert {name: why.partition(":")[0].partition(" (")[0] for name, why in recipe.left_out.items()} == {
        "id": "nearly all texts are distinct",
        "index": "distinct whole numbers in order",
        "same": "the same value in all rows",
        "nothing": "no value in any row",
    }
    assert recipe.inputs == tuple(COLUMNS)
    X = dict(zip(recipe.names, recipe.encoded_frame(frame).T, strict=True))
    np.testing.assert_array_equal(X["number"], COLUMNS["number"])
    for name in ("gap", "flag", "maybe"):
        np.testing.assert_array_equal(X[name], [np.nan if value is None else float(value) for value in COLUMNS[name]])
    for category in ("a", "b", MISSING):
        expected = [(text or MISSING) == category for text in COLUMNS["text"]]
        np.testing.assert_array_equal(X[f"text={category}"], expected)
    parts = [[np.nan] * 3 if k == 4 else of_day(day) for k, day in enumerate(DAYS)]
    np.testing.assert_array_equal(np.column_stack([X[f"day ({p})"] for p in ("year", "month", "day of week")]), parts)
    expected = [np.nan if k == 4 else (day - DAYS[0]).days for k, day in enumerate(DAYS)]
    np.testing.assert_array_equal(X["day (days)"], expected)
    np.testing.assert_array_equal(X["at (hour)"], [at.hour for at in COLUMNS["at"]])
    assert "at (month)" not in X  # it does not vary
    np.testing.assert_allclose(X["took"], [span.total_seconds() for span in COLUMNS["took"]])
    np.testing.assert_allclose(X["clock"], [at.hour + 0.25 for at in COLUMNS["clock"]])


def test_files_give_the_features_of_frames(tmp_path):
    pq.write_table(pa.table(COLUMNS | {"y": ["a", "b"] * (N // 2)}), tmp_path / "t.parquet")
    with mixed_table(tmp_path / "t.parquet", "y") as table:
        recipe, of_frame = table.learned(), learn_frame(Frame.of(pa.table(COLUMNS)))
        assert recipe == of_frame
        X = encoded_table(table, recipe).rows(np.arange(N)).X
    np.testing.assert_array_equal(X, recipe.encoded_frame(Frame.of(pd.DataFrame(COLUMNS))))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.array([1, None, 3], "Int64"), [1, np.nan, 3]),
        (pd.array([True, None, False], "boolean"), [1, np.nan, 0]),
        (np.array([1, 2.5, None], object), [1, 2.5, np.nan]),
        (np.array([True, False, None], object), [1, 0, np.nan]),
        ([Decimal("1.50"), Decimal(2), None], [1.5, 2, np.nan]),
        (np.array([1, 2, 3], np.uint8), [1, 2, 3]),
    ],
    ids=["Int64", "boolean", "objects", "objects of bools", "decimals", "bytes"],
)
def test_numbers_of_pandas(values, expected):
    found = Frame.of(pd.DataFrame({"x": values})).values("x")
    assert found.kind == "number"
    np.testing.assert_array_equal(found.array, expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Categorical(["a", None, "b"]), ["a", None, "b"]),
        (pd.Categorical([3, 1, 3]), ["3", "1", "3"]),
        (pd.array(["a", None, "b"], "string"), ["a", None, "b"]),
        (np.array([1, "a", None], object), ["1", "a", None]),
        (np.array([1.5, "a", 2.0], object), ["1.5", "a", "2"]),
    ],
)
def test_text_of_pandas(values, expected):
    found = Frame.of(pd.DataFrame({"x": values})).values("x")
    assert (found.kind, found.array.tolist()) == ("text", expected)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_times_with_a_zone_are_read_on_their_clock(zone):
    clock = pd.date_range("2024-06-01 22:30", periods=30, freq="h")
    frames = [pd.DataFrame({"t": clock.tz_localize(zone)}), pd.DataFrame({"t": clock.tz_localize(zone).astype(object)})]
    frames += [pl.from_pandas(frames[0]), pa.Table.from_pandas(frames[0])]
    for frame in frames:
        found = Frame.of(frame).values("t")
        assert found.kind == "time"
        np.testing.assert_array_equal(found.array, clock.to_numpy("datetime64[us]"))


def test_text_that_is_iso_dates_counts_as_dates():
    texts = [None if k == 3 else f"2024-0{1 + k % 9}-11T0{k % 9}:30" for k in range(60)]
    (column,) = learn_frame(Frame.of(pd.DataFrame({"t": texts}))).columns
    assert column == DateColumn("t", "2024-01-11", ("month", "day of week", "hour", "days"))
    assert [None if t is None else f"{t}:00" for t in texts] == column.decoded(
        learn_frame(Frame.of(pd.DataFrame({"t": texts}))).encoded_frame(Frame.of(pd.DataFrame({"t": texts})))
    )


def test_mixed_dates_are_refused_with_their_row():
    texts = [f"2024-01-{1 + k % 28:02d}" for k in range(60)]
    texts[17] = "3/4/2024"
    with pytest.raises(ValueError, match=r"'when' holds dates, such as '2024-01-01', but also '3/4/2024' \(row 17\)"):
        learn_frame(Frame.of(pd.DataFrame({"when": texts})))
    recipe = learn_frame(Frame.of(pd.DataFrame({"when": texts[:17]})))
    with pytest.raises(ValueError, match=r"column 'when' was learned as dates, but holds '3/4/2024' \(row 17\)"):
        recipe.encoded_frame(Frame.of(pd.DataFrame({"when": texts})))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1], [2]], "column 'x' of X holds several values in each row: split them into columns, or drop it"),
        ([{"a": 1}, {"a": 2}], "several values in each row"),
        ([b"a", b"b"], "bytes, not text: decode them"),
        ([1 + 2j, 3j], "complex numbers: use columns of their real and imaginary parts"),
        ([object(), object()], "values of the type object: write all of them as numbers"),
    ],
)
def test_values_that_are_refused(values, message):
    with pytest.raises(TypeError, match=message):
        learn_frame(Frame.of(pd.DataFrame({"x": values})))


def test_columns_that_are_called_alike_are_refused_with_their_places():
    frame = pd.DataFrame(np.zeros((2, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="columns 0 and 2 of X \\(counted from 0\\) are both named 'a'"):
        Frame.of(frame)


def test_what_is_no_frame():
    assert Frame.of(np.zeros((2, 2))) is None
    assert Frame.of([[1, 2]]) is None
    with pytest.raises(TypeError, match=r"pass X.collect\(\)"):
        Frame.of(pl.LazyFrame({"a": [1]}))


@pytest.mark.parametrize(
    ("values", "is_left_out"),
    [
        (np.arange(40), True),
        (np.arange(40)[::-1] * 3, True),
        (np.random.default_rng(0).permutation(40), True),
        (np.random.default_rng(0).permutation(4_000)[:40], False),  # in no order, with gaps
        (np.arange(40) // 2, False),  # not each once
        (np.arange(19), False),  # too few to tell
        (np.arange(40).astype(float), False),  # floats of a frame: the type says that it is a quantity
        (np.arange(40) + 0.5, False),
    ],
)
def test_which_numbers_are_an_index(values, is_left_out):
    frame = pd.DataFrame({"i": values, "x": np.sin(np.arange(len(values)))})
    assert ("i" in learn_frame(Frame.of(frame)).left_out) is is_left_out


def test_a_category_type_is_no_identifier():
    texts = [f"t{k}" for k in range(N)]
    frame = pd.DataFrame({"x": np.sin(np.arange(N)), "z": pd.Categorical(texts)})
    assert learn_frame(Frame.of(frame)).left_out == {}
    assert "z" in learn_frame(Frame.of(frame.astype({"z": str}))).left_out


def test_files_keep_what_they_are_told_to_keep(tmp_path):
    data = {"id": [f"r{k}" for k in range(N)], "i": list(range(N)), "x": COLUMNS["number"], "y": ["a", "b"] * (N // 2)}
    pq.write_table(pa.table(data), tmp_path / "t.parquet")
    with mixed_table(tmp_path / "t.parquet", "y") as table:
        assert table.learned().needed == ["x"]
    with mixed_table(tmp_path / "t.parquet", "y", keep=["id", "i"]) as table:
        assert table.learned().needed == ["id", "i", "x"]
    with pytest.raises(ValueError, match="no column 'nope'"):
        mixed_table(tmp_path / "t.parquet", "y", keep=["nope"])


def test_one_value_or_none_is_a_category():
    frame = pd.DataFrame({"x": [5.0 if k % 3 else None for k in range(N)]})
    (column,) = learn_frame(Frame.of(frame)).columns
    assert column == CategoryColumn("x", ("5", MISSING))


def test_columns_of_another_kind_than_in_training_are_refused():
    recipe = Recipe((NumberColumn("x"), CategoryColumn("z", ("1", "2", "a"))))
    with pytest.raises(TypeError, match=r"column 'x' was learned as numbers, but holds text \(abc, row 1\)"):
        recipe.encoded_frame(Frame.of(pd.DataFrame({"x": [None, "abc"], "z": ["a", "a"]})))
    X = recipe.encoded_frame(Frame.of(pd.DataFrame({"x": [None, None], "z": [1.0, 2.0]})))
    np.testing.assert_array_equal(X, [[np.nan, 1, 0, 0], [np.nan, 0, 1, 0]])


def test_frames_need_no_pyarrow(monkeypatch):
    """Neither fit nor predict with a pandas or polars frame imports it."""
    import bayesvm.extras  # noqa: PLC0415

    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="needs pyarrow"):
        bayesvm.extras.optional("pyarrow", "tables")
    made = {"x": COLUMNS["number"], "text": COLUMNS["text"], "day": COLUMNS["day"], "flag": COLUMNS["flag"]}
    objects = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in made.items()})
    for frame in (objects, pl.DataFrame({name: made[name] for name in ("x", "day", "flag")})):
        recipe = learn_frame(Frame.of(frame))
        assert recipe.encoded_frame(Frame.of(frame)).shape == (N, len(recipe.names))


def test_state_and_back():
    recipe = learn_frame(Frame.of(pd.DataFrame(COLUMNS)))
    assert Recipe.from_state(recipe.state()) == recipe
    unnamed = learn_frame(Frame.of(pd.DataFrame({0: COLUMNS["text"], 1: COLUMNS["gap"]})))
    assert Recipe.from_state(unnamed.state()) == unnamed
    assert (unnamed.inputs, unnamed.named) == (("x0", "x1"), False)


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr("bayesvm.preparation.learning.SAMPLE", 50)
    texts = ["a"] * 2_000
    texts[7] = "seldom"
    frame = Frame.of(pd.DataFrame({"z": texts, "x": np.sin(np.arange(2_000))}))
    assert learn_frame(frame) == learn_frame(frame)
    assert learn_frame(frame).left_out == {"z": "the same value in all rows (a)"}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_text_is_read_as_in_files(library):
    price = [f"${number:,.2f}" for number in range(900, 1500, 10)]
    data = {
        "price": ["?", *price[1:]],
        "share": [f"{number}%" for number in range(60)],
        "word": ["NA", "", "x", "y"] * 15,
        "code": ["1", "2", "3"] * 20,
        "big": [2**53 + 1 + number**2 for number in range(60)],
    }
    frame = Frame.of(pd.DataFrame(data) if library == "pandas" else pl.DataFrame(data))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        recipe = learn_frame(frame)
    assert sorted({str(note.message).partition(", which")[0] for note in notes}) == [
        "column 'big' has integers above 2**53",
        "column 'price': '?' read as missing; text read as numbers ('$910.00' is 910)",
        "column 'share': text read as numbers ('0%' is 0)",
    ]
    columns = {column.name: column for column in recipe.columns}
    assert columns["price"] == NumberColumn("price")
    assert columns["word"].categories == ("(missing)", "x", "y")
    assert columns["code"].categories == ("1", "2", "3")
    one = data | {"price": ["$7"] * 60, "big": [0.0] * 60}
    X = recipe.encoded_frame(Frame.of(pd.DataFrame(one)))
    assert (X[:, 0] == 7).all()
    with pytest.raises(TypeError, match=r"'price' was learned as numbers, but holds text \(dear, row 1\)"):
        recipe.encoded_frame(Frame.of(pd.DataFrame(one | {"price": ["$7", "dear"] * 30})))
