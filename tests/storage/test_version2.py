"""Files that version 2 of the format had before there were committees (tests/make_fixture.py) load as they did."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesvm
from bayesvm import persistence
from bayesvm.datasets import waveform

FOLDER = Path(__file__).parent.parent / "fixtures"
TRAIN, TEST = waveform(60, random_state=4), waveform(20, random_state=5)
COLUMNS = slice(4, 8)
NEW = {
    "version2_tuned": pd.DataFrame(TEST.X[:, COLUMNS], columns=list("abcd")),
    "version2_linear": TEST.X[:, COLUMNS],
}


@pytest.fixture(params=NEW)
def name(request):
    return request.param


def test_it_predicts_what_it_did(name):
    """Probabilities may differ in the last digits on another machine."""
    assert persistence.version_of(FOLDER / f"{name}.bayesvm") == 2
    model = bayesvm.load(FOLDER / f"{name}.bayesvm")
    np.testing.assert_allclose(model.predict_proba(NEW[name]), np.loadtxt(FOLDER / f"{name}.txt"), atol=1e-6)


def test_members_had_a_region_and_a_parent_that_were_none(name, tmp_path):
    """Files that are no longer written."""
    *_, state = persistence.read(FOLDER / f"{name}.bayesvm")
    (member,) = state["fitted"]["members"]
    assert (member["region"], member["parent"]) == (None, None)
    model = bayesvm.load(FOLDER / f"{name}.bayesvm")
    assert model.fitted_.member.leaves is None
    model.save(tmp_path / "m")
    *_, state = persistence.read(tmp_path / "m")
    assert not {"region", "parent"} & state["fitted"]["members"][0].keys()


def test_it_is_saved_again_bit_identically(name, tmp_path):
    model = bayesvm.load(FOLDER / f"{name}.bayesvm")
    model.save(tmp_path / "m")
    again = bayesvm.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(NEW[name]), model.predict_proba(NEW[name]))
    np.testing.assert_array_equal(again.loo_proba_, model.loo_proba_)
    assert again.get_params() == model.get_params()


def test_it_has_one_member_and_all_its_attributes():
    model = bayesvm.load(FOLDER / "version2_tuned.bayesvm")
    (member,) = model.fitted_.members
    assert (member.weight, member.scaler, member.features.effects) == (1.0, None, ())
    report = model.tuning_report_
    assert report.trials[report.kept].what == "fit"
    assert report.trials[report.kept].loo == pytest.approx(model.loo_log_loss_)
    assert model.inducing_points_.shape == (6, 4)
    assert model.n_samples_ == 54


def test_it_can_learn_more(name):
    model = bayesvm.load(FOLDER / f"{name}.bayesvm")
    before = model.n_samples_
    rows = pd.DataFrame(TRAIN.X[:, COLUMNS], columns=list("abcd")) if name == "version2_tuned" else TRAIN.X[:, COLUMNS]
    model.partial_fit(rows, model.classes_[np.arange(60) % len(model.classes_)])
    assert model.n_samples_ == before + 60
