"""Partial dependence against means computed by hand, and bands against what is known of f."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.inspection import PartialDependenceDisplay

RNG = np.random.default_rng(0)
LEVELS = RNG.integers(3, size=300)
X = np.column_stack([RNG.normal(size=(300, 2)), np.eye(3)[LEVELS], RNG.integers(4, size=300)])
y = np.where(X[:, 0] + np.array([0.0, 1.5, -1.5])[LEVELS] + RNG.normal(size=300) > 0, "yes", "no")
FAST = {"max_rows": 60, "n_draws": 100}


@pytest.fixture(scope="module")
def model():
    return BayesianSVC(n_inducing=30, tune=None, random_state=0).fit(X, y)


def test_mean_is_that_of_scikit_learn(model, ax):
    found = PartialDependenceDisplay.from_estimator(model, X, 0, max_rows=300, n_draws=50, n_values=7, ax=ax)
    theirs = partial_dependence(
        model, X, [0], custom_values={0: found.values}, method="brute", response_method="predict_proba"
    )
    np.testing.assert_allclose(found.mean, theirs["average"][0])
    assert found.ax_ is ax
    at, mean = found.line_.get_data()
    np.testing.assert_allclose(at, np.linspace(*np.percentile(X[:, 0], [1, 99]), 7))
    np.testing.assert_array_equal(mean, found.mean)
    assert ax.get_ylabel() == "P(y = yes), mean of 300 rows"
    rug = [path.vertices[0, 0] for path in found.rug_.get_paths()]
    np.testing.assert_allclose(rug, np.quantile(X[:, 0], np.arange(1, 10) / 10))


def test_band_is_that_of_a_known_linear_function():
    """With β known to be normal, at one background row the band is the probit of normal quantiles."""
    linear = BayesianLinearSVC(link="probit", fit_intercept=False, scale=None).fit(X[:, :2], y)
    row, at = np.array([[0.3, -0.2]]), np.array([-1.0, 0.0, 2.0])
    found = PartialDependenceDisplay.from_estimator(linear, row, 0, values=at, n_draws=20_000)
    rows = np.column_stack([at, np.full(3, -0.2)])
    m = rows @ linear.coef_[0]
    s = np.sqrt(np.einsum("ij,jk,ik->i", rows, linear.coef_covariance_, rows))
    np.testing.assert_allclose(found.mean, ndtr(m / np.sqrt(1 + s**2)), atol=1e-6)
    np.testing.assert_allclose(found.lower, ndtr(m - 1.96 * s), atol=0.01)
    np.testing.assert_allclose(found.upper, ndtr(m + 1.96 * s), atol=0.01)


@pytest.mark.parametrize("link", ["calibrated", "hinge", "paper"])
def test_band_contains_the_mean_and_is_drawn(link):
    model = BayesianSVC(n_inducing=20, tune=None, link=link, random_state=0).fit(X, y)
    found = PartialDependenceDisplay.from_estimator(model, X, 1, n_values=15, **FAST)
    assert (found.lower <= found.mean).all()
    assert (found.mean <= found.upper).all()
    edge = found.band_.get_paths()[0].vertices
    for at, low, high in zip(found.values, found.lower, found.upper, strict=True):
        column = edge[np.isclose(edge[:, 0], at), 1]
        assert column.min() == pytest.approx(low)
        assert column.max() == pytest.approx(high)


def test_few_values_are_all_used(model):
    found = PartialDependenceDisplay.from_estimator(model, X, -1, **FAST)
    np.testing.assert_array_equal(found.values, [0, 1, 2, 3])
    assert found.line_.get_marker() == "o"


def test_columns_that_move_together(model):
    found = PartialDependenceDisplay.from_estimator(
        model, X, [2, 3, 4], values=np.eye(3), labels=["red", "green", "blue"], max_rows=300, feature_name="colour"
    )
    for level, mean in enumerate(found.mean):
        moved = X.copy()
        moved[:, 2:5] = np.eye(3)[level]
        assert mean == pytest.approx(model.predict_proba(moved)[:, 1].mean())
    assert found.mean[1] > found.mean[0] > found.mean[2]
    assert [text.get_text() for text in found.ax_.get_xticklabels()] == ["red", "green", "blue"]
    assert found.ax_.get_xlabel() == "colour"
    assert found.rug_ is None
    bars = [path.vertices[:, 1] for path in found.band_.get_paths()]
    np.testing.assert_allclose(bars, np.column_stack([found.lower, found.upper]))
    names = ["a", "b", "red", "green", "blue", "c"]
    by_itself = PartialDependenceDisplay.from_estimator(model, X, ["red", "green", "blue"], feature_names=names, **FAST)
    assert by_itself.labels == ["red", "green", "blue"]
    np.testing.assert_array_equal(by_itself.values, np.eye(3))


def test_columns_without_a_name_are_reported_by_their_values(model):
    of = lambda values: PartialDependenceDisplay.from_estimator(model, X, [0, 2], values=values, **FAST).labels
    assert of([[0.5, 1], [0, 0], [0, 1]]) == ["0.5, 1", "none", "column 2"]


def test_pipelines_over_text_and_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "colour": np.array(["red", "green", "blue"])[LEVELS]})
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(sparse_output=False), ["colour"]), (StandardScaler(), ["size"])),
        BayesianSVC(n_inducing=20, tune=None, random_state=0),
    ).fit(frame, y)
    found = PartialDependenceDisplay.from_estimator(pipeline, frame, "colour", **FAST)
    assert found.labels == ["blue", "green", "red"]
    moved = frame.assign(colour="green")
    found = PartialDependenceDisplay.from_estimator(pipeline, frame, "colour", values=["green"], max_rows=300)
    assert found.mean[0] == pytest.approx(pipeline.predict_proba(moved)[:, 1].mean())
    assert found.ax_.get_xlabel() == "colour"
    number = PartialDependenceDisplay.from_estimator(pipeline, frame, "size", **FAST)
    assert number.labels is None


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_frames(library):
    frame = pytest.importorskip(library).DataFrame({"left": X[:, 0], "right": X[:, 1]})
    model = BayesianSVC(n_inducing=10, tune=None, random_state=0).fit(frame, y)
    found = PartialDependenceDisplay.from_estimator(model, frame, "right", values=[0.5], max_rows=300)
    moved = type(frame)({"left": X[:, 0], "right": np.full(300, 0.5)})
    assert found.mean[0] == pytest.approx(model.predict_proba(moved)[:, 1].mean())
    with pytest.raises(ValueError, match="no column 'rihgt'; did you mean one of \\['right'\\]"):
        PartialDependenceDisplay.from_estimator(model, frame, "rihgt")


def test_many_classes_need_a_target():
    rows, labels = load_iris(return_X_y=True)
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(rows, labels)
    parts = [PartialDependenceDisplay.from_estimator(model, rows, 2, target=k, n_values=4, **FAST) for k in range(3)]
    np.testing.assert_allclose(np.sum([part.mean for part in parts], axis=0), 1)
    with pytest.raises(ValueError, match="target is needed with more than two classes: the classes are \\[0, 1, 2\\]"):
        PartialDependenceDisplay.from_estimator(model, rows, 2)
    with pytest.raises(ValueError, match="target 7 is not a class"):
        PartialDependenceDisplay.from_estimator(model, rows, 2, target=7)


def test_sparse_rows(model):
    sparse = pytest.importorskip("scipy.sparse").csr_array(X)
    found = PartialDependenceDisplay.from_estimator(model, sparse, 0, n_values=3, **FAST)
    dense = PartialDependenceDisplay.from_estimator(model, X, 0, n_values=3, **FAST)
    np.testing.assert_allclose(found.mean, dense.mean)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"feature": 9}, "no column 9: it has 6"),
        ({"feature": []}, "feature is empty"),
        ({"feature": [0, 1]}, "X has 300 distinct settings, more than 20; select some with values"),
        ({"feature": [0, 1], "values": [1.0, 2.0]}, "a row for each setting and 2 columns, got shape \\(2,\\)"),
        ({"feature": 0, "values": [1.0, 2.0], "labels": ["low"]}, "labels has 1 names for 2 settings"),
        ({"feature": 0, "feature_names": ["a"]}, "1 names for 6 columns"),
    ],
)
def test_errors(model, how, message):
    with pytest.raises(ValueError, match=message):
        PartialDependenceDisplay.from_estimator(model, X, **how)


def test_errors_of_other_kinds(model):
    with pytest.raises(TypeError, match="a name or an integer; got 1.5"):
        PartialDependenceDisplay.from_estimator(model, X, 1.5)
    with pytest.raises(ValueError, match="rows and columns, got shape \\(6,\\)"):
        PartialDependenceDisplay.from_estimator(model, X[0], 0)
    with pytest.raises(NotFittedError):
        PartialDependenceDisplay.from_estimator(BayesianSVC(), X, 0)
