"""The paper's ML-II: the ELBO climbs, as high as a grid of whole fits, on all rows and on minibatches."""

import numpy as np
import pytest

from bayesvm import BayesianSVC
from bayesvm.core.heads import Binary
from bayesvm.core.likelihoods import LIKELIHOODS
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.datasets import waveform
from bayesvm.inference import evidence
from bayesvm.inference.evidence import Adam, maximise
from bayesvm.inference.families import KernelFamily, LinearFamily
from bayesvm.inference.judgements import Rows, judge
from bayesvm.kernels import RBF

N = 300
DATA = waveform(N, random_state=0)
X, Y = DATA.X[:, :6], (DATA.y == 1).astype(int)
POINTS = X[:15]


def some_rows(bound="exact", workers=None):
    source = MemorySource(X, Y, None, ColumnScaler(), workers or Workers(1), 60)
    return Rows(source, Binary((0.5,)), LIKELIHOODS[bound], (0.0,))


def climbed(family, rows=None, updates=10, batch_size=None, seed=0):
    return maximise(rows or some_rows(), family, updates, batch_size, np.random.default_rng(seed))


@pytest.mark.slow
@pytest.mark.parametrize("bound", LIKELIHOODS)
def test_the_elbo_climbs_as_high_as_a_grid_of_fits(bound):
    def fitted(scale, variance):
        how = {"tune": None, "scale": None, "bound": bound, "inference": "batch", "tol": 1e-4}
        return BayesianSVC(RBF(scale, variance), inducing=POINTS, **how).fit(X, Y).elbo_

    best = max(fitted(scale, variance) for scale in (1.0, 2.0, 4.0, 8.0, 16.0) for variance in (0.5, 2.0, 8.0))
    found, climb = climbed(KernelFamily(RBF(1.0, 1.0), POINTS), some_rows(bound))
    assert found.elbo > best - 0.01 * N
    assert found.elbo > fitted(1.0, 1.0) + 0.1 * N
    assert len(climb) <= evidence.MOST_STEPS
    assert (np.diff([step.elbo for step in climb]) > -0.01 * N).all()
    np.testing.assert_array_equal(climb[0].x, [0.0, 0.0])
    highest = max(climb, key=lambda step: step.elbo)
    np.testing.assert_allclose(found.features.kernel.log_parameters(), highest.x, rtol=1e-14)  # log of exp


@pytest.mark.slow
def test_minibatches_come_near_all_rows():
    start = RBF(1.0, 1.0)
    all_rows, _ = climbed(KernelFamily(start, POINTS))
    batches, trace = climbed(KernelFamily(start, POINTS), batch_size=100)
    begun = judge(some_rows(), KernelFamily(start, POINTS).features(np.zeros(2)))
    assert batches.elbo > all_rows.elbo - 0.1 * (all_rows.elbo - begun.elbo)
    assert len(trace) == evidence.MOST_STEPS


@pytest.mark.slow
def test_few_updates_between_steps_lead_to_the_same_place():
    (one, _), (ten, _) = (climbed(KernelFamily(RBF(2.0, 1.0), POINTS), updates=updates) for updates in (1, 10))
    assert one.elbo == pytest.approx(ten.elbo, abs=0.02 * N)


@pytest.mark.slow
def test_a_linear_prior_climbs_too():
    family = LinearFamily(np.array([1e-3]), 6, np.array([10.0]))
    found, _ = climbed(family)
    grid = [judge(some_rows(), family.features(np.array([x]))).elbo for x in np.linspace(-7, 3, 11)]
    assert found.elbo > max(grid) - 0.01 * N
    assert grid[0] < max(grid) - 0.02 * N


def test_bounds_hold_and_what_is_fixed_stays():
    kernel = RBF(1.0, 1.0, length_scale_bounds=(0.5, 1.3), variance_bounds="fixed")
    found, _ = climbed(KernelFamily(kernel, POINTS))
    assert found.features.kernel.length_scale == pytest.approx(1.3)
    assert found.features.kernel.variance == 1.0
    fixed = RBF(1.0, 1.0, "fixed", "fixed")
    found, trace = climbed(KernelFamily(fixed, POINTS))
    assert (found.features.kernel, trace) == (fixed, ())


@pytest.mark.slow
def test_points_may_climb():
    points = X[:4] + 4.0
    still, _ = climbed(KernelFamily(RBF(4.0, 2.0), points))
    found, _ = climbed(KernelFamily(RBF(4.0, 2.0), points, learn_points=True))
    assert found.elbo > still.elbo + 0.02 * N


@pytest.mark.parametrize("batch_size", [None, 100])
def test_the_same_bits_whatever_the_number_of_threads(batch_size, monkeypatch):
    monkeypatch.setattr(evidence, "MOST_STEPS", 8)
    found = []
    for n_jobs in (1, 2):
        with Workers(n_jobs) as workers:
            best, trace = climbed(KernelFamily(RBF(1.0, 1.0), POINTS), some_rows(workers=workers), 3, batch_size)
            found.append([*(step.elbo for step in trace), best.loo, *best.features.kernel.log_parameters()])
    np.testing.assert_array_equal(*found)


def test_adam_steps_by_its_rate_along_a_steady_gradient_and_less_along_noise():
    adam, steps = Adam.init(2), []
    noise = np.random.default_rng(0).standard_normal(200)
    for each in noise:
        step, adam = adam.step(np.array([-1e-3, 1e3 * each]))
        steps.append(step)
    steps = np.array(steps)
    np.testing.assert_allclose(steps[:, 0], -evidence.RATE, rtol=1e-6)
    assert np.abs(steps[100:, 1]).mean() < 0.5 * evidence.RATE
