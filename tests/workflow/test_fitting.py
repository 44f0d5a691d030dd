"""From a table to a model: which rows are held out, and what they change."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import log_loss

from bayesvm import BayesianLinearSVC, BayesianSVC, open_table
from bayesvm.datasets import waveform
from bayesvm.workflow import fit_table, splitting
from bayesvm.workflow.evaluated_rows import EvaluatedRows
from bayesvm.workflow.splitting import folds, split, with_codes


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    y = np.where(rng.random(500) < 0.1, "rare", np.where(x[:, 0] + rng.normal(size=500) > 0, "up", "down"))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": y, "w": rng.integers(0, 3, 500)})
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    pq.write_table(table, path, row_group_size=120)
    return path


@pytest.fixture
def held_out(monkeypatch):
    """Small tables are evaluated like large ones."""
    monkeypatch.setattr("bayesvm.workflow.fitting.FEW_ROWS", 0)


def split_of(table, share, seed):
    return split(with_codes(table)[1], share, seed)


def labels_of(table):
    return np.concatenate([y for y, _ in table.targets()])


def test_the_split_keeps_the_shares_of_the_classes(path):
    table = open_table(path, "y", columns=["a", "b"])
    train, test = split_of(table, 0.2, seed=0)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(500))
    y = labels_of(table)
    for label in np.unique(y):
        members = (y == label).sum()
        assert abs((y[test] == label).sum() - 0.2 * members) < 1


def test_the_split_is_decided_by_the_seed(path):
    table = open_table(path, "y", columns=["a", "b"])
    again = [split_of(table, 0.2, seed)[1].tolist() for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def test_the_split_is_capped(path, monkeypatch):
    monkeypatch.setattr(splitting, "MOST_HELD_OUT", 40)
    _, test = split_of(open_table(path, "y", columns=["a", "b"]), 0.5, seed=0)
    assert 38 <= len(test) <= 42


def test_no_class_loses_its_only_row(tmp_path):
    pq.write_table(pa.table({"x": np.arange(50.0), "y": ["one"] + ["a", "b"] * 24 + ["a"]}), tmp_path / "t.parquet")
    for seed in range(5):
        train, _ = split_of(open_table(tmp_path / "t.parquet", "y"), 0.5, seed)
        assert 0 in train
    assert split_of(open_table(tmp_path / "t.parquet", "y"), 0, 0) == (None, None)


@pytest.mark.usefixtures("held_out")
def test_what_is_held_out_is_neither_learned_nor_changes_the_fit(path):
    """The model is, to the last bit, one that was given only the other rows."""
    made = fit_table(path, "y", drop=["w"], refit=False, estimator=BayesianSVC(n_inducing=15, random_state=0))
    table = open_table(path, "y", columns=["a", "b"])
    train, test = split_of(table, 0.2, seed=0)
    alone = BayesianSVC(n_inducing=15, random_state=0).fit(table.subset(train))
    expected = alone.predict_proba(table)
    np.testing.assert_array_equal(made.estimator.predict_proba(table), expected)
    evaluated = made.holdout
    np.testing.assert_allclose(evaluated.predictions.proba, expected[test], rtol=1e-10)
    np.testing.assert_array_equal(evaluated.predictions.classes[evaluated.predictions.y], labels_of(table)[test])
    np.testing.assert_array_equal(evaluated.rows, test[evaluated.sample])
    np.testing.assert_array_equal(evaluated.X, table.rows(evaluated.rows).X)


@pytest.mark.parametrize("many", [False, True])
def test_the_log_loss_of_held_out_rows_is_reported_right(many, monkeypatch):
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


@pytest.mark.usefixtures("held_out")
def test_the_recipe_is_learned_from_the_rows_that_are_learned_from(tmp_path):
    """A category that only held-out rows have is as new to the model as one in a new table."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=200), rng.choice(["a", "b"], 200)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": x, "kind": ["usual"] * 200, "y": y}), path)
    _, test = split_of(open_table(path, "y", columns=["x"]), 0.2, seed=0)
    kinds = np.where(np.isin(np.arange(200), test), "only here", np.array(["one", "two"] * 100))
    pq.write_table(pa.table({"x": np.where(np.isin(np.arange(200), test), 1e6, x), "kind": kinds, "y": y}), path)
    with pytest.warns(UserWarning, match="categories not seen in training"):
        made = fit_table(path, "y", refit=False, estimator=BayesianLinearSVC(random_state=0))
    assert set(made.recipe.columns[1].categories) == {"one", "two"}
    assert abs(made.recipe.medians[0]) < 1


