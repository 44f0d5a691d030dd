"""Files of version 1 of the format, which earlier code wrote (tests/make_fixture.py), become models of today."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesvm
from bayesvm import BayesianSVC, persistence
from bayesvm.datasets import waveform
from bayesvm.storage.version1 import upgraded

FOLDER = Path(__file__).parent.parent / "fixtures"
TRAIN, TEST = waveform(60, random_state=4), waveform(20, random_state=5)
COLUMNS = slice(4, 8)
NEW = {
    "version1": TEST.X,
    "version1_tuned": pd.DataFrame(TEST.X[:, COLUMNS], columns=list("abcd")),
    "version1_linear": TEST.X[:, COLUMNS],
}


def expected(name):
    found = np.loadtxt(FOLDER / f"{name}.txt")
    return found if found.ndim == 2 else np.column_stack([1 - found, found])


@pytest.fixture(params=NEW)
def name(request):
    return request.param


def test_the_fixtures_are_of_version_1(name):
    assert persistence.version_of(FOLDER / f"{name}.bayesvm") == 1


def test_it_predicts_what_it_did(name):
    """Probabilities may differ in the last digits on another machine."""
    model = bayesvm.load(FOLDER / f"{name}.bayesvm")
    np.testing.assert_allclose(model.predict_proba(NEW[name]), expected(name), atol=1e-6)


def test_it_is_saved_in_the_present_version_bit_identically(name, tmp_path):
    model = bayesvm.load(FOLDER / f"{name}.bayesvm")
    model.save(tmp_path / "m")
    assert persistence.version_of(tmp_path / "m") == persistence.VERSION
    again = bayesvm.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(NEW[name]), model.predict_proba(NEW[name]))
    np.testing.assert_array_equal(again.loo_proba_, model.loo_proba_)
    assert again.get_params() == model.get_params()
    assert (again.elbo_, again.loo_log_loss_, again.scale_) == (model.elbo_, model.loo_log_loss_, model.scale_)


def test_the_number_of_rows_was_not_stored(name, tmp_path):
    model = bayesvm.load(FOLDER / f"{name}.bayesvm")
    assert not hasattr(model, "n_samples_")
    model.save(tmp_path / "m")
    assert not hasattr(bayesvm.load(tmp_path / "m"), "n_samples_")


def test_facts_of_a_tuned_model():
    model = bayesvm.load(FOLDER / "version1_tuned.bayesvm")
    report = model.tuning_report_
    kept = report.trials[report.kept]
    assert (kept.what, kept.n_inducing, model.scale_) == ("fit", 6, "standard")
    assert kept.loo == pytest.approx(model.loo_log_loss_)
    assert kept.scale == model.scale_
    assert list(model.classes_) == ["no", "yes"]
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(model.loo_indices_, np.arange(6, 60))  # six rows had weight zero
    assert (model.noise_, model.interrupted_) == (1.0, False)
    assert len(model.elbo_trace_) == model.n_iter_
    assert model.elbo_trace_[-1] == model.elbo_
    assert model.inducing_points_.shape == (6, 4)


def test_facts_of_a_linear_model_of_three_classes():
    model = bayesvm.load(FOLDER / "version1_linear.bayesvm")
    assert model.coef_.shape == (3, 4)
    assert model.coef_covariance_.shape == (3, 4, 4)
    latent, _ = model.latent_mean_and_variance(NEW["version1_linear"])
    np.testing.assert_allclose(latent, NEW["version1_linear"] @ model.coef_.T + model.intercept_, atol=1e-9)
    assert not hasattr(model, "tuning_report_")


def test_it_can_learn_more():
    model = bayesvm.load(FOLDER / "version1_linear.bayesvm")
    model.partial_fit(TRAIN.X[:, COLUMNS], np.arange(60) % 3)
    assert not hasattr(model, "n_samples_")  # how many there were before is not known


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("machines"),
        lambda state: state["machines"].pop(),
        lambda state: state["machines"][0].update(label=2),
        lambda state: state["features"].pop("kernel"),
        lambda state: state["attributes"].update(n_features_in_=3),
        lambda state: state["attributes"].pop("classes_"),
        lambda state: state.update(rates=state["rates"] * np.nan),
        lambda state: state.update(leave_one_out=state["leave_one_out"][:3]),
        lambda state: state.update(tuning={}),
        lambda state: state["parameters"].update(bound="loose"),
        lambda state: state.update(attributes=[]),
    ],
)
def test_a_forged_one_is_refused_by_its_name(change, tmp_path, monkeypatch):
    kind, version, state = persistence.read(FOLDER / "version1_tuned.bayesvm")
    change(state)
    with monkeypatch.context() as patch:
        patch.setattr(persistence, "VERSION", version)
        persistence.write(tmp_path / "forged", kind, state)
    with pytest.raises(ValueError, match=f"{tmp_path / 'forged'} is not a valid bayesvm file"):
        bayesvm.load(tmp_path / "forged")


def test_the_old_state_is_left_as_it_was():
    *_, state = persistence.read(FOLDER / "version1_tuned.bayesvm")
    *_, again = persistence.read(FOLDER / "version1_tuned.bayesvm")
    upgraded(state)
    np.testing.assert_equal(state, again)


def test_a_checkpoint_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "fit.checkpoint"
    shutil.copy(FOLDER / "version1.checkpoint", path)
    model = BayesianSVC(n_inducing=3, tune=None, random_state=0, n_jobs=1)
    with pytest.raises(ValueError, match="fit.checkpoint is a checkpoint of an earlier version .*; delete it to start"):
        model.fit(TRAIN.X[:, COLUMNS], TRAIN.y, checkpoint=path)
    assert path.read_bytes() == (FOLDER / "version1.checkpoint").read_bytes()
    path.unlink()
    assert model.fit(TRAIN.X[:, COLUMNS], TRAIN.y, checkpoint=path).fitted_.n_samples == 60
