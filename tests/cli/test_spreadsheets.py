"""Predicted CSV has labels exactly as they are, and a warning where a spreadsheet would run one."""

import csv
import io

import numpy as np
import pytest

from bayesvm.data.tables.writing import writing_table
from tests.cli.driver import bayesvm

LABELS = ["=1+1", '@SUM("a,b")']
FORMULA = "which spreadsheet programs execute as a formula"


def read(text):
    """By Python's own reader, independent of what wrote it."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("out", ["p.csv", "-"])
def test_labels_and_kept_columns_are_written_as_they_are_and_reported(small, out):
    quoted = ['"' + label.replace('"', '""') + '"' for label in LABELS]
    x = np.random.default_rng(1).normal(size=60)
    folder = small(**{"y": np.where(x > 0, *quoted), "x": x, "-id": [f"+{i}a" for i in range(60)], "n": np.arange(60)})
    assert bayesvm("fit", "table.csv", "-t", "y", "--drop", "-id,n", "--linear", "-q", folder=folder).code == 0
    done = bayesvm("predict", "table.bayesvm", "table.csv", "-q", "--keep", "-id,n", "-o", out, folder=folder)
    assert done.code == 0
    rows = read((folder / out).read_text() if out != "-" else done.out)
    assert {row["prediction"] for row in rows} == set(LABELS)
    assert [row["-id"] for row in rows] == [f"+{i}a" for i in range(60)]
    assert {f"probability_{label}" for label in LABELS} < set(rows[0])
    assert done.err.count("\n") == 1
    assert done.err.startswith(f"Warning: column '-id' contains '-id', {FORMULA}")


@pytest.mark.parametrize("labels", [(-1, 1), ("-1", "+1"), ("a=b", "x-y"), ("−1", "1")])
def test_numbers_and_ordinary_text_are_not_reported(small, labels):
    x = np.random.default_rng(1).normal(size=60)
    folder = small(x=x, y=np.where(x > 0, *labels))
    assert bayesvm("fit", "table.csv", "-t", "y", "--linear", "-q", folder=folder).code == 0
    done = bayesvm("predict", "table.bayesvm", "table.csv", "-q", folder=folder)
    assert done.err == ""
    assert len({row["prediction"] for row in read(done.out)}) == 2


def test_negative_numbers_stay_numbers(small):
    x = np.random.default_rng(1).normal(size=60)
    folder = small(x=x, y=np.where(x > 0, 1, -1))
    assert bayesvm("fit", "table.csv", "-t", "y", "--linear", "-q", folder=folder).code == 0
    lines = bayesvm("predict", "table.bayesvm", "table.csv", "-q", folder=folder).out.splitlines()[1:]
    assert {line.split(",")[0] for line in lines} == {"-1", "1"}  # without quotes, which would make text of them


def write(path, *texts):
    with writing_table(path) as append:
        for text in texts:
            append({"a": np.array([-1.0, 1.0]), "b": np.array(["plain", text])})


@pytest.mark.parametrize("text", ["=x", "+x", "-x", "@x", "\tx", "\rx", "-1+1", "=-1", "--1"])
def test_every_beginning_of_a_formula_is_reported_once(tmp_path, text):
    with pytest.warns(UserWarning, match=f"column 'b' contains .*{FORMULA}") as warned:
        write(tmp_path / "t.csv", text, text)
    assert len(warned) == 1
    assert [row["b"] for row in read((tmp_path / "t.csv").read_bytes().decode())] == ["plain", text] * 2


def test_numbers_as_text_and_other_formats_are_no_reason_to_warn(tmp_path):
    write(tmp_path / "t.csv", "-1e5", "+.5", "-1,000.5")
    write(tmp_path / "t.parquet", "=x")
