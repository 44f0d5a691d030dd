"""Local models in the leaves of a tree, as an estimator has them: predictions, samples, copies, files, parameters."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from scipy import sparse
from scipy.special import entr, log_ndtr
from sklearn.base import clone
from sklearn.metrics import log_loss

import bayesvm
from bayesvm import BayesianSVC, open_table
from bayesvm.core.linalg import NotPositiveDefiniteError
from bayesvm.core.workspace import Workspace
from bayesvm.inference import leaves


def checkerboard(n_rows, seed=0):
    """Fields of one by one; three kinds of them, or two. A tenth of the labels is drawn anew."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, (n_rows, 2))
    field = np.floor(X).astype(int).sum(axis=1)
    any_label = rng.random(n_rows) < 0.1
    two = np.where(any_label, rng.integers(2, size=n_rows), field % 2)
    three = np.where(any_label, rng.integers(3, size=n_rows), field % 3)
    return X, two, np.array(["a", "b", "c"])[three]


X, TWO, THREE = checkerboard(1_500)
NEW, NEW_TWO, NEW_THREE = checkerboard(600, seed=1)
LABELS, NEW_LABELS = {2: TWO, 3: THREE}, {2: NEW_TWO, 3: NEW_THREE}
FEW = {"kernel": "rbf", "n_inducing": 30, "tune": "loo", "scale": "standard", "random_state": 0}


@pytest.fixture(scope="module", params=LABELS, ids=lambda n: f"{n} classes")
def model(request):
    """A committee, as tuning makes it."""
    fitted = BayesianSVC(local=True, random_state=0).fit(X, LABELS[request.param])
    assert len(fitted.fitted_.members) > 1
    assert all(member.leaves.tree.n_leaves > 1 for member in fitted.fitted_.members)
    return fitted


@pytest.fixture(scope="module")
def single():
    """One member with so few points that it needs its leaves."""
    fitted = BayesianSVC(local=True, **FEW).fit(X, TWO)
    assert len(fitted.fitted_.members) == 1
    assert fitted.fitted_.member.leaves.tree.n_leaves > 1
    return fitted


def said(model, rows=NEW):
    """The predictions of a model, as bytes."""
    parts = [
        model.predict_proba(rows),
        *model.latent_mean_and_variance(rows),
        *model.predict_uncertainty(rows).values(),
        model.loo_proba_,
        model.sample_latent(rows[:50], 3, 0),
        model.sample_proba(rows[:50], 3, 0),
    ]
    return [np.ascontiguousarray(part).tobytes() for part in parts]


def leaves_in(model):
    """The leaf of each member that some rows fall into, as a function of the rows."""
    fitted = model.fitted_
    return lambda rows: [m.leaves.tree.leaf_of(m.rows(fitted.scaler(rows))) for m in fitted.members]


# ---- what they say ----


def test_local_models_find_what_few_points_miss(single):
    plain = BayesianSVC(local=False, **FEW).fit(X, TWO)
    assert plain.fitted_.member.leaves is None
    losses = [log_loss(NEW_TWO, one.predict_proba(NEW)) for one in (single, plain)]
    assert losses[0] < losses[1] - 0.03


def test_leave_one_out_of_local_models_is_the_loss_on_new_rows(model, single):
    """The loss above that of the true probabilities, because the number of redrawn labels differs between samples."""
    rows, *labels = checkerboard(5_000, seed=2)
    for one in (model, single):
        number = len(one.classes_) - 2
        y, new = (TWO, THREE)[number], labels[number]
        loss = log_loss(new, one.predict_proba(rows)) - smallest_loss(rows, new)
        assert one.loo_log_loss_ - smallest_loss(X, y) == pytest.approx(loss, abs=0.07)
        assert one.loo_log_loss_ == pytest.approx(log_loss(y, one.loo_proba_))
        np.testing.assert_array_equal(one.loo_indices_, np.arange(1_500))


def test_leave_one_out_of_local_models_has_no_bias():
    """A leaf refitted without some rows still depends on them if the sites of the others are unchanged."""
    new, y, _ = checkerboard(5_000, seed=2)
    gaps = []
    for seed in range(10, 15):
        rows, two, _ = checkerboard(1_500, seed)
        model = BayesianSVC(local=True, **FEW).fit(rows, two)
        on_new = log_loss(y, model.predict_proba(new)) - smallest_loss(new, y)
        gaps.append(model.loo_log_loss_ - smallest_loss(rows, two) - on_new)
    assert np.mean(gaps) == pytest.approx(0.0, abs=0.02)


