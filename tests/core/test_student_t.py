"""The background of one-class learning against SciPy, dense matrices and refits without each row (D41)."""

import numpy as np
import pytest
from scipy.stats import f, kstest, multivariate_t

from bayesvm.core.student_t import FREEDOM, StudentT

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 5)) @ RNG.normal(size=(5, 5)) + 3
NEW = RNG.normal(size=(20, 5)) * 4
WEIGHTS = {"plain": np.ones(40), "weighted": RNG.gamma(2.0, size=40)}
SHRINKAGE = 0.2


def dense(rows, weight, target):
    """Mean and shape, with a given number added to the diagonal."""
    return np.average(rows, axis=0, weights=weight), (1 - SHRINKAGE) * np.cov(
        rows.T, aweights=weight, ddof=0
    ) + target * np.eye(rows.shape[1])


@pytest.fixture(params=WEIGHTS)
def weight(request):
    return WEIGHTS[request.param]


def test_the_density_is_that_of_scipy(weight):
    found = StudentT.of(ROWS, weight, SHRINKAGE)
    S = np.cov(ROWS.T, aweights=weight, ddof=0)
    mean, shape = dense(ROWS, weight, SHRINKAGE * np.trace(S) / 5)
    assert found.log_density(NEW) == pytest.approx(multivariate_t(mean, shape, df=FREEDOM).logpdf(NEW))


def test_left_out_is_a_refit_without_the_row(weight):
    found = StudentT.of(ROWS, weight, SHRINKAGE)
    expected = []
    for row in range(40):
        others = np.arange(40) != row
        mean, shape = dense(ROWS[others], weight[others], found.target)
        expected.append(multivariate_t(mean, shape, df=FREEDOM).logpdf(ROWS[row]))
    assert found.log_density_left_out(ROWS, weight) == pytest.approx(expected)
    assert found.log_density(ROWS).mean() > np.mean(expected)


def test_more_columns_than_rows_have_a_density_left_out_too():
    rows = RNG.normal(size=(6, 30))
    found = StudentT.of(rows, np.ones(6), SHRINKAGE)
    expected = []
    for row in range(6):
        mean, shape = dense(np.delete(rows, row, axis=0), np.ones(5), found.target)
        expected.append(multivariate_t(mean, shape, df=FREEDOM).logpdf(rows[row]))
    assert found.log_density_left_out(rows, np.ones(6)) == pytest.approx(expected)


def test_draws_have_the_distribution(weight):
    found = StudentT.of(ROWS, weight, SHRINKAGE)
    draws = found.draws(20_000, np.random.default_rng(1))
    _, shape = dense(ROWS, weight, found.target)
    centred = draws - found.mean
    distance = np.einsum("ij,ij->i", centred, np.linalg.solve(shape, centred.T).T) / 5
    assert kstest(distance, f(5, FREEDOM).cdf).pvalue > 1e-3
    spread = np.linalg.eigvals(np.linalg.solve(shape, np.cov(draws.T))).real
    assert spread == pytest.approx(np.full(5, FREEDOM / (FREEDOM - 2)), rel=0.15)


def test_the_expected_value_of_a_column_is_its_conditional_mean(weight):
    found = StudentT.of(ROWS, weight, SHRINKAGE)
    _, shape = dense(ROWS, weight, found.target)
    for column in range(5):
        others = np.arange(5) != column
        slope = np.linalg.solve(shape[np.ix_(others, others)], shape[others, column])
        expected = found.mean[column] + (NEW[:, others] - found.mean[others]) @ slope
        assert found.expected(NEW, column) == pytest.approx(expected)
