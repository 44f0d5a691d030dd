"""BayesianSVC as users meet it."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.inference.settings import SINGLE_FROM
from bayesvm.kernels import RBF

X, y = load_breast_cancer(return_X_y=True)
Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52", "linear", RBF(5.0) + 0.1 * RBF(1.0)])
@pytest.mark.parametrize("bound", ["exact", "augmented"])
def test_every_kernel_and_bound_learns(kernel, bound):
    model = BayesianSVC(kernel=kernel, bound=bound, n_inducing=60, tune=None, random_state=0).fit(Xa, ya)
    assert model.score(Xb, yb) > 0.93
    assert log_loss(yb, model.predict_proba(Xb)) < 0.2


@pytest.mark.slow
def test_probabilities_come_near_the_bayes_limit():
    train, test = waveform(4000, random_state=0), waveform(20_000, random_state=1)
    model = BayesianSVC(n_inducing=100, random_state=0).fit(train.X, train.y)
    limit = log_loss(test.y, test.probability)
    assert log_loss(test.y, model.predict_proba(test.X)) < limit + 0.03


@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
def test_decision_probability_and_prediction_agree(link):
    model = BayesianSVC(n_inducing=40, link=link, tune=None, random_state=0).fit(Xa, ya)
    decision, probability = model.decision_function(Xb), model.predict_proba(Xb)
    np.testing.assert_allclose(probability[:, 1], ndtr(decision))
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(Xb), model.classes_[probability.argmax(axis=1)])
    m, v = model.latent_mean_and_variance(Xb)
    if link in ("probit", "paper"):
        np.testing.assert_allclose(decision, m / (np.sqrt(1 + v) if link == "probit" else 1 + v))
    np.testing.assert_allclose(model.predict_log_proba(Xb), np.log(probability), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("inference", ["auto", "batch", "stochastic"])
def test_results_are_bit_identical_for_any_number_of_threads(inference):
    data = waveform(40_000, random_state=0)
    one, three = (
        BayesianSVC(n_inducing=130, inference=inference, tune=None, n_jobs=jobs, random_state=3, max_iter=5, tol=0)
        for jobs in (1, 3)
    )
    for model in (one, three):
        model.fit(data.X, data.y)
    assert len(data.y) * 130 >= SINGLE_FROM
    np.testing.assert_array_equal(one.predict_proba(data.X), three.predict_proba(data.X))
    np.testing.assert_array_equal(one.elbo_trace_, three.elbo_trace_)


def test_another_seed_gives_other_points():
    first, second = (BayesianSVC(n_inducing=10, tune=None, random_state=seed).fit(Xa, ya) for seed in (0, 1))
    assert not np.array_equal(first.inducing_points_, second.inducing_points_)


def test_scaling_makes_units_irrelevant():
    units = 10.0 ** np.arange(-12, 18)
    plain = BayesianSVC(n_inducing=40, tune=None, random_state=0).fit(Xa, ya).predict_proba(Xb)
    fitted = BayesianSVC(n_inducing=40, tune=None, random_state=0).fit(Xa * units + 1, ya)
    other = fitted.predict_proba(Xb * units + 1)
    np.testing.assert_allclose(other, plain, atol=0.02)


def test_inducing_points_are_in_the_units_of_the_data():
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(Xa, ya)
    assert (model.inducing_points_ >= Xa.min(axis=0) - 1e-9).all()
    assert (model.inducing_points_ <= Xa.max(axis=0) + 1e-9).all()
    again = BayesianSVC(inducing=model.inducing_points_, tune=None, random_state=0).fit(Xa, ya)
    np.testing.assert_allclose(again.predict_proba(Xb), model.predict_proba(Xb), atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*exact copies")
def test_weights_equal_repetition_and_class_weight_multiplies():
    times = np.random.default_rng(0).integers(0, 3, len(ya))
    how = {"n_inducing": 40, "tune": None, "link": "probit", "random_state": 0, "tol": 1e-9, "max_iter": 500}
    weighted = BayesianSVC(**how).fit(Xa, ya, sample_weight=times)
    repeated = BayesianSVC(**how).fit(np.repeat(Xa, times, 0), np.repeat(ya, times))
    np.testing.assert_allclose(weighted.predict_proba(Xb), repeated.predict_proba(Xb), atol=1e-5)
    by_class = BayesianSVC(**how, class_weight={0: 3.0}).fit(Xa, ya)
    by_row = BayesianSVC(**how).fit(Xa, ya, sample_weight=np.where(ya == 0, 3.0, 1.0))
    np.testing.assert_allclose(by_class.predict_proba(Xb), by_row.predict_proba(Xb))
    balanced = BayesianSVC(**how, class_weight="balanced").fit(Xa, ya)
    assert balanced.predict_proba(Xb)[:, 0].mean() > BayesianSVC(**how).fit(Xa, ya).predict_proba(Xb)[:, 0].mean()


def test_budget_too_small_warns_and_says_what_to_change():
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = BayesianSVC(max_iter=2, tune=None, random_state=0).fit(Xa, ya)
    assert not model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianSVC(max_iter=2, tol=0, tune=None, random_state=0).fit(Xa, ya)
    assert len(model.elbo_trace_) == model.n_iter_ == 2


def test_callback_receives_every_update():
    heard = []
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(Xa, ya, callback=heard.append)
    assert [progress.elbo for progress in heard] == list(model.elbo_trace_)
    assert heard[-1].passes == model.n_passes_


def test_verbose_without_a_terminal_prints_plain_lines(capsys):
    BayesianSVC(n_inducing=20, tune=None, random_state=0, verbose=1).fit(Xa, ya)
    assert "all rows" in capsys.readouterr().err
