"""Stacking (D28): the weights of a committee against a general optimiser, and which members are kept."""

import numpy as np
import pytest
from scipy import optimize
from scipy.special import ndtr

from bayesvm import BayesianSVC
from bayesvm.core.cavities import Cavities
from bayesvm.core.heads import Binary
from bayesvm.core.links import Probit
from bayesvm.datasets import waveform
from bayesvm.inference import committees
from bayesvm.inference.committees import sharpened, stacked
from bayesvm.kernels import RBF

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
    assert stacked(losses, np.ones(N), 0.0, 4)[2] == 0  # it explains no row, however little the prior asks for


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
    assert apart[0] > 0.6 > apart[1] > apart[2]
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


# ---- how decided an average is ----


@pytest.mark.parametrize("noise", [0.0, 1.5])
def test_an_average_of_members_that_differ_is_sharpened_until_it_is_calibrated(noise):
    """Each member sees f with errors of its own, and states calibrated probabilities; the average is too cautious."""
    rng = np.random.default_rng(0)
    f = rng.normal(0, 1.5, 20_000)
    y = (rng.random(len(f)) < ndtr(f)).astype(int)
    members = [f + noise * rng.standard_normal(len(f)) for _ in range(3)]
    left_out = [Cavities(m[:, None], np.zeros((len(f), 1)), y, np.ones(len(f))) for m in members]
    links = [Binary((0.5,)).fit_link(left) for left in left_out]
    found = sharpened(links, left_out, np.full(3, 1 / 3))
    factor = found[0].scale / links[0].scale
    assert all(new.scale / old.scale == pytest.approx(factor) for new, old in zip(found, links, strict=True))
    if noise == 0:
        assert factor == pytest.approx(1, abs=0.02)
        return
    assert factor > 1.2

    def log_loss(factor):
        each = [
            link.sharpened(factor).probabilities(left.mean, left.variance)
            for link, left in zip(links, left_out, strict=True)
        ]
        return -np.log(np.mean(each, axis=0)[np.arange(len(y)), y]).mean()

    tried = np.linspace(0.8, 2.0, 61)
    assert factor == pytest.approx(tried[np.argmin([log_loss(one) for one in tried])], abs=0.05)
    assert log_loss(factor) < log_loss(1.0) - 0.002


def test_few_rows_hardly_sharpen():
    rng = np.random.default_rng(0)
    left_out = [Cavities(rng.normal(size=(5, 1)), np.zeros((5, 1)), np.arange(5) % 2, np.ones(5)) for _ in range(2)]
    found = sharpened([Probit(), Probit()], left_out, np.full(2, 0.5))
    assert found[0].scale == pytest.approx(1, abs=0.1)


# ---- whole fits ----

WAVES = waveform(450, random_state=0)
TRAIN, TEST = slice(0, 300), slice(300, None)


@pytest.fixture(scope="module")
def committee():
    return BayesianSVC(random_state=0, n_jobs=1).fit(WAVES.X[TRAIN], WAVES.y[TRAIN])


def test_a_fit_to_few_rows_is_a_small_committee(committee):
    members = committee.fitted_.members
    assert 1 < len(members) <= committees.MOST_MEMBERS
    weights = [member.weight for member in members]
    assert sum(weights) == pytest.approx(1)
    assert min(weights) >= committees.LEAST_SHARE
    kernels = [member.features.kernel for member in members]
    scalers = [member.scaler for member in members]
    for i, pair in enumerate(zip(kernels, scalers, strict=True)):
        assert all(pair[0] != kernels[j] or pair[1] is not scalers[j] for j in range(i))


def test_its_leave_one_out_loss_is_that_of_the_mixture(committee):
    fitted, right = committee.fitted_, np.arange(300)
    columns = np.searchsorted(committee.classes_, WAVES.y[TRAIN])
    mixture = sum(
        member.weight * member.link.probabilities(left.mean, left.variance)
        for member, left in zip(fitted.members, fitted.left_out, strict=True)
    )
    np.testing.assert_allclose(committee.loo_proba_, mixture, atol=1e-12)
    assert committee.loo_log_loss_ == pytest.approx(-np.log(mixture[right, columns]).mean())
    alone = [
        member.link.row_losses(left.mean, left.variance, left.y).mean()
        for member, left in zip(fitted.members, fitted.left_out, strict=True)
    ]
    assert committee.loo_log_loss_ < max(alone)
    # By convexity: the loss of a mean of probabilities is below the mean of the losses.
    assert committee.loo_log_loss_ <= np.average(alone, weights=[member.weight for member in fitted.members])


def test_its_loss_is_one_that_new_rows_have_too(committee):
    """The weights were chosen by leave-one-out, and the estimate is not far from the truth for that."""
    p = committee.predict_proba(WAVES.X[TEST])
    columns = np.searchsorted(committee.classes_, WAVES.y[TEST])
    losses = -np.log(p[np.arange(len(columns)), columns])
    assert losses.mean() == pytest.approx(committee.loo_log_loss_, abs=4 * losses.std() / np.sqrt(len(losses)))


def test_a_committee_has_the_same_bits_whatever_the_number_of_threads(committee):
    other = BayesianSVC(random_state=0, n_jobs=2).fit(WAVES.X[TRAIN], WAVES.y[TRAIN])
    np.testing.assert_array_equal(other.predict_proba(WAVES.X[TEST]), committee.predict_proba(WAVES.X[TEST]))
    np.testing.assert_array_equal(other.loo_proba_, committee.loo_proba_)
    assert [m.weight for m in other.fitted_.members] == [m.weight for m in committee.fitted_.members]


@pytest.mark.parametrize("n_rows", [300, 450])
def test_without_tuning_there_is_one_member_with_the_kernel_given(n_rows):
    kernel = RBF(3.0, 5.0)
    model = BayesianSVC(kernel, tune=None, random_state=0).fit(WAVES.X[:n_rows], WAVES.y[:n_rows])
    (member,) = model.fitted_.members
    assert member.features.kernel == RBF(3.0, 5.0)
    assert member.features.effects == ()
    assert (member.weight, member.link, member.scaler) == (1.0, None, None)
    assert model.fitted_.report is None


def test_a_name_without_tuning_is_that_kernel_and_nothing_beside_it():
    model = BayesianSVC("rbf", tune=None, random_state=0).fit(WAVES.X[TRAIN], WAVES.y[TRAIN])
    (member,) = model.fitted_.members
    assert isinstance(member.features.kernel, RBF)