def smallest_loss(rows, y):
    """The log loss of the true probabilities."""
    labels = np.unique(y)
    proba = np.full((len(y), len(labels)), 0.1 / len(labels))
    proba[np.arange(len(y)), np.floor(rows).astype(int).sum(axis=1) % len(labels)] += 0.9
    return log_loss(y, proba)


def test_each_leaf_has_a_function_for_each_target(model):
    n_functions = 1 if len(model.classes_) == 2 else 3
    for member, leaf_of in zip(model.fitted_.members, leaves_in(model)(X), strict=True):
        rows_in_leaf = np.bincount(leaf_of, minlength=member.leaves.tree.n_leaves)
        assert rows_in_leaf.sum() == 1_500
        assert rows_in_leaf.min() > 0.5 * rows_in_leaf.max()  # halves of halves
        for leaf in member.leaves.leaves:
            assert [function.target for function in leaf.functions] == list(range(n_functions))
    mean, variance = model.latent_mean_and_variance(NEW)
    assert mean.shape == variance.shape == ((600,) if n_functions == 1 else (600, 3))


def test_the_report_has_a_line_about_them(single):
    n_leaves = single.fitted_.member.leaves.tree.n_leaves
    assert f"Local models in {n_leaves} leaves gain 0." in str(single.tuning_report_)


def test_attributes_are_those_of_the_heaviest_member(model):
    member = model.fitted_.member
    assert model.kernel_ is member.features.kernel
    scaled = model.fitted_.first_scaler(model.inducing_points_)
    np.testing.assert_allclose(scaled, member.features.inducing_points, atol=1e-9)
    assert model.relevance_.shape == (2,)
    assert model.relevance_.sum() == pytest.approx(1.0)
    assert model.n_samples_ == 1_500


def test_probabilities_add_up_in_every_form(model):
    proba = model.predict_proba(NEW)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(NEW), np.log(proba), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[proba.argmax(axis=1)])
    if len(model.classes_) == 2:
        np.testing.assert_allclose(log_ndtr(model.decision_function(NEW)), np.log(proba[:, 1]), rtol=1e-8, atol=1e-10)
    assert model.score(NEW, NEW_LABELS[len(model.classes_)]) > 0.8


def test_uncertainty_adds_up(model):
    uncertainty = model.predict_uncertainty(NEW)
    np.testing.assert_allclose(uncertainty["total"], entr(model.predict_proba(NEW)).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(uncertainty["aleatoric"] + uncertainty["epistemic"], uncertainty["total"], rtol=1e-9)
    assert (uncertainty["epistemic"] >= 0).all()
    if len(model.classes_) == 2:
        second = model.predict_proba(NEW)[:, 1]
        assert (uncertainty["lower"] <= second).all()
        assert (second <= uncertainty["upper"]).all()


def test_uncertainty_is_that_of_many_draws(single):
    rows = NEW[:40]
    uncertainty, draws = single.predict_uncertainty(rows), single.sample_proba(rows, 4_000, random_state=0)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    np.testing.assert_allclose(entr(draws).sum(axis=2).mean(axis=0), uncertainty["aleatoric"], atol=0.02)
    np.testing.assert_allclose(draws.mean(axis=0), single.predict_proba(rows), atol=0.03)
    inside = (draws[..., 1] >= uncertainty["lower"]) & (draws[..., 1] <= uncertainty["upper"])
    np.testing.assert_allclose(inside.mean(axis=0), 0.95, atol=0.03)


def test_batches_of_rows_say_the_same_as_all_rows(model):
    rows, *_ = checkerboard(40_000, seed=3)  # more than leaves are given at a time
    together = model.predict_proba(rows)
    for start, size in ((0, 1), (1, 100), (101, 5_000), (31_000, 4_000)):
        part = slice(start, start + size)
        np.testing.assert_allclose(model.predict_proba(rows[part]), together[part], rtol=1e-9, atol=1e-12)
    order = np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_allclose(model.predict_proba(rows[order]), together[order], rtol=1e-9, atol=1e-12)


def test_sparse_rows_single_precision_and_rows_far_away(model):
    np.testing.assert_allclose(model.predict_proba(sparse.csr_matrix(NEW)), model.predict_proba(NEW), rtol=1e-9)
    rounded = NEW.astype(np.float32)
    np.testing.assert_array_equal(model.predict_proba(rounded), model.predict_proba(rounded.astype(np.float64)))
    assert np.isfinite(model.predict_proba(NEW[:5] * 1e12)).all()
    assert np.isfinite(model.latent_mean_and_variance(NEW[:5] * -1e12)).all()


# ---- samples ----


def test_samples_have_the_moments_that_are_predicted(model):
    n_draws, rows = 8_000, NEW[:12]
    mean, variance = model.latent_mean_and_variance(rows)
    draws = model.sample_latent(rows, n_draws, random_state=0)
    assert draws.shape == (n_draws, *mean.shape)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / n_draws)).all()
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.15)


