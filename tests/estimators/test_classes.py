"""Which labels are classes: the same rule for arrays, frames, tables in files, Dask and the command line."""

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from bayesvm import BayesianLinearSVC, open_table
from bayesvm.estimators._classes import require_classes, span_densely
from bayesvm.workflow import fit_table
from bayesvm.workflow.comparing import compare_on
from tests.cli.driver import bayesvm

rng = np.random.default_rng(0)
X = rng.standard_normal((4_040, 3))
PRICE = rng.permutation(np.repeat(np.arange(808) * 25 + 1_000, 5))
NAMES = ["a", "b", "c"]


def fast():
    return BayesianLinearSVC(max_iter=2, tol=1, inference="batch", random_state=0)


@pytest.fixture
def path(tmp_path):
    parquet.write_table(pa.table(dict(zip(NAMES, X.T, strict=True)) | {"price": PRICE}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def frame(y):
    return dask.dataframe.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=3)


WAYS = {
    "array": lambda y, path: fast().fit(X, y),
    "list": lambda y, path: fast().fit(X.tolist(), y.tolist()),
    "data frame": lambda y, path: fast().fit(pd.DataFrame(X, columns=NAMES), pd.Series(y)),
    "floats": lambda y, path: fast().fit(X, y.astype(float)),
    "Dask array": lambda y, path: fast().fit(dask.array.from_array(X, (999, 3)), dask.array.from_array(y, 999)),
    "Dask data frame": lambda y, path: fast().fit(frame(y)[NAMES], frame(y)["y"]),
    "partial_fit": lambda y, path: fast().partial_fit(X, y, classes=np.unique(y)),
    "open_table": lambda y, path: fast().fit(open_table(path, "price")),
    "TableModel": lambda y, path: fit_table(path, "price", estimator=fast()),
    "nothing held out": lambda y, path: fit_table(path, "price", estimator=fast(), holdout=0),
    "compare": lambda y, path: compare_on(path, "price", estimator=fast()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_price_is_refused(way, path):
    with pytest.raises(ValueError, match=r"has 808 distinct numeric values in 4,040 rows.* bin .*to text"):
        WAYS[way](PRICE, path)


def test_a_price_is_refused_on_the_command_line_where_classes_are_requested(path, tmp_path):
    words = ["--target", "price", "--task", "classification", "--out", "m.bayesvm"]
    done = bayesvm("fit", path.name, *words, folder=tmp_path)
    assert done.code == 1
    assert "808 distinct numeric values in 4,040 rows; this looks like a regression" in " ".join(done.err.split())
    assert not (tmp_path / "m.bayesvm").exists()


@pytest.mark.parametrize(
    ("labels", "n_rows", "complaint"),
    [
        (np.arange(200), 1_000, None),
        (np.arange(201), 1_000_000, "201 distinct numeric values"),
        (np.arange(21), 104, "21 distinct numeric values in 104 rows"),
        (np.arange(21), 105, None),
        (np.arange(20), 20, None),
        (np.arange(201).astype(str), 402, None),
        (np.arange(500).astype(str), 1_000, None),
        (np.arange(500).astype(str).astype(object), 999, "500 distinct labels in 999 rows: is it an identifier"),
        (np.arange(501).astype(str), 1_000_000, "501 distinct labels"),
        (np.arange(20).astype(str), 20, None),
        (np.array([0.5, 1.5]), 100, "Unknown label type: continuous"),
    ],
)
def test_where_the_limits_are(labels, n_rows, complaint):
    if complaint is None:
        require_classes(np.sort(labels), n_rows, "y")
    else:
        with pytest.raises(ValueError, match=complaint):
            require_classes(np.sort(labels), n_rows, "y")


@pytest.mark.parametrize(
    ("labels", "dense"),
    [
        (np.arange(17, 91), True),  # ages
        (np.array([*range(17, 86), 90]), True),
        (np.arange(0, 105, 5), True),
        (np.array([*range(25), 27, 31]), True),  # counts
        (np.arange(100), False),  # codes of classes
        (np.arange(1, 41), False),
        (np.arange(17, 37), False),
        (np.arange(30) ** 3, False),
        (np.arange(17, 91).astype(str), False),
        (np.arange(17, 91) / 2, False),
    ],
)
def test_whole_numbers_that_fill_a_range_are_a_quantity(labels, dense):
    assert span_densely(labels) == dense


def test_a_classifier_warns_of_a_quantity_before_it_trains():
    ages = 17 + np.arange(len(X)) % 40
    with pytest.warns(
        UserWarning, match=r"40 distinct whole numbers from 17 to 56.* use BayesianSVR \(--task regression\)"
    ):
        BayesianLinearSVC(max_iter=1, tol=1, random_state=0).fit(X, ages)


def test_ages_in_a_file_are_regression_unless_classification_is_requested(tmp_path):
    data = pd.DataFrame({"a": X[:400, 0], "age": 17 + np.arange(400) % 40})
    data.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(UserWarning, match="'age' looks like a regression target: BayesianSVR is fitted"):
        model = fit_table(tmp_path / "t.csv", "age", holdout=0, parameters={"n_inducing": 10, "tune": None})
    assert model.is_regression


def test_a_hundred_classes_of_text_are_fitted_with_a_warning():
    y = np.array([f"class {row % 100:02}" for row in range(600)])
    with pytest.warns(UserWarning, match=r"100 classes: the fit trains one model per class, .* over 600 rows"):
        model = BayesianLinearSVC(max_iter=2, tol=1, random_state=0).fit(X[:600], y)
    assert model.predict_proba(X[:5]).shape == (5, 100)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_numbers_of_the_target_can_be_declared_as_names(tmp_path, suffix):
    codes = (
        np.array(["007", "7", "12"])[np.arange(300) % 3]
        if suffix == "csv"
        else np.array([7, 70, 12])[np.arange(300) % 3]
    )
    data = pd.DataFrame({"a": X[:300, 0] + (np.arange(300) % 3), "code": codes})
    path = tmp_path / f"t.{suffix}"
    data.to_csv(path, index=False) if suffix == "csv" else data.to_parquet(path)
    model = fit_table(path, "code", categories=["code"], estimator=BayesianLinearSVC(random_state=0), seed=0)
    assert model.classes_.tolist() == sorted(set(map(str, codes)))
    evaluated = model.evaluate(path)
    np.testing.assert_array_equal(model.classes_[evaluated.predictions.y], codes.astype(str))


# Labels that NumPy cannot tell apart

MERGED = ["a", "a\0", "b"] * 20
FEW = X[:60]


@pytest.mark.parametrize(
    "y",
    [MERGED, tuple(MERGED), np.array(MERGED, object), pd.Series(MERGED), pd.Series(MERGED, dtype="category")],
    ids=["list", "tuple", "array", "series", "categories"],
)
def test_labels_that_differ_in_a_nul_at_the_end_are_refused(y):
    complaint = r"y, row 1: the label 'a\\x00' ends in a NUL character, .* become 'a'; remove"
    with pytest.raises(ValueError, match=complaint):
        fast().fit(FEW, y)
    with pytest.raises(ValueError, match=complaint):
        fast().partial_fit(FEW, y, classes=["a", "b"])
    with pytest.raises(ValueError, match=complaint.replace("y,", "classes,")):
        fast().partial_fit(FEW, ["a", "b"] * 30, classes=["a", "a\0"])
    with pytest.raises(ValueError, match=complaint.replace("y,", "held_out,")):
        fast().fit(FEW, ["a", "b"] * 30, held_out=(FEW, y))


@pytest.mark.parametrize("kind", ["text", "categories"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_such_labels_of_a_table_are_refused_with_their_row(tmp_path, suffix, kind):
    y = pa.array(MERGED)
    table = pa.table({"x": FEW[:, 0], "y": y.dictionary_encode() if kind == "categories" else y})
    path, place = tmp_path / f"t.{suffix}", "line 3" if suffix == "csv" else "row 1"
    if suffix == "parquet":
        parquet.write_table(table, path)
    elif suffix == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_text("\n".join(["x,y", *(f"{x},{label}" for x, label in zip(FEW[:, 0], MERGED, strict=True))]))
    with pytest.raises(ValueError, match=rf"t\.{suffix}, {place}, column 'y': the label 'a\\x00' ends in a NUL"):
        fast().fit(open_table(path, "y"))
    with pytest.raises(ValueError, match=rf"t\.{suffix}, {place}, column 'y': the label 'a\\x00' ends in a NUL"):
        fit_table(path, "y")


def test_such_labels_on_a_cluster_are_refused():
    objects = dask.array.from_array(np.array(MERGED, object), 30)
    series = dask.dataframe.from_pandas(pd.DataFrame({"x": FEW[:, 0], "y": MERGED}), npartitions=2)
    for given in ((dask.array.from_array(FEW, (30, 3)), objects), (series[["x"]], series["y"])):
        with pytest.raises(ValueError, match=r"partition 0, row 1 .*: the label 'a\\x00' ends in a NUL"):
            fast().fit(*given)


def test_other_nul_characters_keep_labels_apart(tmp_path):
    y = np.array(["a\0b", "a\0c"] * 30, object)
    assert fast().fit(FEW, y).classes_.tolist() == ["a\0b", "a\0c"]


def test_a_missing_category_is_a_missing_label(tmp_path):
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 20), pa.array(["a", "b", None]))
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), pa.schema([("x", pa.float64()), ("y", labels.type)])) as writer:
        writer.write_batch(pa.record_batch([pa.array(FEW[:, 0]), labels], names=["x", "y"]))
    with pytest.warns(UserWarning, match=r"20 rows are left out of 60.*column 'y' \(first: .*t\.arrow, row 2\)"):
        model = fast().fit(open_table(tmp_path / "t.arrow", "y"))
    assert model.classes_.tolist() == ["a", "b"]
    assert model.n_samples_ == 40
