"""BayesianSVR: predictions in the units of y, intervals that hold, leave-one-out against refits, every way to fit."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_friedman2
from sklearn.exceptions import NotFittedError

from bayesvm import BayesianSVR, load, open_table
from bayesvm.kernels import RBF

X, Y = make_friedman1(700, n_features=6, noise=1.0, random_state=0)
TRAIN, TEST = slice(0, 400), slice(400, None)
FIXED = {"kernel": RBF(2.0), "n_inducing": 60, "tune": None, "random_state": 0}
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def model():
    return BayesianSVR(random_state=0).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def fixed():
    return BayesianSVR(**FIXED).fit(X[TRAIN], Y[TRAIN])


def test_predictions_come_near_the_noise(model):
    mean, std = model.predict(X[TEST], return_std=True)
    assert np.sqrt(np.mean((mean - Y[TEST]) ** 2)) < 1.3  # the noise has a deviation of 1, y one of 5
    assert 0.8 < std.mean() < 1.4
    assert model.score(X[TEST], Y[TEST]) > 0.9
    assert model.loo_rmse_ == pytest.approx(np.sqrt(np.mean((mean - Y[TEST]) ** 2)), rel=0.15)
    np.testing.assert_array_equal(model.predict(X[TEST]), mean)


def test_intervals_contain_what_they_say(model):
    for coverage in (0.5, 0.9):
        low, high = model.predict_interval(X[TEST], coverage)
        assert np.mean((low <= Y[TEST]) & (Y[TEST] <= high)) == pytest.approx(coverage, abs=0.08)


NOISES = {
    "skewed": lambda rng, n: rng.exponential(1.0, n) - 1,
    "of two kinds": lambda rng, n: rng.choice([-3.0, 3.0], n) + 0.1 * rng.standard_normal(n),
}


@pytest.mark.parametrize("kind", NOISES)
def test_the_ends_of_intervals_hold_whatever_the_noise(kind, tmp_path):
    """A symmetric density is fitted, but its quantiles are those of the rows left out (D35)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2500, 2))
    y = 2 * np.sin(3 * x[:, 0]) + NOISES[kind](rng, 2500)
    model = BayesianSVR(kernel=RBF(1.0), n_inducing=40, tune=None, random_state=0).fit(x[:500], y[:500])
    quantiles = model.predict_quantiles(x[500:], [0.05, 0.25, 0.5, 0.75, 0.95])
    assert (np.diff(quantiles, axis=1) > 0).all()
    for share, found in zip([0.05, 0.25, 0.5, 0.75, 0.95], quantiles.T, strict=True):
        assert np.mean(y[500:] <= found) == pytest.approx(share, abs=0.02 if share in {0.05, 0.95} else 0.045)
    below = model.predictive_checks(x[500:], y[500:])["below"]
    np.testing.assert_array_equal(below <= 0.05, y[500:] <= quantiles[:, 0])
    draws = model.sample_y(x[500:504], 4_000, random_state=0)
    np.testing.assert_allclose(np.mean(draws <= quantiles[:4, 4], axis=0), 0.95, atol=0.02)
    np.testing.assert_allclose(np.mean(draws <= quantiles[:4, 0], axis=0), 0.05, atol=0.02)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_quantiles(x[:5]), model.predict_quantiles(x[:5]))


def test_the_log_density_is_estimated_by_leave_one_out(model):
    mean, std = model.predict(X[TEST], return_std=True)
    normal = -0.5 * ((Y[TEST] - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
    assert model.loo_log_density_ == pytest.approx(normal.mean(), abs=0.15)


def test_quantiles_are_those_of_samples(model):
    draws = model.sample_y(X[:5], 4_000, random_state=1)
    found = model.predict_quantiles(X[:5], [0.05, 0.3, 0.5, 0.95])
    assert found.shape == (5, 4)
    shares = np.array([[np.mean(draws[:, i] <= q) for q in row] for i, row in enumerate(found)])
    np.testing.assert_allclose(shares, np.tile([0.05, 0.3, 0.5, 0.95], (5, 1)), atol=0.03)
    mean, std = model.predict(X[:5], return_std=True)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.25)  # the draws are calibrated
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.1)


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_few_rows_are_not_interpolated(seed):
    """With a weight for each row, learned noise could vanish; new rows then had deviations far beyond the noise."""
    rng = np.random.default_rng([seed, 60])
    x = rng.uniform(-1, 1, (2060, 4))
    y = np.sin(3 * x[:, 0]) + x[:, 1] ** 2 + 0.5 * x[:, 2] + 0.5 * rng.standard_normal(2060)
    model = BayesianSVR(random_state=0).fit(x[:60], y[:60])
    _, std = model.predict(x[60:], return_std=True)
    assert np.median(std) == pytest.approx(np.median(model.loo_predictions_[1]), rel=0.15)
    assert np.quantile(std, 0.99) < 3 * np.median(std)


