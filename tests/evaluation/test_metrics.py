import sys

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

from bayesvm.evaluation import Metric, Predictions, metrics, paired_difference
from tests.evaluation.problems import calibrated, tied, weights

NAMES = ["error", "brier", "log_loss", "auc", "calibration_error"]


def by_scikit_learn(said, rows=slice(None)):
    """Everything but the calibration error, which scikit-learn does not have."""
    y, P = said.y[rows], said.proba[rows]
    how = {"sample_weight": None if said.weight is None else said.weight[rows]}
    labels = np.arange(len(said.classes))
    two = len(labels) == 2
    squares = np.sum((P - np.eye(len(labels))[y]) ** 2, axis=1)
    return {
        "error": 1 - accuracy_score(y, P.argmax(axis=1), **how),
        "brier": brier_score_loss(y, P[:, 1], **how) if two else np.average(squares, weights=how["sample_weight"]),
        "log_loss": log_loss(y, P, labels=labels, **how),
        "auc": roc_auc_score(y, P[:, 1] if two else P, multi_class="ovr", labels=labels, **how),
    }


def values(said, **how):
    return {name: metric.value for name, metric in metrics(said, n_bootstrap=0, **how).items()}


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weight", [None, weights(300)], ids=["plain", "weighted"])
@pytest.mark.parametrize("change", [lambda said: said, tied], ids=["distinct", "tied"])
def test_values_are_those_of_scikit_learn(n_classes, weight, change):
    said = change(calibrated(300, n_classes, weight=weight))
    found = values(said)
    assert list(found) == NAMES
    del found["calibration_error"]
    assert found == pytest.approx(by_scikit_learn(said), rel=1e-12)


def test_whole_weights_are_rows_given_so_often():
    times = np.random.default_rng(0).integers(0, 4, 200)
    said = calibrated(200)
    weighted = values(Predictions.of([0, 1], said.y, said.proba, weight=times))
    repeated = values(said.take(np.repeat(np.arange(200), times)))
    del weighted["calibration_error"], repeated["calibration_error"]  # knows which rows are new ones
    assert weighted == pytest.approx(repeated, rel=1e-12)


def by_definition(said, rows):
    """The same by hand, for it is needed often."""
    y, P, w = said.y[rows], said.proba[rows], said.weight_or_ones[rows]
    T = np.eye(P.shape[1])[y]
    areas = []
    for k in range(P.shape[1]):
        pairs = np.outer(w * (y == k), w * (y != k))
        larger = np.sign(np.subtract.outer(P[:, k], P[:, k])) / 2 + 0.5
        areas.append(np.sum(pairs * larger) / np.sum(pairs))
    return {
        "error": np.average(P.argmax(axis=1) != y, weights=w),
        "brier": np.average(np.sum((P - T) ** 2, axis=1), weights=w) / (2 if P.shape[1] == 2 else 1),
        "log_loss": np.average(-np.log(np.sum(T * P, axis=1)), weights=w),
        "auc": np.mean(areas),
    }


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weight", [None, weights(100)], ids=["plain", "weighted"])
def test_intervals_are_those_of_resampled_rows(n_classes, weight):
    said = calibrated(100, n_classes, weight=weight).counted()
    assert by_definition(said, slice(None)) == pytest.approx(by_scikit_learn(said))
    rng = np.random.default_rng(5)
    resamples = [by_definition(said, rng.integers(said.n_rows, size=said.n_rows)) for _ in range(2000)]
    found = metrics(said, n_bootstrap=2000)
    for name in NAMES[:4]:
        drawn = [one[name] for one in resamples]
        noise = 0.3 * np.std(drawn)  # an end of an interval is known to 0.06 of a deviation, and a long tail to less
        assert found[name][1:] == pytest.approx(np.quantile(drawn, (0.025, 0.975)), abs=noise)


@pytest.mark.slow
def test_intervals_hold_the_truth_about_as_often_as_they_say():
    def truth(name):
        return metrics(calibrated(200_000, seed=99), n_bootstrap=0)[name].value

    truths = {name: truth(name) for name in NAMES[:4]}
    hits = dict.fromkeys(truths, 0)
    for seed in range(100):
        found = metrics(calibrated(300, seed=seed), n_bootstrap=100)
        for name, value in truths.items():
            hits[name] += found[name].low <= value <= found[name].high
    assert all(88 <= hit <= 99 for hit in hits.values()), hits


def test_the_same_seed_gives_the_same_intervals_and_another_one_others():
    said = calibrated(100)
    assert metrics(said) == metrics(said)
    assert metrics(said, random_state=1) != metrics(said)
    assert metrics(said, random_state=np.random.default_rng(0)) == metrics(said)


def test_the_order_of_the_rows_does_not_matter():
    said = tied(calibrated(400, weight=weights(400)))
    assert values(said) == pytest.approx(values(said.take(np.argsort(said.y))), rel=1e-9)


def test_weights_count_by_their_ratios_only():
    said = calibrated(200, weight=weights(200))
    scaled = Predictions.of([0, 1], said.y, said.proba, weight=1e6 * said.weight)
    for name, metric in metrics(said).items():
        assert metrics(scaled)[name] == pytest.approx(metric, rel=1e-6), name