def test_rows_of_one_leaf_are_drawn_jointly_and_others_share_the_mean_below(single):
    """The covariance of many draws is that of dense matrices."""
    (leaf_of,) = leaves_in(single)(NEW)
    groups = [np.flatnonzero(leaf_of == k)[:4] for k in (0, 1)]
    near = NEW[groups[0][0]] + 0.02 * np.array([[1.0, 0.0], [0.0, 1.0]])
    rows = np.vstack([near, NEW[np.concatenate(groups)]])
    member, scaled = single.fitted_.member, single.fitted_.scaler(rows)
    below, _ = member.features.prepared(None, np.float64)(scaled, Workspace())
    expected = below @ member.functions[0].posterior.covariance @ below.T
    leaf_of, kernel = member.leaves.tree.leaf_of(scaled), member.leaves.kernel
    assert set(leaf_of) == {0, 1}
    for number in (0, 1):
        leaf, mine = member.leaves.leaves[number], np.flatnonzero(leaf_of == number)
        phi = kernel(scaled[mine], leaf.features.inducing_points.astype(float)) @ leaf.features.whitening.astype(float)
        root = leaf.functions[0].posterior.root.astype(float)
        own = phi @ root @ root.T @ phi.T + kernel(scaled[mine], scaled[mine]) - phi @ phi.T
        expected[np.ix_(mine, mine)] += own
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    draws = single.sample_latent(rows, 40_000, random_state=0)
    np.testing.assert_allclose(np.cov(draws.T) / scale, expected / scale, atol=0.03)
    assert (expected / scale)[0, 2] > 0.5, "near rows of one leaf hang together"


def test_equal_rows_have_the_same_draw(model):
    draws = model.sample_latent(np.repeat(NEW[:3], 2, axis=0), 50, random_state=0)
    np.testing.assert_allclose(draws[:, ::2], draws[:, 1::2], atol=0.01 * draws.std())


# ---- copies and files ----


@pytest.mark.parametrize(
    "copied",
    [lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy, copy.copy],  # noqa: S301
    ids=["pickle", "deep", "copy"],
)
def test_copies_give_bit_identical_predictions(model, copied):
    assert said(copied(model)) == said(model)


def test_a_clone_is_not_fitted_and_keeps_the_parameter(model):
    assert not hasattr(clone(model), "fitted_")
    assert clone(model).get_params() == model.get_params()
    assert clone(model).local is True


def test_a_file_is_bit_identical(model, tmp_path):
    before = said(model)
    model.save(tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = bayesvm.load(tmp_path / "m")
    assert said(again) == before
    again.save(tmp_path / "m2")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "m2").read_bytes()
    assert again.local is True
    assert str(again.tuning_report_) == str(model.tuning_report_)


