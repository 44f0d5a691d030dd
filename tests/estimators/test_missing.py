"""Missing values in fit and predict: completed, felt in the uncertainty, the same wherever rows lie (D33)."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

import bayesvm
from bayesvm import BayesianLinearSVC, BayesianSVC, BayesianSVR, open_table
from bayesvm.core.latent import Block
from bayesvm.core.workspace import Workspace

rng = np.random.default_rng(0)
LATENT = rng.standard_normal((900, 2))
WHOLE = LATENT @ rng.standard_normal((2, 5)) + 0.3 * rng.standard_normal((900, 5))
Y = (LATENT[:, 0] + 0.4 * rng.standard_normal(900) > 0).astype(int)
X = np.where(rng.random(WHOLE.shape) < 0.25, np.nan, WHOLE)
TRAIN, NEW = slice(0, 600), slice(600, 900)
HOW = {"n_inducing": 30, "tune": None, "random_state": 0}
MODELS = {"kernel": lambda: BayesianSVC(**HOW), "linear": lambda: BayesianLinearSVC(tune=None, random_state=0)}


@pytest.fixture(scope="module")
def model():
    return BayesianSVC(**HOW).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def regressor():
    y = LATENT[:, 0] + 0.2 * np.random.default_rng(5).standard_normal(900)
    return BayesianSVR(n_inducing=30, tune=None, random_state=0).fit(X[TRAIN], y[TRAIN])


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_columns_that_depend_on_each_other_fill_each_other_better_than_medians(make):
    ours = make().fit(X[TRAIN], Y[TRAIN]).predict_proba(X[NEW])
    medians = make_pipeline(SimpleImputer(strategy="median"), make()).fit(X[TRAIN], Y[TRAIN]).predict_proba(X[NEW])
    assert log_loss(Y[NEW], ours) < log_loss(Y[NEW], medians) - 0.01


def test_the_same_rows_with_fewer_values_are_more_uncertain(model):
    """The mean of f is known less well, which is epistemic."""
    fewer = np.where(np.random.default_rng(1).random(WHOLE[NEW].shape) < 0.5, np.nan, WHOLE[NEW])
    before, after = (model.predict_uncertainty(rows) for rows in (WHOLE[NEW], fewer))
    assert after["total"].mean() > before["total"].mean()
    assert after["epistemic"].mean() > before["epistemic"].mean()
    nothing = model.predict_proba(np.full((1, 5), np.nan))[0, 1]
    assert abs(nothing - Y[TRAIN].mean()) < 0.1


def test_rows_without_missing_values_are_predicted_as_always(model):
    m, v = model.latent_mean_and_variance(WHOLE[NEW])
    block = Block(model.fitted_.scaler(WHOLE[NEW]), Y[NEW], None)
    member = model.fitted_.views.moments([block], Workspace())
    np.testing.assert_array_equal(m, member[0].mean[:, 0])
    np.testing.assert_array_equal(v, member[0].variance[:, 0])


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_variance_of_a_row_is_that_over_its_completions(kind, model, regressor):
    """By the law of total variance; the mean of classes is that of the conditional mean, which measured better."""
    fitted = model if kind == "classes" else regressor
    each = [fitted.latent_mean_and_variance(draw) for draw in fitted.completion_.draws(X[NEW])]
    means, variances = map(np.array, zip(*each, strict=True))
    found, variance = fitted.latent_mean_and_variance(X[NEW])
    completed = fitted.latent_mean_and_variance(fitted.completion_(X[NEW]))[0]
    np.testing.assert_allclose(found, completed if kind == "classes" else means.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(variance, variances.mean(axis=0) + means.var(axis=0), atol=1e-9)


def test_leave_one_out_accounts_for_missing_values(model):
    np.testing.assert_allclose(
        log_loss(Y[TRAIN], model.loo_proba_), log_loss(Y[NEW], model.predict_proba(X[NEW])), atol=0.06
    )


def test_predictions_do_not_depend_on_the_rows_around(model):
    several = model.predict_proba(X[NEW])
    np.testing.assert_allclose(
        np.vstack([model.predict_proba(X[[row]]) for row in range(600, 620)]), several[:20], atol=1e-9
    )


def test_a_saved_model_predicts_the_same(model, tmp_path):
    model.save(tmp_path / "m.bayesvm")
    again = bayesvm.load(tmp_path / "m.bayesvm")
    np.testing.assert_array_equal(again.predict_proba(X[NEW]), model.predict_proba(X[NEW]))


def test_rows_in_files_and_on_dask_are_bit_identical_to_rows_in_memory(model, tmp_path):
    names = [f"x{i}" for i in range(5)]
    data = {name: pa.array(column, from_pandas=True) for name, column in zip(names, X[TRAIN].T, strict=True)}
    parquet.write_table(pa.table(data | {"y": Y[TRAIN]}), tmp_path / "t.parquet")
    from_file = BayesianSVC(**HOW).fit(open_table(tmp_path / "t.parquet", "y"))
    np.testing.assert_array_equal(from_file.loo_proba_, model.loo_proba_)
    array = pytest.importorskip("dask.array")
    on_dask = BayesianSVC(**HOW).fit(array.from_array(X[TRAIN], (200, 5)), array.from_array(Y[TRAIN], 200))
    np.testing.assert_allclose(on_dask.loo_proba_, model.loo_proba_, atol=1e-6)
    lazy = model.predict_proba(array.from_array(X[NEW], (100, 5)))
    np.testing.assert_allclose(lazy.compute(), model.predict_proba(X[NEW]), atol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_joint_samples_have_mean_and_variance_of_the_model(kind, model, regressor):
    fitted, rows = model if kind == "classes" else regressor, X[NEW][:6]
    drawn = fitted.sample_latent(rows, 16_000, random_state=0)
    m, v = fitted.latent_mean_and_variance(rows)
    np.testing.assert_allclose(drawn.mean(axis=0), m, atol=4 * np.sqrt(v.max() / 16_000))
    np.testing.assert_allclose(drawn.var(axis=0), v, rtol=0.05)
    one = np.array([fitted.sample_latent(rows, 1, random_state=seed)[0] for seed in range(300)])
    np.testing.assert_allclose(one.mean(axis=0), m, atol=4 * np.sqrt(v.max() / 300))


def test_a_stream_keeps_how_it_completes():
    part = BayesianSVC(**HOW).partial_fit(X[:300], Y[:300], classes=[0, 1])
    first = part.completion_
    part.partial_fit(X[300:600], Y[300:600])
    assert part.completion_ is first
    assert log_loss(Y[NEW], part.predict_proba(X[NEW])) < 0.6


def test_a_model_that_saw_no_missing_value_completes_them_from_the_other_columns(tmp_path):
    whole = BayesianSVC(**HOW).fit(WHOLE[TRAIN], Y[TRAIN])
    medians = np.where(np.isnan(X[NEW]), np.median(WHOLE[TRAIN], axis=0), X[NEW])
    ours, theirs = (log_loss(Y[NEW], whole.predict_proba(rows)) for rows in (X[NEW], medians))
    assert ours < theirs - 0.03
    row = X[NEW][np.isnan(X[NEW]).any(axis=1)][:50]
    assert (
        whole.latent_mean_and_variance(row)[1].mean()
        > whole.latent_mean_and_variance(whole.completion_(row))[1].mean() + 0.05
    )
    whole.predict_proba(row)
    whole.save(tmp_path / "m.bayesvm")
    loaded = bayesvm.load(tmp_path / "m.bayesvm")
    assert loaded.completion_.unneeded
    np.testing.assert_array_equal(loaded.predict_proba(row), whole.predict_proba(row))


def test_numbers_are_predicted_from_rows_with_missing_values():
    y = LATENT[:, 0] + 0.2 * rng.standard_normal(900)
    model = BayesianSVR(n_inducing=30, tune=None, random_state=0).fit(X[TRAIN], y[TRAIN])
    assert model.score(X[NEW], y[NEW]) > 0.6
