"""The background of one-class learning against SciPy, dense matrices and refits without each row (D36)."""

import numpy as np
import pytest
from scipy.stats import f, kstest, multivariate_t, t
from sklearn.covariance import LedoitWolf

from bayesvm.core.student_t import FREEDOM, StudentT

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 5)) @ RNG.normal(size=(5, 5)) + 3
NEW = RNG.normal(size=(20, 5)) * 4
WEIGHTS = {"plain": np.ones(40), "weighted": RNG.gamma(2.0, size=40)}
SHRINKAGE = 0.2


def dense(rows, weight):
    """Mean and shape."""
    S = np.cov(rows.T, aweights=weight, ddof=0)
    n_features = rows.shape[1]
    shape = (1 - SHRINKAGE) * S + SHRINKAGE * np.trace(S) / n_features * np.eye(n_features)
    return np.average(rows, axis=0, weights=weight), shape


@pytest.fixture(params=WEIGHTS)
def weight(request):
    return WEIGHTS[request.param]


def test_the_density_is_that_of_scipy(weight):
    found = StudentT.of(ROWS, weight, SHRINKAGE)
    mean, shape = dense(ROWS, weight)
    assert found.log_density(NEW) == pytest.approx(multivariate_t(mean, shape, df=FREEDOM).logpdf(NEW))


def test_the_shrinkage_is_that_of_scikit_learn():
    for rows in (ROWS, RNG.normal(size=(20, 30)) * np.arange(1, 31)):
        found, theirs = StudentT.of(rows, np.full(len(rows), 3.0)), LedoitWolf().fit(rows)
        assert found.shrinkage == pytest.approx(theirs.shrinkage_)
        assert (found.vectors * found.shape) @ found.vectors.T == pytest.approx(theirs.covariance_)
    assert StudentT.of(ROWS, WEIGHTS["weighted"]).shrinkage > StudentT.of(ROWS, WEIGHTS["plain"]).shrinkage / 2


def test_left_out_is_a_refit_without_the_row(weight):
    found = StudentT.of(ROWS, weight, SHRINKAGE)
    expected = []
    for row in range(40):
        others = np.arange(40) != row
        mean, shape = dense(ROWS[others], weight[others])
        expected.append(multivariate_t(mean, shape, df=FREEDOM).logpdf(ROWS[row]))
    assert found.log_density_left_out(ROWS, weight) == pytest.approx(expected)
    assert found.log_density(ROWS).mean() > np.mean(expected)


def test_groups_left_out_are_refits_without_the_group(weight):
    found, group = StudentT.of(ROWS, weight, SHRINKAGE), RNG.permutation(np.arange(40) % 7)
    expected = np.empty(40)
    for number in range(7):
        mine = group == number
        mean, shape = dense(ROWS[~mine], weight[~mine])
        expected[mine] = multivariate_t(mean, shape, df=FREEDOM).logpdf(ROWS[mine])
    assert found.log_density_groups_left_out(ROWS, weight, group) == pytest.approx(expected)
    alone = found.log_density_groups_left_out(ROWS, weight, np.arange(40))
    assert alone == pytest.approx(found.log_density_left_out(ROWS, weight))


def test_one_column_is_left_out_like_many(weight):
    rows = ROWS[:, :1]
    found = StudentT.of(rows, weight)
    for row in range(40):
        others = np.arange(40) != row
        mean = np.average(rows[others, 0], weights=weight[others])
        variance = np.average((rows[others, 0] - mean) ** 2, weights=weight[others])
        expected = t(FREEDOM, mean, np.sqrt(variance)).logpdf(rows[row, 0])
        assert found.log_density_left_out(rows, weight)[row] == pytest.approx(expected)


def test_more_columns_than_rows_have_a_density_left_out_too():
    rows = RNG.normal(size=(6, 30))
    found = StudentT.of(rows, np.ones(6), SHRINKAGE)
    expected = []
    for row in range(6):
        mean, shape = dense(np.delete(rows, row, axis=0), np.ones(5))
        expected.append(multivariate_t(mean, shape, df=FREEDOM).logpdf(rows[row]))
    assert found.log_density_left_out(rows, np.ones(6)) == pytest.approx(expected)


def test_draws_have_the_distribution(weight):
    found = StudentT.of(ROWS, weight, SHRINKAGE)
    draws = found.draws(20_000, np.random.default_rng(1))
    _, shape = dense(ROWS, weight)
    centred = draws - found.mean
    distance = np.einsum("ij,ij->i", centred, np.linalg.solve(shape, centred.T).T) / 5
    assert kstest(distance, f(5, FREEDOM).cdf).pvalue > 1e-3
    spread = np.linalg.eigvals(np.linalg.solve(shape, np.cov(draws.T))).real
    assert spread == pytest.approx(np.full(5, FREEDOM / (FREEDOM - 2)), rel=0.15)


def test_the_expected_value_of_a_column_is_its_conditional_mean(weight):
    found = StudentT.of(ROWS, weight, SHRINKAGE)
    _, shape = dense(ROWS, weight)
    for column in range(5):
        others = np.arange(5) != column
        slope = np.linalg.solve(shape[np.ix_(others, others)], shape[others, column])
        expected = found.mean[column] + (NEW[:, others] - found.mean[others]) @ slope
        assert found.expected(NEW, column) == pytest.approx(expected)
