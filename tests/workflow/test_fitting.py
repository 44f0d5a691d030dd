"""From a table to a model: which rows are held out, and what they change."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import log_loss

from bayesvm import BayesianLinearSVC, BayesianSVC, open_table
from bayesvm.datasets import waveform
from bayesvm.workflow import fit_table, splitting
from bayesvm.workflow.judging import Judged
from bayesvm.workflow.splitting import split


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
    return np.concatenate([y for y, _ in table.targets()])


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
    monkeypatch.setattr(splitting, "MOST_HELD_OUT", 40)
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
def test_the_log_loss_of_held_out_rows_is_told_right(many, monkeypatch):
    """Near that of the finished model there, though they come sorted by class; and the fit does not depend on them."""
    monkeypatch.setattr("bayesvm.estimators.held_out.SHARE", np.inf)  # after every update, however long it takes
    data = waveform(6_000, random_state=0)
    y = np.where(data.X[:, 10] > 3, "high", np.where(data.y == 1, "up", "down")) if many else data.y
    order = np.argsort(y[1_000:], kind="stable") + 1_000
    heard = []
    given = {"n_inducing": 30, "tune": None, "random_state": 0}
    train = data.X[:1_000], y[:1_000]
    model = BayesianSVC(**given).fit(*train, held_out=(data.X[order], y[order]), callback=heard.append)
    told = [progress.held_out for progress in heard if progress.held_out == progress.held_out]
    assert told[-1] == pytest.approx(log_loss(y[order], model.predict_proba(data.X[order])), abs=0.03)
    alone = BayesianSVC(**given).fit(*train)
    np.testing.assert_array_equal(model.predict_proba(data.X), alone.predict_proba(data.X))


def test_held_out_rows_that_make_no_sense(path):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.array([0, 1] * 30)
    make = BayesianLinearSVC(random_state=0)
    with pytest.raises(TypeError, match="held_out takes"):
        make.fit(X, y, held_out=5)
    with pytest.raises(ValueError, match="held_out has the label 7"):
        make.fit(X, y, held_out=(X, y + 7))
    with pytest.raises(ValueError, match="60 rows, but 59 labels"):
        make.fit(X, y, held_out=(X.tolist(), y[1:]))


def test_the_recipe_is_learned_from_the_rows_that_are_learned_from(tmp_path):
    """A category that only held-out rows have is as new to the model as one in a new table."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=200), rng.choice(["a", "b"], 200)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": x, "kind": ["usual"] * 200, "y": y}), path)
    _, test = split(open_table(path, "y", columns=["x"]), 0.2, seed=0)
    kinds = np.where(np.isin(np.arange(200), test), "only here", np.array(["one", "two"] * 100))
    pq.write_table(pa.table({"x": np.where(np.isin(np.arange(200), test), 1e6, x), "kind": kinds, "y": y}), path)
    with pytest.warns(UserWarning, match="categories not seen in training"):
        made = fit_table(path, "y", estimator=BayesianLinearSVC(random_state=0))
    assert set(made.recipe.columns[1].categories) == {"one", "two"}
    assert abs(made.recipe.columns[0].fill) < 1


def test_a_model_is_kept_if_its_judging_is_stopped(path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Judged, "of", stopped)
    with pytest.warns(UserWarning, match="stopped before"):
        made = fit_table(path, "y", drop=["w"], estimator=BayesianLinearSVC(random_state=0))
    assert made.holdout is None
    assert made.predict(path).shape == (500,)


def test_the_estimator_that_is_given_stays_as_it_is(path):
    given = BayesianLinearSVC(random_state=0, verbose=0)
    fit_table(path, "y", drop=["w"], estimator=given, holdout=0)
    assert not hasattr(given, "classes_")


def test_very_wide_tables_get_a_mean_field(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{rng.integers(2)} {rng.integers(1, 3000)}:1 6000:{rng.random():.3f}" for _ in range(60)]
    (tmp_path / "wide.libsvm").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="only their variances"):
        made = fit_table(tmp_path / "wide.libsvm", estimator=BayesianLinearSVC(max_iter=3, tol=0, random_state=0))
    assert made.estimator.covariance == "diagonal"
    assert len(made.holdout.X) == 0  # rows of 6,000 features are not kept


def test_the_card_tells_where_a_model_comes_from(path):
    model = fit_table(path, "y", weight="w", estimator=BayesianLinearSVC(), seed=3)
    assert model.card["files"] == ["t.parquet"]
    assert (model.card["target"], model.card["weight"], model.card["seed"]) == ("y", "w", 3)
    assert model.card["n_rows"] == model.card["n_train"] + model.card["n_holdout"] == 500
    assert model.holdout.predictions.weight is not None


def test_numbers_are_no_classes(tmp_path):
    pq.write_table(pa.table({"x": np.arange(80.0), "y": np.arange(80)}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="the target 'y' has 80 different numbers in 80 rows, like a quantity"):
        fit_table(tmp_path / "t.parquet", "y")


def test_numbers_that_are_names_keep_their_digits(tmp_path):
    lines = [f"{'01234' if i % 2 else '1234'},{i % 5},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["zip,x,y", *lines]))
    made = fit_table(tmp_path / "t.csv", "y", categories=["zip"], estimator=BayesianLinearSVC(random_state=0))
    assert set(made.recipe.columns[0].categories) == {"01234", "1234"}


def test_the_most_and_the_least_certain_rows_are_kept(path, monkeypatch):
    monkeypatch.setattr("bayesvm.workflow.judging.MOST_KEPT", 20)
    monkeypatch.setattr("bayesvm.workflow.judging.EXTREME", 5)
    judged = fit_table(path, "y", drop=["w"], estimator=BayesianLinearSVC(random_state=0), holdout=0.5).holdout
    order = np.argsort(judged.predictions.doubt, kind="stable")
    assert set(order[:5]) | set(order[-5:]) <= set(judged.sample)
    assert len(judged.sample) <= 20