def test_predictions_do_not_change_what_is_saved(tmp_path):
    model = BayesianSVC(local=True, **FEW).fit(X, TWO)
    model.save(tmp_path / "before")
    said(model)
    model.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_a_model_of_rows_that_lie_close_together_loads_without_a_warning(tmp_path):
    """The kernel matrices of its leaves are nearly singular."""
    rows = np.round(X, 1) + 1e-7 * np.random.default_rng(0).standard_normal(X.shape)
    model = BayesianSVC(local=True, **FEW | {"kernel": "rbf"}).fit(rows, TWO)
    model.save(tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert said(bayesvm.load(tmp_path / "m")) == said(model)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_are_bit_identical_with_any_number_of_threads(single, n_jobs):
    assert said(clone(single).set_params(n_jobs=n_jobs).fit(X, TWO)) == said(single)


# ---- the parameter ----


@pytest.mark.parametrize("local", ["yes", "true", None, 2, 0.5, [], "AUTO"])
def test_other_values_are_refused_by_name(local):
    with pytest.raises(ValueError, match="local must be"):
        BayesianSVC(local=local).fit(X[:100], TWO[:100])


def test_the_default_decides_itself():
    assert BayesianSVC().get_params()["local"] == "auto"
    assert BayesianSVC().set_params(local=False).local is False


@pytest.mark.parametrize("tune", ["elbo", None])
def test_local_models_need_tuning(tune):
    with pytest.raises(ValueError, match=f"local=True needs tune='auto' or 'loo'.*got tune={tune!r}"):
        BayesianSVC(local=True, tune=tune).fit(X[:100], TWO[:100])
    for local in ("auto", False):
        fitted = BayesianSVC(local=local, tune=tune, n_inducing=10, random_state=0).fit(X[:100], TWO[:100])
        assert fitted.fitted_.member.leaves is None


def test_few_rows_have_local_models_only_if_they_are_requested(single):
    automatic = BayesianSVC(local="auto", random_state=0).fit(X, TWO)
    assert all(member.leaves is None for member in automatic.fitted_.members)
    assert "ocal models" not in str(automatic.tuning_report_)
    plain = BayesianSVC(local=False, random_state=0).fit(X, TWO)
    np.testing.assert_array_equal(automatic.predict_proba(NEW), plain.predict_proba(NEW))


def test_many_rows_have_local_models_if_they_gain():
    rows, _, _ = checkerboard(4_500)
    small_fields = np.floor(2 * rows).astype(int).sum(axis=1) % 2
    how = FEW | {"tune": "auto"}
    needed = BayesianSVC(**how).fit(rows, small_fields)
    assert all(member.leaves is not None for member in needed.fitted_.members)
    smooth = (rows.sum(axis=1) + np.random.default_rng(0).logistic(size=4_500) > 4).astype(int)
    plain = BayesianSVC(**how).fit(rows, smooth)
    assert all(member.leaves is None for member in plain.fitted_.members)
    assert "Local models would gain" in str(plain.tuning_report_)


def test_a_kernel_without_length_scales_has_no_local_models():
    with pytest.warns(UserWarning, match="local=True has no effect: the kernel has no length-scales"):
        model = BayesianSVC("linear", local=True, random_state=0).fit(X, TWO)
    assert all(member.leaves is None for member in model.fitted_.members)
    assert "Local models are not used: the kernel has no length-scales" in str(model.tuning_report_)


def test_a_kernel_that_fails_in_leaves_is_used_without_them(monkeypatch):
    def fail(*_):
        raise NotPositiveDefiniteError("no")

    monkeypatch.setattr(leaves, "find_leaves", fail)
    with pytest.warns(UserWarning, match="local=True has no effect: no kernel matrix"):
        model = BayesianSVC(local=True, **FEW).fit(X, TWO)
    assert model.fitted_.member.leaves is None
    np.testing.assert_array_equal(model.predict_proba(NEW), BayesianSVC(**FEW).fit(X, TWO).predict_proba(NEW))


def test_rows_that_are_all_equal_have_one_leaf_and_few_rows_some(tmp_path):
    same = BayesianSVC(local=True, random_state=0).fit(np.ones((50, 2)), TWO[:50])
    few = BayesianSVC(local=True, random_state=0).fit(X[:60], TWO[:60])
    assert {member.leaves.tree.n_leaves for member in same.fitted_.members} == {1}
    assert {member.leaves.tree.n_leaves for member in few.fitted_.members} == {2}
    assert same.predict_proba(np.ones((1, 2)))[0, 1] == pytest.approx(TWO[:50].mean(), abs=0.1)
    for model in (same, few):
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(bayesvm.load(tmp_path / "m").predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.filterwarnings("ignore:.*exact copies", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_copies_of_a_row_are_left_out_together():
    rows, y = np.repeat(X[:300], 5, axis=0), np.repeat(TWO[:300], 5)
    model = BayesianSVC(local=True, random_state=0).fit(rows, y)
    assert all(member.leaves.tree.n_leaves > 1 for member in model.fitted_.members)
    np.testing.assert_allclose(model.loo_proba_[::5], model.loo_proba_[4::5], atol=1e-6)
    left_out = model.loo_log_loss_ - smallest_loss(rows, y)
    new = log_loss(NEW_TWO, model.predict_proba(NEW)) - smallest_loss(NEW, NEW_TWO)
    assert left_out == pytest.approx(new, abs=0.1)
    assert log_loss(y, model.predict_proba(rows)) - smallest_loss(rows, y) < new - 0.15, (
        "what is not left out is learned"
    )


# ---- weights ----


def test_rows_of_weight_zero_are_not_there(single):
    rows, y = np.vstack([X, 9 + NEW]), np.concatenate([TWO, NEW_TWO])
    weight = np.repeat([1.0, 0.0], [len(X), len(NEW)])
    model = clone(single).fit(rows, y, weight)
    assert model.n_samples_ == 1_500
    np.testing.assert_array_equal(model.predict_proba(NEW), single.predict_proba(NEW))


def test_weights_are_those_of_the_population_that_is_predicted(single):
    weight = np.where(TWO == 1, 4.0, 1.0)
    weighted = clone(single).fit(X, TWO, weight)
    new, y, _ = checkerboard(5_000, seed=2)
    new_weight = np.where(y == 1, 4.0, 1.0)
    proba, share = weighted.predict_proba(new), np.average(y, weights=new_weight)
    assert np.average(proba[:, 1], weights=new_weight) == pytest.approx(share, abs=0.03)
    assert np.average(weighted.loo_proba_[:, 1], weights=weight) == pytest.approx(share, abs=0.03)
    losses = [log_loss(y, p, sample_weight=new_weight) for p in (proba, single.predict_proba(new))]
    assert losses[0] < losses[1] - 0.03
    by_class = clone(single).set_params(class_weight={1: 4.0}).fit(X, TWO)
    np.testing.assert_array_equal(by_class.predict_proba(NEW), weighted.predict_proba(NEW))


# ---- tables ----


def test_predictions_of_a_table_in_files(model, tmp_path):
    frame = pd.DataFrame(NEW, columns=["u", "v"])
    frame.to_parquet(tmp_path / "new.parquet", row_group_size=70)
    table = open_table(tmp_path / "new.parquet", columns=["u", "v"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model has learned from rows without names
        np.testing.assert_allclose(model.predict_proba(table), model.predict_proba(NEW), rtol=1e-9)
        model.predict_to(table, tmp_path / "said.parquet")
    model.predict_to(NEW, tmp_path / "in_memory.parquet")
    expected = model.predict_uncertainty(NEW) | {"prediction": model.predict(NEW)}
    expected |= {f"probability_{label}": p for label, p in zip(model.classes_, model.predict_proba(NEW).T, strict=True)}
    for name in ("said.parquet", "in_memory.parquet"):
        written = parquet.read_table(tmp_path / name).to_pandas()
        assert set(written) == set(expected)
        np.testing.assert_array_equal(written["prediction"], expected["prediction"])
        for column in expected.keys() - {"prediction"}:
            np.testing.assert_allclose(written[column], expected[column], rtol=1e-7, atol=1e-9, err_msg=column)


def test_a_fit_to_a_table_in_files(single, tmp_path):
    pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "y": TWO}).to_parquet(tmp_path / "t.parquet", row_group_size=200)
    table = open_table(tmp_path / "t.parquet", "y", columns=["u", "v"])
    model = clone(single).fit(table)
    assert model.fitted_.member.leaves.tree.n_leaves == single.fitted_.member.leaves.tree.n_leaves
    frame = pd.DataFrame(NEW, columns=["u", "v"])
    np.testing.assert_allclose(model.predict_proba(frame), single.predict_proba(NEW), atol=1e-6)


def test_predictions_of_dask_rows_are_lazy_and_the_same(model):
    da = pytest.importorskip("dask.array")
    lazy = model.predict_proba(da.from_array(NEW, chunks=(170, 2)))
    np.testing.assert_allclose(lazy.compute(), model.predict_proba(NEW), rtol=1e-9)
