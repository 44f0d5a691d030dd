"""Thresholds of prediction sets against sorted lists and against the theory of split conformal (D35, D36)."""

from math import ceil

import numpy as np
import pytest
from scipy.stats import beta

from bayesvm.core.conformal import conformal_p_values, conformal_threshold, prediction_set_thresholds, require_coverage


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
    with pytest.raises(ValueError, match="coverage is a share strictly between 0 and 1"):
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
