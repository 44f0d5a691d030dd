"""A model that tunes itself, as users meet it: what it finds, what it leaves alone, and tables that are hard."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.inference import kernel_model
from bayesvm.inference.calibrating import mean_loss
from bayesvm.inference.tuning import Tuner
from bayesvm.inference.tuning_report import HEADER
from bayesvm.kernels import RBF, Constant, Laplacian, Linear, Matern, Sum

rng = np.random.default_rng(0)
XW, YW = load_wine(return_X_y=True)


def xor(n_rows, n_features, seed=0):
    """The sign of the first column times the second; the others say nothing."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n_rows, n_features))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def noisy(n_rows, n_features, seed=0):
    """The first column and some noise."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n_rows, n_features))
    return X, (X[:, 0] + 0.5 * generator.standard_normal(n_rows) > 0).astype(int)


def wavy(n_rows, seed=0):
    """A chessboard of nine fields, some of them cut."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n_rows, 2))
    return X, (np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1]) > 0).astype(int)


def main_kernel(member):
    """The first part of a sum with the broad component, or the kernel itself."""
    kernel = member.features.kernel
    return kernel.kernels[0] if isinstance(kernel, Sum) else kernel


def fitted(X, y, **how):
    return BayesianSVC(**({"n_inducing": 50, "random_state": 0} | how)).fit(X, y)


# ---- relevance ----


@pytest.mark.slow
def test_features_that_matter_are_found_where_rows_suffice():
    X, y = xor(1500, 8)
    test = xor(4000, 8, seed=1)
    model, one_scale = fitted(X, y), fitted(X, y, tune="loo")
    assert np.ndim(one_scale.kernel_.length_scales) == 0
    assert model.kernel_.length_scales.shape == (8,)
    assert model.kernel_.length_scales[2:].min() > 5 * model.kernel_.length_scales[:2].max()
    assert model.relevance_[:2].sum() > 0.95
    assert 1 - model.score(*test) < 0.3 * (1 - one_scale.score(*test))
    assert log_loss(test[1], model.predict_proba(test[0])) < 0.5 * log_loss(test[1], one_scale.predict_proba(test[0]))


@pytest.mark.parametrize("X_y", [xor(200, 8), noisy(200, 8), xor(300, 2)], ids=["xor", "noisy", "two features"])
def test_few_rows_keep_one_length_scale(X_y):
    for member in fitted(*X_y).fitted_.members:
        assert np.ndim(member.features.kernel.length_scales) == 0


def test_relevance_sums_to_one_and_is_equal_for_equal_columns():
    X, y = noisy(300, 5)
    for model in (fitted(X, y), fitted(X, y, kernel=RBF(np.array([1.0, 2.0, 4.0, 4.0, 4.0])), tune=None)):
        assert model.relevance_.shape == (5,)
        assert model.relevance_.sum() == pytest.approx(1)
        assert (model.relevance_ >= 0).all()
    assert model.relevance_[0] > 2 * model.relevance_[1] > 4 * model.relevance_[2:].max()
    assert fitted(X, y, tune=None).relevance_ == pytest.approx(0.2, abs=0.1)
    assert not hasattr(fitted(X, y, kernel="linear", tune=None), "relevance_")


# ---- scaling ----


def test_heavy_tails_are_ranked():
    X, y = xor(500, 3)
    wild = np.sinh(6 * X)
    model = fitted(wild, y)
    assert model.tuning_report_.trials[-1].scale == "quantile"
    assert model.loo_log_loss_ < fitted(wild, y, scale="standard").loo_log_loss_ - 0.1
    assert fitted(X, y).tuning_report_.trials[-1].scale != "quantile"


def test_columns_of_one_unit_keep_their_sizes():
    X, y = xor(300, 20)
    X[:, 2:] *= 0.02
    model = fitted(X, y)
    assert model.tuning_report_.trials[-1].scale == "common"
    assert model.loo_log_loss_ < fitted(X, y, scale="standard").loo_log_loss_ - 0.1


