"""One class: rates of false alarms, scores as log densities, explanations, files, errors (D36)."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import bayesvm
from bayesvm import BayesianOneClassSVM, BayesianSVC, to_onnx
from bayesvm.estimators.background import rows_to_learn_from
from bayesvm.kernels import RBF

RNG = np.random.default_rng(0)
ROOT = np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [0.0, 0.0, 2.0]])


def normal(n_rows, seed):
    return np.random.default_rng(seed).normal(size=(n_rows, 3)) @ ROOT.T + 5


def ring(n_rows, seed):
    """Around a hole, which no normal distribution has."""
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, n_rows), 2 + 0.2 * rng.normal(size=n_rows)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


TRAIN, NEW = normal(500, 0), normal(4_000, 1)


@pytest.fixture(scope="module")
def model():
    return BayesianOneClassSVM(contamination=0.1, random_state=0).fit(TRAIN)


def test_the_score_is_a_log_density(model):
    truth = multivariate_normal(np.full(3, 5.0), ROOT @ ROOT.T).logpdf(NEW) + np.log(TRAIN.std(axis=0)).sum()
    found = model.score_samples(NEW)
    assert np.mean(found - truth) == pytest.approx(0, abs=0.15)
    assert np.corrcoef(found, truth)[0, 1] > 0.9


def test_new_rows_are_taken_for_outliers_as_often_as_requested(model):
    ringed = BayesianOneClassSVM(contamination=0.1, random_state=0).fit(ring(500, 0))
    for fitted, new in ((model, NEW), (ringed, ring(4_000, 1))):
        for rate in (0.02, 0.1, 0.3):
            fitted.set_params(contamination=rate)
            assert (fitted.predict(new) == -1).mean() == pytest.approx(rate, abs=3 * np.sqrt(rate * (1 - rate) / 500))
            fitted.set_params(contamination=0.1)


def test_a_hole_among_the_rows_is_unusual_and_so_is_what_is_far_away():
    fitted = BayesianOneClassSVM(contamination=0.05, random_state=0).fit(ring(500, 0))
    hole, far = np.zeros((1, 2)), np.array([[8.0, 8.0], [80.0, 80.0], [8e6, 0.0]])
    assert fitted.predict(hole) == -1
    assert (fitted.predict(far) == -1).all()
    assert (np.diff(fitted.score_samples(far)) < 0).all()


def test_p_values_of_new_rows_are_uniform_and_agree_with_predict(model):
    p, said = model.predict_p_value(NEW), model.predict(NEW)
    assert np.quantile(p, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.07)
    assert np.array_equal(said == -1, p <= 0.1 + 1e-12)
    assert np.array_equal(said == -1, model.decision_function(NEW) < 0)
    assert model.decision_function(NEW) == pytest.approx(model.score_samples(NEW) - model.offset_)
    assert np.array_equal(model.fit_predict(TRAIN), model.predict(TRAIN))


def test_leave_one_out_scores_are_those_of_refits():
    """With few rows, and the same kernel; the background is drawn anew, which is most of the difference."""
    X = normal(60, 3)
    how = {"kernel": RBF(3.0), "n_inducing": None, "random_state": 0}
    fitted = BayesianOneClassSVM(**how).fit(X)
    rows = range(0, 60, 6)
    refits = [BayesianOneClassSVM(**how).fit(np.delete(X, i, axis=0)).score_samples(X[[i]])[0] for i in rows]
    plain = fitted.score_samples(X[rows])
    assert np.mean(fitted.loo_scores_ - fitted.score_samples(X)) < 0
    assert np.corrcoef(fitted.loo_scores_[rows], refits)[0, 1] > 0.9
    assert np.mean(fitted.loo_scores_[rows]) == pytest.approx(np.mean(refits), abs=0.35)
    assert len(plain) == 10


def test_new_rows_of_other_groups_are_taken_for_outliers_as_often_as_requested(tmp_path):
    """Rows of a group are alike; without groups, new ones are false alarms more often."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(340), 10)
    X = rng.standard_normal((340, 3))[group] + 0.1 * rng.standard_normal((3400, 3))
    old = group < 40
    how = {"contamination": 0.1, "n_inducing": 60, "random_state": 0}
    together = BayesianOneClassSVM(**how).fit(X[old], groups=group[old])
    alone = BayesianOneClassSVM(**how).fit(X[old])
    alarms, without = (np.mean(each.predict(X[~old]) == -1) for each in (together, alone))
    assert alarms == pytest.approx(0.1, abs=0.06)
    assert without > 2 * alarms
    assert np.array_equal(together.predict(X[~old]) == -1, together.predict_p_value(X[~old]) <= 0.1 + 1e-12)
    together.save(tmp_path / "model")
    again = bayesvm.load(tmp_path / "model")
    assert np.array_equal(again.predict_p_value(X[~old]), together.predict_p_value(X[~old]))


