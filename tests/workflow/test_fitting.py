"""From a table to a model: which rows are held out, and what they change."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesvm import BayesianLinearSVC, BayesianSVC, TableModel, open_table
from bayesvm.core.leave_one_out import Cavities
from bayesvm.estimators._calibration import fitted_link, mean_log_loss
from bayesvm.workflow import fitting
from bayesvm.workflow.fitting import fit_table, split


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    y = np.where(rng.random(500) < 0.1, "rare", np.where(x[:, 0] + rng.normal(size=500) > 0, "up", "down"))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": y, "w": rng.integers(0, 3, 500)})
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    pq.write_table(table, path, row_group_size=120)
    return path


def labels_of(table):
    return np.concatenate([y for y, _ in table.labels()])


def test_the_split_keeps_the_shares_of_the_classes(path):
    table = open_table(path, "y", columns=["a", "b"])
    train, test = split(table, 0.2, seed=0)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(500))
    y = labels_of(table)
    for label in np.unique(y):
        members = (y == label).sum()
        assert abs((y[test] == label).sum() - 0.2 * members) < 1


def test_the_split_is_decided_by_the_seed(path):
    table = open_table(path, "y", columns=["a", "b"])
    again = [split(table, 0.2, seed)[1].tolist() for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def test_the_split_is_capped(path, monkeypatch):
    monkeypatch.setattr(fitting, "MOST_HELD_OUT", 40)
    _, test = split(open_table(path, "y", columns=["a", "b"]), 0.5, seed=0)
    assert 38 <= len(test) <= 42


def test_no_class_loses_its_only_row(tmp_path):
    pq.write_table(pa.table({"x": np.arange(50.0), "y": ["one"] + ["a", "b"] * 24 + ["a"]}), tmp_path / "t.parquet")
    for seed in range(5):
        train, _ = split(open_table(tmp_path / "t.parquet", "y"), 0.5, seed)
        assert 0 in train
    assert split(open_table(tmp_path / "t.parquet", "y"), 0, 0) == (None, None)


def test_what_is_held_out_is_neither_learned_nor_changes_the_fit(path):
    """The model is, to the last bit, one that was given only the other rows."""
    made = fit_table(path, "y", drop=["w"], estimator=BayesianSVC(n_inducing=15, random_state=0))
    table = open_table(path, "y", columns=["a", "b"])
    train, test = split(table, 0.2, seed=0)
    alone = BayesianSVC(n_inducing=15, random_state=0).fit(table.subset(train))
    expected = alone.predict_proba(table)
    np.testing.assert_array_equal(made.estimator.predict_proba(table), expected)
    judged = made.holdout
    np.testing.assert_allclose(judged.predictions.proba, expected[test], rtol=1e-10)
    np.testing.assert_array_equal(judged.predictions.classes[judged.predictions.y], labels_of(table)[test])
    np.testing.assert_array_equal(judged.rows, test[judged.sample])
    np.testing.assert_array_equal(judged.X, table.rows(judged.rows).X)


@pytest.mark.parametrize("many", [False, True])
def test_the_log_loss_of_held_out_rows_is_told_right(path, many, monkeypatch):
    """The last that is heard is the log loss of the final posterior, with a link fitted to those rows."""
    monkeypatch.setattr("bayesvm.estimators._held_out.SHARE", np.inf)  # after every update, however long it takes
    table = open_table(path, "y", columns=["a", "b"])
    X, y, _ = table.rows(np.arange(500))
    if not many:
        y = np.where(y == "up", "up", "down")
    heard = []
    given = {"n_inducing": 20, "kernel": "rbf", "tune": None, "scale": "standard", "tol": 1e-8}
    model = BayesianSVC(random_state=0, **given).fit(
        X[:400], y[:400], held_out=(X[400:], y[400:]), callback=heard.append
    )
    told = [progress.held_out for progress in heard if progress.held_out == progress.held_out]
    alone = BayesianSVC(random_state=0, **given).fit(X[:400], y[:400])
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    m, v = model.latent_mean_and_variance(X[400:])
    codes = np.searchsorted(model.classes_, y[400:])
    seen = Cavities(np.asarray(m).reshape(100, -1), np.asarray(v).reshape(100, -1), codes, np.ones(100))
    assert told
    assert told[-1] == pytest.approx(mean_log_loss(fitted_link("calibrated", seen), seen), abs=1e-5)


def test_the_card_tells_where_a_model_comes_from(path):
    model = TableModel.fit(path, "y", weight="w", estimator=BayesianLinearSVC(), seed=3)
    assert model.card["files"] == ["t.parquet"]
    assert (model.card["target"], model.card["weight"], model.card["seed"]) == ("y", "w", 3)
    assert model.card["n_rows"] == model.card["n_train"] + model.card["n_holdout"] == 500
    assert model.holdout.predictions.weight is not None


def test_numbers_are_no_classes(tmp_path):
    pq.write_table(pa.table({"x": np.arange(80.0), "y": np.arange(80)}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="80 different values in 80 rows"):
        fit_table(tmp_path / "t.parquet", "y")
