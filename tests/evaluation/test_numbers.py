"""Metrics of predicted numbers, against scikit-learn and SciPy."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from bayesvm.evaluation import RegressionPredictions, interval_coverage, metrics, paired_difference
from bayesvm.evaluation.formatting import metric_rows
from bayesvm.evaluation.regression_peers import PEERS, evaluate_regression_peer


def some(n_rows=300, shift=0.0, weighted=False):
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=n_rows) + shift, rng.uniform(0.5, 2, n_rows)
    weight = rng.integers(0, 4, n_rows) if weighted else None
    return RegressionPredictions.of(mean + std * rng.normal(size=n_rows), mean, std, weight=weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_metrics_are_those_of_other_libraries(weighted, shift):
    said = some(shift=shift, weighted=weighted)
    found = {name: metric.value for name, metric in metrics(said, n_bootstrap=0).items()}
    how = {"sample_weight": said.weight}
    assert found["rmse"] == pytest.approx(root_mean_squared_error(said.y, said.mean, **how))
    assert found["mae"] == pytest.approx(mean_absolute_error(said.y, said.mean, **how))
    assert found["r2"] == pytest.approx(r2_score(said.y, said.mean, **how))
    law = norm(said.mean, said.std)
    assert found["log_density"] == pytest.approx(np.average(law.logpdf(said.y), weights=said.weight))
    low, high = law.interval(0.9)
    inside = (low <= said.y) & (said.y <= high)
    assert found["coverage"] == pytest.approx(np.average(inside, weights=said.weight))


def test_intervals_hold_what_other_rows_show():
    """The bootstrap interval of a mean is about that of its standard error."""
    said = some(2_000)
    found = metrics(said)["mae"]
    half = 1.96 * np.abs(said.y - said.mean).std() / np.sqrt(2_000)
    assert found.low == pytest.approx(found.value - half, abs=0.1 * half)
    assert found.high == pytest.approx(found.value + half, abs=0.1 * half)


def test_a_coverage_of_all_has_wilsons_interval():
    said = RegressionPredictions.of(np.arange(20.0), np.arange(20.0), np.ones(20))
    found = metrics(said)["coverage"]
    exact = binomtest(20, 20).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    assert np.isnan(metrics(RegressionPredictions.of([2.0, 2.0], [1, 1], [1, 1]), n_bootstrap=0)["r2"].value)


def test_the_coverage_of_intervals():
    said = some(5_000)
    for each in interval_coverage(said):
        n_inside = round(each.observed * 5_000)
        exact = binomtest(n_inside, 5_000).proportion_ci(method="wilson")
        assert (each.low, each.high) == pytest.approx((exact.low, exact.high))
        assert each.low <= each.predicted <= each.high


def test_paired_differences_of_the_absolute_error():
    ours = some()
    theirs = RegressionPredictions.of(ours.y, ours.mean + 1, ours.std)
    found = paired_difference(theirs, ours)
    assert list(found) == ["mae"]
    expected = np.abs(ours.y - theirs.mean) - np.abs(ours.y - ours.mean)
    assert found["mae"].value == pytest.approx(expected.mean())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], [], []), "at least one row"),
        (([1.0], [1.0, 2.0], [1.0]), "mean must have one number for each of the 1 rows"),
        (([1.0, np.nan], [1.0, 2.0], [1.0, 1.0]), "y must be finite; 1 rows are not .first: row 1"),
        (([1.0, 2.0], [1.0, 2.0], [1.0, 0.0]), "standard deviations must be positive; row 1 has 0"),
    ],
)
def test_what_is_no_prediction(given, message):
    with pytest.raises(ValueError, match=message):
        RegressionPredictions.of(*given)


def test_probabilities_and_weights_are_checked():
    with pytest.raises(ValueError, match="below must be a probability; row 0 has 1.5"):
        RegressionPredictions.of([1.0], [1.0], [1.0], below=[1.5])
    with pytest.raises(ValueError, match="all rows have weight zero"):
        RegressionPredictions.of([1.0], [1.0], [1.0], weight=[0.0])


def test_parts_are_joined():
    said = some(weighted=True)
    again = RegressionPredictions.joined([said.take(np.arange(100)), said.take(np.arange(100, 300))])
    for name in RegressionPredictions.columns():
        np.testing.assert_array_equal(getattr(again, name), getattr(said, name))


def test_errors_are_shown_with_the_digits_that_they_have():
    said = some()
    large = RegressionPredictions.of(1e4 * said.y, 1e4 * said.mean, 1e4 * said.std)
    (_, value, interval), *_ = metric_rows(metrics(large))
    assert value.replace(",", "").isdigit()
    assert " to " in interval


@pytest.mark.parametrize("name", PEERS)
def test_other_regressors(name):
    """Each has a normal law, which contains about as many rows as it states."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = 1e6 + 100 * (X[:, 0] + 0.3 * rng.normal(size=600))
    found = evaluate_regression_peer(PEERS[name], X[:300], y[:300], X[300:], y[300:], seed=0)
    values = {name: metric.value for name, metric in metrics(found.predictions, n_bootstrap=0).items()}
    assert values["r2"] > 0.8
    assert 0.8 < values["coverage"] < 0.97
    if name == "linear regression":
        expected = LinearRegression().fit(X[:300], y[:300]).predict(X[300:])
        np.testing.assert_allclose(found.predictions.mean, expected)


def test_a_regressor_needs_rows_for_the_folds():
    with pytest.raises(ValueError, match="SVR needs at least 5 rows; there are 3"):
        evaluate_regression_peer(PEERS["SVR"], np.eye(3), np.arange(3), np.eye(3), np.arange(3), seed=0)
