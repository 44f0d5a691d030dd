"""Judgements against whole fits and refits; searches against grids; gradients against fits elsewhere (D16-D18)."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_ndtr

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.core.features import Effect, HeldFeatures, InducingFeatures, LinearFeatures
from bayesvm.core.heads import Binary, OneVsRest
from bayesvm.core.latent import Block
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.core.linalg import NotFiniteError, NotPositiveDefiniteError
from bayesvm.core.links import fit_probit
from bayesvm.data.workers import Workers
from bayesvm.datasets import waveform
from bayesvm.inference import hyperparameters, judgements
from bayesvm.inference.families import KernelFamily, LinearFamily
from bayesvm.inference.hyperparameters import elbo_gradient, loss_gradient, search
from bayesvm.inference.judgements import Rows, judge, moved
from bayesvm.kernels import RBF, Linear, Matern

N, M = 300, 25
DATA = waveform(N, random_state=0)
X, TWO = DATA.X[:, :6], (DATA.y == 1).astype(int)
THREE = np.digitize(X[:, 0] + X[:, 3], [1.0, 3.0])
OMEGA = np.random.default_rng(0).uniform(0.3, 2.5, N)
POINTS = X[:M]
KERNEL = RBF(4.0, 4.0)
HOW = {"tune": None, "scale": None, "inference": "batch", "tol": 1e-9, "max_iter": 1000}


def some_rows(y=TWO, weight=None, offsets=None, n_rows=N, bound="exact", workers=None):
    head = Binary((0.5,)) if y.max() == 1 else OneVsRest((0.3, 0.3, 0.4))
    kept = None if weight is None else weight[:n_rows]
    block, means = Block(X[:n_rows], y[:n_rows], kept), offsets or (0.0,) * head.n_functions
    rows = Rows.held(block, workers or Workers(1), head, LIKELIHOODS[bound], means)
    return replace(rows, source=replace(rows.source, rows_per_block=60))


EFFECT = Effect((3,), InducingFeatures.build(Matern(0.5, 2.0, nu=0.5), np.linspace(-2, 4, 9)[:, None], np.float32))
WITH_EFFECT = InducingFeatures.build(KERNEL, POINTS, np.float32, (EFFECT,))
LINEAR = LinearFeatures(np.append(np.full(6, np.sqrt(0.3)), 10.0), intercept=True)


def objective(found, family, rows):
    """What a search minimises, at what it found."""
    return found.loo * rows.source.total_weight + family.penalty(found.features.kernel.log_parameters())[0]


# ---- judgements ----


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("weight", [None, OMEGA], ids=["no weights", "weights"])
@pytest.mark.parametrize("bound", LIKELIHOODS)
def test_a_judgement_says_what_a_whole_fit_says(y, weight, bound):
    rows = some_rows(y, weight, bound=bound)
    found = judge(rows, InducingFeatures.build(KERNEL, POINTS))
    model = BayesianSVC(KERNEL, inducing=POINTS, bound=bound, **HOW).fit(X, y, sample_weight=weight)
    # The augmented bound is slow to converge, and judgements do not wait for it.
    loss, nats, share = {"exact": (0.002, 0.002, 0.03), "augmented": (0.02, 0.05, 0.2)}[bound]
    assert found.loo == pytest.approx(model.loo_log_loss_, abs=loss)
    assert found.elbo == pytest.approx(model.elbo_, abs=nats * N * rows.head.n_functions)
    assert found.link.scale == pytest.approx(rows.head.fit_link(model.fitted_.left_out[0]).scale, rel=0.1)
    assert np.average(found.losses, weights=weight) == pytest.approx(found.loo)
    np.testing.assert_allclose(np.exp(-found.losses), model.loo_proba_[np.arange(N), y], atol=share)


def test_a_judgement_of_a_linear_model_says_what_a_whole_fit_says():
    model = BayesianLinearSVC(0.3, **HOW).fit(X, TWO)
    assert judge(some_rows(), LINEAR).loo == pytest.approx(model.loo_log_loss_, abs=0.002)


def test_with_another_prior_mean_the_loss_is_that_of_refits_without_each_row():
    n, c = 40, 0.8
    found = judge(some_rows(n_rows=n, offsets=(c,)), InducingFeatures.build(KERNEL, POINTS[:8]))
    Z, rows, sign = POINTS[:8], X[:n], np.where(TWO[:n] == 1, 1.0, -1.0)
    phi = np.linalg.solve(np.linalg.cholesky(KERNEL(Z)), KERNEL(Z, rows)).T
    residual = 4.0 - np.sum(phi**2, axis=1)
    moments = []
    for left_out in range(n):
        keep = np.arange(n) != left_out
        P, h = np.eye(8), np.zeros(8)
        for _ in range(60):
            S = np.linalg.inv(P)
            v = np.einsum("ij,jk,ik->i", phi, S, phi) + residual
            site = LIKELIHOODS["exact"].update(c + phi @ S @ h, v, sign)
            w, g = site.precision * keep, site.linear * keep
            P = (P + np.eye(8) + (phi.T * w) @ phi) / 2
            h = (h + phi.T @ (g - w * c)) / 2
        S = np.linalg.inv(P)
        moments.append((c + phi[left_out] @ S @ h, phi[left_out] @ S @ phi[left_out] + residual[left_out]))
    m, v = np.array(moments).T
    link = fit_probit(m, v, sign, np.ones(n))
    losses = -log_ndtr(sign * link.score(m, v))
    assert found.loo == pytest.approx(losses.mean(), abs=0.02)
    assert np.corrcoef(found.losses, losses)[0, 1] > 0.99
    without = judge(some_rows(n_rows=n), InducingFeatures.build(KERNEL, POINTS[:8]))
    assert abs(found.elbo - without.elbo) > 1  # the prior mean matters here


def test_a_start_from_a_neighbour_leads_to_the_same_judgement_in_fewer_updates(monkeypatch):
    rows, features = some_rows(THREE), InducingFeatures.build(Matern(3.0, 5.0), X[10:50])
    neighbour = judge(rows, InducingFeatures.build(KERNEL, POINTS))
    passes = []
    step = judgements.coordinate_ascent.step
    counted = lambda *state: passes.append(1) or step(*state)
    monkeypatch.setattr(judgements.coordinate_ascent, "step", counted)
    cold = judge(rows, features)
    from_prior = len(passes)
    warm = judge(rows, features, neighbour)
    assert len(passes) - from_prior < from_prior
    assert warm.loo == pytest.approx(cold.loo, abs=0.004)
    assert warm.elbo == pytest.approx(cold.elbo, abs=0.002 * N * 3)


def test_a_start_may_come_from_fewer_rows_and_have_other_prior_means():
    small = judge(some_rows(n_rows=150), InducingFeatures.build(KERNEL, POINTS))
    features = InducingFeatures.build(RBF(5.0, 3.0), POINTS[:20])
    rows = some_rows(offsets=(-0.5,))
    warm, cold = judge(rows, features, small), judge(rows, features)
    assert [function.offset for function in warm.functions] == [-0.5]
    assert warm.loo == pytest.approx(cold.loo, abs=0.002)


def test_a_start_that_predicts_other_rows_badly_is_not_used():
    features = InducingFeatures.build(20.0 * Linear() + KERNEL, POINTS)
    small = judge(some_rows(n_rows=150), features)
    rows = some_rows(1 - TWO)
    rows = replace(rows, source=replace(rows.source, X=30 * rows.source.X))
    warm, cold = judge(rows, features, small), judge(rows, features)
    assert warm.loo == cold.loo


def test_sites_of_a_part_of_the_rows_are_scaled_up_to_all():
    rows, half = some_rows(), some_rows(n_rows=150)
    found = judge(rows, InducingFeatures.build(KERNEL, POINTS))
    features = InducingFeatures.build(RBF(5.0, 3.0), POINTS[:7])
    (function,), (scaled,) = (
        moved(replace(found.plain_problem, total_weight=weight), found.functions, half.source, features, [0.0])
        for weight in (150.0, 300.0)
    )
    P, h = function.posterior.natural.precision - np.eye(7), function.posterior.natural.linear
    np.testing.assert_allclose(scaled.posterior.natural.precision, np.eye(7) + 2 * P, rtol=1e-9)
    np.testing.assert_allclose(scaled.posterior.natural.linear, 2 * h, rtol=1e-9)


MAPS = {"kernel": InducingFeatures.build(RBF(5.0, 3.0), POINTS[:7]), "effects": WITH_EFFECT, "linear": LINEAR}


@pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("weight", [None, OMEGA], ids=["no weights", "weights"])
@pytest.mark.parametrize(("single_from", "tolerance"), [(np.inf, 1e-7), (0, 2e-3)], ids=["double", "single"])
def test_a_start_from_kept_sites_is_the_start_from_those_that_rows_have(
    monkeypatch, features, weight, single_from, tolerance
):
    """Of the same rows: by the marginals that a judgement keeps, and by another pass over the rows (D18)."""
    monkeypatch.setattr(judgements, "SINGLE_FROM", single_from)
    offsets = 0.2, -0.3, 0.4
    rows = some_rows(THREE, weight, offsets=(0.1, 0.5, -0.2))
    start = judge(rows, LINEAR if features is LINEAR else InducingFeatures.build(KERNEL, POINTS))
    kept = judgements._from_sites(*rows.with_features(features)[:2], start, offsets)
    again = moved(start.plain_problem, start.functions, rows.source, features, offsets)
    assert [function.target for function in kept] == [0, 1, 2]
    for one, other in zip(kept, again, strict=True):
        assert one.offset == other.offset
        precision, linear = other.posterior.natural.precision, other.posterior.natural.linear
        np.testing.assert_allclose(one.posterior.natural.precision, precision, atol=tolerance * np.abs(precision).max())
        np.testing.assert_allclose(one.posterior.natural.linear, linear, atol=tolerance * np.abs(linear).max())


# ---- held features ----


@pytest.mark.parametrize("weight", [None, OMEGA], ids=["no weights", "weights"])
def test_a_judgement_with_held_features_is_that_of_plain_ones(monkeypatch, weight):
    rows = some_rows(THREE, weight)
    kept = judge(rows, WITH_EFFECT)
    assert isinstance(kept.problem.features, HeldFeatures)

    def plainly(self, features, _):
        blocks = (
            self.source.X[first : first + self.source.rows_per_block]
            for first in range(0, len(self.source.y), self.source.rows_per_block)
        )
        return self.problem(features), self.source, tuple(map(features.recorded, blocks))

    monkeypatch.setattr(Rows, "with_features", plainly)
    plain = judge(rows, WITH_EFFECT)
    assert plain.problem.features is WITH_EFFECT
    assert kept.elbo == pytest.approx(plain.elbo, rel=1e-9)
    np.testing.assert_allclose(kept.losses, plain.losses, rtol=1e-7, atol=1e-9)
    found, expected = (WITH_EFFECT.gradient(loss_gradient(here)) for here in (kept, plain))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * np.abs(other).max())


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_single_precision_has_the_direction_of_double(monkeypatch, y):
    """By all that is learned: the kernel's parameters, the effect's, and the points."""
    family = KernelFamily(KERNEL, POINTS, learn_points=True, effects=(EFFECT,))
    found = []
    for single_from in (np.inf, 0):
        monkeypatch.setattr(judgements, "SINGLE_FROM", single_from)
        here = judge(some_rows(y), family.features(family.start()), updates=50)
        found.append((here.loo, family.gradient(here.features, loss_gradient(here))))
    (loo, double), (loo_single, single) = found
    assert loo_single == pytest.approx(loo, abs=1e-3)
    for part in (slice(0, 4), slice(4, None)):
        one, other = double[part], single[part]
        assert one @ other > 0.99 * np.linalg.norm(one) * np.linalg.norm(other)


# ---- gradients ----


@pytest.mark.parametrize("kernel", [KERNEL, 2.0 * RBF([2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) + 0.1 * Linear()], ids=repr)
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_at_the_best_q_the_gradient_of_the_elbo_is_that_of_the_fitted_elbo(kernel, y):
    """The best q changes with the kernel, too, but to first order that does not matter."""
    fitted = lambda theta: BayesianSVC(kernel.at(theta), inducing=POINTS, **HOW).fit(X, y)
    theta = kernel.log_parameters()
    model, rows = fitted(theta), some_rows(y)
    features, functions = model.fitted_.member.features, model.fitted_.member.functions
    found, _ = features.gradient(elbo_gradient(rows.problem(features), rows.source, features, functions))
    direction = np.random.default_rng(0).standard_normal((2, len(theta)))
    for d in direction:
        truth = (fitted(theta + 1e-3 * d).elbo_ - fitted(theta - 1e-3 * d).elbo_) / 2e-3
        assert d @ found == pytest.approx(truth, rel=2e-3, abs=0.02)


@pytest.mark.parametrize("kernel", [RBF(1.5, 1.0), RBF(4.0, 4.0), Matern(30.0, 10.0)], ids=repr)
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
def test_the_gradient_of_the_loss_points_where_judgements_improve(kernel, y):
    """It holds the sites, so it is not exact; but a step along it does what it says, if less or more."""
    rows, family = some_rows(y), KernelFamily(kernel, POINTS)
    here = judge(rows, family.features(family.start()), updates=50)
    found = family.gradient(here.features, loss_gradient(here))
    along = found / np.linalg.norm(found)
    up, down = (
        judge(rows, family.features(family.start() + sign * 0.05 * along), here, updates=50).loo * N for sign in (1, -1)
    )
    assert 0.3 < (up - down) / 0.1 / np.linalg.norm(found) < 2


def test_the_gradient_by_an_effect_points_where_judgements_improve():
    rows, family = some_rows(), KernelFamily(KERNEL, POINTS, effects=(EFFECT,))
    here = judge(rows, family.features(family.start()), updates=50)
    found = family.gradient(here.features, loss_gradient(here))
    found[:2] = 0  # of the kernel of all columns
    along = found / np.linalg.norm(found)
    up, down = (
        judge(rows, family.features(family.start() + sign * 0.1 * along), here, updates=50).loo * N for sign in (1, -1)
    )
    assert 0.3 < (up - down) / 0.2 / np.linalg.norm(found) < 2


# ---- searches ----

STARTS = [RBF(1.0, 1.0), RBF(20.0, 4.0), RBF(4.0, 4.0), Matern(4.0, 4.0), RBF(np.full(6, 4.0), 4.0)]


@pytest.mark.parametrize("kernel", STARTS, ids=repr)
@pytest.mark.parametrize("most", [1, 2, 15])
def test_a_search_never_ends_above_its_start(kernel, most):
    rows, family = some_rows(), KernelFamily(kernel, POINTS)
    begun = judge(rows, family.features(family.start()))
    found = search(rows, family, None, most)
    assert objective(found.best, family, rows) <= objective(begun, family, rows) + 1e-9
    assert found.judged <= most + 20  # L-BFGS looks at its budget only between line searches
    assert found.failed == 0


def test_a_search_ends_as_low_as_a_grid():
    rows = some_rows()
    scales, variances = np.exp(np.linspace(0, 4, 9)), (0.25, 1.0, 4.0, 16.0)
    families = [KernelFamily(RBF(scale, variance), POINTS) for scale in scales for variance in variances]
    grid = [objective(judge(rows, family.features(family.start())), family, rows) for family in families]
    assert max(grid) > min(grid) + 30
    for kernel in STARTS[:3]:
        family = KernelFamily(kernel, POINTS)
        assert objective(search(rows, family, None, 15).best, family, rows) < min(grid) + 0.5


def test_a_search_lowers_the_leave_one_out_loss_of_a_whole_fit():
    found = search(some_rows(), KernelFamily(RBF(1.0, 1.0), POINTS), None, 15).best
    before, after = (
        BayesianSVC(kernel, inducing=POINTS, **HOW).fit(X, TWO).loo_log_loss_
        for kernel in (RBF(1.0, 1.0), found.features.kernel)
    )
    assert after < before - 0.1


def test_points_are_learned_together_with_the_kernel():
    rows, family = some_rows(), KernelFamily(RBF(2.0, 4.0), POINTS[:4], learn_points=True)
    found = search(rows, family, None, 20).best
    without = search(rows, KernelFamily(RBF(2.0, 4.0), POINTS[:4]), None, 20).best
    assert found.loo < without.loo - 0.005
    assert np.abs(found.features.inducing_points - POINTS[:4]).max() > 0.1


def test_a_linear_prior_is_found():
    rows = some_rows()
    for start in (1e-3, 1e3):
        family = LinearFamily(np.array([start]), 6, np.array([10.0]))
        loss = lambda x, family=family: judge(rows, family.features(x)).loo * N + family.penalty(x)[0]
        best = min(loss(np.array([x])) for x in np.linspace(-8, 4, 13))
        found = search(rows, family, None, 15).best
        x = np.log(found.features.root[:1] ** 2)
        assert found.loo * N + family.penalty(x)[0] < best + 0.5
        np.testing.assert_allclose(found.features.root, [*np.full(6, np.exp(x[0] / 2)), 10.0])


def test_what_is_fixed_stays_and_what_is_bounded_stays_inside():
    rows = some_rows()
    kernel = RBF(1.0, 1.0, length_scale_bounds="fixed")
    found = search(rows, KernelFamily(kernel, POINTS), None, 8).best.features.kernel
    assert found.length_scale == 1.0
    assert found.variance != 1.0
    bounded = RBF(1.0, 1.0, length_scale_bounds=(0.5, 1.5), variance_bounds=(0.9, 1.1))
    found = search(rows, KernelFamily(bounded, POINTS), None, 8).best.features.kernel
    assert found.length_scale == pytest.approx(1.5)
    assert 0.9 - 1e-9 <= found.variance <= 1.1 + 1e-9
    everything = RBF(1.0, 1.0, length_scale_bounds="fixed", variance_bounds="fixed")
    found = search(rows, KernelFamily(everything, POINTS), None, 8)
    assert (found.judged, found.best.features.kernel) == (1, everything)


@pytest.mark.parametrize("error", [NotPositiveDefiniteError("not"), NotFiniteError("not finite")], ids=repr)
@pytest.mark.parametrize("every", [2, 3])
def test_kernels_that_fail_are_passed_over_and_counted(monkeypatch, error, every):
    rows, family, calls = some_rows(), KernelFamily(RBF(1.0, 1.0), POINTS), []

    def fragile(*given, **named):
        calls.append(given)
        if len(calls) % every == 0:
            raise error
        return judge(*given, **named)

    begun = judge(rows, family.features(family.start()))
    monkeypatch.setattr(hyperparameters, "judge", fragile)
    found = search(rows, family, None, 12)
    assert found.failed == len(calls) // every > 0
    assert objective(found.best, family, rows) <= objective(begun, family, rows)


def test_the_same_bits_whatever_the_number_of_threads():
    found = []
    for n_jobs in (1, 2):
        with Workers(n_jobs) as workers:
            best = search(some_rows(THREE, OMEGA, workers=workers), KernelFamily(RBF(2.0, 1.0), POINTS), None, 5).best
            found.append((best.loo, *best.features.kernel.log_parameters(), *best.losses))
    np.testing.assert_array_equal(*found)


def test_rows_that_are_all_alike_have_the_base_rate_of_the_others():
    y = np.arange(10) % 2
    block = Block(np.zeros((10, 2)), y, None)
    rows = Rows.held(block, Workers(1), Binary((0.5,)), LIKELIHOODS["exact"], (0.0,))
    found = search(rows, KernelFamily(RBF(1.0, 1.0), np.zeros((1, 2))), None, 20)
    assert found.best.loo == pytest.approx(-np.log(4 / 9), abs=0.05)


def test_a_search_ends_when_its_gain_is_little_or_below_its_noise():
    def judged(losses):
        shares = np.full(len(losses), 1 / len(losses))

        def error(values):
            return float(np.linalg.norm(shares * (values - values.mean())))

        return SimpleNamespace(losses=np.asarray(losses), shares=shares, error=error)

    before = judged(np.ones(100))
    wild = np.where(np.arange(100) % 2, 3.0, -3.0)
    for losses, ends in (
        (np.full(100, 1 - 1e-4), True),  # hardly anything
        (np.full(100, 0.99), False),  # every row gains
        (0.9 + wild, True),  # more, but less than its standard error of .3
        (0.5 + wild, False),
        (np.full(100, 1.01), True),
    ):
        assert hyperparameters._has_stalled(before, judged(losses), hyperparameters.STALLED) == ends
    assert hyperparameters._has_stalled(before, judged(np.full(100, 0.99)), 0.02)


def test_a_search_ends_with_what_it_has_when_the_time_is_up():
    rows, family = some_rows(TWO), KernelFamily(RBF(np.full(6, 0.3), 0.05), POINTS)
    left = iter([False, False, True])
    found = search(rows, family, None, 12, over=lambda: next(left))
    assert found.judged == 3
    assert objective(found.best, family, rows) < objective(judge(rows, family.features(family.start())), family, rows)


def test_after_enough_judgements_a_search_continues_only_while_it_gains_much(monkeypatch):
    rows = some_rows(TWO)
    start = RBF(np.full(6, 0.3), 0.05)

    def judged(**limits):
        return search(rows, KernelFamily(start, POINTS), None, 12, **limits).judged

    assert judged() > 8  # a bad start: there is much to gain
    monkeypatch.setattr(hyperparameters, "MUCH", 10.0)
    assert judged(enough=6) == 6
    monkeypatch.setattr(hyperparameters, "MUCH", hyperparameters.STALLED)
    assert judged(enough=6) == judged()
