"""One column becomes numbers, checked against plain loops and pandas."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bayesvm.preparation.encoding import (
    COLUMN,
    MISSING,
    RARE,
    VALUES,
    CategoryColumn,
    NumberColumn,
    column_from,
    column_state,
)
from bayesvm.preparation.values import as_kind, of_arrow


def encoded(column, values):
    array = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
    out = np.full((len(array), len(column.names)), np.nan)
    strange = column.encode(as_kind(of_arrow(array), VALUES[type(column)]), out)
    return out, bool(strange)


@pytest.mark.parametrize("indicator", [True, False])
def test_numbers_and_missing_values(indicator):
    column = NumberColumn("x", 7.0, indicator)
    X, strange = encoded(column, [1.5, None, -2.0, np.nan])
    assert X[:, 0].tolist() == [1.5, 7.0, -2.0, 7.0]
    assert column.names == (("x", f"x {MISSING}") if indicator else ("x",))
    if indicator:
        assert X[:, 1].tolist() == [0, 1, 0, 1]
    assert strange is not indicator
    assert column.decoded(X) == ([1.5, None, -2.0, None] if indicator else [1.5, 7.0, -2.0, 7.0])


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None]),
        pa.array([1, 0, None], pa.int8()),
        pa.array([1, 0, None], pa.float32()),
        pa.array(["1.00", "0.00", None]).cast(pa.decimal128(5, 2)),
    ],
    ids=lambda array: str(array.type),
)
def test_bools_decimals_and_small_types_are_numbers(values):
    X, _ = encoded(NumberColumn("x", 0.5, indicator=True), values)
    assert X.tolist() == [[1, 0], [0, 0], [0.5, 1]]


def test_categories_are_what_pandas_makes_of_them():
    rng = np.random.default_rng(0)
    texts = rng.choice(["a", "b", "c", "d e", "ü"], 200)
    column = CategoryColumn("z", ("c", "ü", "a", "d e", "b"))
    X, strange = encoded(column, texts)
    expected = pd.get_dummies(pd.Series(texts), dtype=float)
    assert not strange
    assert column.names == tuple(f"z={category}" for category in column.categories)
    np.testing.assert_array_equal(X, expected[list(column.categories)].to_numpy())
    assert column.decoded(X) == texts.tolist()


def test_rare_missing_and_unseen_categories_by_a_plain_loop():
    column = CategoryColumn("z", ("a", MISSING, "b"), rare=True)
    values = ["a", None, "never", "b", "seldom", "a"]
    X, strange = encoded(column, values)
    places = {"a": 0, None: 1, "b": 2}
    expected = [[float(place == places.get(value, 3)) for place in range(4)] for value in values]
    assert X.tolist() == expected
    assert not strange  # they have a place: among the rare ones
    assert column.decoded(X) == ["a", MISSING, RARE, "b", RARE, "a"]


def test_unseen_categories_without_a_place():
    many = CategoryColumn("z", ("a", "b", "c"))
    X, strange = encoded(many, ["b", "never", None])
    assert X.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert strange
    assert many.decoded(X) == ["b", None, None]
    assert many.unknown == "none of the known categories"


def test_of_two_categories_one_feature_is_enough():
    two = CategoryColumn("z", ("no", "yes"))
    X, strange = encoded(two, ["yes", "no", "never"])
    assert (two.names, X.tolist(), strange) == (("z=yes",), [[1], [0], [0]], True)
    assert two.decoded(X) == ["yes", "no", "no"]
    assert two.unknown == "no"
    rare = CategoryColumn("z", ("no",), rare=True)
    X, strange = encoded(rare, ["no", "never", None])
    assert (rare.names, X.tolist(), strange) == ((f"z={RARE}",), [[0], [1], [1]], False)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array(["a", None, "b"], pa.large_string()),
        pd.Series(pd.Categorical(["a", None, "b"])),
    ],
)
def test_categories_in_every_form(values):
    array = values if isinstance(values, pa.Array | pa.DictionaryArray) else pa.array(values, from_pandas=True)
    X, _ = encoded(CategoryColumn("z", ("a", "b", MISSING)), array)
    assert X.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_numbers_that_are_names():
    column = CategoryColumn("code", ("10115", MISSING, "80331"))
    for values in (pa.array([10115, None, 80331]), pa.array([10115.0, np.nan, 80331.0])):
        assert encoded(column, values)[0].tolist() == np.eye(3).tolist()


def test_no_rows():
    assert encoded(CategoryColumn("z", ("a", "b", "c")), pa.array([], pa.string()))[0].shape == (0, 3)


@pytest.mark.parametrize("column", [NumberColumn("x", 2.5, indicator=True), CategoryColumn("z", ("a", "b"), rare=True)])
def test_state_and_back(column):
    assert column_from(column_state(column)) == column


def test_files_that_call_categories_levels_are_read():
    old = {"name": "z", "levels": ["a", "b"], "rare": True, "kind": "levels"}
    COLUMN(old, "column", {})
    assert column_from(old) == CategoryColumn("z", ("a", "b"), rare=True)
