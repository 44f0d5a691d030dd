"""S-GPC: the dense optimum is met, scikit-learn's nearly; a seed decides all, nothing global is left changed."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

pytest.importorskip("experiments", reason="experiments do not come with the source distribution")

from experiments.competitors.svgp import SVGPClassifier

from bayesvm.datasets import waveform

LOGIT_OF_PROBIT = 1.7  # ncdf(f) is nearly the logistic function of 1.7 f


@pytest.fixture
def torch():
    pytest.importorskip("gpytorch", reason="it has an environment of its own")
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def rows():
    data = waveform(300, random_state=0)
    return data.X[:200], data.y[:200], data.X[200:]


@pytest.mark.skipif(find_spec("gpytorch") is not None, reason="GPyTorch is here")
def test_without_gpytorch_the_error_names_the_remedy(rows):
    X, y, _ = rows
    with pytest.raises(ImportError, match="make reproduce.*gpytorch 1.15"):
        SVGPClassifier().fit(X, y)


# Full batches and all rows as inducing points: what is left is the step's own error.
@pytest.mark.parametrize(
    ("steps", "error"),
    [({"natural_rate": 0.5, "epochs": 40}, 1e-4), ({"optimizer": "adam", "adam_rate": 0.03, "epochs": 400}, 0.01)],
    ids=["natural", "adam"],
)
def test_probabilities_are_those_of_the_dense_optimum(torch, rows, steps, error):
    X, y, X_new = rows
    model = SVGPClassifier(6.0, 1.0, n_inducing=1.0, batch_size=200, random_state=0, **steps).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X_new)[:, 1], dense_optimum(X, y, X_new, 6.0, 1.0), atol=error)
    assert (model.length_scale_, model.variance_) == pytest.approx((6.0, 1.0))


def test_probabilities_are_near_those_of_scikit_learn(torch, rows):
    X, y, X_new = rows
    variance = 0.3  # small, as Laplace's approximation is too unsure where f is large
    peer = GaussianProcessClassifier(variance * LOGIT_OF_PROBIT**2 * RBF(5.0), optimizer=None).fit(X, y)
    settings = {"n_inducing": 1.0, "batch_size": 200, "natural_rate": 0.5}
    model = SVGPClassifier(5.0, variance, **settings, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X_new), peer.predict_proba(X_new), atol=0.04)


def dense_optimum(X, y, X_new, length_scale, variance):
    """The best Gaussian q(f) at all rows, by damped steps in its N site precisions w and linear terms g."""
    K = variance * np.exp(-euclidean_distances(X, squared=True) / (2 * length_scale**2)) + 1e-6 * np.eye(len(y))
    K_new = variance * np.exp(-euclidean_distances(X, X_new, squared=True) / (2 * length_scale**2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights /= weights.sum()
    w, g = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(60):
        S = np.linalg.solve(np.eye(len(y)) + K * w, K)
        m = S @ g
        z = y[:, None] * (m[:, None] + np.sqrt(np.diag(S))[:, None] * nodes)
        slope = np.exp(norm.logpdf(z) - norm.logcdf(z))
        curvature = (slope * (z + slope)) @ weights
        w, g = (w + curvature) / 2, (g + y * (slope @ weights) + curvature * m) / 2
    A = np.linalg.solve(K, K_new)
    v_new = variance - np.sum(K_new * A, axis=0) + np.sum(A * (S @ A), axis=0)
    return norm.cdf(A.T @ m / np.sqrt(1 + v_new))


def test_minibatches_at_the_default_rate_end_near_full_batches(torch, rows):
    X, y, X_new = rows
    full = SVGPClassifier(batch_size=200, natural_rate=0.5, epochs=40, n_inducing=30, random_state=0).fit(X, y)
    mini = SVGPClassifier(n_inducing=30, random_state=0).fit(X, y)
    np.testing.assert_allclose(mini.predict_proba(X_new), full.predict_proba(X_new), atol=0.05)


def test_the_seed_decides_and_nothing_global_changes(torch, rows):
    X, y, X_new = rows
    labels = np.where(y > 0, "yes", "no")
    before = torch.get_rng_state(), torch.get_num_threads(), np.random.get_state()[1].copy()  # noqa: NPY002

    def predicted(seed):
        settings = {"n_inducing": 0.1, "epochs": 2, "learn_kernel": True, "learn_inducing": True}
        return SVGPClassifier(**settings, random_state=seed).fit(X, labels).predict_proba(X_new)

    first = predicted(0)
    torch.rand(3)
    np.testing.assert_array_equal(predicted(0), first)
    assert not np.array_equal(predicted(1), first)
    torch.set_rng_state(before[0])
    predicted(0)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.get_num_threads() == before[1]
    np.testing.assert_array_equal(np.random.get_state()[1], before[2])  # noqa: NPY002


def test_training_takes_the_threads_of_blas(torch, rows, monkeypatch):
    X, y, _ = rows
    seen = []
    train = SVGPClassifier._train
    monkeypatch.setattr(SVGPClassifier, "_train", lambda *of: (seen.append(torch.get_num_threads()), train(*of)))
    before = torch.get_num_threads()
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            SVGPClassifier(epochs=1, n_inducing=5).fit(X, y)
    assert seen == [1, 2]
    assert torch.get_num_threads() == before


def test_the_kernel_is_learned_if_requested(torch, rows):
    X, y, _ = rows
    settings = {"n_inducing": 30, "batch_size": 50, "epochs": 20, "adam_rate": 0.05, "random_state": 0}
    model = SVGPClassifier(length_scale=1.0, learn_kernel=True, **settings).fit(X, y)
    assert model.length_scale_ > 1.5
    assert model.model_.mean.constant.item() != 0


# gpytorch warns of the jitter that it tries before it gives up.
@pytest.mark.filterwarnings("ignore:A not p.d.")
def test_divergence_is_an_error(torch, rows):
    X, y, _ = rows
    with pytest.raises(RuntimeError):
        SVGPClassifier(natural_rate=1e6, epochs=5, random_state=0).fit(X, y)


def test_three_classes_are_refused(rows):
    X, _, _ = rows
    with pytest.raises(ValueError, match="3 classes"):
        SVGPClassifier().fit(X, np.arange(len(X)) % 3)
