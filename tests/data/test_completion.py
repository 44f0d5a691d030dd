"""Completion of missing values against dense conditional normals, and what it does to means and variances (D33)."""

import numpy as np
import pytest
from scipy.stats import norm

from bayesvm.data.completion import DRAWS, SMALLEST_NOISE, Completion, _factors, averaged, incomplete

rng = np.random.default_rng(0)
D = 5
ROOT = np.array([[1.0, 0.8, 0.6, 0.0, -0.5], [0.0, 0.3, -0.6, 1.0, 0.5]]).T


def a_table(n_rows, share=0.3, seed=0):
    """Columns of several shapes, monotone in what is normal with two factors; and the same with missing values."""
    generator = np.random.default_rng(seed)
    z = generator.standard_normal((n_rows, 2)) @ ROOT.T + 0.4 * generator.standard_normal((n_rows, D))
    X = np.column_stack([z[:, 0], np.exp(z[:, 1]), z[:, 2] ** 3, np.round(z[:, 3]), 100 + 5 * z[:, 4]])
    return X, np.where(generator.random(X.shape) < share, np.nan, X)


def test_factors_given_some_scores_are_those_of_the_dense_normal():
    loadings, noise = rng.standard_normal((D, 3)), rng.uniform(0.2, 1, D)
    covariance = loadings @ loadings.T + np.diag(noise)
    scores, there = rng.standard_normal((6, D)), rng.random((6, D)) < 0.6
    there[0], there[1] = False, True
    mean, variance = _factors(np.where(there, scores, 0), there, loadings, noise)
    for z, o, m, C in zip(scores, there, mean, variance, strict=True):
        among = np.linalg.inv(covariance[np.ix_(o, o)])
        np.testing.assert_allclose(m, loadings[o].T @ among @ z[o], atol=1e-9)
        np.testing.assert_allclose(C, np.eye(3) - loadings[o].T @ among @ loadings[o], atol=1e-9)


def test_complete_rows_stay_and_values_that_are_there_stay():
    X, missing = a_table(800)
    completion = Completion.learned(missing)
    assert completion(X) is X
    found = completion(missing)
    there = ~np.isnan(missing)
    np.testing.assert_array_equal(found[there], missing[there])
    assert np.isfinite(found).all()
    for draw in completion.draws(missing):
        np.testing.assert_array_equal(draw[there], missing[there])
        assert np.isfinite(draw).all()


def test_what_is_missing_is_seen_from_the_other_columns():
    """Better than medians, and about as good as the conditional mean of the true distribution."""
    X, missing = a_table(3_000)
    found = Completion.learned(missing)(missing)
    gone = np.isnan(missing)
    covariance = ROOT @ ROOT.T + 0.16 * np.eye(D)
    for column, back in ((0, None), (4, lambda x: (x - 100) / 5)):
        rows = gone[:, column]
        truth, ours = (x[rows, column] if back is None else back(x[rows, column]) for x in (X, found))
        error = np.mean((truth - ours) ** 2)
        assert error < 0.7 * truth.var()
        z = np.column_stack([X[:, 0], np.log(X[:, 1]), np.cbrt(X[:, 2]), X[:, 3], (X[:, 4] - 100) / 5])
        best = []
        for row in np.flatnonzero(rows):
            o = ~gone[row]
            weights = np.linalg.solve(covariance[np.ix_(o, o)], covariance[o, column]) if o.any() else np.zeros(0)
            best.append(z[row, o] @ weights)
        assert error < 1.1 * np.mean((truth - best) ** 2)


def test_values_are_among_those_of_the_column():
    _, missing = a_table(500)
    missing[:, 3] = np.where(np.isnan(missing[:, 3]), np.nan, missing[:, 3] > 0)
    completion = Completion.learned(missing)
    for found in (completion(missing), *completion.draws(missing)):
        low, high = np.nanmin(missing, axis=0), np.nanmax(missing, axis=0)
        assert (found >= low).all()
        assert (found <= high).all()
        assert np.mean(np.isin(found[:, 3], [0.0, 1.0])) > 0.98


def test_draws_vary_as_the_conditional_distribution_does():
    """The variance is that of the columns for an empty row, and small for a nearly complete one."""
    _, missing = a_table(3_000)
    completion = Completion.learned(missing)
    nothing = np.full((400, D), np.nan)
    nothing[:, 1] = np.exp(norm.ppf((np.arange(400) + 0.5) / 400))
    drawn = np.stack(list(completion.draws(nothing)))
    assert drawn.shape == (DRAWS, 400, D)
    np.testing.assert_allclose(drawn[:, :, 4].std(), np.nanstd(missing[:, 4]), rtol=0.15)
    known = np.column_stack([nothing[:, 0], nothing[:, 1], np.zeros((400, 3))])
    assert np.stack(list(completion.draws(known)))[:, :, 0].std(axis=0).mean() < drawn[:, :, 0].std(axis=0).mean()


