"""Regression: what each method says of test rows: mean, interval of 90 %, and log density where it has one."""

from typing import NamedTuple

import numpy as np
from catboost import CatBoostRegressor
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from bayesvm import BayesianSVR


class Said(NamedTuple):
    """Of every test row; None where a method does not say it."""

    mean: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    log_density: np.ndarray | None = None


def normal(mean, std, y):
    """What a normal law says."""
    reach = norm.ppf(0.95) * std
    return Said(mean, mean - reach, mean + reach, norm.logpdf(y, mean, std))


def ours(X, y, test, y_test):
    model = BayesianSVR(random_state=0).fit(X, y)
    low, high = model.predict_interval(test)
    head = model.fitted_.head
    parts = model._predicted(test, list)  # noqa: SLF001  (the moments of every member, block by block)
    numbers = (y_test - head.centre) / head.spread
    losses, first = [], 0
    for block in parts:
        size = len(block[0].mean)
        losses.append(head.mixed_losses(block, numbers[first : first + size]))
        first += size
    return Said(model.predict(test), low, high, -np.concatenate(losses) - np.log(head.spread))


def svr(X, y, test, _):
    model = make_pipeline(StandardScaler(), SVR(C=10, epsilon=0.05)).fit(X, (y - y.mean()) / y.std())
    return Said(model.predict(test) * y.std() + y.mean())


def gaussian_process(X, y, test, y_test):
    """With a length-scale for every column."""
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel(0.1)
    model = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))
    return normal(*model.fit(X, y).predict(test, return_std=True), y_test)


def boosting(X, y, test, _):
    """Three models: the mean and two quantiles."""
    said = [HistGradientBoostingRegressor(random_state=0).fit(X, y).predict(test)]
    for quantile in (0.05, 0.95):
        model = HistGradientBoostingRegressor(loss="quantile", quantile=quantile, random_state=0)
        said.append(model.fit(X, y).predict(test))
    return Said(*said)


def catboost(X, y, test, y_test):
    options = {"loss_function": "RMSEWithUncertainty", "random_seed": 0, "verbose": 0, "allow_writing_files": False}
    mean, variance = CatBoostRegressor(**options).fit(X, y).predict(test).T
    return normal(mean, np.sqrt(variance), y_test)


METHODS = {
    "BayesianSVR": ours,
    "SVR": svr,
    "Gaussian process": gaussian_process,
    "boosting": boosting,
    "CatBoost": catboost,
}