@pytest.mark.parametrize("scale", ["standard", "common", "quantile", None])
@pytest.mark.parametrize("tune", ["auto", None])
def test_a_scaling_that_is_asked_for_is_used(scale, tune):
    X, y = noisy(120, 3)
    X = np.exp(X) * [1.0, 2.0, 3.0]
    model = fitted(X, y, scale=scale, tune=tune, n_inducing=15)
    scaled = model.fitted_.scaler(X)
    deviations = np.std(scaled, axis=0)
    expected = {
        "standard": [1, 1, 1],
        "common": np.std(X, axis=0) / np.sqrt(np.mean(np.var(X, axis=0))),
        "quantile": [1, 1, 1],
        None: np.std(X, axis=0),
    }
    np.testing.assert_allclose(deviations, expected[scale], rtol=0.03)
    skew = np.mean((scaled - scaled.mean(axis=0)) ** 3, axis=0) / deviations**3
    assert (np.abs(skew) < 0.1).all() == (scale == "quantile")


# ---- what is learned and what is left alone ----


@pytest.mark.parametrize("tune", ["auto", "loo", "elbo"])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(3.0, 2.0, "fixed", "fixed"),
        Matern(np.array([1.0, 2.0, 3.0]), 2.0, 2.5, "fixed", "fixed"),
        Sum([RBF(3.0, 2.0, "fixed", "fixed"), Linear(1.0, "fixed")], [1.0, 0.5], "fixed"),
    ],
    ids=repr,
)
def test_a_kernel_whose_bounds_are_fixed_is_not_changed(kernel, tune):
    model = fitted(*noisy(100, 3), kernel=kernel, tune=tune, n_inducing=15)
    assert model.kernel_ == kernel
    assert model.kernel_ is not kernel


@pytest.mark.parametrize("tune", ["auto", "loo", "elbo"])
def test_a_kernel_object_is_tuned_in_what_its_bounds_allow(tune):
    X, y = noisy(100, 3)
    kernel = RBF(0.3, 2.0, (0.1, 0.5), "fixed")
    model = fitted(X, y, kernel=kernel, tune=tune, n_inducing=15)
    assert kernel.length_scale == 0.3
    for member in model.fitted_.members:
        assert 0.1 <= member.features.kernel.length_scale <= 0.5 + 1e-9
        assert member.features.kernel.variance == 2.0
    assert model.kernel_.length_scale == pytest.approx(0.5)  # longer would be better still
    assert model.kernel is kernel


def test_a_kernel_object_has_as_many_length_scales_as_it_was_given():
    X, y = xor(1050, 3)
    assert np.ndim(fitted(X, y, kernel=RBF(), n_inducing=20).kernel_.length_scale) == 0
    assert fitted(X[:150], y[:150], kernel=RBF(np.ones(3))).kernel_.length_scale.shape == (3,)


def test_weights_of_a_sum_are_learned():
    X, y = noisy(600, 3)
    model = fitted(X, y, kernel=RBF(0.2, length_scale_bounds="fixed") + Linear() + Constant())
    rough, linear, _ = model.kernel_.weights
    assert linear > 2 * rough


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52", "linear"])
def test_a_kernel_by_name_stays_in_its_family_and_improves(kernel):
    X, y = noisy(150, 4)
    model, plain = fitted(X, y, kernel=kernel), fitted(X, y, kernel=kernel, tune=None)
    for member in model.fitted_.members:
        main = main_kernel(member)
        assert type(main) is type(plain.kernel_)
        assert getattr(main, "nu", None) == getattr(plain.kernel_, "nu", None)
    assert model.loo_log_loss_ < plain.loo_log_loss_ + 0.005


