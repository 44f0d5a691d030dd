"""Generators: the stated probability is the true one, and the Bayes errors are the published ones."""

import numpy as np
import pytest
from scipy import integrate, stats

from bayesvm.datasets import breiman, ringnorm, twonorm, waveform

BAYES_ERROR = {twonorm: 0.0228, ringnorm: 0.0124}


@pytest.mark.slow
@pytest.mark.parametrize("generate", [waveform, twonorm, ringnorm])
def test_probability_is_calibrated_and_reproducible(generate):
    data = generate(200_000, random_state=0)
    np.testing.assert_array_equal(data.X, generate(200_000, random_state=0).X)
    positive = data.y == 1
    edges = np.quantile(data.probability, np.linspace(0, 1, 11))
    which = np.clip(np.searchsorted(edges, data.probability) - 1, 0, 9)
    for bin_number in range(10):
        inside = which == bin_number
        if inside.any():
            expected = data.probability[inside].mean()
            noise = np.sqrt(expected * (1 - expected) / inside.sum()) + 1e-4
            assert abs(positive[inside].mean() - expected) < 5 * noise


@pytest.mark.parametrize("generate", BAYES_ERROR)
def test_bayes_error(generate):
    data = generate(200_000, random_state=1)
    error = np.minimum(data.probability, 1 - data.probability).mean()
    assert error == pytest.approx(BAYES_ERROR[generate], abs=0.0015)


def test_segment_density_is_the_integral_along_the_segment():
    x = np.random.default_rng(0).standard_normal((3, 21)) * 2
    a, b = breiman._WAVES[0], breiman._WAVES[2]
    for row, found in zip(x, breiman._log_segment_density(x, a, b), strict=True):
        density = lambda u, row=row: np.prod(stats.norm.pdf(row - b - u * (a - b)) * np.sqrt(2 * np.pi))
        np.testing.assert_allclose(
            np.exp(found), integrate.quad(density, 0, 1, epsabs=0)[0] / np.sqrt(2 * np.pi), rtol=1e-6
        )


def test_segment_density_survives_far_rows():
    assert np.isfinite(waveform(10, random_state=0).probability).all()
    far = np.full((1, 21), 60.0)
    assert np.isfinite(breiman._log_segment_density(far, breiman._WAVES[0], breiman._WAVES[1])).all()