def test_a_group_of_each_row_is_no_group():
    X = normal(90, 3)
    weight = np.where(np.arange(90) % 9 == 0, 0.0, 1.0 + np.arange(90) % 2)
    one, other = (
        BayesianOneClassSVM(kernel=RBF(3.0), n_inducing=30, random_state=0).fit(X, None, weight, groups=groups)
        for groups in (np.arange(90), None)
    )
    np.testing.assert_allclose(one.loo_scores_, other.loo_scores_, atol=1e-6)


def test_the_column_that_makes_a_row_unusual_is_found(model):
    usual = NEW[:50]
    broken, other = usual.copy(), usual.copy()
    broken[:, 2] += 14.0
    other[:, 0], other[:, 1] = 5 + 1.8, 5 - 1.5  # each is usual, and both together are not
    other[:, 2] = 5.0
    assert (model.explain(broken).argmax(axis=1) == 2).all()
    assert (model.explain(other).argmin(axis=1) == 2).all()
    assert (model.explain(other)[:, :2] > 1).all()
    one = usual[:1].copy()
    one[0, 2] = model.background_.expected(usual[:1], 2)[0]
    assert model.explain(usual[:1])[0, 2] == pytest.approx(np.diff(model.score_samples(np.r_[usual[:1], one]))[0])


def test_it_is_better_than_the_background_alone():
    fitted = BayesianOneClassSVM(random_state=0).fit(ring(400, 0))
    rows, others = ring(400, 1), RNG.normal(size=(400, 2)) * 1.5
    is_row = np.repeat([True, False], 400)
    both = np.r_[rows, others]
    assert roc_auc_score(is_row, fitted.score_samples(both)) > 0.85
    assert roc_auc_score(is_row, fitted.background_.log_density(both)) < 0.6


def test_the_same_bits_whatever_the_number_of_threads(model):
    again = BayesianOneClassSVM(contamination=0.1, random_state=0, n_jobs=1).fit(TRAIN)
    assert np.array_equal(again.score_samples(NEW), model.score_samples(NEW))
    assert again.offset_ == model.offset_
    other = BayesianOneClassSVM(contamination=0.1, random_state=1).fit(TRAIN)
    assert not np.array_equal(other.score_samples(NEW), model.score_samples(NEW))


def test_units_of_columns_do_not_matter(model):
    unit = np.array([2.0**40, 2.0**-60, 1.0])
    again = BayesianOneClassSVM(contamination=0.1, random_state=0).fit(TRAIN * unit)
    assert again.predict(NEW * unit).tolist() == model.predict(NEW).tolist()


def test_rows_of_weight_zero_do_not_count_and_weights_move_the_scores():
    odd = np.r_[TRAIN, normal(100, 5) + 20]
    weight = np.repeat([1.0, 0.0], [500, 100])
    fitted = BayesianOneClassSVM(random_state=0).fit(odd, sample_weight=weight)
    plain = BayesianOneClassSVM(random_state=0).fit(TRAIN)
    assert fitted.n_samples_ == 500
    assert fitted.loo_indices_.tolist() == list(range(500))
    assert fitted.score_samples(NEW[:50]) == pytest.approx(plain.score_samples(NEW[:50]))
    light = BayesianOneClassSVM(random_state=0).fit(odd, sample_weight=np.repeat([1.0, 0.01], [500, 100]))
    even = BayesianOneClassSVM(random_state=0).fit(odd)
    assert (light.predict(odd[500:]) == -1).mean() > (even.predict(odd[500:]) == -1).mean() + 0.3


def test_a_constant_column_that_changes_is_unusual():
    X = np.column_stack([TRAIN, np.full(500, 7.0)])
    fitted = BayesianOneClassSVM(random_state=0).fit(X)
    changed = X[:20].copy()
    changed[:, 3] = 8.0
    assert (fitted.predict(changed) == -1).all()
    assert (fitted.explain(changed).argmax(axis=1) == 3).all()


def test_a_file_returns_bit_identical_values(model, tmp_path):
    model.save(tmp_path / "m.bayesvm")
    again = bayesvm.load(tmp_path / "m.bayesvm")
    assert type(again) is BayesianOneClassSVM
    assert np.array_equal(again.score_samples(NEW), model.score_samples(NEW))
    assert np.array_equal(again.predict_p_value(NEW), model.predict_p_value(NEW))
    assert (again.offset_, again.n_samples_, again.contamination) == (model.offset_, 500, 0.1)
    assert np.array_equal(again.loo_indices_, np.arange(500))


def test_a_state_whose_background_does_not_fit_is_refused(model):
    made = model.as_model()
    short = made.background | {"left_out": made.background["left_out"][:-1]}
    broken = made.background | {"values": -made.background["values"]}
    for background in (None, short, broken):
        with pytest.raises(ValueError, match="background"):
            BayesianOneClassSVM.from_model(replace(made, background=background))


def test_frames_carry_names_and_predictions_go_to_files(tmp_path, recwarn):
    pd, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    frame = pd.DataFrame(TRAIN, columns=list("abc"))
    fitted = BayesianOneClassSVM(random_state=0).fit(frame)
    fitted.predict_to(frame, tmp_path / "said.parquet")
    fitted.explain(frame[:3])
    said = parquet.read_table(tmp_path / "said.parquet")
    assert said.column_names == ["prediction", "score", "p_value"]
    assert said["prediction"].to_pylist() == fitted.predict(frame).tolist()
    assert said["p_value"].to_pylist() == fitted.predict_p_value(frame).tolist()
    assert not [warning for warning in recwarn if "feature names" in str(warning.message)]
    assert "500 rows" in fitted._repr_html_()


