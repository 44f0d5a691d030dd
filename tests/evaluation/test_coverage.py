import numpy as np
import pytest

from bayesvm.evaluation import DoubtHistogram, Predictions, risk_coverage
from tests.evaluation.problems import calibrated, tied, weights


def by_a_loop(said):
    """Coverage, risk and predicted risk of the rows with at most each doubt."""
    w = np.ones(said.n_rows) if said.weight is None else said.weight
    doubt = 1 - said.proba.max(axis=1)
    wrong = said.proba.argmax(axis=1) != said.y
    points = []
    for most in np.unique(doubt[w > 0]):
        kept = doubt <= most
        points.append(
            (
                w[kept].sum() / w.sum(),
                np.average(wrong[kept], weights=w[kept]),
                np.average(doubt[kept], weights=w[kept]),
            )
        )
    return np.array(points).T


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weight", [None, weights(300)], ids=["plain", "weighted"])
@pytest.mark.parametrize("change", [lambda said: said, tied], ids=["distinct", "tied"])
def test_risk_and_coverage_are_those_of_a_loop(n_classes, weight, change):
    said = change(calibrated(300, n_classes, weight=weight))
    found = risk_coverage(said)
    coverage, risk, predicted = by_a_loop(said)
    assert len(found.coverage) > 0.95 * len(coverage)  # two points may be too close for both to be shown
    shown = np.searchsorted(coverage, found.coverage - 1e-12)
    assert found.coverage == pytest.approx(coverage[shown])
    assert found.risk == pytest.approx(risk[shown])
    assert found.predicted == pytest.approx(predicted[shown])
    assert found.area == pytest.approx(np.sum(risk * np.diff(coverage, prepend=0)))
    assert found.coverage[-1] == pytest.approx(1)


@pytest.mark.parametrize("n_rows", [300, 5000])
@pytest.mark.parametrize("change", [lambda said: said, tied], ids=["distinct", "tied"])
def test_at_a_share_stands_what_can_be_reached(change, n_rows):
    said = change(calibrated(n_rows))
    curve = risk_coverage(said)
    coverage, risk, predicted = by_a_loop(said)
    for share in (1.0, 0.95, 0.9, 0.5):
        first = np.flatnonzero(coverage >= share)[0]
        assert curve.at(share) == pytest.approx((coverage[first], risk[first], predicted[first]))
    with pytest.raises(ValueError, match="between 0 and 1; got 1.1"):
        curve.at(1.1)


def test_of_many_rows_some_points_are_shown_and_all_make_the_area():
    said = calibrated(5000)
    found = risk_coverage(said)
    coverage, risk, _ = by_a_loop(said)
    assert 400 < len(found.coverage) <= 500
    assert np.diff(found.coverage).max() < 0.003
    assert np.abs(found.coverage[:, None] - coverage).min(axis=1).max() < 1e-12
    assert found.coverage[-1] == pytest.approx(1)
    assert found.risk[-1] == pytest.approx(np.mean(~said.correct))
    assert found.area == pytest.approx(risk.mean())


def test_one_row_and_equal_rows_are_one_point():
    for n in (1, 6):
        found = risk_coverage(Predictions.of([0, 1], np.arange(n) % 2, [[0.4, 0.6]] * n))
        assert found.coverage == pytest.approx([1])
        assert found.risk == pytest.approx([0.5 if n == 6 else 1])
        assert found.predicted == pytest.approx([0.4])
        assert found.area == pytest.approx(found.risk[0])


def kept_by_sorting(doubt, rate, weight=None):
    """How many of the least doubtful rows may be kept."""
    order = np.argsort(doubt)
    w = np.ones(len(doubt)) if weight is None else weight[order]
    means = np.cumsum(w * doubt[order]) / np.cumsum(w)
    return int(np.sum(means <= rate))


@pytest.mark.parametrize("weight", [None, np.random.default_rng(3).uniform(0.1, 3, 20_000)], ids=["plain", "weighted"])
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05, 0.1])
def test_the_threshold_is_that_of_all_doubts_sorted(rate, weight):
    doubt = 0.5 * np.random.default_rng(0).beta(0.5, 1, 20_000)
    histogram = DoubtHistogram()
    for part in np.array_split(np.arange(20_000), 7):
        histogram.add(doubt[part], None if weight is None else weight[part])
    t = histogram.threshold(rate)
    kept = doubt <= t
    assert np.average(doubt[kept], weights=None if weight is None else weight[kept]) <= rate
    exact = kept_by_sorting(doubt, rate, weight)
    first_left_out = np.sort(doubt)[exact]
    assert t == pytest.approx(first_left_out, abs=1 / 65_536)
    assert exact - kept.sum() <= np.sum(np.abs(doubt - first_left_out) < 1 / 65_536)


def test_all_rows_or_none():
    histogram = DoubtHistogram()
    assert histogram.threshold(0.5) == -1
    histogram.add([])
    assert histogram.threshold(0.5) == -1
    histogram.add(np.full(1000, 0.1))
    assert histogram.threshold(0.1) == 1  # though the sum of a thousand tenths is above 100
    assert histogram.threshold(0.0999) == -1
    histogram.add([0.9], weight=[0.0])
    assert histogram.threshold(0.1) == 1


@pytest.mark.parametrize(("doubt", "n_rows"), [(0.3, 999), (0.1, 1000), (0.05, 12_345)])
def test_rows_of_just_the_rate_are_kept_though_their_sum_is_rounded(doubt, n_rows):
    """The sum of 999 times 0.3 comes out above 0.3 * 999."""
    histogram = DoubtHistogram()
    histogram.add(np.full(n_rows, doubt))
    assert histogram.threshold(doubt) == 1
    assert histogram.threshold(doubt * (1 - 1e-6)) == -1


def test_the_greatest_threshold_reaches_to_the_first_row_that_is_left_out():
    histogram = DoubtHistogram()
    histogram.add(np.array([0.125, 0.5, 1.0, 0.0], np.float32))
    assert histogram.threshold(0) == pytest.approx(0.125)
    assert histogram.threshold(0) < 0.125
    assert 0.499 < histogram.threshold(0.07) < 0.5
    assert 0.999 < histogram.threshold(0.3) < 1
    assert histogram.threshold(0.5) == 1


@pytest.mark.parametrize(("doubt", "message"), [([0.1, np.nan], "row 1 has nan"), ([-0.1, 0.2], "row 0 has -0.1")])
def test_a_doubt_is_between_zero_and_one(doubt, message):
    with pytest.raises(ValueError, match=message):
        DoubtHistogram().add(doubt)
