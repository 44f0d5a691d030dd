"""Plots of a regressor: partial dependence, effects, relevance and uncertainty, in the units of the target."""

import numpy as np
import pytest
from sklearn.inspection import partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianSVR
from bayesvm.inspection import EffectDisplay, PartialDependenceDisplay, RelevanceDisplay, UncertaintyDisplay
from bayesvm.kernels import RBF

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(1200, 2)), RNG.integers(12, size=1200)])
Y = 1000 + 50 * (X[:, 0] + 4 * (X[:, 2] % 2) - 2 + 0.3 * RNG.normal(size=1200))


@pytest.fixture(scope="module")
def model():
    return BayesianSVR(RBF(), scale="standard", n_inducing=40, local=False, random_state=0).fit(X, Y)


def test_partial_dependence_is_that_of_scikit_learn(model, ax):
    found = PartialDependenceDisplay.from_estimator(model, X, 0, max_rows=1200, n_draws=50, n_values=5, ax=ax)
    theirs = partial_dependence(model, X, [0], custom_values={0: found.values}, method="brute")
    np.testing.assert_allclose(found.mean, theirs["average"][0])
    assert ax.get_ylabel() == "prediction, mean of 1,200 rows"
    slope = (found.mean[3] - found.mean[1]) / (found.values[3] - found.values[1])
    assert slope == pytest.approx(50, rel=0.15)
    assert (found.lower <= found.mean).all()
    assert (found.mean <= found.upper).all()
    assert (found.upper - found.lower < 100).all()
    with pytest.raises(ValueError, match="leave it out for a BayesianSVR"):
        PartialDependenceDisplay.from_estimator(model, X, 0, target=1)


def test_an_effect_is_in_the_units_of_y(model, ax):
    number = next(i for i, effect in enumerate(model.effects_) if effect.columns == (2,))
    found = EffectDisplay.from_estimator(model, number, X=X, ax=ax)
    assert ax.get_ylabel() == "effect on y"
    even, odd = (found.mean[np.rint(found.values[0]).astype(int) % 2 == k].mean() for k in (0, 1))
    assert odd - even == pytest.approx(200, rel=0.15)
    assert found.target is None


def test_relevance_of_a_regressor(model, ax):
    found = RelevanceDisplay.from_estimator(model, ax=ax)
    np.testing.assert_array_equal(found.relevance, model.relevance_)
    assert found.learned


def test_uncertainty_is_in_the_units_of_y(model, ax):
    new = make_pipeline(StandardScaler(), BayesianSVR(n_inducing=30, tune=None, random_state=0)).fit(X, Y)
    for estimator in (model, new):
        found = UncertaintyDisplay.from_estimator(estimator, X, Y, ax=ax)
        rows = X if estimator is model else estimator[0].transform(X)
        parts = (estimator if estimator is model else estimator[-1]).predict_uncertainty(rows)
        np.testing.assert_allclose(found.aleatoric**2 + found.epistemic**2, parts["total"])
        np.testing.assert_array_equal(found.correct, (parts["lower"] <= Y) & (parts["upper"] >= Y))
    assert "inside the interval" in found.right_.get_label()
    assert ax.get_xlabel() == "aleatoric: noise (std)"
