from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq

from bayesvm.evaluation import Predictions, metrics, reliability
from tests.evaluation.problems import calibrated, tied, weights


def events(said):
    """Predicted probabilities and outcomes, by the definition."""
    if len(said.classes) == 2:
        return said.proba[:, 1], (said.y == 1).astype(float)
    return said.proba.max(axis=1), (said.proba.argmax(axis=1) == said.y).astype(float)


def halved(said, n_groups, n_halvings, seed=0):
    """The calibration error by actual halvings: one half gives the sign, the other the size."""
    predicted, happened = events(said)
    rng = np.random.default_rng(seed)
    total = 0.0
    for rows in np.array_split(np.argsort(predicted), n_groups):
        gap = predicted[rows] - happened[rows]
        for _ in range(n_halvings):
            rng.shuffle(gap)
            one, other = gap[: len(gap) // 2], gap[len(gap) // 2 :]
            total += len(rows) * np.sign(one.mean()) * other.mean() / n_halvings
    return total / said.n_rows


def halved_as_if_normal(said, n_groups, n_halvings, seed=0):
    """The same by halves that differ as normal numbers would, by the chance that the predicted probabilities imply."""
    predicted, happened = events(said)
    w = said.weight_or_ones
    rng = np.random.default_rng(seed)
    total = 0.0
    for rows in np.array_split(np.argsort(predicted), n_groups):
        d = np.average(predicted[rows] - happened[rows], weights=w[rows])
        chance = np.sqrt(np.sum(w[rows] ** 2 * predicted[rows] * (1 - predicted[rows]))) / w[rows].sum()
        e = chance * rng.standard_normal(n_halvings)
        total += w[rows].sum() * np.mean(np.sign(d + e) * (d - e))
    return total / w.sum()


def calibration_error(said):
    return metrics(said, n_bootstrap=0)["calibration_error"].value


@pytest.mark.parametrize(("n_classes", "sharpness"), [(2, 0.5), (2, 1.5), (3, 2.0)])
def test_the_error_is_that_of_halvings(n_classes, sharpness):
    said = calibrated(1500, n_classes, sharpness=sharpness)
    assert calibration_error(said) > 0.03
    assert calibration_error(said) == pytest.approx(halved_as_if_normal(said, 15, 30_000), rel=0.01)
    assert calibration_error(said) == pytest.approx(halved(said, 15, 300), rel=0.15)  # chance as seen, not as predicted


def test_the_error_of_weighted_rows_is_that_of_halvings():
    # Weights that take turns: the groups have the same rows as without weights.
    said = calibrated(1500, sharpness=0.5)
    w = np.empty(1500)
    w[np.argsort(said.positive)] = np.tile([1.0, 3.0], 750)
    said = Predictions.of([0, 1], said.y, said.proba, weight=w)
    assert calibration_error(said) == pytest.approx(halved_as_if_normal(said, 15, 30_000), rel=0.01)


def test_far_from_chance_it_is_the_mean_difference_of_stated_and_observed():
    said = calibrated(60_000, sharpness=3)
    predicted, happened = events(said)
    naive = sum(abs((predicted - happened)[rows].sum()) for rows in np.array_split(np.argsort(predicted), 15)) / 60_000
    assert naive > 0.05
    assert calibration_error(said) == pytest.approx(naive, rel=0.01)
    shown = reliability(said)
    assert np.abs(shown.predicted - shown.observed) @ shown.count / 60_000 == pytest.approx(naive, rel=1e-3)


def test_well_calibrated_probabilities_have_no_error_on_average():
    naive, ours = [], []
    for seed in range(60):
        said = calibrated(600, seed=seed)
        shown = reliability(said)
        naive.append(np.abs(shown.predicted - shown.observed) @ shown.count / 600)
        ours.append(calibration_error(said))
    assert np.mean(naive) > 0.03  # why chance is taken off
    assert np.mean(ours) < 0.01
    assert np.mean(np.array(ours) == 0) > 0.3  # half of them are below zero, and stop there


@pytest.mark.parametrize("sharpness", [1.0, 1.6])
def test_its_interval_holds_the_truth(sharpness):
    truth = 0.0 if sharpness == 1 else calibration_error(calibrated(300_000, sharpness=sharpness, seed=99))
    hits = 0
    for seed in range(60):
        _, low, high = metrics(calibrated(500, seed=seed, sharpness=sharpness), n_bootstrap=100)["calibration_error"]
        hits += low <= truth <= high
    assert hits >= 55


def test_equal_weights_are_no_weights_and_rows_of_weight_zero_are_no_rows():
    said = calibrated(300, sharpness=2)
    plain = calibration_error(said)
    assert plain > 0.02
    assert calibration_error(calibrated(300, sharpness=2, weight=np.full(300, 7.0))) == pytest.approx(plain)
    half = np.arange(300) % 2
    some = calibration_error(calibrated(300, sharpness=2, weight=half))
    assert some == pytest.approx(calibration_error(said.take(half == 1)))


def wilson_by_its_definition(share, n):
    """The probabilities p from which the share is 1.96 deviations √(p(1-p)/n) away."""
    z = 1.959963984540054

    def off(p):
        return (share - p) ** 2 - z * z * p * (1 - p) / n

    low = 0.0 if share == 0 else brentq(off, 0, share, xtol=1e-14)
    return low, 1.0 if share == 1 else brentq(off, share, 1, xtol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weight", [None, weights(400)], ids=["plain", "weighted"])
def test_reliability_group_by_group(n_classes, weight):
    said = calibrated(400, n_classes, weight=weight)
    predicted, happened = events(said)
    w = np.ones(400) if weight is None else weight
    shown = reliability(said, 7)
    assert shown.count.sum() == (w > 0).sum()
    order = [row for row in np.argsort(predicted) if w[row] > 0]
    ends = np.cumsum([0, *shown.count])
    assert len(ends) == 8
    for g, (a, b) in enumerate(pairwise(ends)):
        rows = order[a:b]
        assert w[rows].sum() == pytest.approx(w.sum() / 7, abs=w.max())
        assert shown.predicted[g] == pytest.approx(np.average(predicted[rows], weights=w[rows]))
        assert shown.observed[g] == pytest.approx(np.average(happened[rows], weights=w[rows]))
        low, high = wilson_by_its_definition(shown.observed[g], w[rows].sum() ** 2 / np.sum(w[rows] ** 2))
        assert (shown.low[g], shown.high[g]) == pytest.approx((low, high), abs=1e-9)
    if weight is None:
        assert set(shown.count) == {57, 58} or set(shown.count) == {57}


def test_rows_that_state_the_same_stay_together():
    said = tied(calibrated(500))
    shown = reliability(said)
    values, counts = np.unique(said.positive, return_counts=True)
    assert len(values) == 11
    assert shown.predicted == pytest.approx(values)
    assert shown.count.tolist() == counts.tolist()
    by_label = reliability(said.take(np.argsort(said.y)))
    assert by_label.observed == pytest.approx(shown.observed)


def test_all_rows_state_the_same():
    shown = reliability(Predictions.of([0, 1], [0, 1, 1], [[0.4, 0.6]] * 3))
    assert shown.count.tolist() == [3]
    assert shown.predicted == pytest.approx([0.6])
    assert shown.observed == pytest.approx([2 / 3])


def test_one_row_has_little_effect():
    said = Predictions.of([0, 1], [1], [[0.4, 0.6]])
    shown = reliability(said)
    assert shown.observed == pytest.approx([1])
    assert shown.low == pytest.approx([1 / (1 + 1.959963984540054**2)])
    assert shown.high == pytest.approx([1])
    assert calibration_error(said) == pytest.approx(0, abs=1e-12)


def test_probabilities_of_zero_and_one_that_hold():
    said = Predictions.of([0, 1], np.arange(40) % 2, np.eye(2)[np.arange(40) % 2])
    shown = reliability(said)
    assert shown.predicted == pytest.approx([0, 1])
    assert shown.observed == pytest.approx([0, 1])
    assert metrics(said)["calibration_error"] == pytest.approx((0, 0, 0), abs=1e-12)


def test_a_group_at_least():
    with pytest.raises(ValueError, match="n_bins must be at least 1; got 0"):
        reliability(calibrated(10), 0)