def test_points_of_a_row_do_not_depend_on_its_place():
    _, missing = a_table(200)
    completion = Completion.learned(missing)
    order = np.random.default_rng(1).permutation(200)
    for one, other in zip(completion.draws(missing), completion.draws(missing[order][:50]), strict=True):
        np.testing.assert_allclose(other, one[order][:50], rtol=1e-9)
    np.testing.assert_allclose(completion(missing[order]), completion(missing)[order], rtol=1e-9)


def test_factors_of_complete_rows_are_those_of_rows_one_by_one():
    loadings, noise, scores = rng.standard_normal((D, 3)), rng.uniform(0.2, 1, D), rng.standard_normal((6, D))
    there = np.ones((6, D), bool)
    mean, variance = _factors(scores, there, loadings, noise)
    there[0, 0] = False  # the general way
    apart_mean, apart_variance = _factors(scores, there, loadings, noise)
    np.testing.assert_allclose(mean[1:], apart_mean[1:], atol=1e-12)
    np.testing.assert_allclose(variance[1:], apart_variance[1:], atol=1e-12)


def test_complete_rows_teach_nearly_as_much_as_rows_with_missing_values():
    X, missing = a_table(3_000)
    whole, _ = a_table(3_000, seed=1)
    gone = np.isnan(missing)
    found, reference = (Completion.learned(rows)(missing) for rows in (whole, missing))
    for column in (0, 4):
        rows = gone[:, column]
        ours, theirs = (np.mean((X[rows, column] - x[rows, column]) ** 2) for x in (found, reference))
        assert ours < 1.1 * theirs
        assert ours < 0.7 * X[rows, column].var()
    assert Completion.learned(whole).unneeded
    assert not Completion.learned(missing).unneeded


def test_columns_that_are_too_many_count_as_independent(monkeypatch):
    """A missing value is then the median, and varies as the column."""
    monkeypatch.setattr("bayesvm.data.completion.MANY_COLUMNS", D - 1)
    X, _ = a_table(2_000)
    completion = Completion.learned(X)
    assert completion.loadings.shape == (D, 0)
    row = np.where(np.arange(D) == 1, np.nan, X[:1])
    np.testing.assert_allclose(completion(row)[0, 1], np.median(X[:, 1]), rtol=0.05)
    rows = np.repeat(row, 300, axis=0)
    rows[:, 0] = np.linspace(-1, 1, 300)
    assert np.quantile([draw[:, 1] for draw in completion.draws(rows)], 0.9) == pytest.approx(
        np.quantile(X[:, 1], 0.9), rel=0.2
    )


def test_a_column_without_any_value_and_a_constant_one_are_harmless():
    _, missing = a_table(300)
    missing[:, 2], missing[:, 3] = np.nan, np.where(np.isnan(missing[:, 3]), np.nan, 7.0)
    completion = Completion.learned(missing)
    found = completion(missing)
    np.testing.assert_array_equal(found[:, 2], 0)
    np.testing.assert_array_equal(found[:, 3], 7)
    assert (completion.noise >= SMALLEST_NOISE).all()


def test_the_spread_of_a_linear_mean_is_its_conditional_variance():
    X, missing = a_table(3_000, share=0.2)
    completion = Completion.learned(missing)
    rows = incomplete(missing)
    ((mean, found),) = averaged(
        completion, missing[rows], lambda X: [(X[:, [0]] + 0 * X[:, [1]], np.zeros((len(X), 1)))]
    )
    gone = np.isnan(missing[rows, 0])
    assert found.shape == (len(rows), 1)
    np.testing.assert_allclose(found[~gone], 0, atol=1e-20)
    np.testing.assert_allclose(mean[~gone], missing[rows][~gone][:, [0]])
    error = (completion(missing[rows])[gone, 0] - X[rows][gone, 0]) ** 2
    assert found[gone].mean() == pytest.approx(error.mean(), rel=0.3)


def test_incomplete_rows():
    np.testing.assert_array_equal(incomplete(np.array([[1.0, np.nan], [1.0, 2.0], [np.nan, 1.0]])), [0, 2])
    assert not len(incomplete(np.array([[1, 2]])))
