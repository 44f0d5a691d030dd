"""Committees: several members with scalings of their own say together what their weighted mean is."""

import copy
import pickle
from dataclasses import replace
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from scipy.special import entr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from bayesvm import BayesianSVC, open_table, persistence
from bayesvm.core.features import InducingFeatures
from bayesvm.inference import training
from bayesvm.inference.committees import MOST_MEMBERS
from tests.storage.committees import TwoScalings, alone, two_scalings


def table(n_rows, seed=0):
    """Heavy tails in the first column, and steps that a smooth kernel follows badly in the second."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    f = 2 * np.sin(4 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.standard_normal(n_rows)
    X[:, 0] = np.exp(X[:, 0])
    return X, (f > 0).astype(int), np.array(["low", "middle", "top"])[np.digitize(f, [-1, 1])]


X, TWO, THREE = table(400)
NEW, NEW_TWO, NEW_THREE = table(60, seed=1)
LABELS = {2: TWO, 3: THREE}


def committee(y=TWO, rows=X, **how):
    with two_scalings():
        return BayesianSVC(**{"n_inducing": 20, "tune": None, "random_state": 0} | how).fit(rows, y)


@pytest.fixture(scope="module", params=LABELS, ids=lambda n: f"{n} classes")
def model(request):
    return committee(LABELS[request.param])


def weights_of(model):
    return np.array([member.weight for member in model.fitted_.members])


def members_of(model):
    return [alone(model, number) for number in range(len(model.fitted_.members))]


def said(model, rows=NEW):
    """The predictions of a model, as bytes."""
    parts = [
        model.predict_proba(rows),
        *model.latent_mean_and_variance(rows),
        *model.predict_uncertainty(rows).values(),
    ]
    parts += [model.loo_proba_, model.sample_latent(rows, 3, 0), model.sample_proba(rows, 3, 0), weights_of(model)]
    return [np.ascontiguousarray(part).tobytes() for part in parts]


# ---- what it is ----


def test_the_heaviest_member_comes_first_and_gives_the_attributes(model):
    weights, first = weights_of(model), model.fitted_.member
    assert len(weights) == 2
    assert weights.sum() == pytest.approx(1.0)
    assert (np.diff(weights) <= 0).all()
    assert {type(member.scaler).__name__ for member in model.fitted_.members} == {"ColumnScaler", "QuantileScaler"}
    assert model.kernel_ is first.features.kernel
    assert model.scale_ == {"ColumnScaler": "standard", "QuantileScaler": "quantile"}[type(first.scaler).__name__]
    np.testing.assert_allclose(first.scaler(model.inducing_points_), first.features.inducing_points, atol=1e-9)
    assert model.elbo_ == model.elbo_trace_[-1]


def test_probabilities_are_the_weighted_mean(model):
    parts = members_of(model)
    expected = np.average([part.predict_proba(NEW) for part in parts], axis=0, weights=weights_of(model))
    np.testing.assert_allclose(model.predict_proba(NEW), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(NEW), np.log(expected), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[expected.argmax(axis=1)])
    left_out = np.average([part.loo_proba_ for part in parts], axis=0, weights=weights_of(model))
    np.testing.assert_allclose(model.loo_proba_, left_out, rtol=1e-12)
    y = LABELS[len(model.classes_)]
    assert model.loo_log_loss_ == pytest.approx(log_loss(y, left_out))
    # By Jensen's inequality.
    assert model.loo_log_loss_ < np.average([part.loo_log_loss_ for part in parts], weights=weights_of(model))


def test_disagreement_of_the_members_is_epistemic(model):
    uncertainty, parts = model.predict_uncertainty(NEW), [part.predict_uncertainty(NEW) for part in members_of(model)]
    total = entr(model.predict_proba(NEW)).sum(axis=1)
    own = np.average([part["aleatoric"] for part in parts], axis=0, weights=weights_of(model))
    np.testing.assert_allclose(uncertainty["total"], total, rtol=1e-12)
    np.testing.assert_allclose(uncertainty["aleatoric"], np.minimum(own, total), rtol=1e-9)
    within = np.average([part["epistemic"] for part in parts], axis=0, weights=weights_of(model))
    assert (uncertainty["epistemic"] >= within - 1e-3).all()  # entropy is concave


def test_moments_of_f_are_those_of_the_mixture_and_of_many_draws(model):
    rows, n_draws = NEW[:12], 4_000
    means, variances = np.moveaxis([part.latent_mean_and_variance(rows) for part in members_of(model)], 1, 0)
    mean, variance = model.latent_mean_and_variance(rows)
    weights = weights_of(model)
    np.testing.assert_allclose(mean, np.average(means, axis=0, weights=weights), rtol=1e-10, atol=1e-12)
    second = np.average(variances + means**2, axis=0, weights=weights)
    np.testing.assert_allclose(variance, second - mean**2, rtol=1e-8)
    draws = model.sample_latent(rows, n_draws, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * np.sqrt(variance.max() / n_draws))
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.12)


def test_sampled_probabilities_have_the_mean_that_is_predicted(model):
    draws = model.sample_proba(NEW[:12], 4_000, random_state=0)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    own = [part.sample_proba(NEW[:12], 4_000, random_state=1).mean(axis=0) for part in members_of(model)]
    np.testing.assert_allclose(draws.mean(axis=0), np.average(own, axis=0, weights=weights_of(model)), atol=0.03)
    if len(model.classes_) == 2:  # two probits average over f
        np.testing.assert_allclose(draws.mean(axis=0), model.predict_proba(NEW[:12]), atol=0.03)


def test_one_draw_takes_one_member(model):
    """Rows are drawn jointly: equal rows have equal f."""
    draws = model.sample_latent(np.repeat(NEW[:1], 2, axis=0), 50, random_state=0)
    np.testing.assert_allclose(draws[:, 0], draws[:, 1], atol=0.01 * draws.std())


@pytest.mark.filterwarnings("error")
def test_a_committee_has_converged_if_all_its_members_have():
    with pytest.warns(ConvergenceWarning, match="used its budget of 1 passes"):
        short = committee(max_iter=1)
    assert not short.converged_
    model = committee()
    assert model.converged_
    trained = iter([True, False])
    train = TwoScalings.train
    half_way = patch.object(TwoScalings, "train", lambda *how: replace(train(*how), converged=next(trained)))
    with half_way, pytest.warns(ConvergenceWarning):
        one = committee()
    assert not one.converged_
    np.testing.assert_array_equal(one.predict_proba(NEW), model.predict_proba(NEW))


# ---- rows from elsewhere ----


def test_the_same_from_a_table_in_files(model, tmp_path):
    y = LABELS[len(model.classes_)]
    names = list("abcd")
    columns = {name: X[:, i] for i, name in enumerate(names)}
    parquet.write_table(pa.table(columns | {"y": y}), tmp_path / "t.parquet", row_group_size=70)
    from_files = committee(y=None, rows=open_table(tmp_path / "t.parquet", "y", columns=names))
    np.testing.assert_array_equal(weights_of(from_files), weights_of(model))
    frame = pd.DataFrame(NEW, columns=names)
    np.testing.assert_array_equal(from_files.predict_proba(frame), model.predict_proba(NEW))
    frame.to_parquet(tmp_path / "new.parquet", row_group_size=17)
    new = open_table(tmp_path / "new.parquet", columns=names)
    np.testing.assert_allclose(from_files.predict_proba(new), model.predict_proba(NEW), rtol=1e-12)
    from_files.predict_to(new, tmp_path / "said.parquet")
    written = parquet.read_table(tmp_path / "said.parquet").to_pandas()
    np.testing.assert_allclose(written["epistemic"], model.predict_uncertainty(NEW)["epistemic"], atol=1e-9)


def test_the_same_from_dask(model):
    da = pytest.importorskip("dask.array")
    y = LABELS[len(model.classes_)]
    fitted = committee(da.from_array(y, chunks=90), da.from_array(X, chunks=(90, 4)))
    np.testing.assert_allclose(fitted.predict_proba(NEW), model.predict_proba(NEW), atol=1e-6)
    lazy = da.from_array(NEW, chunks=(25, 4))
    np.testing.assert_allclose(model.predict_proba(lazy).compute(), model.predict_proba(NEW), rtol=1e-12)
    mean, variance = (part.compute() for part in model.latent_mean_and_variance(lazy))
    np.testing.assert_allclose([mean, variance], model.latent_mean_and_variance(NEW), rtol=1e-9)


def test_sparse_rows_and_single_precision(model):
    np.testing.assert_allclose(model.predict_proba(sparse.csr_matrix(NEW)), model.predict_proba(NEW), rtol=1e-12)
    rounded = NEW.astype(np.float32)
    np.testing.assert_array_equal(model.predict_proba(rounded), model.predict_proba(rounded.astype(np.float64)))


def test_no_rows_and_rows_far_away(model):
    far = NEW[:5] * 1e12
    assert np.isfinite(model.predict_proba(far)).all()
    assert np.isfinite(model.latent_mean_and_variance(far)).all()


def test_results_are_bit_identical_with_any_number_of_threads(model):
    y = LABELS[len(model.classes_)]
    assert said(committee(y, n_jobs=1)) == said(committee(y, n_jobs=2)) == said(model)


# ---- copies ----


@pytest.mark.parametrize(
    "copied",
    [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy, copy.copy],  # noqa: S301
    ids=["pickle", "deep", "copy"],
)
def test_copies_give_bit_identical_predictions(model, copied):
    assert said(copied(model)) == said(model)


def test_a_clone_is_not_fitted(model):
    assert not hasattr(clone(model), "fitted_")
    assert clone(model).get_params() == model.get_params()


# ---- learning more ----


def test_every_member_learns_from_a_stream_and_weights_stay(model):
    y = {2: NEW_TWO, 3: NEW_THREE}[len(model.classes_)]
    more, before = copy.copy(model).partial_fit(NEW, y), model.fitted_
    np.testing.assert_array_equal(weights_of(more), weights_of(model))
    assert more.n_samples_ == 460
    own_links = []
    for number, (old, new) in enumerate(zip(before.members, more.fitted_.members, strict=True)):
        assert new.features is old.features
        assert new.scaler is old.scaler
        own = alone(model, number).partial_fit(NEW, y).fitted_
        for one, other in zip(own.member.functions, new.functions, strict=True):
            np.testing.assert_array_equal(one.posterior.mean, other.posterior.mean)
        np.testing.assert_array_equal(own.left_out[0].mean, more.fitted_.left_out[number].mean)
        own_links.append(own.link)
    # Refitted to all that is remembered, then sharpened by one factor.
    factors = [
        np.divide(new.link.scale, own.scale).ravel() for new, own in zip(more.fitted_.members, own_links, strict=True)
    ]
    np.testing.assert_allclose(np.concatenate(factors), factors[0][0])
    _, variance = model.latent_mean_and_variance(NEW)
    assert more.latent_mean_and_variance(NEW)[1].mean() < variance.mean()


def test_a_stream_may_begin_with_a_committee():
    with two_scalings():
        model = BayesianSVC(n_inducing=20, tune=None, random_state=0).partial_fit(X[:200], TWO[:200], classes=[0, 1])
        first = weights_of(model)
        model.partial_fit(X[200:], TWO[200:])
    np.testing.assert_array_equal(weights_of(model), first)
    assert len(model.loo_proba_) == 400
    assert log_loss(NEW_TWO, model.predict_proba(NEW)) < log_loss(NEW_TWO, committee().predict_proba(NEW)) + 0.1


def test_a_long_stream_remembers_the_same_rows_for_every_member(monkeypatch):
    monkeypatch.setattr("bayesvm.inference.leaving_out.LOO_ROWS", 150)
    model = committee().partial_fit(NEW, NEW_TWO)
    first, second = model.fitted_.left_out
    assert len(first.y) == 150
    np.testing.assert_array_equal(first.y, second.y)


def test_a_warm_start_continues_every_member(model):
    y = LABELS[len(model.classes_)]
    warm = copy.copy(model).set_params(warm_start=True).fit(X, y)
    np.testing.assert_array_equal(weights_of(warm), weights_of(model))
    for old, new in zip(model.fitted_.members, warm.fitted_.members, strict=True):
        assert new.features is old.features
        assert new.scaler is old.scaler
    assert warm.n_iter_ < model.n_iter_
    np.testing.assert_allclose(warm.predict_proba(NEW), model.predict_proba(NEW), atol=0.02)
    again = warm.fit(NEW, {2: NEW_TWO, 3: NEW_THREE}[len(model.classes_)])
    assert again.n_samples_ == 60
    np.testing.assert_array_equal(weights_of(again), weights_of(model))


# ---- checkpoints ----


class Killed(BaseException):
    """Not an error that anything would catch."""


def killer(at):
    """A callback that dies at its update number ``at``."""
    heard = []

    def callback(progress):
        heard.append(progress)
        if len(heard) == at:
            raise Killed

    return callback, heard


@pytest.mark.parametrize(
    "how", [{}, {"inference": "stochastic", "batch_size": 100, "max_iter": 8}], ids=["auto", "minibatches"]
)
@pytest.mark.parametrize("n_classes", LABELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_killed_in_any_member_resumes_bit_identically(how, n_classes, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SMALLEST_SUBSET", 60)
    y = LABELS[n_classes]
    whole, path = committee(y, **how), tmp_path / "checkpoint"
    callback, heard = killer(-1)
    with two_scalings():
        clone(whole).fit(X, y, callback=callback)
        second = 1 + next(i for i, one in enumerate(heard[1:], 1) if one.update == 1)  # the first update of member 2
        for at in (2, second, second + 1):
            path.unlink(missing_ok=True)
            with pytest.raises(Killed):
                clone(whole).fit(X, y, callback=killer(at)[0], checkpoint=path, checkpoint_every=0)
            kept = persistence.read(path)[2]
            assert ("training of member 0" in kept, "training of member 1" in kept) == (True, at > second)
            callback, heard_again = killer(-1)
            resumed = clone(whole).fit(X, y, callback=callback, checkpoint=path, checkpoint_every=0)
            assert len(heard_again) < len(heard)
            assert said(resumed) == said(whole), at


def test_a_checkpoint_of_a_warm_fit_knows_every_member(tmp_path):
    model = committee(warm_start=True)
    other = copy.copy(model)
    first, second = other.fitted_.members
    learned = alone(model, 1).partial_fit(NEW, NEW_TWO).fitted_.member
    other.fitted_ = replace(other.fitted_, members=(first, replace(second, functions=learned.functions)))
    model.fit(X, TWO, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="the model it starts from"):
        other.fit(X, TWO, checkpoint=tmp_path / "c")


# ---- as tuning makes them ----


@pytest.mark.parametrize("n_classes", LABELS)
def test_a_model_that_tunes_itself_may_be_a_committee(n_classes):
    y = LABELS[n_classes].copy()
    y[::2] = np.random.default_rng(0).permutation(y[::2])  # noise, so that leave-one-out cannot distinguish kernels
    model = BayesianSVC(n_inducing=30, random_state=0).fit(X, y)
    report, members = model.tuning_report_, model.fitted_.members
    assert 1 < len(members) <= MOST_MEMBERS
    assert [line.what for line in report.trials[report.kept :]] == [f"fit, {member.weight:.0%}" for member in members]
    assert report.trials[report.kept].scale == model.scale_
    assert all(isinstance(member.features, InducingFeatures) for member in members)
    for one, other in combinations(members, 2):
        assert one.features.kernel != other.features.kernel or one.scaler is not other.scaler
