"""The units in which numbers are learned: a centre and a spread that a few outliers do not move."""

import numpy as np
import pytest

from bayesvm.estimators._numbers import NUMBERS, centre_and_spread

RNG = np.random.default_rng(0)
NORMAL = 7 + 3 * RNG.standard_normal(20_000)


def test_of_a_normal_law_they_are_mean_and_deviation():
    assert centre_and_spread(NORMAL, np.ones(20_000)) == pytest.approx((7, 3), rel=0.03)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.15])
def test_outliers_hardly_move_them(share):
    y = np.where(RNG.random(20_000) < share, 1e9, NORMAL)
    centre, spread = centre_and_spread(y, np.ones(20_000))
    assert centre == pytest.approx(7, abs=1)
    assert 3 < spread < 20  # their deviation is 1e8 and more


def test_where_most_numbers_are_equal_the_others_count():
    y = np.where(RNG.random(20_000) < 0.7, 0.0, NORMAL)
    assert 1 < centre_and_spread(y, np.ones(20_000))[1] < 10
    few = np.zeros(1000)
    few[:3] = 5.0
    assert centre_and_spread(few, np.ones(1000))[1] == pytest.approx(0.015)


def test_a_weight_of_three_counts_as_three_rows():
    y, weight = NORMAL[:501], RNG.integers(1, 4, 501)
    assert centre_and_spread(y, weight.astype(float)) == centre_and_spread(np.repeat(y, weight), np.ones(weight.sum()))


def test_parts_of_a_table_add_up():
    parts = NUMBERS.summarise(NORMAL[:5], None, str)
    parts += NUMBERS.summarise(NORMAL[5:100], np.full(95, 2.0), str)
    assert parts.n_rows == 100
    np.testing.assert_array_equal(parts.y, NORMAL[:100])
    np.testing.assert_array_equal(parts.weight, np.r_[np.ones(5), np.full(95, 2.0)])


def test_numbers_too_close_together_are_an_error():
    with pytest.raises(ValueError, match="y varies by 3e-200 only"):
        NUMBERS.encoder(None, NUMBERS.of(1e-200 * NORMAL, np.ones(20_000)))


@pytest.mark.parametrize("y", [np.array(["1.5", "2", "abc", "4"]), np.array([1.5, 2, "abc", 4], object)])
def test_text_among_numbers_is_named(y):
    with pytest.raises(ValueError, match="row 2: y is 'abc', which is not a number"):
        NUMBERS.require(y)
    with pytest.raises(
        ValueError, match=r"row 0: y is '1\.5', which is not a number. Regression needs a numeric target"
    ):
        NUMBERS.require(np.array(["1.5", "2"]))


def test_all_weights_zero_are_an_error():
    with pytest.raises(ValueError, match="all sample weights are zero"):
        NUMBERS.encoder(None, NUMBERS.of(NORMAL[:5], np.zeros(5)))
