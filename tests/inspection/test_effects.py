"""Effects as plots: a curve or dots for one column, a heat map for a pair."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bayesvm import BayesianLinearSVC
from bayesvm.inspection import EffectDisplay
from tests.effects import NAMES, categories, gains, given_effects


@pytest.fixture(scope="module")
def jumpy():
    X, y = gains(600)
    return given_effects(X, y, (3,), (0,), (0, 3)), X


@pytest.fixture(scope="module")
def places():
    X, y, names = categories(400)
    return given_effects(X, y, (1, 2, 3, 4), (1, 2, 3, 4, 5, 6, 7)), X, names


def number_of(model, *columns):
    return next(i for i, effect in enumerate(model.effects_) if effect.columns == columns)


def test_a_column_with_few_values_is_shown_at_each(jumpy, ax):
    model, X = jumpy
    found = EffectDisplay.from_estimator(model, number_of(model, 3), X=X, feature_names=NAMES, ax=ax)
    assert (found.ax_, found.figure_) == (ax, ax.figure)
    np.testing.assert_allclose(found.values[0], np.arange(25) / 4, atol=1e-9)
    np.testing.assert_allclose(found.line_.get_data(), [found.values[0], found.mean])
    assert found.line_.get_marker() == "o"
    assert found.mesh_ is None
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gain", "effect on f, towards y = True")
    positive = found.mean[1:]
    assert (positive[1::2] > positive[::2]).all()


def test_a_column_with_many_values_is_a_curve_with_its_band(jumpy):
    model, X = jumpy
    effect = model.effects_[number_of(model, 0)]
    found = EffectDisplay.from_estimator(model, effect, X=X, color="red")
    mean, variance = effect.mean_and_variance(found.values[0], reference=X[:, 0])
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.upper - found.lower, 2 * 1.959964 * np.sqrt(variance))
    assert found.line_.get_color() == "red"
    assert found.ax_.get_xlabel() == "column 0"
    assert (np.diff(found.values[0]) > 0).all()
    of_the_other = EffectDisplay.from_estimator(model, effect, X=X, target=False)
    np.testing.assert_allclose(of_the_other.mean, -mean)
    assert of_the_other.ax_.get_ylabel() == "effect on f, towards y = False"


def test_without_rows_the_inducing_points_stand_for_them(jumpy):
    model, X = jumpy
    effect = model.effects_[number_of(model, 0)]
    apart = EffectDisplay.from_estimator(model, effect).mean - EffectDisplay.from_estimator(model, effect, X=X).mean
    assert np.ptp(apart) < 1e-9


def test_a_pair_is_a_heat_map(jumpy, ax):
    model, _ = jumpy
    effect = model.effects_[number_of(model, 0, 3)]
    found = EffectDisplay.from_estimator(model, effect, feature_names=NAMES, ax=ax)
    first, second = found.values
    assert found.mean.shape == (len(first), len(second))
    mean, _ = effect.mean_and_variance([[first[2], second[1]]])
    assert found.mean[2, 1] == pytest.approx(mean[0])
    np.testing.assert_allclose(found.mesh_.get_array().reshape(found.mean.T.shape), found.mean.T)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "gain")
    assert found.line_ is None
    dots = np.count_nonzero((found.lower < 0) & (found.upper > 0))
    assert len(found.points_.get_xdata()) == dots > 0
    assert "dots" in found.colorbar_.ax.get_ylabel()


def test_categories_have_their_names(places):
    model, X, names = places
    alone = EffectDisplay.from_estimator(model, number_of(model, 1, 2, 3, 4), X=X, feature_names=names)
    assert [label.get_text() for label in alone.ax_.get_xticklabels()] == ["city", "forest", "coast", "hill"]
    assert alone.ax_.get_xlabel() == "place"
    pair = EffectDisplay.from_estimator(model, number_of(model, *range(1, 8)), X=X, feature_names=names)
    assert pair.labels == [["city", "forest", "coast", "hill"], ["Mo", "Tu", "We"]]
    # As the table was made: by row and column of its matrix of signs.
    assert (np.sign(pair.mean) == [[1, -1, 1], [-1, 1, -1], [1, 1, -1], [-1, -1, 1]]).mean() > 0.9
    unnamed = EffectDisplay.from_estimator(model, number_of(model, 1, 2, 3, 4), factor_names=["where"])
    assert unnamed.ax_.get_xlabel() == "where"
    assert unnamed.labels[0] == [f"column {k}" for k in range(1, 5)]


def test_a_pipeline_is_asked_in_the_columns_of_the_model(jumpy):
    model, X = jumpy
    pipeline = make_pipeline(FunctionTransformer(lambda rows: rows / 2), model)
    effect = number_of(model, 0)
    np.testing.assert_allclose(
        EffectDisplay.from_estimator(pipeline, effect, X=2 * X).mean,
        EffectDisplay.from_estimator(model, effect, X=X).mean,
    )


def test_with_more_classes_one_is_shown():
    X, _, _ = categories(400)
    y = np.where(X[:, 0] > 0.5, "a", np.where(X[:, 1] > 0, "b", "c"))
    model = given_effects(X, y, (0,))
    mean = EffectDisplay.from_estimator(model, target="a").mean
    assert mean[-1] > mean[0]
    with pytest.raises(ValueError, match="target is needed with more than two classes"):
        EffectDisplay.from_estimator(model)


def test_missing_parts_are_named(jumpy):
    model, X = jumpy
    with pytest.raises(ValueError, match="effect 3 does not exist: effects_ has 3, counted from 0"):
        EffectDisplay.from_estimator(model, 3)
    linear = BayesianLinearSVC().fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=r"has no effects of single columns or pairs \(effects_ is empty\)"):
        EffectDisplay.from_estimator(linear)


def test_names_are_no_formulas(jumpy):
    model, _ = jumpy
    names = ["cost $_{ per $", "b", "c", "d $^ $", "e"]
    for i in range(3):
        found = EffectDisplay.from_estimator(model, i, feature_names=names)
        found.figure_.canvas.draw()
