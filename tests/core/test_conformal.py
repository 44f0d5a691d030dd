"""Thresholds of prediction sets against sorted lists and against the theory of split conformal (D35, D36)."""

from math import ceil

import numpy as np
import pytest
from scipy.stats import beta

from bayesvm.core.conformal import (
    CalibratedShares,
    conformal_p_values,
    conformal_threshold,
    effective_units,
    prediction_set_thresholds,
    require_coverage,
)


def by_sorting(scores, coverage):
    """The ⌈(n + 1) · coverage⌉-th smallest of a list."""
    rank = ceil(round((len(scores) + 1) * coverage, 9))
    return sorted(scores)[rank - 1] if rank <= len(scores) else np.inf


@pytest.mark.parametrize("n_rows", [1, 9, 10, 99, 100, 250])
@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.55, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("digits", [1, 12], ids=["tied", "distinct"])
def test_the_threshold_is_the_one_of_a_sorted_list(n_rows, coverage, digits):
    scores = np.random.default_rng(n_rows).random(n_rows).round(digits)
    for weight in (1.0, 0.1, 7.0):  # a common factor says nothing about the rows
        assert conformal_threshold(scores, np.full(n_rows, weight), coverage) == by_sorting(scores, coverage)


def test_rows_of_weight_zero_do_not_count():
    rng = np.random.default_rng(0)
    scores, there = rng.random(80), rng.random(80) < 0.5
    found = conformal_threshold(scores, there.astype(float), 0.9)
    assert found == by_sorting(scores[there], 0.9)
    assert conformal_threshold(scores, np.zeros(80), 0.1) == np.inf


def test_of_uneven_weights_the_effective_number_of_rows_counts():
    rng = np.random.default_rng(1)
    scores, weight = rng.random(200), rng.gamma(1.0, size=200)
    n = weight.sum() ** 2 / (weight**2).sum()
    for coverage in (0.3, 0.9):
        wanted = next(s for s in sorted(scores) if weight[scores <= s].sum() / weight.sum() * n >= (n + 1) * coverage)
        assert conformal_threshold(scores, weight, coverage) == wanted
    few = np.r_[np.full(5, 1e6), np.ones(195)]  # five rows are all that is known: 5/6 of new rows at the most
    assert conformal_threshold(scores, few, 0.9) == np.inf
    assert conformal_threshold(scores, few, 0.8) < np.inf


def test_coverage_over_exchangeable_rows_is_that_of_split_conformal():
    """Given the rows left out, the coverage is Beta(rank, n + 1 - rank) distributed (Vovk 2012)."""
    rng, n, coverage = np.random.default_rng(3), 30, 0.8
    rank = ceil((n + 1) * coverage)
    covered = [conformal_threshold(rng.random(n), np.ones(n), coverage) for _ in range(4_000)]
    expected = beta(rank, n + 1 - rank)
    assert np.mean(covered) == pytest.approx(expected.mean(), abs=4 * expected.std() / np.sqrt(4_000))
    assert np.std(covered) == pytest.approx(expected.std(), rel=0.06)
    assert expected.mean() >= coverage


@pytest.mark.parametrize("each", [False, True])
def test_thresholds_of_columns_are_those_of_a_loop(each):
    rng = np.random.default_rng(4)
    p, y = rng.dirichlet(np.ones(3), size=120), rng.integers(3, size=120)
    found = prediction_set_thresholds(p, y, np.ones(120), 0.9, each=each)
    of = [1 - p[i, k] for i, k in enumerate(y)]
    wanted = [by_sorting([s for s, k in zip(of, y, strict=True) if k == c or not each], 0.9) for c in range(3)]
    assert found.tolist() == wanted


@pytest.mark.parametrize("coverage", [0, 1, 1.0, -0.1, 90, np.nan, "0.9", None, True])
def test_a_coverage_is_a_share(coverage):
    with pytest.raises(ValueError, match="coverage must be strictly between 0 and 1"):
        require_coverage(coverage)


