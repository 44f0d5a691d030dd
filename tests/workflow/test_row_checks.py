"""Rows that are probably no observations are named; many columns that are left out take one line."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesvm import BayesianLinearSVC
from bayesvm.workflow import fit_table
from bayesvm.workflow.describing import left_out_lines


def table(n_rows=60):
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=n_rows), "place": rng.choice(["a", "b"], n_rows), "y": ["yes", "no"] * (n_rows // 2)}
    return pd.DataFrame(data)


def messages(data, path, **more):
    data.to_csv(path, index=False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit_table(path, "y", estimator=BayesianLinearSVC(), holdout=0, **more)
    return [str(each.message) for each in found]


def test_a_class_with_one_row_is_named(tmp_path):
    data = table()
    assert messages(data, tmp_path / "t.csv") == []
    data.loc[7, "y"] = "maybe"
    (found,) = messages(data, tmp_path / "t.csv")
    assert found.startswith(
        f"1 class has a single row: 'maybe' ({tmp_path / 't.csv'}, line 9). It is learned from, but"
    )


@pytest.mark.parametrize("column", ["place", "y"])
def test_a_last_row_of_totals_is_named(tmp_path, column):
    data = table()
    data.loc[60] = {"x": data["x"].sum(), "place": "a", "y": "yes"} | {column: "Total"}
    found = messages(data, tmp_path / "t.csv")
    expected = (
        f"{tmp_path / 't.csv'}, line 62, column {column!r}: the last row has 'Total' and looks like a total of the"
    )
    assert found[0].startswith(expected)


def test_a_place_named_total_is_not_a_total(tmp_path):
    data = table()
    data["place"] = ["a", "a", "Total", "Total"] * 15
    assert messages(data, tmp_path / "t.csv") == []


def test_many_columns_left_out_for_one_reason_take_one_line():
    same = {f"c{number}": f"the same value in all rows ({number})" for number in range(813)}
    assert left_out_lines({"": "no value in any row", "b": "as requested"} | same) == [
        "left out: (unnamed column) (no value in any row)",
        "left out: b (as requested)",
        "left out: 813 columns (the same value in all rows): c0, c1, c2, c3 and 809 more",
    ]
