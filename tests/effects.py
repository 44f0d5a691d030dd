"""Tables that need an effect of a column or of a pair, and models with given effects."""

from copy import copy
from dataclasses import replace

import numpy as np

from bayesvm import BayesianSVC
from bayesvm.core.features import Effect, InducingFeatures
from bayesvm.core.kernels import RBF, Matern
from bayesvm.core.posterior import Gaussian

NAMES = ["age", "height", "size", "gain", "weight"]


def gains(n_rows=1500, seed=0, *, jumps=True):
    """Five columns of numbers; of the fourth most are zero, and the positive ones turn the class now and again."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    X[:, 3] = np.where(rng.random(n_rows) < 0.7, 0.0, rng.integers(1, 25, n_rows) / 4)
    f = 1.5 * X[:, 0] - X[:, 1] + rng.logistic(size=n_rows)
    if jumps:
        f += np.where(X[:, 3] > 0, np.where((4 * X[:, 3]) % 2 < 1, 5, -5), 0)
    return X, f > 0


def checkerboard(n_rows=2500, seed=0):
    """Five columns of numbers; the third and the fifth, whole numbers, are a checkerboard together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    X[:, 2], X[:, 4] = rng.integers(1, 13, n_rows), rng.integers(1, 8, n_rows)
    f = 1.5 * X[:, 0] - X[:, 1] + rng.logistic(size=n_rows)
    return X, f + np.where((X[:, 2] + X[:, 4]) % 2 == 1, 4, -4) > 0


def plain_model(**how):
    """A kernel with one length-scale for all columns, which cannot follow jumps in one of them."""
    return BayesianSVC(**({"kernel": RBF(2.0, 4.0), "scale": "standard", "n_inducing": 60, "random_state": 0} | how))


def given_effects(X, y, *columns, length_scale=0.5, **how):
    """A model with effects of these columns, each a tuple of numbers, whether residuals ask for them or not."""
    how = {"n_inducing": 30, "tune": None, "warm_start": True, "tol": 1e-3, "random_state": 0} | how
    model = BayesianSVC(**how).fit(X, y)
    fitted, rows = model.fitted_, model.fitted_.scaler(np.asarray(X, np.float64))
    effects = []
    for own in columns:
        points = np.unique(rows[:, own].round(12), axis=0)
        points = points[:: 1 + len(points) // 100]
        effects.append(Effect(own, InducingFeatures.build(Matern(length_scale, 9.0, nu=0.5), points)))
    features = replace(fitted.member.features, effects=tuple(effects))
    start = Gaussian.prior(features.n_weights)
    functions = tuple(function.at(start) for function in fitted.member.functions)
    with_start = copy(model)
    with_start.fitted_ = replace(fitted, members=(replace(fitted.member, features=features, functions=functions),))
    return with_start.fit(X, y)


def categories(n_rows=800, seed=0):
    """A number, and the one-hot columns of a place of four and a day of three, which work together."""
    rng = np.random.default_rng(seed)
    place, day = rng.integers(4, size=n_rows), rng.integers(3, size=n_rows)
    X = np.column_stack([rng.normal(size=n_rows), np.eye(4)[place], np.eye(3)[day]])
    up = np.array([[1, -1, 1], [-1, 1, -1], [1, 1, -1], [-1, -1, 1]])[place, day]
    names = ["x", *(f"place={name}" for name in ("city", "forest", "coast", "hill")), "day=Mo", "day=Tu", "day=We"]
    return X, X[:, 0] + 3 * up + rng.logistic(size=n_rows) > 0, names