def test_data_frames_may_have_text(tmp_path):
    pd = pytest.importorskip("pandas")
    colour = np.where(TRAIN[:, 0] > 5, "red", "blue")
    frame = pd.DataFrame({"a": TRAIN[:, 0], "b": TRAIN[:, 1], "colour": colour})
    fitted = BayesianOneClassSVM(random_state=0).fit(frame)
    swapped = frame.assign(colour=np.where(colour == "red", "blue", "red"))
    far = np.abs(TRAIN[:, 0] - 5) > 1
    assert (fitted.predict(swapped[far]) == -1).mean() > 0.8
    assert fitted.explain(frame[:2]).shape == (2, len(fitted.recipe_.names))
    fitted.save(tmp_path / "m.bayesvm")
    assert np.array_equal(bayesvm.load(tmp_path / "m.bayesvm").score_samples(frame), fitted.score_samples(frame))


def test_predictions_of_dask_arrays_are_lazy(model):
    da = pytest.importorskip("dask.array")
    X = da.from_array(NEW[:300], chunks=(100, 3))
    for method in ("score_samples", "predict", "predict_p_value", "explain"):
        found = getattr(model, method)(X)
        assert np.allclose(found.compute(), getattr(model, method)(NEW[:300]), rtol=1e-9)
    with pytest.raises(TypeError, match="takes rows in memory"):
        BayesianOneClassSVM().fit(X)


def test_a_contamination_set_after_the_fit_is_checked(model):
    again = clone(model).set_params(n_inducing=20).fit(np.random.default_rng(0).normal(size=(80, 2)))
    with pytest.raises(ValueError, match="contamination"):
        again.set_params(contamination=2).predict(np.zeros((1, 2)))


def test_a_row_far_away_does_not_hide_the_others():
    """Without leaving it out, the area under the curve was .65: in the scaled column all other rows were equal."""
    rows, new = ring(400, 0), ring(500, 1)
    others = np.random.default_rng(2).uniform(-3, 3, (500, 2))
    truth = np.r_[np.ones(500), np.zeros(500)]
    plain = BayesianOneClassSVM(random_state=0).fit(rows)
    rows[7, 1] = 1e6
    with pytest.warns(UserWarning, match="1 of 400 rows are left out of the fit.*first: row 7, column 1"):
        model = BayesianOneClassSVM(random_state=0).fit(rows)
    areas = [roc_auc_score(truth, each.score_samples(np.r_[new, others])) for each in (plain, model)]
    assert areas[1] > areas[0] - 0.01
    assert model.predict(rows)[7] == -1
    assert model.loo_indices_.tolist() == np.delete(np.arange(400), 7).tolist()


def test_rare_values_and_heavy_tails_are_not_left_out():
    rng = np.random.default_rng(0)
    rare = (np.arange(300) == 5).astype(float)
    heavy = rng.standard_t(2, size=300)
    for column in (rare, heavy):
        rows = np.column_stack([column, rng.normal(size=300)])
        assert len(rows_to_learn_from(rows, None)) == 300


def test_errors_say_what_is_wrong(model):
    with pytest.raises(ValueError, match="contamination must be a share strictly between 0 and 1; got 5"):
        BayesianOneClassSVM(contamination=5).fit(TRAIN)
    with pytest.raises(ValueError, match="all 9 rows are equal"):
        BayesianOneClassSVM().fit(np.ones((9, 2)))
    with pytest.raises(ValueError, match="two rows of weight above zero are needed"):
        BayesianOneClassSVM().fit(TRAIN[:3], sample_weight=[1, 0, 0])
    with pytest.warns(UserWarning, match="8 rows are too few .* Give at least 19 rows"):
        few = BayesianOneClassSVM(random_state=0).fit(TRAIN[:8])
    assert (few.predict(NEW + 100) == 1).all()
    with pytest.raises(TypeError, match="learns without y"):
        BayesianOneClassSVM().fit(TRAIN, held_out=(TRAIN, np.ones(500)))
    with pytest.raises(ValueError, match="groups has 7 labels, but X has 500 rows"):
        BayesianOneClassSVM().fit(TRAIN, groups=np.arange(7))
    gap = TRAIN.copy()
    gap[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7, column 1"):
        BayesianOneClassSVM().fit(gap)
    with pytest.raises(ValueError, match="row 7, column 1"):
        model.predict(gap)
    with pytest.raises(ValueError, match="coverage is for prediction sets"):
        next(model.predictions(NEW, coverage=0.9))
    with pytest.raises(TypeError, match="to_onnx takes a BayesianSVC"):
        to_onnx(model)
    for read in ("offset_", "loo_scores_"):
        with pytest.raises(NotFittedError):
            getattr(BayesianOneClassSVM(), read)
    assert not hasattr(BayesianSVC(), "explain")
