"""partial_fit, warm_start, time_limit, sparse and polars input, metadata routing."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform
from tests.storage.committees import committee

X, y = load_breast_cancer(return_X_y=True)
Xw, yw = load_wine(return_X_y=True)
SHUFFLED = np.random.default_rng(0).permutation(len(y))
MODELS = [BayesianSVC(n_inducing=25, tune=None, random_state=0), BayesianLinearSVC()]


def streamed(model, rows, labels, parts, **how):
    model = sklearn.clone(model)
    for part in np.array_split(np.random.default_rng(1).permutation(len(labels)), parts):
        model.partial_fit(rows[part], labels[part], classes=np.unique(labels), **how)
    return model


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize(("rows", "labels"), [(X, y), (Xw, yw)], ids=["two classes", "three classes"])
def test_a_stream_comes_near_one_fit(model, rows, labels):
    whole = log_loss(labels, sklearn.clone(model).fit(rows, labels).predict_proba(rows))
    stream = streamed(model, rows, labels, 5)
    assert log_loss(labels, stream.predict_proba(rows)) < whole + 0.08
    assert len(stream.loo_proba_) == len(labels)


def test_one_part_is_one_fit():
    how = {"inducing": X[:30], "tune": None, "tol": 1e-9, "max_iter": 300}
    fit = BayesianSVC(**how).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(BayesianSVC(**how).partial_fit(X, y, classes=[0, 1]).predict_proba(X), fit, atol=1e-5)


def test_a_stream_may_follow_a_fit():
    first, rest = SHUFFLED[:200], SHUFFLED[200:]
    model = BayesianSVC(n_inducing=40, tune=None, random_state=0).fit(X[first], y[first])
    points, before = model.inducing_points_, log_loss(y[rest], model.predict_proba(X[rest]))
    _, v = model.latent_mean_and_variance(X[rest])
    model.partial_fit(X[rest], y[rest])
    np.testing.assert_array_equal(model.inducing_points_, points)
    assert log_loss(y[rest], model.predict_proba(X[rest])) < before
    assert model.latent_mean_and_variance(X[rest])[1].mean() < v.mean()


def test_labels_that_were_not_announced_are_refused():
    model = BayesianLinearSVC()
    with pytest.raises(ValueError, match="needs `classes`"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="at least two labels"):
        model.partial_fit(X, y, classes=[0])
    model = BayesianLinearSVC().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="label 7 at row 3"):
        model.partial_fit(X[:5], [0, 1, 0, 7, 1])
    with pytest.raises(ValueError, match="differs from the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="30 features"):
        model.partial_fit(X[:, :4], y)


def test_a_part_may_hold_one_class_only_and_a_class_one_row():
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0)
    model.partial_fit(Xw[yw == 0], yw[yw == 0], classes=[0, 1, 2])
    model.partial_fit(Xw[yw > 0], yw[yw > 0])
    assert np.isfinite(model.predict_proba(Xw)).all()
    rare = np.concatenate([np.flatnonzero(yw == 0), np.flatnonzero(yw == 1), np.flatnonzero(yw == 2)[:1]])
    p = BayesianSVC(max_inducing=30, random_state=0).fit(Xw[rare], yw[rare]).predict_proba(Xw)
    assert np.isfinite(p).all()


def test_a_diagonal_covariance_has_no_stream():
    assert not hasattr(BayesianLinearSVC(covariance="diagonal"), "partial_fit")


def test_warm_start_continues_from_where_it_was():
    data = waveform(3000, random_state=0)
    how = {"n_inducing": 50, "random_state": 0, "tune": None}
    cold = BayesianSVC(**how).fit(data.X, data.y)
    warm = BayesianSVC(**how, warm_start=True).fit(data.X, data.y)
    points = warm.inducing_points_
    warm.fit(data.X, data.y)
    assert warm.n_iter_ < cold.n_iter_
    np.testing.assert_array_equal(warm.inducing_points_, points)
    np.testing.assert_allclose(warm.predict_proba(data.X), cold.predict_proba(data.X), atol=5e-3)


def test_warm_start_of_a_mean_field_starts_anew():
    model = BayesianLinearSVC(covariance="diagonal", warm_start=True, max_iter=300, random_state=0).fit(Xw, yw)
    first = model.predict_proba(Xw)
    np.testing.assert_allclose(model.fit(Xw, yw).predict_proba(Xw), first)


def test_time_limit_stops_and_says_so():
    data = waveform(5000, random_state=0)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = BayesianSVC(time_limit=1e-6, bound="augmented", tune=None, random_state=0).fit(data.X, data.y)
    assert not model.converged_
    assert model.score(data.X, data.y) > 0.8


@pytest.mark.parametrize(
    "model", [*MODELS, BayesianLinearSVC(covariance="diagonal", max_iter=300, random_state=0)], ids=repr
)
def test_sparse_input_gives_what_dense_input_gives(model):
    rows = np.where(Xw > np.median(Xw, axis=0), Xw, 0.0)
    dense = sklearn.clone(model).fit(rows, yw).predict_proba(rows)
    for matrix in (sparse.csr_matrix(rows), sparse.csc_array(rows)):
        np.testing.assert_allclose(sklearn.clone(model).fit(matrix, yw).predict_proba(matrix), dense, atol=1e-6)


def test_sparse_nan_is_named():
    matrix = sparse.lil_matrix((20, 3))
    matrix[7, 2] = np.nan
    with pytest.raises(ValueError, match="NaN at row 7, column 2"):
        BayesianSVC().fit(matrix.tocsr(), np.arange(20) % 2)


def test_polars_frames_have_names():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(Xw[:, :3], schema=["a", "b", "c"])
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(frame, yw)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.predict(frame).shape == yw.shape


def test_set_output_in_a_pipeline():
    pytest.importorskip("pandas")
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), BayesianLinearSVC()).fit(Xw, yw)
    assert model[-1].feature_names_in_[0] == "x0"


def test_weights_are_routed_as_metadata():
    with sklearn.config_context(enable_metadata_routing=True):
        model = BayesianLinearSVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        weight = np.ones(len(yw))
        scores = cross_validate(model, Xw, yw, params={"sample_weight": weight}, cv=3)
    assert scores["test_score"].mean() > 0.9


def test_models_that_cannot_learn_more_say_so():
    data = waveform(200, random_state=0)
    diagonal = BayesianLinearSVC(covariance="diagonal").fit(data.X, data.y).set_params(covariance="full")
    with pytest.raises(ValueError, match="diagonal covariance and cannot learn more"):
        diagonal.partial_fit(data.X, data.y)
    pooled = committee(
        [BayesianSVC(n_inducing=20, tune=None, random_state=seed).fit(data.X, data.y) for seed in range(2)]
    )
    pooled.fitted_ = replace(pooled.fitted_, left_out=pooled.fitted_.left_out[:1])
    kept = pooled.fitted_
    reason = "has no leave-one-out predictions of its members and cannot learn more; fit a new estimator"
    with pytest.raises(ValueError, match=reason):
        pooled.partial_fit(data.X, data.y)
    with pytest.raises(ValueError, match=reason):
        pooled.set_params(warm_start=True).fit(data.X, data.y)
    assert pooled.fitted_ is kept