@pytest.mark.parametrize(
    "weight", [np.ones(99), np.random.default_rng(6).gamma(2.0, size=99)], ids=["plain", "weighted"]
)
def test_a_p_value_is_at_most_the_rate_of_misses_where_the_score_is_above_the_threshold(weight):
    rng = np.random.default_rng(5)
    scores, new = rng.random(99).round(2), rng.random(500).round(2)
    p = conformal_p_values(scores, weight, new)
    n = weight.sum() ** 2 / (weight**2).sum()
    assert p == pytest.approx([(1 + n * weight[scores >= s].sum() / weight.sum()) / (n + 1) for s in new])
    for coverage in (0.5, 0.9, 0.95):
        flagged = new > conformal_threshold(scores, weight, coverage)
        assert flagged.any()
        assert np.array_equal(flagged, p <= 1 - coverage + 1e-9)


def test_shares_of_equal_rows_are_ranks():
    """The k-th smallest of n + 1 exchangeable numbers is below the new one with probability k / (n + 1)."""
    below = np.random.default_rng(0).beta(1.5, 3.0, 99)
    found = CalibratedShares.of(below, np.full(99, 3.0))
    np.testing.assert_allclose(found(np.arange(1, 100) / 100), np.sort(below), rtol=1e-12)
    np.testing.assert_allclose(found.inverse(np.sort(below)), np.arange(1, 100) / 100, rtol=1e-12)
    shares = np.linspace(1e-6, 1 - 1e-6, 5_001)
    assert (np.diff(found(shares)) >= 0).all()
    np.testing.assert_allclose(found.inverse(found(shares)), shares, atol=1e-9)


def test_a_share_of_new_rows_is_below_its_quantile():
    """Over draws of the rows left out and of a new one, for few rows and for predictions that are far off."""
    rng, n_draws = np.random.default_rng(1), 10_000
    for n, share in ((9, 0.1), (30, 0.05), (30, 0.9)):
        draws = rng.random((n_draws, n + 1)) ** 2
        inside = [row[-1] < CalibratedShares.of(row[:-1], np.ones(n))(share) for row in draws]
        assert np.mean(inside) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / n_draws))


def test_shares_with_weights_are_those_of_repeated_rows():
    rng = np.random.default_rng(2)
    below, weight = rng.random(400), rng.integers(0, 4, 400)
    found = CalibratedShares.of(below, weight.astype(float))
    again = CalibratedShares.of(np.repeat(below, weight), np.ones(weight.sum()))
    at = np.linspace(0.02, 0.98, 50)
    np.testing.assert_allclose(found(at), again(at), atol=0.01)


def test_one_row_and_rows_of_weight_zero():
    one = CalibratedShares.of(np.array([0.3]), np.ones(1))
    np.testing.assert_allclose(one([0.25, 0.5, 0.75]), [0.15, 0.3, 0.65])
    shares = CalibratedShares.of(np.array([0.3, 0.9, 0.4]), np.array([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(shares([1 / 3, 2 / 3]), [0.3, 0.4])


def test_groups_are_the_units():
    """Rows of a group are one: thresholds, p-values and quantiles are those of a row for each group, if these agree."""
    rng = np.random.default_rng(3)
    scores, weight = rng.random(40), rng.gamma(1.0, size=40)
    group = np.repeat(np.arange(40), 7)
    assert effective_units(weight[group], group) == pytest.approx(effective_units(weight, None))
    for coverage in (0.5, 0.8, 0.9):
        found = conformal_threshold(scores[group], weight[group], coverage, group)
        assert found == conformal_threshold(scores, weight, coverage)
    new = rng.random(5)
    np.testing.assert_allclose(
        conformal_p_values(scores[group], weight[group], new, group), conformal_p_values(scores, weight, new)
    )
    found = CalibratedShares.of(scores[group], np.ones(280), group)
    alone = CalibratedShares.of(scores, np.ones(40))
    np.testing.assert_allclose(found([1 / 41, 40 / 41]), alone([1 / 41, 40 / 41]), atol=1e-9)


def test_coverage_of_a_new_group_is_at_least_what_is_asked_for():
    """Groups that differ strongly: scores of whole groups are exchangeable, those of rows are not."""
    rng, wrong = np.random.default_rng(4), []
    group = np.repeat(np.arange(20), 10)
    for _ in range(2_000):
        scores = rng.normal(size=21)[np.r_[group, np.full(10, 20)]] + 0.3 * rng.normal(size=210)
        threshold = conformal_threshold(scores[:200], np.ones(200), 0.8, group)
        wrong.append(np.mean(scores[200:] > threshold))
    assert np.mean(wrong) <= 0.2 + 3 * np.std(wrong) / np.sqrt(2_000)
