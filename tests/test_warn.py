"""A warning points to the user's line, not to ours."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from bayesvm import BayesianLinearSVC, TableModel


def lines(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    return {each.filename for each in caught}


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{'uvw'[i % 3]},{'ab'[i % 2]},1" for i, a in enumerate(rng.normal(size=60))]
    (tmp_path / "t.csv").write_text("\n".join(["x,z,y,w", *rows]))
    return TableModel.fit(tmp_path / "t.csv", "y", weight="w", estimator=BayesianLinearSVC(random_state=0))


def test_values_not_seen_in_training(model):
    new = pa.table({"x": [0.5, None], "z": ["u", "never"]})
    assert lines(lambda: model.predict_proba(new)) == {__file__}


def test_values_not_seen_in_training_in_a_file(model, tmp_path):
    (tmp_path / "new.csv").write_text("x,z\n0.5,never\n,u\n")
    assert lines(lambda: model.predict(tmp_path / "new.csv")) == {__file__}


def test_weights_that_are_not_there(model, tmp_path):
    (tmp_path / "new.csv").write_text("x,z,y\n0.5,u,a\n0.1,v,b\n")
    assert lines(lambda: model.judged(tmp_path / "new.csv")) == {__file__}


def test_text_among_numbers(tmp_path):
    rows = [f"{'oops' if i == 7 else i % 9},{i % 5},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,v,y", *rows]))
    fit = {"estimator": BayesianLinearSVC(random_state=0), "holdout": 0}
    assert lines(lambda: TableModel.fit(tmp_path / "t.csv", "y", **fit)) == {__file__}