def test_the_parts_of_the_variance_add_up(model):
    found = model.predict_uncertainty(X[TEST])
    np.testing.assert_allclose(found["total"], found["aleatoric"] + found["epistemic"])
    np.testing.assert_allclose(found["total"], model.predict(X[TEST], return_std=True)[1] ** 2)
    low, high = model.predict_interval(X[TEST])
    np.testing.assert_allclose(found["lower"], low)
    np.testing.assert_allclose(found["upper"], high)
    outside = model.predict_uncertainty(X[:3] + 100)
    assert (outside["epistemic"] > found["epistemic"].max()).all()


def test_latent_samples_have_the_latent_moments(fixed):
    mean, variance = fixed.latent_mean_and_variance(X[TEST][:4])
    draws = fixed.sample_latent(X[TEST][:4], 20_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.05)
    np.testing.assert_allclose(fixed.predict(X[TEST][:4]), mean)


def test_results_are_in_the_units_of_y(fixed):
    other = clone(fixed).fit(X[TRAIN], 1e6 + 1024 * Y[TRAIN])
    for kind in ("predict", "predict_quantiles"):
        found, expected = getattr(other, kind)(X[TEST]), getattr(fixed, kind)(X[TEST])
        np.testing.assert_allclose(found, 1e6 + 1024 * expected, rtol=1e-7)
    np.testing.assert_allclose(other.loo_rmse_, 1024 * fixed.loo_rmse_, rtol=1e-6)
    np.testing.assert_allclose(other.noise_std_, 1024 * fixed.noise_std_, rtol=1e-5)
    assert other.loo_log_density_ == pytest.approx(fixed.loo_log_density_ - np.log(1024), abs=1e-6)


def test_leave_one_out_is_near_a_refit_without_the_row(fixed):
    mean, std = fixed.loo_predictions_
    assert mean.shape == std.shape == (400,)
    moved, apart = [], []
    for row in (3, 77, 150, 222, 390):
        kept = np.delete(np.arange(400), row)
        left = clone(fixed).set_params(inducing=fixed.inducing_points_).fit(X[kept], Y[kept])
        apart.append(abs(left.predict(X[[row]])[0] - mean[row]))
        moved.append(abs(fixed.predict(X[[row]])[0] - mean[row]))
    assert np.mean(apart) < 0.5 * np.mean(moved), (apart, moved)


def test_outliers_hardly_move_the_curve():
    x = np.sort(RNG.uniform(-3, 3, 300))[:, None]
    curve = np.sin(2 * x[:, 0])
    y = curve + 0.1 * RNG.standard_normal(300)
    y[::10] += 5
    found = BayesianSVR(random_state=0).fit(x, y)
    assert np.sqrt(np.mean((found.predict(x) - curve) ** 2)) < 0.12


@pytest.mark.parametrize("noise", [0.0, 0.01, 1.0])
def test_any_amount_of_noise_is_found(noise):
    x = np.sort(RNG.uniform(-3, 3, 400))[:, None]
    curve = np.sin(2 * x[:, 0])
    found = BayesianSVR(kernel="rbf", random_state=0).fit(x, curve + noise * RNG.standard_normal(400))
    assert np.sqrt(np.mean((found.predict(x) - curve) ** 2)) < 0.003 + 0.3 * noise
    assert found.predict(x, return_std=True)[1].mean() == pytest.approx(noise, rel=0.25, abs=0.005)


def test_few_numbers_learn_the_length_scales_of_columns(model):
    assert model.kernel_.length_scales.shape == (6,)
    # The last column is noise; the two before it are linear, and the broad component represents them.
    assert model.relevance_[:3].min() > 0.03
    assert model.relevance_[5] < 0.003


