"""Decision boundaries: the shading shows the prediction at each point, and the lines are in the right place."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.inspection import DecisionBoundaryDisplay, decision_boundary
from bayesvm.inspection.colours import CLASSES

X, y = make_moons(200, noise=0.2, random_state=0)
IRIS = load_iris()
to_rgba = pytest.importorskip("matplotlib.colors").to_rgba


@pytest.fixture(scope="module")
def moons():
    return BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(X, y)


def lines(contours):
    return np.vstack([path.vertices for contour in contours for path in contour.get_paths() if len(path.vertices)])


def test_probabilities_are_those_of_the_model_at_each_place(moons, ax):
    found = DecisionBoundaryDisplay.from_estimator(moons, X, y, grid_resolution=40, ax=ax)
    assert found.ax_ is ax
    assert found.figure_ is ax.figure
    for i, j in ((0, 0), (3, 30), (39, 7)):
        place = [[found.x[j], found.y[i]]]
        np.testing.assert_allclose(found.proba[i, j], moons.predict_proba(place)[0])
        assert found.epistemic[i, j] == pytest.approx(moons.predict_uncertainty(place)["epistemic"][0])
        assert found.latent[i, j] == pytest.approx(moons.latent_mean_and_variance(place)[0][0])
    left, right, bottom, top = found.image_.get_extent()
    assert left < X[:, 0].min() < X[:, 0].max() < right
    assert bottom < X[:, 1].min() < X[:, 1].max() < top


def test_lines_lie_where_both_are_as_probable_and_at_the_margin(moons):
    found = DecisionBoundaryDisplay.from_estimator(moons, X, y, grid_resolution=80)
    np.testing.assert_allclose(moons.predict_proba(lines(found.boundary_))[:, 1], 0.5, atol=0.03)
    mean, _ = moons.latent_mean_and_variance(lines(found.margin_))
    np.testing.assert_allclose(np.abs(mean), 1, atol=0.05)
    assert DecisionBoundaryDisplay.from_estimator(moons, X, grid_resolution=10, margin=False).margin_ is None


def test_colour_goes_with_the_probability_and_fades_with_the_epistemic_part():
    proba = np.array([[0.0, 0.5, 1.0]] * 2)
    epistemic = np.array([[0.0] * 3, [1.0] * 3])
    found = DecisionBoundaryDisplay([0, 1, 2], [0, 1], np.stack([1 - proba, proba], 2), epistemic, ["a", "b"]).plot()
    shades = np.asarray(found.image_.get_array())
    np.testing.assert_allclose(shades[0, 0, :3], to_rgba(CLASSES[0])[:3], atol=0.01)
    np.testing.assert_allclose(shades[0, 2, :3], to_rgba(CLASSES[1])[:3], atol=0.01)
    assert np.ptp(shades[0, 1, :3]) < 0.15  # neither colour
    np.testing.assert_allclose(shades[0, :, 3], decision_boundary.STRONGEST)
    np.testing.assert_allclose(shades[1, :, 3], decision_boundary.WEAKEST)
    assert found.points_ is found.inducing_ is found.margin_ is None


def test_rows_are_drawn_by_class_and_inducing_points_as_open_marks(moons):
    found = DecisionBoundaryDisplay.from_estimator(moons, X, y, grid_resolution=10)
    for k in (0, 1):
        np.testing.assert_array_equal(found.points_[k].get_offsets(), X[y == k])
    np.testing.assert_allclose(np.transpose(found.inducing_.get_data()), moons.inducing_points_)
    assert found.inducing_.get_markerfacecolor() == "none"
    legend = [text.get_text() for text in found.ax_.get_legend().get_texts()]
    assert legend == ["0", "1", "inducing points", "margin"]
    bare = DecisionBoundaryDisplay.from_estimator(moons, X, grid_resolution=10, inducing=False, key=False)
    assert bare.points_ is bare.inducing_ is bare.ax_.get_legend() is None
    assert len(bare.figure_.axes) == 1


def test_of_many_rows_some_are_drawn_and_that_is_reported(moons, monkeypatch):
    monkeypatch.setattr(decision_boundary, "MOST_POINTS", 50)
    found = DecisionBoundaryDisplay.from_estimator(moons, X, y, grid_resolution=10)
    assert sum(len(part.get_offsets()) for part in found.points_) == 50
    assert found.ax_.get_legend().get_title().get_text() == "drawn: 50 of 200 rows"


def test_many_classes_have_the_colour_of_the_most_probable_one():
    rows, labels = IRIS.data[:, 2:], IRIS.target_names[IRIS.target]
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(rows, labels)
    found = DecisionBoundaryDisplay.from_estimator(model, rows, labels, grid_resolution=60)
    shades = np.asarray(found.image_.get_array())
    for i, j in ((5, 5), (30, 30), (55, 50)):
        number = list(model.classes_).index(model.predict([[found.x[j], found.y[i]]])[0])
        np.testing.assert_allclose(shades[i, j, :3], to_rgba(CLASSES[number])[:3], atol=0.01)
    confidence = found.proba.max(axis=2)
    sure, unsure = np.unravel_index(confidence.argmax(), (60, 60)), np.unravel_index(confidence.argmin(), (60, 60))
    assert shades[sure][3] > shades[unsure][3] + 0.3
    best = np.sort(model.predict_proba(lines(found.boundary_)), axis=1)
    np.testing.assert_allclose(best[:, -1], best[:, -2], atol=0.06)
    assert len(found.figure_.axes) == 1  # no colour bar
    unlabelled = DecisionBoundaryDisplay.from_estimator(model, rows, grid_resolution=10)
    assert [text.get_text() for text in unlabelled.ax_.get_legend().get_texts()][:3] == list(IRIS.target_names)


def test_other_columns_are_held_at_their_median():
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(IRIS.data, IRIS.target > 0)
    names = IRIS.feature_names
    found = DecisionBoundaryDisplay.from_estimator(
        model, IRIS.data, features=(2, names[0]), feature_names=names, grid_resolution=10
    )
    row = np.median(IRIS.data, axis=0)
    row[2], row[0] = found.x[4], found.y[6]
    np.testing.assert_allclose(found.proba[6, 4], model.predict_proba([row])[0])
    assert (found.ax_.get_xlabel(), found.ax_.get_ylabel()) == (names[2], names[0])
    np.testing.assert_allclose(np.transpose(found.inducing_.get_data()), model.inducing_points_[:, [2, 0]])
    assert found.ax_.get_legend().get_title().get_text() == "2 other columns at the median"


def test_linear_models_pipelines_and_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["left", "right"])
    linear = DecisionBoundaryDisplay.from_estimator(BayesianLinearSVC().fit(frame, y), frame, y, grid_resolution=10)
    assert linear.inducing_ is None
    assert linear.ax_.get_xlabel() == "left"
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0)
    piped = make_pipeline(StandardScaler(), model).fit(frame, y)
    found = DecisionBoundaryDisplay.from_estimator(piped, frame, y, grid_resolution=10)
    inner = piped[-1].inducing_points_ * piped[0].scale_ + piped[0].mean_
    np.testing.assert_allclose(np.transpose(found.inducing_.get_data()), inner)
    one_way = make_pipeline(FunctionTransformer(np.abs), model).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(one_way, X, y, grid_resolution=10)
    four = make_pipeline(PCA(2), model).fit(IRIS.data, IRIS.target)
    wide = DecisionBoundaryDisplay.from_estimator(four, IRIS.data, IRIS.target, features=(0, 3), grid_resolution=10)
    assert wide.proba.shape == (10, 10, 3)


def test_a_plane_without_any_boundary():
    found = DecisionBoundaryDisplay([0, 1], [0, 1], np.full((2, 2, 2), [0.9, 0.1]), np.zeros((2, 2)), [0, 1]).plot()
    assert found.boundary_ is None


def test_errors(moons):
    four = BayesianSVC(n_inducing=10, tune=None, random_state=0).fit(IRIS.data, IRIS.target)
    of = DecisionBoundaryDisplay.from_estimator
    with pytest.raises(NotFittedError):
        of(BayesianSVC(), X)
    with pytest.raises(ValueError, match="X has 4 columns, but a decision boundary has two: select them with features"):
        of(four, IRIS.data)
    with pytest.raises(ValueError, match="two different columns; got \\(1, 1\\)"):
        of(four, IRIS.data, features=(1, 1))
    with pytest.raises(ValueError, match="no column 'petals'"):
        of(four, IRIS.data, features=("petals", 1))
    with pytest.raises(ValueError, match="labels that are not among the classes \\[0, 1\\]: 2"):
        of(moons, X, y + 1)
    with pytest.raises(ValueError, match="y has 199 labels for 200 rows"):
        of(moons, X, y[1:])
