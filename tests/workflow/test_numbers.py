"""Tables whose target is a number: the task, the evaluation, the file and the predictions."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from bayesvm import BayesianLinearSVC, BayesianOneClassSVM, BayesianSVC, BayesianSVR, open_table
from bayesvm.evaluation import RegressionPredictions, metrics
from bayesvm.warn import ReadingNote
from bayesvm.workflow import TableModel, fit_table
from bayesvm.workflow.comparing import compare_on
from bayesvm.workflow.describing import described
from bayesvm.workflow.importance import importance
from bayesvm.workflow.predicting import predict_table
from bayesvm.workflow.splitting import folds, split, with_task

PARAMETERS = {"tune": None, "n_inducing": 20, "kernel": "rbf"}
QUICK = BayesianSVR(**PARAMETERS, random_state=0)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 2))
    y = 100 * (np.sin(x[:, 0]) + 0.1 * rng.normal(size=240))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": y, "w": rng.integers(0, 3, 240), "g": np.arange(240) // 12})
    path = tmp_path_factory.mktemp("tables") / "t.parquet"
    pq.write_table(table, path, row_group_size=100)
    return path


@pytest.fixture(scope="module")
def model(path):
    with pytest.warns(ReadingNote, match="'y' looks like a regression target: BayesianSVR is fitted"):
        return fit_table(path, "y", columns=["a", "b"], parameters=PARAMETERS)


def written(folder, **columns):
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.parquet"


def task_of(folder, y):
    path = written(folder, x=np.arange(float(len(y))), y=y)
    return with_task(open_table(path, "y"), "auto")[1]


@pytest.mark.filterwarnings("ignore::bayesvm.warn.ReadingNote", "ignore:1 row is left out")
def test_which_targets_are_numbers(tmp_path):
    assert task_of(tmp_path, [0.5, 1.0] * 5) == "regression"
    assert task_of(tmp_path, np.arange(20)) == "classification"  # few classes may have one row each
    assert task_of(tmp_path, np.arange(21)) == "regression"
    assert task_of(tmp_path, np.repeat(np.arange(200), 5)) == "classification"
    assert task_of(tmp_path, np.repeat(np.arange(200), 5)[1:]) == "regression"
    assert task_of(tmp_path, np.repeat(np.arange(201), 5)) == "regression"
    assert task_of(tmp_path, np.repeat(np.arange(201), 5).astype(str)) == "classification"
    assert task_of(tmp_path, [True, False] * 30) == "classification"
    assert task_of(tmp_path, pa.array([1.5, None, 2.5])) == "regression"


def test_the_task_can_be_set(tmp_path):
    path = written(tmp_path, x=np.sin(np.arange(60)), y=np.arange(60) % 3, z=["one", "2"] * 30)
    asked = fit_table(path, "y", columns=["x"], task="regression", parameters=PARAMETERS, holdout=0)
    assert asked.is_regression
    assert asked.card.get("baselines") is None
    auto = fit_table(path, "y", columns=["x"], parameters=PARAMETERS, holdout=0)
    assert isinstance(auto.estimator, BayesianSVC)
    with pytest.raises(
        ValueError, match="row 0: the target 'z' is the text 'one', but regression needs a numeric target"
    ):
        fit_table(path, "z", task="regression")
    with pytest.raises(ValueError, match="BayesianLinearSVC is for classification, not for regression"):
        fit_table(path, "y", task="regression", estimator=BayesianLinearSVC())
    with pytest.raises(ValueError, match="task must be one of auto, classification, regression; got 'ranking'"):
        fit_table(path, "y", task="ranking")
    with pytest.raises(ValueError, match="needs at least two distinct values in y"):
        fit_table(written(tmp_path, x=np.sin(np.arange(60)), y=np.full(60, 1.5)), "y", task="regression")


def test_what_is_held_out_is_neither_learned_nor_changes_the_fit(path, monkeypatch):
    """The model is, to the last bit, one that was given only the other rows; its metrics are scikit-learn's."""
    monkeypatch.setattr("bayesvm.workflow.fitting.FEW_ROWS", 0)
    made = fit_table(path, "y", columns=["a", "b"], refit=False, estimator=QUICK)
    table = open_table(path, "y", columns=["a", "b"])
    train, test = split(np.zeros(240, int), 0.2, 0)
    alone = BayesianSVR(**PARAMETERS, random_state=0).fit(table.subset(train))
    np.testing.assert_array_equal(made.estimator.predict(table), alone.predict(table))
    said, y = made.holdout.predictions, table.rows(test).y
    mean, std = alone.predict(table.subset(test), return_std=True)
    low, high = alone.predict_interval(table.subset(test), 0.9)
    np.testing.assert_array_equal(said.y, y)
    np.testing.assert_allclose(said.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(said.std, std, rtol=1e-10)
    np.testing.assert_array_equal(said.inside(0.9), (low <= y) & (y <= high))
    found = metrics(said, n_bootstrap=0)
    assert found["rmse"].value == pytest.approx(root_mean_squared_error(y, mean))
    assert found["mae"].value == pytest.approx(mean_absolute_error(y, mean))
    assert found["r2"].value == pytest.approx(r2_score(y, mean))


def test_densities_are_those_of_the_predicted_distributions(model, path):
    """The density is the slope of the distribution function, whose inverse are the quantiles."""
    table = open_table(path, "y", columns=["a", "b"])
    y = table.rows(np.arange(240)).y
    checks = model.estimator.predictive_checks(table, y)
    step = 1e-4
    predicted = model.estimator.fitted_.calibrated_shares  # from calibrated shares back to the fitted distribution
    above, below = (predicted(model.estimator.predictive_checks(table, y + d)["below"]) for d in (step, -step))
    np.testing.assert_allclose(np.exp(checks["log_density"]), (above - below) / (2 * step), rtol=1e-4, atol=1e-9)
    at = model.estimator.predict_quantiles(table, [0.3])[:, 0]
    np.testing.assert_allclose(model.estimator.predictive_checks(table, at)["below"], 0.3, rtol=1e-6)


def test_cross_validation_is_that_of_models_of_the_folds(model, path):
    table = open_table(path, "y", columns=["a", "b"])
    expected = np.empty(240)
    for train, test in folds(np.zeros(240, int), 0):
        fold = BayesianSVR(**PARAMETERS, random_state=0).fit(table.subset(train))
        expected[test] = fold.predict(table.subset(test))
    assert model.holdout.predictions.n_rows == 240
    np.testing.assert_allclose(model.holdout.predictions.mean, expected, rtol=1e-10)


def test_weights_and_groups_count(path):
    with pytest.warns(UserWarning, match="there are only 20 groups"):
        made = fit_table(path, "y", columns=["a", "b"], weight="w", group="g", estimator=QUICK)
    weight = pq.read_table(path)["w"].to_numpy()
    np.testing.assert_array_equal(made.holdout.predictions.weight, weight)
    assert made.card["group"] == "g"
    assert [each["name"] for each in made.card["baselines"]] == ["linear regression", "gradient boosting"]


@pytest.mark.filterwarnings("ignore:the target 'y' looks like a regression target:UserWarning")
@pytest.mark.parametrize(
    ("strange", "words"),
    [
        ("abc", "line 9: the target 'y' is the text 'abc', but 59 other values are numbers"),
        ("inf", "(row 7|line 9).*infinity"),
    ],
)
def test_one_value_that_is_no_number_is_named(strange, words, tmp_path):
    y = [strange if i == 7 else f"{i if strange == 'inf' else np.sin(i)}" for i in range(60)]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{np.cos(i)},{v}\n" for i, v in enumerate(y)))
    with pytest.raises(ValueError, match=words):
        fit_table(tmp_path / "t.csv", "y", estimator=None)


def test_rows_without_a_target_are_left_out(tmp_path):
    y = [None if i == 7 else np.sin(i) for i in range(60)]
    path = written(tmp_path, x=np.sin(np.arange(60)), y=y)
    with pytest.warns(UserWarning, match="1 row is left out of 60"):
        made = fit_table(path, "y", estimator=QUICK)
    assert made.card["n_rows"] == 59


def test_the_file_gives_everything_back(model, path, tmp_path):
    model.save(tmp_path / "m.bayesvm")
    again = TableModel.load(tmp_path / "m.bayesvm")
    for name in RegressionPredictions.columns():
        np.testing.assert_array_equal(
            getattr(again.holdout.predictions, name), getattr(model.holdout.predictions, name)
        )
    np.testing.assert_array_equal(again.holdout.X, model.holdout.X)
    np.testing.assert_array_equal(again.predict(path), model.predict(path))
    low, high = again.predict_interval(path, 0.5)
    assert (low < high).all()
    evaluated = again.evaluate(path)
    assert metrics(evaluated.predictions, n_bootstrap=0)["r2"].value > 0.95
    facts = described(again)
    assert (facts["task"], facts["classes"]) == ("regression", None)
    assert facts["leave_one_out"] == {
        "rmse": model.estimator.loo_rmse_,
        "log_density": model.estimator.loo_log_density_,
    }


def test_an_estimator_alone_is_evaluated_by_leave_one_out(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    alone = BayesianSVR(tune=None, n_inducing=10, random_state=0).fit(X, X[:, 0])
    alone.save(tmp_path / "m.bayesvm")
    found = metrics(TableModel.load(tmp_path / "m.bayesvm").default_evaluation.predictions, n_bootstrap=0)
    assert found["rmse"].value == pytest.approx(alone.loo_rmse_)
    assert found["log_density"].value == pytest.approx(alone.loo_log_density_)


def test_a_model_of_one_class_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    BayesianOneClassSVM(random_state=0, n_inducing=10).fit(X).save(tmp_path / "m.bayesvm")
    with pytest.raises(TypeError, match="holds a BayesianOneClassSVM"):
        TableModel.load(tmp_path / "m.bayesvm")


def test_a_file_whose_evaluation_is_of_another_kind(model):
    from bayesvm.workflow import EvaluatedRows  # noqa: PLC0415

    with pytest.raises(ValueError, match="for another task than the model"):
        EvaluatedRows.from_state(model.holdout.state(), np.array([0, 1]))


def test_predictions_in_a_file(model, path, tmp_path):
    table = model.table(path)
    done = predict_table(model, table, tmp_path / "p.csv", coverage=0.5)
    found = pa.csv.read_csv(tmp_path / "p.csv")
    low, high = model.predict_interval(path, 0.5)
    np.testing.assert_allclose(found["lower"], low, rtol=1e-9)
    np.testing.assert_allclose(found["upper"], high, rtol=1e-9)
    assert found.column_names[:2] == ["prediction", "std"]
    assert (done.n_rows, done.n_kept) == (240, 240)
    assert np.isnan(done.expected_error)
    with pytest.raises(ValueError, match="abstain is for classification"):
        predict_table(model, table, tmp_path / "q.csv", abstain=0.1)


def test_importance_is_in_the_units_of_the_target(model):
    found = importance(model, model.holdout)
    assert found.names == ("a", "b")
    assert found.change[0] > 30
    assert found.change[1] < 10


def test_a_comparison_of_regressors(path):
    given = {"columns": ["a", "b"], "parameters": PARAMETERS}
    with pytest.warns(ReadingNote):
        found = compare_on(path, "y", rows=200, **given)
    names = [each.name for each in found.competitors]
    assert names == ["BayesianSVR", "SVR", "gradient boosting", "linear regression"]
    assert "linear regression" not in found.best("rmse") | found.best("r2") | found.best("log_density")
    coverages = {each.name: abs(each.metrics["coverage"].value - 0.9) for each in found.competitors}
    assert min(coverages, key=coverages.get) in found.best("coverage")
