"""Precision, recall, lift and costs by threshold, against scikit-learn and plain counting."""

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, precision_score, recall_score

from bayesvm.evaluation import Predictions, cheapest_threshold, thresholds


def some(n_rows=300, *, weighted=False, digits=2, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n_rows).round(digits)  # some rows have the same probability
    y = rng.random(n_rows) < p
    weight = rng.integers(1, 4, n_rows).astype(float) if weighted else None
    return Predictions.of([False, True], y, np.column_stack([1 - p, p]), weight=weight), y, p, weight


@pytest.mark.parametrize("weighted", [False, True])
def test_precision_and_recall_are_those_of_scikit_learn(weighted):
    predictions, y, p, weight = some(weighted=weighted)
    found = thresholds(predictions)
    precision, recall, threshold = precision_recall_curve(y, p, sample_weight=weight)
    np.testing.assert_allclose(found.threshold[:0:-1], threshold)
    np.testing.assert_allclose(found.precision[:0:-1], precision[:-1])
    np.testing.assert_allclose(found.recall[:0:-1], recall[:-1])
    assert np.isnan(found.precision[0])
    assert found.recall[0] == 0


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.355, 0.5, 0.99, 1.0])
def test_a_threshold_flags_the_rows_from_it_on(threshold):
    predictions, y, p, _ = some()
    found = thresholds(predictions)
    i, flags = found.at(threshold), p >= threshold
    assert found.flagged[i] == pytest.approx(flags.mean())
    assert found.recall[i] == pytest.approx(recall_score(y, flags))
    if flags.any():
        assert found.precision[i] == pytest.approx(precision_score(y, flags))
        assert found.lift[i] == pytest.approx(y[flags].mean() / y.mean())


def test_costs_are_counted():
    predictions, y, p, weight = some(weighted=True)
    found = thresholds(predictions)
    for threshold in (0.1, 0.5, 0.8):
        flags = p >= threshold
        cost = np.where(flags & ~y, 2.0, 0.0) + np.where(~flags & y, 7.0, 0.0)
        assert found.cost(2, 7)[found.at(threshold)] == pytest.approx(np.average(cost, weights=weight))


def test_the_cheapest_threshold_is_cheapest_for_calibrated_probabilities():
    p = np.linspace(0.005, 0.995, 100)
    expected = [np.where(p >= t, 3 * (1 - p), 9 * p).mean() for t in p]  # of many rows with these probabilities
    assert p[int(np.argmin(expected))] == pytest.approx(cheapest_threshold(3, 9), abs=0.01)
    assert cheapest_threshold(1, 1) == 0.5
    for wrong in ((-1, 2), (0, 0)):
        with pytest.raises(ValueError, match="costs must not be negative"):
            cheapest_threshold(*wrong)


def test_a_share_of_the_rows_is_the_fewest_that_reach_it():
    predictions, _, p, _ = some(digits=6)
    found = thresholds(predictions)
    assert found.flagged[found.at_share(0.1)] == pytest.approx(0.1)
    assert found.threshold[found.at_share(0.1)] == np.sort(p)[-30]
    assert found.flagged[found.at_share(1.0)] == 1
    assert found.flagged[found.at_share(0.0)] == 0


def test_one_class_only_has_no_recall_of_the_other():
    p = np.array([0.2, 0.6])
    found = thresholds(Predictions.of([0, 1], [0, 0], np.column_stack([1 - p, p])))
    assert np.isnan(found.recall).all()
    assert np.isnan(found.lift).all()
    assert found.base_rate == 0