BAD = {
    "NaN": (np.r_[Y[:7], np.nan, Y[8:20]], ValueError, "row 7: y is NaN"),
    "infinity": (np.r_[Y[:3], -np.inf, Y[4:20]], ValueError, "row 3: y is infinity"),
    "too large": (np.r_[1e200, Y[1:20]], ValueError, "row 0: y is 1e.200; beyond"),
    "constant": (np.full(20, 3.5), ValueError, "all 20 rows have 3.5"),
    "text": (np.array(["1.5"] * 20), ValueError, "row 0: y is '1.5', which is not a number"),
    "text among numbers": (np.array([*Y[:19], "a"], object), ValueError, "row 19: y is 'a', which is not a number"),
    "None": (np.array([*Y[:19], None], object), ValueError, "row 19: y is NaN"),
    "complex": (Y[:20] + 1j, ValueError, "Complex data not supported"),
    "two columns": (np.column_stack([Y[:20], Y[:20]]), ValueError, "1d array"),
    "none at all": (None, ValueError, "requires y"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_targets_are_errors_that_name_the_row(bad):
    y, error, message = BAD[bad]
    untouched = BayesianSVR(**FIXED)
    with pytest.raises(error, match=message):
        untouched.fit(X[:20], y)
    assert not hasattr(untouched, "fitted_")
    assert not hasattr(untouched, "n_features_in_")


def test_other_numbers_are_numbers():
    for y in (np.arange(60) % 7, (np.arange(60) % 7).astype(object), (np.arange(60) % 2) == 0, list(range(60))):
        found = BayesianSVR(**FIXED).fit(X[:60], y).predict(X[:60])
        assert np.isfinite(found).all()


def test_files_of_predictions_have_intervals_of_the_coverage_requested(fixed):
    for uncertainty in (False, True):
        (part,) = fixed.predictions(X[:9], uncertainty=uncertainty, coverage=0.5)
        low, high = fixed.predict_interval(X[:9], 0.5)
        assert part["lower"] == pytest.approx(low)
        assert part["upper"] == pytest.approx(high)
        assert ("std" in part) == uncertainty


def test_wrong_arguments_are_errors(fixed):
    with pytest.raises(ValueError, match="above 0 and below 1"):
        fixed.predict_quantiles(X[:3], [0.0, 0.5])
    with pytest.raises(ValueError, match="one or more numbers"):
        fixed.predict_quantiles(X[:3], [])
    with pytest.raises(ValueError, match="coverage must be strictly"):
        fixed.predict_interval(X[:3], 90)
    with pytest.raises(NotFittedError):
        BayesianSVR().predict(X)
    with pytest.raises(ValueError, match="n_inducing must be"):
        BayesianSVR(n_inducing=-3).fit(X, Y)


def test_a_weight_of_zero_leaves_a_row_out_and_of_two_counts_twice():
    weight = RNG.integers(0, 3, 200).astype(float)
    times = np.repeat(np.arange(200), weight.astype(int))
    points = X[:30]
    weighted = BayesianSVR(**FIXED | {"inducing": points}).fit(X[:200], Y[:200], sample_weight=weight)
    with pytest.warns(UserWarning, match="copies"):
        repeated = BayesianSVR(**FIXED | {"inducing": points}).fit(X[times], Y[times])
    np.testing.assert_allclose(weighted.predict(X[TEST]), repeated.predict(X[TEST]), atol=0.05)
    kept = weight > 0
    without = BayesianSVR(**FIXED | {"inducing": points}).fit(X[:200][kept], Y[:200][kept], sample_weight=weight[kept])
    np.testing.assert_array_equal(weighted.predict(X[TEST]), without.predict(X[TEST]))
    np.testing.assert_array_equal(weighted.loo_indices_, np.flatnonzero(kept))


def test_a_saved_model_predicts_bit_identically(model, tmp_path):
    model.save(tmp_path / "model.bin")
    again = load(tmp_path / "model.bin")
    for kind in ("predict", "predict_quantiles"):
        np.testing.assert_array_equal(getattr(again, kind)(X[TEST]), getattr(model, kind)(X[TEST]))
    np.testing.assert_array_equal(again.loo_predictions_[1], model.loo_predictions_[1])
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "classes_")
    again.partial_fit(X[TEST], Y[TEST])


def test_a_stream_learns_from_all_parts(fixed):
    stream = BayesianSVR(**FIXED).partial_fit(X[:200], Y[:200])
    before = np.mean((stream.predict(X[TEST]) - Y[TEST]) ** 2)
    stream.partial_fit(X[200:400], Y[200:400])
    after = np.mean((stream.predict(X[TEST]) - Y[TEST]) ** 2)
    at_once = np.mean((fixed.predict(X[TEST]) - Y[TEST]) ** 2)
    assert stream.n_samples_ == 400
    assert after < before
    assert after < 1.3 * at_once
    with pytest.raises(ValueError, match="row 1: y is NaN"):
        stream.partial_fit(X[:2], [1.0, np.nan])


def test_a_warm_start_stays_where_it_was(fixed):
    again = BayesianSVR(**FIXED | {"warm_start": True}).fit(X[TRAIN], Y[TRAIN])
    first = again.predict(X[TEST])
    np.testing.assert_allclose(again.fit(X[TRAIN], Y[TRAIN]).predict(X[TEST]), first, atol=0.05)
    np.testing.assert_array_equal(first, fixed.predict(X[TEST]))


def test_a_fit_resumes_from_its_checkpoint_bit_identically(tmp_path):
    given = {"random_state": 0, "kernel": "rbf", "scale": "standard"}
    path, plain = tmp_path / "checkpoint", BayesianSVR(**given).fit(X[:300], Y[:300])
    first = BayesianSVR(**given).fit(X[:300], Y[:300], checkpoint=path, checkpoint_every=0.0)
    second = BayesianSVR(**given).fit(X[:300], Y[:300], checkpoint=path)
    for found in (first, second):
        np.testing.assert_array_equal(found.predict(X[TEST]), plain.predict(X[TEST]))
    with pytest.raises(ValueError, match="checksum"):
        BayesianSVR(**given).fit(X[:300], Y[:300] + 1, checkpoint=path)


def test_threads_do_not_change_results(fixed):
    other = clone(fixed).set_params(n_jobs=2).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_array_equal(other.predict(X[TEST]), fixed.predict(X[TEST]))


def test_held_out_rows_are_evaluated_during_the_fit():
    seen = []
    BayesianSVR(**FIXED).fit(
        X[TRAIN], Y[TRAIN], held_out=(X[TEST], Y[TEST]), callback=lambda p: seen.append(p.held_out)
    )
    assert any(loss is not None and np.isfinite(loss) for loss in seen)
    with pytest.raises(ValueError, match="held_out, row 2: y is NaN"):
        BayesianSVR(**FIXED).fit(X[TRAIN], Y[TRAIN], held_out=(X[:3], [1, 2, np.nan]))


def test_minibatches_learn_too(fixed):
    found = BayesianSVR(**FIXED | {"inference": "stochastic", "batch_size": 100, "max_iter": 20}).fit(
        X[TRAIN], Y[TRAIN]
    )
    at_once = np.mean((fixed.predict(X[TEST]) - Y[TEST]) ** 2)
    assert np.mean((found.predict(X[TEST]) - Y[TEST]) ** 2) < 1.2 * at_once


@pytest.mark.filterwarnings("ignore:.*used its budget")
@pytest.mark.parametrize("tune", ["loo", "elbo"])
def test_other_ways_to_tune(tune):
    found = BayesianSVR(kernel="rbf", tune=tune, n_inducing=60, random_state=0).fit(X[TRAIN], Y[TRAIN])
    assert found.score(X[TEST], Y[TEST]) > 0.7


def test_local_models():
    rng = np.random.default_rng(2)
    x = rng.uniform(-3, 3, (1500, 2))
    y = np.sin(9 * x[:, 0]) * x[:, 1] + 0.1 * rng.standard_normal(1500)
    found = BayesianSVR(kernel="rbf", local=True, n_inducing=50, random_state=1).fit(x[:1000], y[:1000])
    assert found.fitted_.member.leaves is not None
    assert found.score(x[1000:], y[1000:]) > 0.9
    error = np.sqrt(np.mean((found.predict(x[1000:]) - y[1000:]) ** 2))
    assert found.loo_rmse_ == pytest.approx(error, rel=0.3)
    low, high = found.predict_interval(x[1000:])
    assert 0.8 < np.mean((low <= y[1000:]) & (y[1000:] <= high)) < 0.97


def test_an_effect_of_one_column_is_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 6))
    x[:, 5] = np.round(x[:, 5] * 4)
    jump = np.where(x[:, 5] % 2 == 0, 3.0, 0.0)  # which no smooth kernel of six columns can make
    y = x[:, 0] + np.sin(x[:, 1]) + jump + 0.3 * rng.standard_normal(1500)
    found = BayesianSVR(kernel="rbf", random_state=0).fit(x[:1200], y[:1200])
    assert any(effect.columns == (5,) for effect in found.effects_)
    assert found.score(x[1200:], y[1200:]) > 0.85  # without the column, at most .6


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_tables_in_files(tmp_path, fixed):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = [f"x{j}" for j in range(6)]
    parquet.write_table(pa.table(dict(zip(names, X[TRAIN].T, strict=True)) | {"y": Y[TRAIN]}), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", "y")
    found = BayesianSVR(**FIXED).fit(table)
    np.testing.assert_array_equal(found.predict(X[TEST]), fixed.predict(X[TEST]))
    assert found.score(table) == pytest.approx(fixed.score(X[TRAIN], Y[TRAIN]))
    found.predict_to(table, tmp_path / "said.parquet")
    said = parquet.read_table(tmp_path / "said.parquet")
    assert said.column_names == ["prediction", "std", "total", "aleatoric", "epistemic", "lower", "upper"]
    np.testing.assert_allclose(said["std"], fixed.predict(X[TRAIN], return_std=True)[1])
    wrong = pa.table(dict(zip(names, X[:9].T, strict=True)) | {"y": np.r_[Y[:4], np.nan, Y[5:9]]})
    parquet.write_table(wrong, tmp_path / "wrong.parquet")
    with pytest.warns(UserWarning, match=r"1 row is left out of 9.*wrong\.parquet, row 4"):
        assert BayesianSVR(**FIXED | {"n_inducing": 5}).fit(open_table(tmp_path / "wrong.parquet", "y")).n_samples_ == 8


def test_dask(fixed):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    with dask.config.set(scheduler="synchronous"):
        rows, y = da.from_array(X[TRAIN], chunks=(100, 6)), da.from_array(Y[TRAIN], chunks=100)
        found = BayesianSVR(**FIXED).fit(rows, y)
        np.testing.assert_allclose(found.predict(X[TEST]), fixed.predict(X[TEST]), rtol=1e-6)
        lazy = fixed.predict_interval(rows)
        # Products of matrices of other sizes may differ in their last bits.
        np.testing.assert_allclose(lazy[1].compute(), fixed.predict_interval(X[TRAIN])[1], rtol=1e-9)
        np.testing.assert_allclose(
            fixed.predict(rows, return_std=True)[1].compute(), fixed.predict(X[TRAIN], return_std=True)[1], rtol=1e-9
        )
        assert fixed.score(rows, y) == pytest.approx(fixed.score(X[TRAIN], Y[TRAIN]))


@pytest.mark.slow
def test_intervals_hold_where_noise_differs():
    """Narrow, middle and wide intervals contain as many numbers."""
    rows, y = make_friedman2(3_000, noise=0.0, random_state=0)
    y = y * (1 + 0.3 * np.random.default_rng(1).standard_normal(3_000))
    low, high = BayesianSVR(random_state=0).fit(rows[:1500], y[:1500]).predict_interval(rows[1500:])
    inside = (low <= y[1500:]) & (y[1500:] <= high)
    thirds = [inside[part].mean() for part in np.array_split(np.argsort(high - low), 3)]
    np.testing.assert_allclose(thirds, 0.9, atol=0.06)
    assert (high - low).max() > 3 * (high - low).min()


def test_the_link_of_the_fit_is_kept(fixed):
    """A model is a value: another link changes its predictions."""
    wide = replace(fixed.fitted_, link=replace(fixed.fitted_.link, scale=10 * fixed.fitted_.link.scale))
    other = clone(fixed)
    other.n_features_in_, other.fitted_ = fixed.n_features_in_, wide
    assert (other.predict(X[:3], return_std=True)[1] > 2 * fixed.predict(X[:3], return_std=True)[1]).all()


def test_rows_of_a_group_leave_together():
    """Rows of a group share an offset that only the other rows of the group tell."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    x = np.column_stack([groups / 40 + 0.001 * rng.standard_normal(400), rng.normal(size=400)])
    y = x[:, 1] + rng.standard_normal(40)[groups] + 0.1 * rng.standard_normal(400)
    given = {"kernel": RBF([0.1, 3.0]), "n_inducing": 80, "tune": None, "random_state": 0}
    alone = BayesianSVR(**given).fit(x, y)
    together = BayesianSVR(**given).fit(x, y, groups=groups)
    assert together.loo_rmse_ > 1.5 * alone.loo_rmse_
    assert together.loo_predictions_[1].mean() > alone.loo_predictions_[1].mean()
