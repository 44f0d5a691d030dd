"""Spellings of one category are merged in files and in data frames, and recognised in predictions."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesvm import BayesianLinearSVC, load, open_table
from bayesvm.preparation.encoding import CategoryColumn, column_from, column_state
from bayesvm.workflow import fit_table


def table(n_rows=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    y = np.where(x + rng.normal(size=n_rows) > 0, "Yes", "no").astype(object)
    y[:9] = ["YES", "Yes ", "no", " NO", "Yes", "no ", "yes", "Yes", "no"]
    smoker = rng.choice(["yes", "YES", "no"], n_rows, p=[0.4, 0.2, 0.4])
    return pd.DataFrame({"x": x, "smoker": smoker, "gene": rng.choice(["AA", "Aa", "aa"], n_rows), "y": y})


def columns_of(estimator):
    return {column.name: column for column in estimator.recipe_.columns}


def test_in_files(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        model = fit_table(tmp_path / "t.csv", "y", estimator=BayesianLinearSVC())
    assert [str(note.message).partition(", because")[0] for note in notes] == [
        "the target 'y': 'NO' is read as 'no', 'YES' as 'Yes', 'yes' as 'Yes'",
        "column 'smoker': 'YES' is read as 'yes'",
    ]
    assert model.classes_.tolist() == ["Yes", "no"]
    assert set(columns_of(model.estimator)["smoker"].categories) == {"yes", "no"}
    assert set(columns_of(model.estimator)["gene"].categories) == {"AA", "Aa", "aa"}
    model.save(tmp_path / "m.bayesvm")
    other = table(60, 1).assign(y=lambda t: t["y"].str.upper(), smoker=lambda t: t["smoker"].str.title())
    other.to_csv(tmp_path / "o.csv", index=False)
    same = other.assign(smoker=lambda t: t["smoker"].str.lower())
    loaded = type(model).load(tmp_path / "m.bayesvm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluated = loaded.evaluate(tmp_path / "o.csv")
        np.testing.assert_array_equal(loaded.predict_proba(other), loaded.predict_proba(same))
    assert evaluated.predictions.n_rows == 60
    assert evaluated.predictions.correct.mean() > 0.5


def test_open_table_merges_labels(tmp_path):
    table().drop(columns=["smoker", "gene"]).to_csv(tmp_path / "t.csv", index=False)
    with open_table(tmp_path / "t.csv", "y") as opened, pytest.warns(UserWarning, match="the target 'y'"):
        assert BayesianLinearSVC().fit(opened).classes_.tolist() == ["Yes", "no"]


def test_declared_categories_stay_as_they_are(tmp_path):
    table().to_csv(tmp_path / "t.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*single row")
        model = fit_table(tmp_path / "t.csv", "y", estimator=BayesianLinearSVC(), categories=["y", "smoker"], holdout=0)
    assert len(model.classes_) == 5  # text in files has no surrounding spaces
    assert set(columns_of(model.estimator)["smoker"].categories) == {"yes", "YES", "no"}


def test_in_data_frames(tmp_path):
    data, y = table().drop(columns="y"), np.arange(120) % 2
    data.loc[:5, "smoker"] = "no "
    with pytest.warns(UserWarning, match="column 'smoker': 'YES' is read as 'yes', 'no ' as 'no'"):
        model = BayesianLinearSVC().fit(data, y)
    assert columns_of(model)["smoker"] == CategoryColumn("smoker", ("yes", "no"), ignores_case=True)
    model.save(tmp_path / "m.bayesvm")
    strange = data.assign(smoker=data["smoker"].str.strip().str.upper() + " ")
    np.testing.assert_array_equal(load(tmp_path / "m.bayesvm").predict_proba(strange), model.predict_proba(data))


def test_categories_of_a_data_frame_stay_as_they_are():
    data = table().drop(columns="y").astype({"smoker": "category"})
    assert set(columns_of(BayesianLinearSVC().fit(data, np.arange(120) % 2))["smoker"].categories) == {
        "yes",
        "YES",
        "no",
    }


def test_labels_given_to_fit_stay_as_they_are_with_a_warning():
    y = np.array(["yes", "no", "Yes"] * 20)
    with pytest.warns(UserWarning, match="such as 'yes' and 'Yes': if they are the same, spell them alike"):
        model = BayesianLinearSVC().fit(np.random.default_rng(0).normal(size=(60, 2)), y)
    assert model.classes_.tolist() == ["Yes", "no", "yes"]


def test_a_column_as_state():
    column = CategoryColumn("a", ("x", "y"), ignores_case=True)
    assert column_from(column_state(column)) == column
    assert column_from({"name": "a", "categories": ["x", "y"], "rare": False, "kind": "category"}).ignores_case is False
