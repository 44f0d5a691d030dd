"""Tables and models that several tests share: fits are the slow part."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from bayesvm.datasets import people
from tests.cli.driver import bayesvm


def write_csv(path, columns):
    """CSV by plain Python: nothing of ours takes part."""
    cells = [["" if str(value) in {"None", "nan"} else str(value) for value in column] for column in columns.values()]
    lines = [",".join(columns), *map(",".join, zip(*cells, strict=True))]
    path.write_text("\n".join(lines) + "\n")


def read_csv(text):
    return pyarrow.csv.read_csv(pa.py_buffer(text.encode()))


def require_equal_values(found, expected):
    """Compare two printed tables; last digits may differ, because the rows were in different blocks."""
    found, expected = read_csv(found), read_csv(expected)
    assert found.schema == expected.schema
    for name, column in zip(found.column_names, found.columns, strict=True):
        if pa.types.is_floating(column.type):
            np.testing.assert_allclose(column, expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            assert column.equals(expected[name]), name


def some_people(n_rows, seed):
    made = people(n_rows, seed)
    return made.columns | {"income": made.income}


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A folder with people.csv, new.csv, and the models people.bayesvm (kernel) and linear.bayesvm."""
    folder = tmp_path_factory.mktemp("home")
    write_csv(folder / "people.csv", some_people(400, 0))
    write_csv(folder / "new.csv", some_people(300, 1))
    fitted = bayesvm("fit", "people.csv", "-t", "income", folder=folder)
    assert fitted.code == 0, fitted.err
    linear = bayesvm("fit", "people.csv", "-t", "income", "--linear", "-o", "linear.bayesvm", "-q", folder=folder)
    assert (linear.code, linear.err) == (0, "")
    (folder / "fit.out").write_text(fitted.out)
    (folder / "fit.err").write_text(fitted.err)
    return folder


@pytest.fixture
def small(tmp_path):
    """A function that writes a small table with a number, a text and a target; columns can be changed or added."""

    def write(name="table.csv", n_rows=60, **columns):
        rng = np.random.default_rng(0)
        x = rng.normal(size=n_rows)
        usual = {
            "x": x,
            "z": rng.choice(["a", "b", "c"], n_rows),
            "y": np.where(x + rng.normal(size=n_rows) > 0, "yes", "no"),
        }
        write_csv(tmp_path / name, usual | columns)
        return tmp_path

    return write
