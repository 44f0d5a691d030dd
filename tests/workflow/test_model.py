"""A model of a table: saved, loaded, and asked about files and data frames."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import bayesvm
from bayesvm import BayesianLinearSVC
from bayesvm.data.tables.arrow_parts import FilePart
from bayesvm.datasets import people
from bayesvm.evaluation import DoubtHistogram
from bayesvm.workflow import EvaluatedRows, TableModel, fit_table
from bayesvm.workflow.describing import described
from bayesvm.workflow.predicting import predict_table


def frame(n_rows, seed):
    made = people(n_rows, seed)
    return pd.DataFrame(made.columns | {"income": made.income})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    frame(600, 0).to_parquet(folder / "people.parquet")
    frame(1_000, 1).to_parquet(folder / "new.parquet", row_group_size=130)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return fit_table(folder / "people.parquet", "income", estimator=BayesianLinearSVC())


def test_saved_and_loaded_it_is_the_same(model, folder):
    model.save(folder / "m.bayesvm")
    assert isinstance(bayesvm.load(folder / "m.bayesvm"), BayesianLinearSVC)
    again = TableModel.load(folder / "m.bayesvm")
    assert again.recipe == model.recipe
    assert again.card == model.card
    new = folder / "new.parquet"
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    said, before = again.holdout, model.holdout
    for name in ("y", "proba", "classes"):
        np.testing.assert_array_equal(getattr(said.predictions, name), getattr(before.predictions, name))
    np.testing.assert_allclose(said.predictions.epistemic, before.predictions.epistemic, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(said.X, before.X)
    assert said.source == before.source
    assert described(again)["metrics"] == described(model)["metrics"]


def test_files_of_estimators_give_estimators(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    BayesianLinearSVC().fit(X, X[:, 0] > 0).save(tmp_path / "plain.bayesvm")
    assert isinstance(bayesvm.load(tmp_path / "plain.bayesvm"), BayesianLinearSVC)
    table_model = TableModel.load(tmp_path / "plain.bayesvm")
    assert (table_model.card, table_model.holdout) == ({}, None)
    assert table_model.recipe.names == ("x0", "x1")
    named = pd.DataFrame(X, columns=["b", "a"])
    fitted = BayesianLinearSVC().fit(named, X[:, 0] > 0)
    fitted.save(tmp_path / "named.bayesvm")
    said = TableModel.load(tmp_path / "named.bayesvm").predict_proba(named)
    np.testing.assert_allclose(said, fitted.predict_proba(named), rtol=1e-12)


def test_data_frames_and_files_give_the_same(model, folder):
    data = frame(1_000, 1)
    expected = model.predict_proba(folder / "new.parquet")
    for source in (
        data,
        data.drop(columns="income"),
        data[sorted(data.columns)],
        data.astype({"education": "category", "occupation": "category"}),
        pl.from_pandas(data),
        pl.from_pandas(data).with_columns(pl.col("sector").cast(pl.Categorical)),
        pa.Table.from_pandas(data),
    ):
        np.testing.assert_allclose(model.predict_proba(source), expected, rtol=1e-12)
    assert model.predict(data).tolist() == model.classes_[expected.argmax(axis=1)].tolist()
    uncertainty = model.predict_uncertainty(data)
    assert len(uncertainty["epistemic"]) == 1_000
    # The estimator alone takes the columns that the fit was given, in their order.
    given = data[list(model.recipe.inputs)]
    np.testing.assert_allclose(model.estimator.predict_proba(given), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"X has no column 'hours' \(did you mean 'Hours'\?\)"):
        model.estimator.predict(given.rename(columns={"hours": "Hours"}))


def test_evaluated_on_a_table(model, folder, monkeypatch):
    evaluated = model.evaluate(folder / "new.parquet", name="new")
    assert evaluated.source == "new"
    np.testing.assert_allclose(evaluated.predictions.proba, model.predict_proba(folder / "new.parquet"), rtol=1e-12)
    truth = frame(1_000, 1)["income"].to_numpy()
    np.testing.assert_array_equal(model.classes_[evaluated.predictions.y], truth)
    assert len(evaluated.sample) == len(np.unique(evaluated.sample)) <= 400
    doubt = evaluated.predictions.doubt
    assert {doubt.argmin(), doubt.argmax()} <= set(evaluated.sample.tolist())
    monkeypatch.setattr("bayesvm.workflow.model.MOST_EVALUATED", 300)
    some = model.evaluate(folder / "new.parquet", name="new")
    assert some.predictions.n_rows == 300
    assert some.source == "new, a random 300 of its 1,000 rows"
    np.testing.assert_array_equal(some.X, model.table(folder / "new.parquet").rows(some.rows).X)


def test_state_of_evaluated_rows_and_back(model):
    evaluated = model.holdout
    again = EvaluatedRows.from_state(evaluated.state(), model.classes_)
    np.testing.assert_array_equal(again.predictions.proba, evaluated.predictions.proba)
    np.testing.assert_array_equal(again.sample, evaluated.sample)
    np.testing.assert_array_equal(again.rows, evaluated.rows)
    assert again.predictions.weight is None


def test_leave_one_out_predictions_are_those_of_the_fit(model):
    evaluated = EvaluatedRows.left_out(model.estimator)
    np.testing.assert_array_equal(evaluated.predictions.proba, model.estimator.loo_proba_)
    wrong = np.average(~evaluated.predictions.correct, weights=evaluated.predictions.weight_or_ones)
    assert wrong == pytest.approx(model.estimator.loo_error_)
    assert evaluated.X.shape == (0, len(model.recipe.names))


@pytest.mark.parametrize("abstain", [None, 0.05, 0.15])
def test_a_stream_of_predictions_is_what_memory_gives(model, folder, tmp_path, abstain):
    table = model.table(folder / "new.parquet")
    seen = []
    done = predict_table(
        model, table, tmp_path / "p.parquet", abstain=abstain, keep=["id", "commute"], watch=lambda *n: seen.append(n)
    )
    written = pq.read_table(tmp_path / "p.parquet").to_pandas()
    data = frame(1_000, 1)
    p = model.predict_proba(data)
    assert written["id"].tolist() == data["id"].tolist()
    np.testing.assert_array_equal(written["commute"], data["commute"])
    np.testing.assert_allclose(written[["probability_average", "probability_high"]], p, rtol=1e-12)
    doubt = 1 - p.max(axis=1)
    kept = np.ones(1_000, bool)
    if abstain is not None:
        order = np.argsort(doubt)
        mean = np.cumsum(doubt[order]) / np.arange(1, 1_001)
        most = int((mean <= abstain).sum())  # so many of the most certain rows are allowed
        assert abs(int(written["prediction"].notna().sum()) - most) <= 3  # doubts are counted in narrow bins
        kept = written["prediction"].notna().to_numpy()
        histogram = DoubtHistogram()
        histogram.add(doubt)
        np.testing.assert_array_equal(kept, doubt <= histogram.threshold(abstain))
    expected = model.classes_[p.argmax(axis=1)]
    assert written["prediction"][kept].tolist() == expected[kept].tolist()
    assert (done.n_rows, done.n_kept) == (1_000, kept.sum())
    assert done.expected_error == pytest.approx(doubt[kept].mean())
    assert seen[-1] == (1_000, 1_000)
    uncertainty = model.predict_uncertainty(data)
    np.testing.assert_allclose(written["epistemic"], uncertainty["epistemic"], rtol=1e-9, atol=1e-12)


def test_if_nothing_is_certain_enough_all_is_left_open(model, folder, tmp_path):
    done = predict_table(model, model.table(folder / "new.parquet"), tmp_path / "p.csv", abstain=1e-9)
    assert done.n_kept == 0
    assert np.isnan(done.expected_error)
    assert pyarrow.csv.read_csv(tmp_path / "p.csv").num_rows == 1_000


def test_predictions_do_not_replace_their_table(model, folder):
    before = (folder / "new.parquet").read_bytes()
    with pytest.raises(ValueError, match="a file of the table itself"):
        predict_table(model, model.table(folder / "new.parquet"), folder / "new.parquet")
    assert (folder / "new.parquet").read_bytes() == before


def test_a_model_without_a_story_is_still_one_of_a_table(model, tmp_path):
    TableModel(model.estimator).save(tmp_path / "m.bayesvm")
    assert bayesvm.load(tmp_path / "m.bayesvm").recipe_ == model.recipe


def test_what_is_not_a_table_is_reported(model):
    with pytest.raises(TypeError, match="give the path of a table or several paths; got ndarray"):
        model.predict(np.zeros((3, 9)))
    with pytest.raises(TypeError, match="got list"):
        model.predict([{"age": 3}])


def test_rows_are_read_once_for_an_evaluation(model, folder, monkeypatch):
    reads = []
    read = FilePart.read
    monkeypatch.setattr(FilePart, "read", lambda self, *a: reads.append(a) or read(self, *a))
    model.evaluate(folder / "new.parquet")
    assert len(reads) == 1


def test_an_estimator_of_unnamed_features_takes_libsvm_files(tmp_path):
    (tmp_path / "t.libsvm").write_text("\n".join(f"{i % 2} 1:{i % 7} 2:{i % 2 + 0.1}" for i in range(60)))
    table = bayesvm.open_table(tmp_path / "t.libsvm")
    BayesianLinearSVC(random_state=0).fit(table).save(tmp_path / "m.bayesvm")
    evaluated = TableModel.load(tmp_path / "m.bayesvm").evaluate(tmp_path / "t.libsvm")
    assert evaluated.predictions.correct.all()