def test_tuning_beats_the_usual_kernel_where_that_is_far_off():
    test = wavy(2000, seed=1)
    loss = {
        tune: log_loss(test[1], fitted(*wavy(300), n_inducing=100, tune=tune).predict_proba(test[0]))
        for tune in ("auto", "loo", None)
    }
    assert max(loss["auto"], loss["loo"]) < 0.5 * loss[None]


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "inference"), [(RBF(0.3, 0.5), "batch"), (Matern(20.0, 0.5), "stochastic")])
def test_the_papers_way_raises_the_elbo(kernel, inference):
    X, y = noisy(200, 3)
    how = {"kernel": kernel, "n_inducing": 20, "inference": inference}
    assert fitted(X, y, tune="elbo", **how).elbo_ > fitted(X, y, tune=None, **how).elbo_ + 5


def test_points_that_are_learned_lower_the_leave_one_out_loss():
    X, y = xor(300, 2)
    how = {"n_inducing": 5, "kernel": "rbf", "inducing": "random"}
    still, learned = fitted(X, y, **how), fitted(X, y, **how, learn_inducing=True)
    assert learned.inducing_points_.shape == (5, 2)
    assert learned.loo_log_loss_ < still.loo_log_loss_ - 0.02
    assert any(trial.what == "learned points" for trial in learned.tuning_report_.trials)


# ---- more inducing points ----


def chessboard(n_rows):
    """Twelve fields to either side, more than the points of tuning can follow."""
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, 2))
    return X, (np.sin(18 * X[:, 0]) * np.sin(18 * X[:, 1]) > 0).astype(int)


@pytest.mark.slow
def test_more_points_are_taken_only_where_they_pay(monkeypatch):
    monkeypatch.setattr(kernel_model, "USUAL", 200)
    monkeypatch.setattr(kernel_model, "SOME", 200)
    monkeypatch.setattr(kernel_model, "ROWS_PER_POINT", 2)
    for (X, y), more in ((chessboard(1200), True), (noisy(1200, 2), False)):
        model = fitted(X, y, n_inducing="auto", local=False)
        (tried,) = [trial for trial in model.tuning_report_.trials if trial.what == "more points"]
        assert tried.n_inducing > 200  # twice those of the stage before
        for member in model.fitted_.members:
            assert (len(member.features.inducing_points) > 200) == more
    assert len(fitted(*chessboard(1200), n_inducing="auto", max_inducing=230, local=False).inducing_points_) <= 230


def test_few_rows_take_no_more_than_the_most(monkeypatch):
    monkeypatch.setattr(kernel_model, "FEWEST", 30)
    for most, expected in ((100, 40), (15, 15)):  # a fifth of the rows
        model = fitted(*noisy(200, 2), n_inducing="auto", max_inducing=most)
        assert {len(member.features.inducing_points) for member in model.fitted_.members} == {expected}


# ---- the report ----


def test_the_report_is_a_table_and_survives_a_file(tmp_path):
    X, y = noisy(150, 3)
    model = fitted(X, y)
    lines = str(model.tuning_report_).splitlines()
    assert lines[0] == HEADER
    assert len(model.tuning_report_.trials) >= 3
    assert all(str(trial) in lines for trial in model.tuning_report_.trials)
    assert any(line.startswith("Chosen: scale") for line in lines)
    members, kept = model.fitted_.members, model.tuning_report_.kept
    assert len(model.tuning_report_.trials) == kept + len(members)
    for number, (line, member) in enumerate(zip(model.tuning_report_.trials[kept:], members, strict=True)):
        assert line.what == ("fit" if len(members) == 1 else f"fit, {member.weight:.0%}")
        assert (line.n_rows, line.n_inducing) == (150, len(member.features.inducing_points))
        left_out, link = model.fitted_.left_out[number], member.link or model.fitted_.link
        assert line.loo == pytest.approx(mean_loss(link, left_out))
    model.save(tmp_path / "m")
    again = bayesvm.load(tmp_path / "m")
    assert str(again.tuning_report_) == str(model.tuning_report_)
    np.testing.assert_array_equal(again.relevance_, model.relevance_)
    assert again.kernel_ == model.kernel_
    assert not hasattr(fitted(X, y, tune=None), "tuning_report_")


