"""Tables come from the folder that an environment variable names, with errors that say so."""

import numpy as np
import pytest

from bayesvm.datasets import load_table


def test_a_table_is_read(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"x0": [1.0, 2.0], "x1": [3, 4], "y": [-1, 1]}), tmp_path / "toy.parquet")
    monkeypatch.setenv("BAYESVM_DATA", str(tmp_path))
    X, y = load_table("toy")
    np.testing.assert_array_equal(X, [[1, 3], [2, 4]])
    np.testing.assert_array_equal(y, [-1, 1])
    with pytest.raises(FileNotFoundError, match="the folder contains toy"):
        load_table("other")


def test_without_the_variable_the_error_names_it(monkeypatch):
    monkeypatch.delenv("BAYESVM_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="BAYESVM_DATA"):
        load_table("magic")
