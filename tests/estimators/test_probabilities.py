"""Leave-one-out, calibration, uncertainty and many classes, as users meet them."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import entr, ndtr
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.core.posterior import Gaussian
from bayesvm.datasets import ringnorm, waveform
from bayesvm.inference import leaving_out
from bayesvm.kernels import RBF, Linear, Matern

X, y = load_breast_cancer(return_X_y=True)
Xw, yw = load_wine(return_X_y=True)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: BayesianSVC(n_inducing=50, tune=None, random_state=0), BayesianLinearSVC])
@pytest.mark.parametrize(("rows", "labels"), [(X, y), (Xw, yw)], ids=["two classes", "three classes"])
def test_leave_one_out_agrees_with_cross_validation(make, rows, labels):
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    crossed = log_loss(labels, cross_val_predict(make(), rows, labels, cv=folds, method="predict_proba"))
    model = make().fit(rows, labels)
    assert model.loo_log_loss_ == pytest.approx(crossed, abs=0.03)
    assert model.loo_log_loss_ == pytest.approx(log_loss(labels, model.loo_proba_))
    assert model.loo_error_ == pytest.approx(np.mean(model.classes_[model.loo_proba_.argmax(1)] != labels))
    np.testing.assert_array_equal(model.loo_indices_, np.arange(len(labels)))


def test_large_tables_leave_out_a_random_choice_of_rows(monkeypatch):
    monkeypatch.setattr(leaving_out, "LOO_ROWS", 100)
    weight = np.ones(len(y))
    weight[:50] = 0
    model = BayesianSVC(n_inducing=30, tune=None, random_state=0).fit(X, y, sample_weight=weight)
    assert model.loo_proba_.shape == (100, 2)
    assert len(set(model.loo_indices_)) == 100
    assert model.loo_indices_.min() >= 50
    right = model.loo_proba_[np.arange(100), y[model.loo_indices_]]
    assert model.loo_log_loss_ == pytest.approx(-np.log(right).mean())


def smooth(n_rows, seed):
    """Two columns, a probability that changes smoothly between .1 and .9, and labels."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-1, 1, (n_rows, 2))
    p = 1 / (1 + np.exp(-1.2 * np.sin(3 * inputs[:, 0]) - inputs[:, 1]))
    return inputs, rng.random(n_rows) < p, p


@pytest.mark.slow
def test_more_rows_do_not_draw_probabilities_together():
    asked, _, truth = smooth(5_000, 1)
    distance = lambda q: np.mean(truth * np.log(truth / q) + (1 - truth) * np.log((1 - truth) / (1 - q)))
    how = {"n_inducing": 60, "random_state": 0}
    rows, labels, _ = smooth(12_000, 0)
    noisy = BayesianSVC(**how).fit(rows, labels)
    plain = BayesianSVC(noise=0, **how).fit(rows, labels)
    few = BayesianSVC(**how).fit(rows[:1_500], labels[:1_500])
    assert (noisy.noise_, plain.noise_) == (1.0, 0.0)
    with_noise, without, from_few = (distance(model.predict_proba(asked)[:, 1]) for model in (noisy, plain, few))
    assert with_noise < 0.003
    assert without > 2 * with_noise
    assert from_few > with_noise


@pytest.mark.slow
@pytest.mark.parametrize(("tune", "noise"), [("auto", 1.0), ("loo", 1.0), ("elbo", 0.0), (None, 0.0)])
@pytest.mark.parametrize("make", [BayesianSVC, BayesianLinearSVC])
def test_the_papers_ways_have_no_noise(make, tune, noise):
    rows, labels, _ = smooth(100, 0)
    assert make(tune=tune).fit(rows, labels).noise_ == noise
    assert make(tune=tune, noise=0.3).fit(rows, labels).noise_ == 0.3


def test_calibration_improves_on_the_plain_probit():
    gains, gaps = [], []
    for seed in range(3):
        train, test = ringnorm(2000, random_state=2 * seed), ringnorm(3000, random_state=2 * seed + 1)
        plain, calibrated = (
            BayesianSVC(n_inducing=80, link=link, tune=None, random_state=seed).fit(train.X, train.y)
            for link in ("probit", "calibrated")
        )
        loss = {m.link: log_loss(test.y, m.predict_proba(test.X)) for m in (plain, calibrated)}
        gains.append(loss["probit"] - loss["calibrated"])
        gaps.append(calibrated.loo_log_loss_ - loss["calibrated"])
        assert calibrated.calibration_scale_.max() > 1
        assert calibrated.calibration_bias_.shape == (2,)
    assert np.mean(gains) > 0.005
    assert np.mean(gaps) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("share", [1.0, 0.04])