def test_the_report_shows_the_climb_of_the_elbo(tmp_path):
    kernel = RBF(1.0, 3.0, variance_bounds="fixed")
    model = fitted(*noisy(150, 3), kernel=kernel, n_inducing=20, tune="elbo")
    elbos, lengths = np.transpose(model.tuning_report_.climb)
    assert lengths[0] == pytest.approx(1.0)
    assert lengths[elbos.argmax()] == pytest.approx(model.kernel_.length_scale)
    model.save(tmp_path / "m")
    assert bayesvm.load(tmp_path / "m").tuning_report_.climb == model.tuning_report_.climb


def test_the_report_names_the_kernel_that_was_chosen():
    model = fitted(*noisy(300, 3))
    report = model.tuning_report_
    for line, member in zip(report.trials[report.kept :], model.fitted_.members, strict=True):
        assert type(main_kernel(member)) is {"rbf": RBF, "laplacian": Laplacian}[line.kernel.split(",")[0]]
    assert f"kernel {report.trials[report.kept].kernel}" in str(report)
    assert (f"{len(model.fitted_.members)} models are averaged" in str(report)) == (len(model.fitted_.members) > 1)


def test_verbose_shows_every_trial_as_it_comes(capsys):
    model = fitted(*noisy(100, 3), n_inducing=15, verbose=1)
    shown = capsys.readouterr().err
    assert HEADER in shown
    assert all(str(trial) in shown for trial in model.tuning_report_.trials)


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_tuned_model_can_be_pickled_and_cloned(verbose):
    X, y = noisy(100, 3)
    model = fitted(X, y, n_inducing=15, verbose=verbose)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert str(again.tuning_report_) == str(model.tuning_report_)
    assert not hasattr(clone(model), "kernel_")


def test_bounds_of_kernels_survive_a_file(tmp_path):
    kernel = Sum([RBF(2.0, 1.0, (0.5, 5.0)), Linear(0.1, "fixed")], [1.0, 2.0], "fixed")
    model = fitted(*noisy(80, 3), kernel=kernel, n_inducing=10)
    model.save(tmp_path / "m")
    again = bayesvm.load(tmp_path / "m")
    assert again.kernel == kernel
    assert again.kernel_ == model.kernel_


# ---- the same again ----


@pytest.mark.slow
def test_the_same_bits_whatever_the_number_of_threads():
    for X, y in (noisy(1050, 3), (XW, YW)):
        one, two = (fitted(X, y, n_jobs=n_jobs, n_inducing=20) for n_jobs in (1, 2))
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
        assert one.kernel_ == two.kernel_
        losses = ([trial.loo for trial in model.tuning_report_.trials] for model in (one, two))
        np.testing.assert_array_equal(*losses)