@pytest.mark.usefixtures("held_out")
def test_a_model_is_kept_if_its_evaluation_is_interrupted(path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(EvaluatedRows, "of", stopped)
    with pytest.warns(UserWarning, match="interrupted before"):
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


def test_the_card_records_where_a_model_comes_from(path):
    model = fit_table(path, "y", weight="w", estimator=BayesianLinearSVC(), seed=3)
    assert model.card["files"] == ["t.parquet"]
    assert (model.card["target"], model.card["weight"], model.card["seed"]) == ("y", "w", 3)
    assert model.card["n_rows"] == model.card["n_train"] == model.card["n_holdout"] == 500
    assert model.holdout.predictions.weight is not None


def test_numbers_are_no_classes(tmp_path):
    pq.write_table(pa.table({"x": np.arange(80.0), "y": np.arange(80)}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="the target 'y' has 80 distinct numeric values in 80 rows"):
        fit_table(tmp_path / "t.parquet", "y", task="classification")


def test_numbers_that_are_names_keep_their_digits(tmp_path):
    lines = [f"{'01234' if i % 2 else '1234'},{i % 5},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["zip,x,y", *lines]))
    made = fit_table(tmp_path / "t.csv", "y", categories=["zip"], estimator=BayesianLinearSVC(random_state=0))
    assert set(made.recipe.columns[0].categories) == {"01234", "1234"}


@pytest.mark.usefixtures("held_out")
def test_the_most_and_the_least_certain_rows_are_kept(path, monkeypatch):
    monkeypatch.setattr("bayesvm.workflow.evaluated_rows.MOST_KEPT", 20)
    monkeypatch.setattr("bayesvm.workflow.evaluated_rows.EXTREME", 5)
    evaluated = fit_table(path, "y", drop=["w"], estimator=BayesianLinearSVC(random_state=0), holdout=0.5).holdout
    order = np.argsort(evaluated.predictions.doubt, kind="stable")
    assert set(order[:5]) | set(order[-5:]) <= set(evaluated.sample)
    assert len(evaluated.sample) <= 20


@pytest.mark.usefixtures("held_out")
def test_an_evaluated_model_is_refitted_to_all_rows(path):
    """To the bits of a fit to all rows; the held-out rows evaluate the model before it."""
    given = BayesianLinearSVC(random_state=0)
    made = fit_table(path, "y", drop=["w"], estimator=given)
    table = open_table(path, "y", columns=["a", "b"])
    np.testing.assert_array_equal(made.estimator.predict_proba(table), given.fit(table).predict_proba(table))
    evaluated = fit_table(path, "y", drop=["w"], estimator=given, refit=False)
    assert made.card["refitted"]
    assert not evaluated.card["refitted"]
    assert made.estimator.n_samples_ == made.card["n_train"] == 500
    assert evaluated.estimator.n_samples_ == evaluated.card["n_train"] == 500 - evaluated.card["n_holdout"]
    np.testing.assert_array_equal(made.holdout.predictions.proba, evaluated.holdout.predictions.proba)


def test_small_tables_are_evaluated_by_models_of_the_other_folds(path):
    given = BayesianLinearSVC(random_state=0)
    made = fit_table(path, "y", drop=["w"], estimator=given, seed=1)
    table = open_table(path, "y", columns=["a", "b"])
    table, classes = with_codes(table)
    expected = np.empty((500, 3))
    for train, test in folds(classes, 1):
        expected[test] = given.fit(table.subset(train)).predict_proba(table.subset(test))
    np.testing.assert_allclose(made.holdout.predictions.proba, expected, rtol=1e-9)
    np.testing.assert_array_equal(made.holdout.predictions.classes[made.holdout.predictions.y], labels_of(table))
    assert made.holdout.source == "5-fold cross-validation of t.parquet (500 rows)"
    np.testing.assert_array_equal(made.holdout.X, table.rows(made.holdout.rows).X)
    assert made.estimator.n_samples_ == 500


def test_folds_have_each_row_once_and_the_shares_of_the_classes():
    classes = np.random.default_rng(0).choice(4, 203, p=[0.6, 0.3, 0.09, 0.01])
    classes[:5], classes[5] = 4, 5
    tests = [test for _, test in folds(classes, 0)]
    assert sorted(np.concatenate(tests).tolist()) == [
        row for row in range(203) if row != 5
    ]  # the only one of its class
    for test in tests:
        counts = np.bincount(classes[test], minlength=6)
        assert np.all(np.abs(counts[:5] - np.bincount(classes)[:5] / 5) < 1)
    for train, test in folds(classes, 0):
        assert 5 in train
        assert not set(train) & set(test)


@pytest.mark.parametrize("few", [0, 2_000])
def test_groups_stay_together(tmp_path, monkeypatch, few):
    """Rows of a group are alike, so only whole groups are held out or form folds."""
    monkeypatch.setattr("bayesvm.workflow.fitting.FEW_ROWS", few)
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(60), 8))
    label = rng.integers(2, size=60)[groups]  # by chance: there is nothing to learn but the groups themselves
    x = rng.normal(size=60)[groups] + 0.001 * rng.normal(size=480)
    data = {"x": x, "who": [f"p{g}" for g in groups], "y": np.where(label, "a", "b")}
    pq.write_table(pa.table(data), tmp_path / "t.parquet")
    made = fit_table(tmp_path / "t.parquet", "y", group="who", estimator=BayesianSVC(n_inducing=40, random_state=0))
    assert made.recipe.needed == ["x"]
    assert made.card["group"] == "who"
    evaluated = set(groups[made.holdout.rows])
    assert (len(evaluated) == 60) if few else (len(evaluated) == 12)
    assert np.mean(made.holdout.predictions.correct) < 0.75
    table = pa.table(data | {"who": [None, *data["who"][1:]]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"no label for .*t\.parquet, row 0, column 'who'"):
        fit_table(tmp_path / "t.parquet", "y", group="who")


def test_messages_about_groups_name_their_labels(tmp_path):
    rng = np.random.default_rng(0)
    x, who = rng.normal(size=120), np.repeat([f"p{i}" for i in range(40)], 3)
    y = np.where(who == "p3", "rare", np.where(x > 0, "a", "b"))
    pq.write_table(pa.table({"x": x, "who": who, "one": np.full(120, "all"), "y": y}), tmp_path / "t.parquet")
    small = BayesianSVC(n_inducing=20, tune=None, random_state=0)
    with pytest.warns(UserWarning, match="class 'rare' occurs in one group only"):
        fit_table(tmp_path / "t.parquet", "y", group="who", drop=["one"], holdout=0, estimator=small)
    with pytest.raises(ValueError, match="all rows are in one group, 'all'"):
        fit_table(tmp_path / "t.parquet", "y", group="one", estimator=small)
    two = pa.table({"x": x, "who": np.where(np.arange(120) % 2, "odd", "even"), "y": np.where(x > 0, "a", "b")})
    pq.write_table(two, tmp_path / "two.parquet")
    with (
        pytest.warns(UserWarning, match="there are only 2 groups"),
        pytest.raises(ValueError, match="at least three groups, but there are 2"),
    ):
        fit_table(tmp_path / "two.parquet", "y", group="who", estimator=small)


def test_rows_without_a_target_are_left_out_and_counted(path, tmp_path):
    table = pq.read_table(path)
    y = [None if i in {3, 7} else label for i, label in enumerate(table["y"].to_pylist())]
    pq.write_table(table.set_column(2, "y", pa.array(y)), tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match=r"2 rows are left out of 500.*column 'y' \(first: .*t.parquet, row 3\)"):
        made = fit_table(tmp_path / "t.parquet", "y", drop=["w"], estimator=BayesianLinearSVC(random_state=0))
    kept = open_table(path, "y", columns=["a", "b"]).subset(np.delete(np.arange(500), [3, 7]))
    alone = BayesianLinearSVC(random_state=0).fit(kept)
    np.testing.assert_array_equal(made.estimator.predict_proba(kept), alone.predict_proba(kept))
