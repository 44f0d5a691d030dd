"""What a card says of the data: a profile of the columns, and simple classifiers on the same rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.data.tables import Batch
from bayesvm.evaluation import Predictions
from bayesvm.preparation import Recipe
from bayesvm.preparation.encoding import CategoryColumn, NumberColumn
from bayesvm.workflow import TableModel, baselines, fit_table
from bayesvm.workflow.profile import OTHERS, profile
from bayesvm.workflow.splitting import folds

pd = pytest.importorskip("pandas")


def table(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    f = 1.5 * X[:, 0] - X[:, 1] + rng.logistic(size=n_rows)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(f > 0, "yes", "no"))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("baselines") / "table.csv"
    table().to_csv(path, index=False)
    estimator = BayesianSVC(n_inducing=20, tune=None, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayesvm.workflow.fitting.FEW_ROWS", 0)  # rows are held out, as of large tables
        return fit_table(path, "y", estimator=estimator), path


def test_of_small_tables_they_are_evaluated_on_the_same_folds(tmp_path):
    rows = table()
    rows.to_csv(tmp_path / "table.csv", index=False)
    model = fit_table(tmp_path / "table.csv", "y", estimator=BayesianLinearSVC(random_state=0), seed=3)
    X, y = rows[["a", "b", "c"]].to_numpy(), rows["y"].to_numpy()
    proba = np.empty((len(y), 2))
    for train, test in folds(np.unique(y, return_inverse=True)[1], 3):
        theirs = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)).fit(X[train], y[train])
        proba[test] = theirs.predict_proba(X[test])
    found = model.card["baselines"][0]
    assert found["log_loss"] == pytest.approx(log_loss(y, proba), rel=1e-6)
    ours = model.holdout.predictions
    difference = log_loss(y, proba) - log_loss(ours.y, ours.proba)
    assert found["log_loss_difference"][0] == pytest.approx(difference, abs=1e-6)


def test_baselines_are_those_of_scikit_learn_on_the_same_split(fitted):
    model, _ = fitted
    rows = table()
    X, y = rows[["a", "b", "c"]].to_numpy(), rows["y"].to_numpy()
    held = np.zeros(len(y), bool)
    held[model.holdout.rows] = True  # all 120 of them are kept
    assert held.sum() == model.card["n_holdout"] == 120
    ours = model.holdout.predictions
    classifiers = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        "gradient boosting": HistGradientBoostingClassifier(early_stopping=False, random_state=0),
    }
    assert [each["name"] for each in model.card["baselines"]] == list(classifiers)
    our_loss = log_loss(ours.y, ours.proba)
    for each in model.card["baselines"]:
        theirs = classifiers[each["name"]].fit(X[~held], y[~held])
        loss = log_loss(y[held], theirs.predict_proba(X[held]))
        assert each["n_rows"] == 480
        assert each["error"] == pytest.approx(np.mean(theirs.predict(X[held]) != y[held]))
        assert each["log_loss"] == pytest.approx(loss, rel=1e-6)
        mean, low, high = each["log_loss_difference"]
        assert mean == pytest.approx(loss - our_loss, abs=1e-6)
        assert low < mean < high


def test_they_are_kept_in_the_file(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "m.bayesvm")
    again = TableModel.load(tmp_path / "m.bayesvm")
    assert again.card["baselines"] == model.card["baselines"]
    assert again.card["profile"] == model.card["profile"]


def test_without_rows_held_out_there_are_none(fitted):
    _, path = fitted
    estimator = BayesianSVC(n_inducing=10, tune=None, random_state=0)
    card = fit_table(path, "y", estimator=estimator, holdout=0).card
    assert "baselines" not in card
    assert len(card["profile"]) == 3


def test_wide_tables_have_none(fitted, monkeypatch):
    monkeypatch.setattr(baselines, "MOST_VALUES", 100)
    _, path = fitted
    estimator = BayesianSVC(n_inducing=10, tune=None, random_state=0)
    assert not {"baselines", "profile"} & set(fit_table(path, "y", estimator=estimator).card)


def test_ctrl_c_ends_the_baselines_only(fitted, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(baselines, "evaluate_peer", stop)
    _, path = fitted
    estimator = BayesianSVC(n_inducing=10, tune=None, random_state=0)
    with pytest.warns(UserWarning, match="the report omits the comparison"):
        card = fit_table(path, "y", estimator=estimator).card
    assert card["baselines"] is None


def test_a_profile_counts_values():
    rng = np.random.default_rng(0)
    amounts, marks = rng.normal(size=1000), rng.random(1000) < 0.1
    places = rng.choice(3, 1000, p=[0.6, 0.3, 0.1])
    recipe = Recipe(
        (
            NumberColumn("amount", 0.0, indicator=True),
            CategoryColumn("place", ("city", "coast", "(missing)")),
            NumberColumn("flag", 0.0),
            NumberColumn("few", np.nan),
        )
    )
    few = rng.integers(3, size=1000).astype(float)
    few[:50] = np.nan
    X = np.column_stack([np.where(marks, 0, amounts), marks, np.eye(3)[places], amounts > 0, few])
    amount, place, flag, numbers = profile(recipe, X)
    assert amount["kind"] == "number"
    assert amount["missing"] == pytest.approx(marks.mean())
    np.testing.assert_allclose(amount["quantiles"], np.quantile(amounts[~marks], (0.01, 0.25, 0.5, 0.75, 0.99)))
    assert sum(amount["counts"]) == (~marks).sum()
    assert (place["names"], place["kind"]) == (["city", "coast"], "category")
    assert place["counts"] == np.bincount(places)[:2].tolist()
    assert place["missing"] == pytest.approx(np.mean(places == 2))
    assert (flag["kind"], flag["names"]) == ("0 or 1", ["0", "1"])
    assert flag["counts"] == [int((amounts <= 0).sum()), int((amounts > 0).sum())]
    assert (numbers["missing"], numbers["names"]) == (0.05, ["0", "1", "2"])


def test_rare_categories_of_a_profile_count_together():
    names = tuple(f"c{i}" for i in range(20))
    X = np.eye(20)[np.repeat(np.arange(20), np.arange(20, 0, -1))]
    (column,) = profile(Recipe((CategoryColumn("place", names),)), X)
    assert column["names"] == [*names[:12], OTHERS]
    assert column["counts"][-1] == sum(range(1, 9))


def test_a_column_without_values_has_an_empty_profile():
    (column,) = profile(Recipe.plain(["x"]), np.full((5, 1), np.nan))
    assert (column["missing"], column["counts"]) == (1.0, [])


def test_folds_are_pooled():
    rows = table(300)
    X, y = rows[["a", "b", "c"]].to_numpy(), rows["y"].to_numpy()
    folds = np.arange(300) % 3
    parts = [(Batch(X[folds != k], y[folds != k], None), Batch(X[folds == k], y[folds == k], None)) for k in range(3)]
    order = np.argsort(folds, kind="stable")
    ours = Predictions.of(["no", "yes"], y[order], np.full((300, 2), 0.5))
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    losses = [log_loss(test.y, regression.fit(train.X, train.y).predict_proba(test.X)) for train, test in parts]
    found = baselines.baselines(parts, ours, 0)[0]
    assert found["n_rows"] == 200
    assert found["log_loss"] == pytest.approx(np.mean(losses), rel=1e-6)
    assert found["log_loss_difference"][0] == pytest.approx(np.mean(losses) - np.log(2))
    parts[0] = (parts[0][0], Batch(X[:1], np.array(["never"]), None))
    assert baselines.baselines(parts, ours, 0) is None


def test_dates_have_a_histogram():
    days = np.datetime64("2020-01-01") + np.arange(100)
    found = profile(SimpleNamespace(decoded=lambda _: {"day": [*days.astype(str).tolist(), None]}), np.empty((0, 1)))
    (column,) = found
    assert (column["kind"], column["distinct"]) == ("date", 100)
    assert column["quantiles"] == ["2020-01-01", "2020-01-25", "2020-02-19", "2020-03-15", "2020-04-08"]
    assert sum(column["counts"]) == 100
    assert column["missing"] == pytest.approx(1 / 101)
