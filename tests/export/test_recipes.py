"""A model of a table takes its columns as they are, in onnxruntime too."""

import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC, to_onnx
from bayesvm.export import recipes
from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import Column, NumberColumn
from bayesvm.workflow import fit_table
from tests.recipes import with_recipe

rng = np.random.default_rng(0)
N = 600
FRAME = pd.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.1, np.nan, rng.integers(20, 70, N)),
        "hours": rng.normal(40, 8, N),
        "sex": rng.choice(["female", "male"], N),
        "work": rng.choice(["private", "state", "self", None], N, p=[0.5, 0.2, 0.2, 0.1]),
        "town": [f"town {i}" if i < 3 else f"village {n}" for n, i in enumerate(rng.integers(0, 4, N))],
    }
)
FRAME["income"] = np.where(FRAME["hours"] + 10 * (FRAME["work"] == "self") + rng.normal(0, 5, N) > 42, "high", "low")
OTHERS = pd.concat(
    [
        FRAME[:50],
        pd.DataFrame(
            {
                "age": [30.0, np.nan],
                "hours": [np.nan, 41.0],
                "sex": ["other", None],
                "work": ["none", "(missing)"],
                "town": ["Rome", "(rare)"],
            }
        ),
    ]
).drop(columns="income")

pytestmark = pytest.mark.filterwarnings("ignore:an ONNX graph cannot complete")


def inputs(frame):
    return {
        name: frame[[name]].to_numpy(np.float64)
        if frame[name].dtype.kind == "f"
        else frame[[name]].fillna("(missing)").to_numpy(object)
        for name in frame.columns
    }


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "people.csv"
    FRAME.to_csv(path, index=False)
    estimator = BayesianSVC(n_inducing=30, tune=None, random_state=0)
    return fit_table(path, "income", estimator=estimator)


def test_columns_of_any_kind(model):
    assert {len(column.names) for column in model.recipe.columns} == {1, 4}
    session = onnxruntime.InferenceSession(to_onnx(model.estimator).SerializeToString())
    assert [put.name for put in session.get_inputs()] == model.recipe.needed == ["age", "hours", "sex", "work", "town"]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        stated = model.predict_proba(OTHERS)
    assert any("not seen in training" in str(each.message) for each in found)
    label, found = session.run(["label", "probabilities"], inputs(OTHERS))
    whole = OTHERS.select_dtypes("number").notna().all(axis=1).to_numpy()
    assert 0 < whole.sum() < len(whole)
    np.testing.assert_allclose(found[whole], stated[whole], atol=1e-9)
    np.testing.assert_array_equal(label[whole], model.classes_[stated[whole].argmax(axis=1)])
    assert np.isnan(found[~whole]).all()


def test_every_kind_of_column_is_exported():
    assert set(recipes.COLUMNS) == set(Column.__args__)


def test_features_with_numbers_for_names_are_one_input():
    X = rng.standard_normal((100, 3))
    linear = BayesianLinearSVC(tune=None).fit(X, X[:, 0] > 0)
    session = onnxruntime.InferenceSession(to_onnx(linear).SerializeToString())
    np.testing.assert_allclose(session.run(["probabilities"], {"X": X})[0], linear.predict_proba(X), atol=1e-9)


def test_a_column_with_the_name_of_an_output():
    X = rng.standard_normal((100, 1))
    linear = BayesianLinearSVC(tune=None).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="a column has the name 'label' of an output of the graph; rename it"):
        to_onnx(with_recipe(linear, Recipe((NumberColumn("label"),))))


def test_a_column_without_a_name():
    X = rng.standard_normal((100, 2))
    linear = BayesianLinearSVC(tune=None).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="column 2 of the model has no name.*name it in the table and fit again"):
        to_onnx(with_recipe(linear, Recipe.plain(["a", ""])))


@pytest.mark.parametrize("names", [["/constant_0", "/Sub_3"], ["//constant_0", "/"], ["X", "a b"]])
def test_columns_with_names_like_those_of_nodes(names):
    X = rng.standard_normal((100, 2))
    linear = BayesianLinearSVC(tune=None).fit(X, X[:, 0] > 0)
    expected = linear.predict_proba(X)
    graph = to_onnx(with_recipe(linear, Recipe.plain(names)))
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    found = session.run(["probabilities"], dict(zip(names, [X[:, :1], X[:, 1:]], strict=True)))[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("informative", [False, True])
def test_a_model_that_completes_missing_values_says_what_its_graph_does_not(informative):
    rng = np.random.default_rng(1)
    W = rng.normal(size=(300, 4))
    y = W[:, 0] > 0
    share = np.where(y[:, None] & informative, 0.5, 0.1)
    X = np.where(rng.random(W.shape) < share, np.nan, W)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianSVC(n_inducing=10, tune=None, random_state=0).fit(X, y)
    assert (model.recipe_ is not None) == informative
    with pytest.warns(UserWarning, match="for rows with missing values it returns NaN"):
        graph = to_onnx(model)
    (found,) = onnxruntime.InferenceSession(graph.SerializeToString()).run(["probabilities"], {"X": X})
    whole = ~np.isnan(X).any(axis=1)
    np.testing.assert_allclose(found[whole], model.predict_proba(X[whole]), atol=1e-9)
    assert np.isnan(found[~whole]).all()