def test_sparse_input_is_tuned_as_dense_input_is():
    rows = np.where(np.median(XW, axis=0) < XW, XW, 0.0)
    dense, thin = fitted(rows, YW, n_inducing=20), fitted(sparse.csr_matrix(rows), YW, n_inducing=20)
    np.testing.assert_allclose(thin.predict_proba(rows), dense.predict_proba(rows), atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*exact copies")
def test_a_weight_of_two_is_the_row_twice():
    X, y = noisy(150, 3)
    test = noisy(500, 3, seed=1)[0]
    how = {"n_inducing": 30, "tol": 1e-8, "max_iter": 300}
    twice = fitted(np.repeat(X, 2, axis=0), np.repeat(y, 2), **how)
    model = BayesianSVC(**how, random_state=0).fit(X, y, sample_weight=np.full(150, 2.0))
    np.testing.assert_allclose(model.predict_proba(test), twice.predict_proba(test), atol=1e-3)
    some = np.random.default_rng(0).integers(0, 3, 150)
    twice = fitted(np.repeat(X, some, axis=0), np.repeat(y, some), **how)
    model = BayesianSVC(**how, random_state=0).fit(X, y, sample_weight=some)
    np.testing.assert_allclose(model.predict_proba(test), twice.predict_proba(test), atol=1e-3)


def test_rows_sorted_by_class_are_tuned_as_shuffled_ones_are():
    X, y = noisy(1050, 3)
    order = np.argsort(y, kind="stable")
    for trial in fitted(X[order], y[order], n_inducing=20).tuning_report_.trials:
        assert trial.loo > 0.1  # with one class in sight there would be nothing to lose


def test_a_stream_is_tuned_on_its_first_part():
    X, y = noisy(300, 3)
    model = BayesianSVC(n_inducing=20, random_state=0).partial_fit(X[:200], y[:200], classes=[0, 1])
    kernel = model.kernel_
    model.partial_fit(X[200:], y[200:])
    assert model.kernel_ is kernel
    assert model.score(*noisy(1000, 3, seed=1)) > 0.8
    one_class = BayesianSVC(n_inducing=20, random_state=0).partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    assert np.isfinite(one_class.partial_fit(X[y == 1], y[y == 1]).predict_proba(X)).all()


def test_a_warm_start_keeps_what_was_tuned():
    X, y = noisy(200, 3)
    model = fitted(X, y, warm_start=True, n_inducing=20)
    kernel, before = model.kernel_, model.predict_proba(X)
    np.testing.assert_allclose(model.fit(X, y).predict_proba(X), before, atol=5e-3)
    assert model.kernel_ is kernel


# ---- tables on which little can be learned; warnings are errors here ----


def one_in_200(n_rows=1000):
    X = rng.standard_normal((n_rows, 4))
    y = np.zeros(n_rows, int)
    y[np.argsort(X[:, 0])[-n_rows // 200 :]] = 1
    return X, y


def separable():
    X, y = noisy(150, 3)
    return X + np.where(y == 1, 5.0, -5.0)[:, None], y


HARD = {
    "twenty rows": noisy(20, 3),
    "more columns than rows": noisy(60, 150),
    "one feature": noisy(150, 1),
    "duplicated features": (noisy(150, 2)[0][:, [0, 0, 0, 1]], noisy(150, 2)[1]),
    "perfectly separable": separable(),
    "1 in 200": one_in_200(),
    "three classes, one of one row": (XW[:131], YW[:131]),
    "a column of 1e9 beside one of 1e-9": (noisy(150, 2)[0] * [1e9, 1e-9], noisy(150, 2)[1]),
    "few distinct values": (np.round(noisy(200, 3)[0]), noisy(200, 3)[1]),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tune"), [*((name, "auto") for name in HARD), ("twenty rows", "elbo"), ("perfectly separable", "elbo")]
)
def test_hard_tables_are_tuned_in_silence(name, tune):
    X, y = HARD[name]
    model = BayesianSVC(tune=tune, max_inducing=60, random_state=0).fit(X, y)
    p = model.predict_proba(X)
    assert np.isfinite(p).all()
    assert np.isfinite(model.kernel_.log_parameters()).all()
    base = log_loss(y, np.tile(np.bincount(y) / len(y), (len(y), 1)))
    assert model.loo_log_loss_ < 1.1 * base + 0.02  # at worst, it predicts the base rate
    assert log_loss(y, p) < base
    assert p[:, 1].mean() == pytest.approx((y == 1).mean(), abs=0.05)


@pytest.mark.parametrize(("n_features", "share"), [(2, 0.1), (10, 0.5)])
def test_without_informative_columns_the_base_rate_is_predicted(n_features, share):
    lost = []
    for seed in range(3):
        generator = np.random.default_rng(seed)
        X, fresh = generator.standard_normal((300, n_features)), generator.standard_normal((2000, n_features))
        y, truth = ((generator.random(n) < share).astype(int) for n in (300, 2000))
        p = fitted(X, y, n_inducing=30).predict_proba(fresh)
        assert p[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)
        lost.append(log_loss(truth, p) - log_loss(truth, np.full(2000, y.mean())))
    assert np.mean(lost) < 0.02  # a machine that ignores X would lose nothing


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inducing": "grid"}, "inducing must be"),
        ({"inducing": XW[:5, :2]}, "inducing has 2 columns"),
        ({"n_inducing": None}, "Set n_inducing"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"kernel": RBF([1.0, 2.0])}, "one number, or one per column"),
        ({"kernel": RBF(length_scale_bounds=(3.0, 1.0))}, "length_scale_bounds must be"),
    ],
)
def test_senseless_settings_are_refused_before_anything_is_tried(changes, message, monkeypatch):
    def too_late(*_):
        pytest.fail("tuning began")

    monkeypatch.setattr(Tuner, "tune", too_late)
    monkeypatch.setattr("bayesvm.inference.kernel_model.MOST_INDUCING", 100)
    with pytest.raises(ValueError, match=message):
        BayesianSVC(**changes).fit(XW, YW)