def test_far_from_the_data_the_probability_is_the_base_rate(share):
    data = waveform(1000, random_state=0)
    keep = (data.y == -1) | (np.random.default_rng(0).random(1000) < share)
    model = BayesianSVC(n_inducing=60, random_state=0).fit(data.X[keep], data.y[keep])
    base = (data.y[keep] == 1).mean()
    assert model.predict_proba(np.full((1, 21), 1e4))[0, 1] == pytest.approx(base, abs=0.03)


def test_far_from_the_data_many_classes_have_their_base_rates():
    rows, labels = make_blobs([400, 200, 50], random_state=0, cluster_std=2.0)
    model = BayesianSVC(n_inducing=60, random_state=0).fit(rows, labels)
    np.testing.assert_allclose(model.predict_proba([[1e4, 1e4]])[0], np.bincount(labels) / 650, atol=0.06)


def test_uncertainty_is_entropy_split_by_what_is_known_of_f():
    model = BayesianSVC(n_inducing=40, tune=None, random_state=0).fit(X, y)
    m, v = model.latent_mean_and_variance(X[:5])
    found = model.predict_uncertainty(X[:5])
    shares = 1 - model.calibration_share_, model.calibration_share_
    probits = list(zip(shares, model.calibration_scale_, model.calibration_bias_, strict=True))
    known = lambda t: sum(share * ndtr(a * t + b) for share, a, b in probits)
    for i in range(5):
        f = stats.norm(m[i], np.sqrt(v[i]))
        entropy = lambda t, f=f: (entr(known(t)) + entr(1 - known(t))) * f.pdf(t)
        expected = integrate.quad(entropy, *f.interval(1 - 1e-12), limit=200)[0]
        assert found["aleatoric"][i] == pytest.approx(expected, abs=1e-4)
        assert found["lower"][i] == pytest.approx(known(f.ppf(0.025)), abs=1e-9)
    p = model.predict_proba(X[:5])
    np.testing.assert_allclose(found["total"], entr(p).sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(found["total"], found["aleatoric"] + found["epistemic"])


@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
@pytest.mark.parametrize(("rows", "labels"), [(X, y), (Xw, yw)], ids=["two classes", "three classes"])
def test_epistemic_part_is_never_negative_and_grows_far_away(link, rows, labels):
    model = BayesianSVC(n_inducing=40, link=link, tune=None, random_state=0).fit(rows, labels)
    found = model.predict_uncertainty(np.vstack([rows, rows[:1] * 50]))
    assert (found["epistemic"] >= 0).all()
    assert found["epistemic"][-1] >= np.quantile(found["epistemic"][:-1], 0.9)
    assert (found["total"] <= np.log(len(model.classes_)) + 1e-9).all()


@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
@pytest.mark.parametrize("noise", [0.0, 100.0])
def test_the_interval_contains_the_probability(link, noise):
    model = BayesianSVC("linear", n_inducing=10, link=link, noise=noise, tune=None, random_state=0).fit(X, y)
    rows = np.vstack([X, X * 30])
    found, p = model.predict_uncertainty(rows), model.predict_proba(rows)[:, 1]
    assert (found["lower"] <= p).all()
    assert (p <= found["upper"]).all()


@pytest.mark.parametrize(
    "model", [BayesianSVC(n_inducing=20, tune=None, random_state=0), BayesianLinearSVC()], ids=repr
)
@pytest.mark.parametrize(("rows", "labels"), [(X, y), (Xw, yw)], ids=["two classes", "three classes"])
def test_samples_have_the_moments_of_the_marginals(model, rows, labels):
    model.fit(rows, labels)
    m, v = model.latent_mean_and_variance(rows[:6])
    draws = model.sample_latent(rows[:6], 20_000, random_state=0)
    assert draws.shape == (20_000, *m.shape)
    np.testing.assert_allclose(draws.mean(axis=0), m, atol=0.05 * np.sqrt(v.max()))
    np.testing.assert_allclose(draws.var(axis=0), v, rtol=0.06)
    same = model.sample_latent(rows[[0, 0]], 5, random_state=1)
    np.testing.assert_allclose(same[:, 0], same[:, 1], atol=1e-2)


@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
@pytest.mark.parametrize(("rows", "labels"), [(X, y), (Xw, yw)], ids=["two classes", "three classes"])
def test_sampled_probabilities_are_those_of_a_known_f_averaged(link, rows, labels):
    model = BayesianSVC(n_inducing=20, link=link, tune=None, random_state=0).fit(rows, labels)
    some = np.vstack([rows[:4], 3 * rows[:2]])  # two of them far away
    draws = model.sample_proba(some, 4_000, random_state=0)
    assert draws.shape == (4_000, 6, len(model.classes_))
    np.testing.assert_allclose(draws.sum(axis=2), 1)
    # Entropies of the mean and of single draws are what predict_uncertainty finds by quadrature.
    found, within = model.predict_uncertainty(some), 0.03 if len(model.classes_) == 2 else 0.06  # there, 64 points
    whole, single = entr(draws.mean(axis=0)).sum(axis=1), entr(draws).sum(axis=2).mean(axis=0)
    if len(model.classes_) > 2:  # of the stated probabilities, whatever the points' mean; divided as they are
        np.testing.assert_allclose(found["total"], entr(model.predict_proba(some)).sum(axis=1), rtol=1e-9)
        np.testing.assert_allclose(found["aleatoric"] / found["total"] * whole, single, atol=within)
    else:
        np.testing.assert_allclose(found["total"], whole, atol=within)
        np.testing.assert_allclose(found["aleatoric"], single, atol=within)
        known = ndtr(model.fitted_.link.score(model.sample_latent(some, 4_000, random_state=0), 0.0))
        np.testing.assert_allclose(draws[..., 1], known, atol=1e-12)
        np.testing.assert_allclose(np.quantile(draws[..., 1], 0.025, axis=0), found["lower"], atol=0.03)
        if link in ("calibrated", "probit"):
            np.testing.assert_allclose(draws.mean(axis=0), model.predict_proba(some), atol=0.025)


def test_sampled_probabilities_are_joint_and_come_from_the_seed():
    model = BayesianLinearSVC().fit(X, y)
    one, two, other = (model.sample_proba(X[[5, 5, 6]], 3, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - other).max() > 1e-4
    np.testing.assert_allclose(one[:, 0], one[:, 1], atol=1e-9)
    assert model.sample_proba(X[:7]).shape == (1, 7, 2)


def test_many_rows_are_too_many_for_joint_samples():
    model = BayesianLinearSVC().fit(X, y)
    for draw in (model.sample_latent, model.sample_proba):
        with pytest.raises(ValueError, match="at most 5000; pass fewer"):
            draw(np.zeros((5001, X.shape[1])))


@pytest.mark.parametrize("link", ["calibrated", "probit", "hinge", "paper"])
@pytest.mark.parametrize("bound", ["exact", "augmented"])
def test_many_classes(link, bound):
    Xa, Xb, ya, yb = train_test_split(*load_iris(return_X_y=True), random_state=0, stratify=load_iris().target)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = BayesianSVC(link=link, bound=bound, tune=None, random_state=0).fit(Xa, names[ya])
    p = model.predict_proba(Xb)
    assert model.score(Xb, names[yb]) > 0.9
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(Xb))
    np.testing.assert_allclose(model.predict_log_proba(Xb), np.log(p), atol=1e-10)
    np.testing.assert_array_equal(model.decision_function(Xb).argmax(axis=1), p.argmax(axis=1))


def test_many_classes_are_one_against_the_rest_each():
    """With everything fixed, the machine of a class is the binary model of that class."""
    how = {"inducing": Xw[:30], "tune": None, "inference": "batch", "tol": 1e-10, "max_iter": 500}
    m, v = BayesianSVC(**how).fit(Xw, yw).latent_mean_and_variance(Xw)
    for k in range(3):
        one_m, one_v = BayesianSVC(**how).fit(Xw, yw == k).latent_mean_and_variance(Xw)
        np.testing.assert_allclose(m[:, k], one_m, atol=1e-4)
        np.testing.assert_allclose(v[:, k], one_v, atol=1e-4)


def test_linear_model_with_many_classes_has_a_row_of_coefficients_each():
    for covariance, shape in (("full", (3, 13, 13)), ("diagonal", (3, 13))):
        model = BayesianLinearSVC(covariance=covariance, max_iter=300).fit(Xw, yw)
        assert model.coef_.shape == (3, 13)
        assert model.coef_covariance_.shape == shape
        np.testing.assert_allclose(
            Xw @ model.coef_.T + model.intercept_, model.latent_mean_and_variance(Xw)[0], atol=1e-6
        )
        assert model.score(Xw, yw) > 0.95


@pytest.mark.parametrize("inference", ["auto", "stochastic"])
def test_many_classes_are_bit_identical_on_any_number_of_threads(inference):
    rows, labels = make_blobs(6000, centers=4, n_features=5, cluster_std=3.0, random_state=0)
    one, three = (
        BayesianSVC(n_inducing=40, inference=inference, tune=None, n_jobs=n, random_state=0, max_iter=6, tol=0)
        for n in (1, 3)
    )
    for model in (one, three):
        model.fit(rows, labels)
    np.testing.assert_array_equal(one.predict_proba(rows), three.predict_proba(rows))


IN_SINGLE = {
    "RBF": BayesianSVC(RBF(4.0, 4.0), n_inducing=60, tune=None, random_state=0),
    "Matern": BayesianSVC(Matern(4.0, 4.0), n_inducing=60, tune=None, random_state=0),
    "flat": BayesianSVC(RBF(100.0, 50.0), n_inducing=60, tune=None, random_state=0),
    "a sum, not scaled": BayesianSVC(RBF(np.full(30, 300.0)) + Linear(1e-6), n_inducing=60, tune=None, scale=None),
    "linear": BayesianLinearSVC(),
    "diagonal": BayesianLinearSVC(covariance="diagonal", tune=None, max_iter=500),
}


@pytest.mark.parametrize("labels", [y, y + (X[:, 0] > 15)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", IN_SINGLE)
def test_a_fit_in_single_precision_predicts_in_double(name, labels):
    model = clone(IN_SINGLE[name]).set_params(precision="single").fit(X, labels)
    rows = np.vstack([X, X[:9] * 100]).astype(np.float32)
    exact, features = model.fitted_.scaler(rows.astype(float)), model.fitted_.member.features
    if isinstance(model, BayesianSVC):  # the weights' own coordinates, by the book (D3, D4)
        phi, prior = model.kernel_(exact, features.inducing_points) @ features.whitening, model.kernel_
        residual = np.maximum(prior.diagonal(exact) - (phi**2).sum(axis=1), 0)
    else:
        phi, residual = np.column_stack([exact, np.ones(len(rows))]) * features.root, 0.0
    mean, variance = (np.reshape(part, (len(rows), -1)) for part in model.latent_mean_and_variance(rows))
    for k, function in enumerate(model.fitted_.member.functions):
        q = function.posterior
        S = q.covariance if isinstance(q, Gaussian) else np.diag(q.variance)
        np.testing.assert_allclose(mean[:, k], function.offset + phi @ q.mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(variance[:, k], ((phi @ S) * phi).sum(axis=1) + residual, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("labels", [y, y + (X[:, 0] > 15)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", IN_SINGLE)
def test_predictions_do_not_depend_on_the_rows_beside(name, labels):
    model = clone(IN_SINGLE[name]).set_params(precision="single").fit(X, labels)
    rows = np.vstack([X, X[:9] * 100]).astype(np.float32)
    together = model.predict_proba(rows)
    alone = np.vstack([model.predict_proba(rows[i : i + 1]) for i in range(0, len(rows), 17)])
    np.testing.assert_allclose(alone, together[::17], rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(rows.astype(float)), together, rtol=0, atol=1e-12)


def test_other_tools_of_scikit_learn_accept_it():
    base = BayesianSVC(n_inducing=20, tune=None, random_state=0)
    calibrated = CalibratedClassifierCV(base, cv=3).fit(Xw, yw)
    stacked = StackingClassifier([("svm", base), ("linear", BayesianLinearSVC())], LogisticRegression(), cv=3).fit(
        Xw, yw
    )
    assert min(calibrated.score(Xw, yw), stacked.score(Xw, yw)) > 0.95
