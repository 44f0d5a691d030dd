"""Learning rates: sequences that can be worked out by hand, and the limits of pure signal and pure noise (D13)."""

import numpy as np

from bayesvm.inference.learning_rates import AdaptiveRate, FixedRate, RobbinsMonro


def rates(rule, gradients):
    state, found = rule.init(), []
    for gradient in gradients:
        rho, state = rule.next(state, gradient)
        found.append(rho)
    return np.array(found)


def test_robbins_monro_and_fixed():
    np.testing.assert_allclose(rates(RobbinsMonro(1.0, 0.5), np.zeros((4, 2))), np.arange(1, 5) ** -0.5)
    np.testing.assert_allclose(rates(FixedRate(0.3), np.zeros((4, 2))), 0.3)


def test_adaptive_waits_then_trusts_a_steady_gradient():
    found = rates(AdaptiveRate(warm_up=10), np.ones((30, 4)))
    np.testing.assert_array_equal(found[:9], 0)
    np.testing.assert_allclose(found[9:], 1)


def test_adaptive_shrinks_like_one_over_t_on_pure_noise():
    noise = np.random.default_rng(0).standard_normal((4000, 50))
    found = rates(AdaptiveRate(), noise)
    assert found[50] < 0.2
    assert 0.5 / 4000 < found[-200:].mean() < 2 / 4000


def test_adaptive_recovers_when_a_signal_appears():
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((100, 50))
    signal = rng.standard_normal((300, 50)) * 0.1 + 1
    found = rates(AdaptiveRate(), np.concatenate([noise, signal]))
    assert found[-1] > 5 * found[99]