# ---- the linear model ----


@pytest.mark.parametrize("tune", ["auto", "loo", "elbo"])
@pytest.mark.parametrize("start", [1e-3, 100.0])
def test_the_prior_variance_of_the_linear_model_is_learned(start, tune):
    X, y = noisy(300, 20)
    model, fixed = (BayesianLinearSVC(start, tune=how).fit(X, y) for how in (tune, None))
    assert 0.05 < model.prior_variance_ < 20
    assert model.loo_log_loss_ < fixed.loo_log_loss_ + 1e-3
    assert fixed.prior_variance_ == pytest.approx(start)


@pytest.mark.parametrize(("n_rows", "n_features"), [(60, 20), (100, 30), (40, 100)])
def test_a_learned_prior_does_not_overfit_where_columns_are_many(n_rows, n_features):
    """Leave-one-out is far too optimistic about nearly separable rows; new rows tell."""
    loss = {"auto": 0.0, None: 0.0}
    for seed in range(3):
        test_rows, truth = noisy(2000, n_features, seed=seed + 100)
        for tune in loss:
            model = BayesianLinearSVC(tune=tune).fit(*noisy(n_rows, n_features, seed=seed))
            loss[tune] += log_loss(truth, model.predict_proba(test_rows)) / 3
    assert loss["auto"] < loss[None] + 0.05


def test_a_prior_variance_for_every_feature_shows_which_matter():
    X, y = noisy(160, 30)
    model = BayesianLinearSVC(np.ones(30)).fit(X, y)
    assert model.prior_variance_.shape == (30,)
    assert model.prior_variance_[0] > 2 * model.prior_variance_[1:].max()
    test = noisy(2000, 30, seed=1)
    plain = BayesianLinearSVC(np.ones(30), tune=None).fit(X, y)
    assert log_loss(test[1], model.predict_proba(test[0])) < log_loss(test[1], plain.predict_proba(test[0])) + 0.01


@pytest.mark.parametrize("size", [1e-12, 1e12])
@pytest.mark.parametrize("model", [BayesianLinearSVC(scale=None), BayesianSVC(scale=None, n_inducing=20)], ids=repr)
def test_units_without_any_scaling_are_survived(model, size):
    X, y = noisy(80, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ConvergenceWarning and JitterWarning are honest here
        assert np.isfinite(model.fit(X * size, y).predict_proba(X * size)).all()


def test_a_prior_matrix_stays():
    X, y = noisy(200, 3)
    prior = 0.3 * np.eye(3) + 0.1
    tuned, fixed = (BayesianLinearSVC(prior, tune=tune, noise=1).fit(X, y) for tune in ("auto", None))
    np.testing.assert_allclose(tuned.predict_proba(X), fixed.predict_proba(X))
    np.testing.assert_allclose(tuned.prior_variance_, np.diag(prior))


def test_the_tuned_linear_model_survives_a_file(tmp_path):
    X, y = noisy(200, 3)
    model = BayesianLinearSVC(np.ones(3)).fit(X, y)
    model.save(tmp_path / "m")
    again = bayesvm.load(tmp_path / "m")
    np.testing.assert_array_equal(again.prior_variance_, model.prior_variance_)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
