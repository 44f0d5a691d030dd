"""Cavities against fits that really leave the row out, and their guards (D10)."""

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.core.features import LinearFeatures
from bayesvm.core.leave_one_out import SMALLEST_SHARE, block_cavities
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.posterior import DiagonalGaussian
from bayesvm.core.statistics import Block, Machine, View
from bayesvm.core.workspace import Workspace
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF, Linear, Matern

DATA = waveform(150, random_state=0)
X, y = DATA.X, DATA.y
HOW = {"tune": None, "scale": None, "inference": "batch", "tol": 1e-9, "max_iter": 1000}
MODELS = {
    "rbf": lambda bound: BayesianSVC(RBF(5.0, 2.0), inducing=X[:25], bound=bound, **HOW),
    "matern": lambda bound: BayesianSVC(Matern(5.0, 2.0), inducing=X[:25], bound=bound, **HOW),
    "sum": lambda bound: BayesianSVC(RBF(5.0) + 0.05 * Linear(), inducing=X[:25], bound=bound, **HOW),
    "linear": lambda bound: BayesianLinearSVC(0.1, bound=bound, **HOW),
}


def refits(make, rows, weight=None):
    found = []
    for i in rows:
        w = np.ones(len(y)) if weight is None else weight.copy()
        w[i] = 0
        keep = w > 0
        m, v = make().fit(X[keep], y[keep], sample_weight=w[keep]).latent_mean_and_variance(X[i : i + 1])
        found.append((m[0], v[0]))
    return np.array(found).T


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("bound", "correlation"), [("exact", 0.999), ("augmented", 0.99)])
def test_cavities_are_refits_without_the_row(name, bound, correlation):
    make = lambda: MODELS[name](bound)
    model, rows = make().fit(X, y), np.arange(0, 150, 6)
    m, v = refits(make, rows)
    inside, _ = model.latent_mean_and_variance(X[rows])
    found = model._cavities.mean[rows, 0]
    assert np.corrcoef(found, m)[0, 1] > correlation
    # The augmented bound is known to be too optimistic here, if less so than looking at the training rows.
    assert np.abs(found - m).mean() < {"exact": 0.3, "augmented": 0.8}[bound] * np.abs(inside - m).mean()
    if bound == "exact":
        np.testing.assert_allclose(model._cavities.variance[rows, 0], v, rtol=0.25, atol=0.02)


def test_a_row_leaves_with_all_its_weight_and_with_its_copies():
    times = np.random.default_rng(0).integers(1, 4, len(y))
    make = lambda: MODELS["rbf"]("exact")
    model, rows = make().fit(X, y, sample_weight=times), np.arange(0, 150, 10)
    m, v = refits(make, rows, times.astype(float))
    assert np.corrcoef(model._cavities.mean[rows, 0], m)[0, 1] > 0.999
    np.testing.assert_allclose(model._cavities.variance[rows, 0], v, rtol=0.25, atol=0.02)
    with pytest.warns(UserWarning, match="exact copies"):
        repeated = make().fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(repeated._cavities.mean, np.repeat(model._cavities.mean, times, 0), atol=1e-5)
    np.testing.assert_allclose(repeated._cavities.variance, np.repeat(model._cavities.variance, times, 0), atol=1e-5)
    assert (repeated._cavities.weight == 1).all()


def test_a_row_that_holds_all_the_information_does_not_divide_by_zero():
    """A variance so large that 1 - wt is negative, as happens far from convergence."""
    features = LinearFeatures(np.array([1e3]), intercept=False)
    view, _ = View.of(features, [Machine(1, 0.0, DiagonalGaussian(np.zeros(1), np.ones(1)))], 1, np.float64)
    block = Block(np.array([[1.0], [0.0]]), np.array([1, 0]), None)
    found = block_cavities([block], Workspace(), sites=view, final=view, likelihood=LIKELIHOODS["exact"])
    assert np.isfinite(found.mean).all()
    assert (found.variance >= 0).all()
    assert found.variance.max() <= 1e6 / SMALLEST_SHARE
