"""Stacking (D28): the weights of a committee against a general optimiser, and which members are kept."""

import numpy as np
import pytest
from scipy import optimize

from bayesvm.inference import committees
from bayesvm.inference.committees import stacked

N = 400
rng = np.random.default_rng(0)


def losses_of(*deviations, n_rows=N, seed=0):
    """``-log`` of normal densities at standard normal draws, as members with these deviations state them."""
    draws = np.random.default_rng(seed).standard_normal((n_rows, 1))
    s = np.array(deviations)
    return 0.5 * (draws / s) ** 2 + np.log(s)


def mixture_loss(weights, losses, weight=None):
    return float(np.average(-np.log(np.exp(-losses) @ weights), weights=weight))


def best_on_simplex(losses, weight, prior_rows):
    """By a method for constraints, from the definition: the log likelihood and a Dirichlet prior."""
    n_members = losses.shape[1]

    def objective(w):
        return -weight @ np.log(np.exp(-losses) @ w) - prior_rows / n_members * np.log(w).sum()

    found = optimize.minimize(
        objective,
        np.full(n_members, 1 / n_members),
        method="SLSQP",
        bounds=[(1e-9, 1)] * n_members,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found.success
    return found.x


def different(n_members, n_rows=N, seed=0):
    """Members that are good on different rows."""
    generator = np.random.default_rng(seed)
    return generator.exponential(generator.uniform(0.5, 1.5, n_members), (n_rows, n_members))


@pytest.mark.parametrize("n_members", [2, 3, 5])
@pytest.mark.parametrize("weight", [np.ones(N), rng.uniform(0, 2, N), np.full(N, 0.05)], ids=["ones", "some", "few"])
def test_weights_are_the_best_ones_on_the_simplex(n_members, weight):
    losses = different(n_members)
    found = stacked(losses, weight, least=0.0, most=n_members)
    assert found.sum() == pytest.approx(1)
    expected = best_on_simplex(losses, weight, committees.PRIOR_ROWS)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert np.ptp(expected) > 0.02


def test_equal_members_have_equal_weights():
    losses = np.repeat(losses_of(1.0), 4, axis=1)
    np.testing.assert_allclose(stacked(losses, np.ones(N), 0.05, 4), 0.25)


def test_members_share_what_is_theirs_whatever_their_order():
    losses = different(3)
    found = stacked(losses, np.ones(N), 0.0, 3)
    np.testing.assert_allclose(stacked(losses[:, ::-1], np.ones(N), 0.0, 3), found[::-1], atol=1e-3)


def test_a_useless_member_is_dropped_and_the_others_do_as_if_it_had_never_been():
    losses = np.hstack([different(2), 5 + losses_of(1.0)])
    found = stacked(losses, np.ones(N), 0.05, 4)
    assert found[2] == 0
    np.testing.assert_allclose(found[:2], stacked(losses[:, :2], np.ones(N), 0.05, 4))
    assert stacked(losses, np.ones(N), 0.0, 4)[2] > 0  # it is the limit that drops it


@pytest.mark.parametrize("most", [1, 2, 3, 6])
def test_there_are_at_most_so_many_members(most):
    found = stacked(different(6), np.ones(N), 0.0, most)
    assert np.count_nonzero(found) == most
    assert found.sum() == pytest.approx(1)


def test_one_member_has_all_the_weight():
    np.testing.assert_array_equal(stacked(losses_of(1.0), np.ones(N), 0.05, 4), [1.0])


@pytest.mark.parametrize("seed", range(5))
def test_a_committee_is_no_worse_than_its_best_member_but_for_the_prior(seed):
    """On the rows it was made with. A prior of n₀ rows moves the mean loss by less than n₀ log K of all rows."""
    losses = np.hstack([different(3, seed=seed), losses_of(0.8, 1.0, 1.5, seed=seed)])
    found = stacked(losses, np.ones(N), 0.0, 6)
    pull = committees.PRIOR_ROWS * np.log(6) / N
    assert mixture_loss(found, losses) <= losses.mean(axis=0).min() + pull
    kept = stacked(losses, np.ones(N), committees.LEAST_SHARE, committees.MOST_MEMBERS)
    assert mixture_loss(kept, losses) <= losses.mean(axis=0).min() + pull


def test_members_that_complement_each_other_are_better_together():
    generator = np.random.default_rng(0)
    left = generator.random(N) < 0.5
    losses = np.column_stack([np.where(left, 0.1, 2.0), np.where(left, 2.0, 0.1)])
    found = stacked(losses, np.ones(N), 0.05, 4)
    np.testing.assert_allclose(found, 0.5, atol=0.06)
    assert mixture_loss(found, losses) < losses.mean(axis=0).min() - 0.3


def test_few_effective_rows_are_drawn_to_equal_weights():
    """The same rows, each of which says little: copies, or weights that are uneven."""
    losses = np.hstack([losses_of(1.0), losses_of(1.0) + 0.3])
    apart = [np.ptp(stacked(losses, np.full(N, each), 0.0, 2)) for each in (1.0, 0.1, 0.001)]
    assert apart[0] > 0.8 > apart[1] > apart[2]
    assert apart[2] < 0.01


def test_heavy_rows_decide():
    left = np.arange(N) % 2 == 0
    losses = np.column_stack([np.where(left, 0.1, 2.0), np.where(left, 2.0, 0.1)])
    found = stacked(losses, np.where(left, 1.9, 0.1), 0.0, 2)
    assert found[0] > 0.85
    rows = np.repeat(np.arange(N), np.where(left, 3, 1))
    twice = stacked(losses[rows], np.ones(len(rows)), 0.0, 2)
    np.testing.assert_allclose(stacked(losses, np.where(left, 3.0, 1.0), 0.0, 2), twice, atol=1e-3)


def test_losses_may_be_huge():
    """Only differences within a row count; no density underflows."""
    losses = different(3)
    expected = stacked(losses, np.ones(N), 0.0, 3)
    np.testing.assert_allclose(stacked(losses + 1e4, np.ones(N), 0.0, 3), expected, atol=1e-3)
    far = stacked(np.column_stack([losses[:, 0], losses[:, 0] + 5000]), np.ones(N), 0.05, 4)
    np.testing.assert_array_equal(far, [1.0, 0.0])