def test_certainty_that_was_wrong_costs_as_much_as_in_scikit_learn():
    said = Predictions.of([0, 1], [0, 1, 0] * 100, [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]] * 100)
    found = values(said)
    assert found["log_loss"] == pytest.approx(log_loss(said.y, said.proba))
    assert found["log_loss"] == pytest.approx(2 / 3 * -np.log(np.finfo(float).eps))
    assert found["calibration_error"] == pytest.approx((0.5 * 2 + 1) / 3)


@pytest.mark.parametrize("n_rows", [1, 40])
def test_one_class_alone_has_no_area_under_the_curve(n_rows):
    said = Predictions.of([0, 1, 2], np.ones(n_rows, int), np.tile([0.2, 0.5, 0.3], (n_rows, 1)))
    found = metrics(said)
    assert np.isnan(found["auc"]).all()
    assert found["log_loss"] == pytest.approx((np.log(2),) * 3)
    assert found["brier"] == pytest.approx((0.38,) * 3)
    two = metrics(Predictions.of([0, 1], [1], [[0.5, 0.5]]))
    assert np.isnan(two["auc"]).all()


def test_a_class_that_is_not_there_takes_no_part_in_the_area():
    said = calibrated(200, 4)
    said = said.take(said.y != 2)
    each = [roc_auc_score(said.y == k, said.proba[:, k]) for k in (0, 1, 3)]
    assert metrics(said)["auc"].value == pytest.approx(np.mean(each))


def test_resamples_without_the_rare_class_are_left_out():
    rng = np.random.default_rng(0)
    p = rng.random(30)
    area = metrics(Predictions.of([0, 1], np.arange(30) == 12, np.column_stack([1 - p, p])))["auc"]
    assert 0 <= area.low <= area.value <= area.high <= 1


def test_equal_probabilities_rank_nothing():
    found = metrics(Predictions.of([0, 1], np.arange(60) % 2, np.full((60, 2), 0.5)))
    assert found["auc"] == pytest.approx((0.5, 0.5, 0.5))
    assert found["brier"] == pytest.approx((0.25, 0.25, 0.25))


def test_no_error_in_few_rows_is_no_proof_of_none():
    sure = Predictions.of([0, 1], np.arange(20) % 2, np.eye(2)[np.arange(20) % 2] * 0.8 + 0.1)
    z2 = 1.959963984540054**2
    assert metrics(sure)["error"] == pytest.approx((0, 0, z2 / (20 + z2)))
    wrong = Predictions.of([0, 1], 1 - sure.y, sure.proba)
    assert metrics(wrong)["error"] == pytest.approx((1, 20 / (20 + z2), 1))


def test_without_resamples_there_is_no_interval():
    found = metrics(calibrated(50), n_bootstrap=0)
    assert all(np.isnan([metric.low, metric.high]).all() for metric in found.values())
    assert isinstance(found["error"], Metric)
    with pytest.raises(ValueError, match="n_bootstrap must not be negative; got -1"):
        metrics(calibrated(50), n_bootstrap=-1)


def test_no_error_in_weighted_rows_counts_those_that_carry_the_weight():
    """Nine rows of weight 1 and one of weight 9 are worth 18 ** 2 / (9 + 81) = 3.6 rows."""
    said = Predictions.of([0, 1], [0, 1] * 5, [[0.9, 0.1], [0.1, 0.9]] * 5, weight=[9] + [1] * 9)
    z2 = 1.959963984540054**2
    assert metrics(said)["error"] == pytest.approx((0, 0, z2 / (3.6 + z2)))


def test_many_rows_are_resampled_less_often(monkeypatch):
    monkeypatch.setattr(sys.modules[Metric.__module__], "MOST_CELLS", 100)
    two, four = calibrated(100), calibrated(26, 4)
    assert metrics(two) == metrics(two, n_bootstrap=1000)
    assert metrics(calibrated(101)) == metrics(calibrated(101), n_bootstrap=200)
    assert metrics(four) == metrics(four, n_bootstrap=200)


def test_a_paired_difference_has_the_interval_of_the_bootstrap():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y, q = rng.random(2000) < p, p**2 / (p**2 + (1 - p) ** 2)
    weight = rng.integers(1, 4, 2000).astype(float)
    ours, theirs = (
        Predictions.of([False, True], y, np.column_stack([1 - each, each]), weight=weight) for each in (p, q)
    )
    found = paired_difference(theirs, ours)
    loss = [-np.log(np.where(y, each, 1 - each)) for each in (p, q)]
    drawn = [rng.integers(2000, size=2000) for _ in range(2000)]
    expected = [np.average((loss[1] - loss[0])[rows], weights=weight[rows]) for rows in drawn]
    assert found["log_loss"].value == pytest.approx(np.average(loss[1] - loss[0], weights=weight))
    half = np.subtract(*np.quantile(expected, [0.975, 0.025])) / 2
    assert (found["log_loss"].high - found["log_loss"].low) / 2 == pytest.approx(half, rel=0.1)
    assert found["error"] == (0, 0, 0)  # both predict the same classes


def test_only_the_same_rows_have_a_paired_difference():
    one, other = (Predictions.of([0, 1], y, [[0.5, 0.5]] * 2) for y in ([0, 1], [1, 1]))
    with pytest.raises(ValueError, match="same rows"):
        paired_difference(one, other)


def test_an_interval_down_to_zero_may_be_zero():
    assert Metric(0.01, 0.0, 0.03).may_be_zero
    assert not Metric(0.01, 0.005, 0.03).may_be_zero
    assert not Metric(0.0, 0.0, 0.0).may_be_zero
