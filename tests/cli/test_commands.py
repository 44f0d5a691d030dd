"""Every command does what its help says, and prints its result as text and as JSON."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import bayesvm as library
from bayesvm.datasets import catalogue
from bayesvm.datasets.catalogue import CATALOGUE
from bayesvm.workflow import TableModel
from tests.cli.conftest import read_csv, some_people, write_csv
from tests.cli.driver import bayesvm, process

METRICS = ["error", "brier", "log_loss", "auc", "calibration_error"]


def test_fit_prints_its_result(home):
    out, err = (home / "fit.out").read_text(), (home / "fit.err").read_text()
    assert "400 rows, 8 columns (they become 2" in out
    assert re.search(r"left out: id \(nearly all texts are distinct \(400 in 400 rows\): an identifier", out)
    assert "5-fold cross-validation of people.csv (400 rows)" in out
    assert "bayesvm predict people.bayesvm new.csv" in out
    assert "bayesvm:" in err


@pytest.mark.slow
def test_fit_as_a_process_prints_json(home, tmp_path):
    done = process("fit", home / "people.csv", "-t", "income", "--linear", "-o", "m.bayesvm", "--json", folder=tmp_path)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert list(told["metrics"]) == METRICS
    assert told["model"] == "m.bayesvm"
    assert told["n_rows"] == told["n_train"] == told["n_holdout"] == 400
    assert told["classes"] == ["average", "high"]
    assert list(told["left_out"]) == ["id"]
    assert (tmp_path / "m.bayesvm").read_bytes()[-1000:] == (home / "linear.bayesvm").read_bytes()[-1000:]


def test_evaluate_agrees_with_scikit_learn(home):
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score  # noqa: PLC0415

    done = bayesvm("evaluate", "people.bayesvm", "new.csv", "--json", "-q", folder=home)
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    truth = some_people(300, 1)["income"]
    p = TableModel.load(home / "people.bayesvm").predict_proba(home / "new.csv")[:, 1]
    expected = {
        "error": np.mean((p > 0.5) != (truth == "high")),
        "brier": brier_score_loss(truth, p, pos_label="high"),
        "log_loss": log_loss(truth == "high", p),
        "auc": roc_auc_score(truth == "high", p),
    }
    found = {name: told["metrics"][name]["value"] for name in expected}
    assert found == pytest.approx(expected)
    assert told["n_rows"] == 300
    assert told["risk_coverage"][0]["error"] == pytest.approx(expected["error"])
    assert "Brier score" in bayesvm("evaluate", "people.bayesvm", "new.csv", folder=home).out


def test_evaluate_reports_progress_for_many_rows(home, monkeypatch):
    words = ("evaluate", "linear.bayesvm", "new.csv")
    few = bayesvm(*words, folder=home)
    assert few.err == ""
    monkeypatch.setattr("bayesvm.cli.evaluate.MANY", 299)
    many = bayesvm(*words, folder=home)
    assert many.err == "predicting 300 rows …\nintervals from resamples of 300 rows …\n"
    assert many.out == few.out
    assert bayesvm(*words, "-q", folder=home).err == ""


@pytest.mark.slow
def test_predict_from_stdin_to_stdout_as_a_process(home):
    done = process(
        "predict", "people.bayesvm", "-", "-q", "--keep", "id", folder=home, stdin=(home / "new.csv").read_bytes()
    )
    assert (done.code, done.err) == (0, "")
    table = read_csv(done.out)
    assert table.column_names[:4] == ["id", "prediction", "probability_average", "probability_high"]
    assert table.column_names[4:] == ["total", "aleatoric", "epistemic", "lower", "upper"]
    assert table["id"].to_pylist() == some_people(300, 1)["id"].tolist()
    expected = TableModel.load(home / "people.bayesvm").predict_proba(home / "new.csv")
    np.testing.assert_allclose(table["probability_high"].to_numpy(), expected[:, 1], rtol=1e-12)


def test_predictions_do_not_depend_on_the_number_of_threads(home):
    outs = [bayesvm("predict", "people.bayesvm", "new.csv", "-q", "-j", jobs, folder=home).out for jobs in (1, 2)]
    assert outs[0] == outs[1]


def test_the_same_seed_gives_the_same_model_whatever_the_number_of_threads(home, tmp_path):
    for jobs in (1, 2):
        words = ["fit", home / "people.csv", "-t", "income", "--linear", "-q", "-j", jobs, "-o", f"{jobs}.bayesvm"]
        assert bayesvm(*words, folder=tmp_path).code == 0
    said = [bayesvm("predict", f"{jobs}.bayesvm", home / "new.csv", "-q", folder=tmp_path).out for jobs in (1, 2)]
    assert said[0] == said[1]
    words[-1] = "other.bayesvm"
    assert bayesvm(*words, "--seed", 1, folder=tmp_path).code == 0
    first, other = (TableModel.load(tmp_path / f"{name}.bayesvm").holdout for name in (1, "other"))
    assert not np.array_equal(first.predictions.proba, other.predictions.proba)  # other folds


def test_abstain_keeps_the_stated_and_nearly_the_true_error(home, tmp_path):
    words = ["predict", "people.bayesvm", "new.csv", "--abstain", "0.1", "-o", tmp_path / "p.parquet", "--json"]
    done = bayesvm(*words, folder=home)
    told = json.loads(done.out)
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet")
    kept = np.array([said is not None for said in table["prediction"].to_pylist()])
    doubt = 1 - np.maximum(table["probability_average"].to_numpy(), table["probability_high"].to_numpy())
    assert (told["n_rows"], told["n_kept"]) == (300, kept.sum())
    assert 50 < kept.sum() < 300
    assert told["expected_error"] == pytest.approx(doubt[kept].mean())
    assert doubt[kept].mean() <= 0.1
    assert doubt[kept].max() < doubt[~kept].min()
    truth = some_people(300, 1)["income"]
    wrong = np.array(table["prediction"].to_pylist(), object)[kept] != truth[kept]
    assert wrong.mean() <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / kept.sum())


def test_predict_without_uncertainty_writes_fewer_columns(home):
    done = bayesvm("predict", "people.bayesvm", "new.csv", "-q", "--no-uncertainty", folder=home)
    assert read_csv(done.out).column_names == ["prediction", "probability_average", "probability_high"]


@pytest.mark.slow
def test_compare_evaluates_all_on_the_same_rows(home):
    words = ["compare", "people.csv", "-t", "income", "--test", "new.csv", "--rows", 250]
    done = process(*words, "--json", folder=home)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    names = [each["name"] for each in told["competitors"]]
    assert names == ["BayesianSVC", "SVC + Platt", "Nystroem + logistic regression", "gradient boosting"]
    assert {each["n_rows"] for each in told["competitors"]} == {250}
    assert (told["n_train"], told["n_test"], told["source"]) == (250, 250, "new.csv")
    assert all(0.05 < each["metrics"]["error"]["value"] < 0.5 for each in told["competitors"])
    assert "training SVC + Platt" in done.err


def test_compare_marks_the_best(monkeypatch, home):
    monkeypatch.setattr("bayesvm.evaluation.peers.PEERS", {})
    monkeypatch.setattr("bayesvm.workflow.comparing.PEERS", {})
    done = bayesvm("compare", "people.csv", "-t", "income", "-q", folder=home)
    assert done.err == ""
    assert done.out.count("*") == 6  # ours, in every column, and the line that explains it
    assert re.search(r"3(19|20|21) training rows", done.out)


def test_inspect_shows_the_content_of_the_file(home):
    done = bayesvm("inspect", "people.bayesvm", folder=home)
    for words in (
        "people.bayesvm: BayesianSVC",
        "format 2",
        " of 400 rows of people.csv",
        "target income; classes: average, high",
        "left out: id",
        "inducing points: ",
        "scaling: ",
        "leave-one-out: ",
        "Importance of the columns",
        "Tuning: ",
    ):
        assert words in done.out
    told = json.loads(bayesvm("inspect", "people.bayesvm", "--json", folder=home).out)
    assert told["file"] == {
        "path": "people.bayesvm",
        "bytes": (home / "people.bayesvm").stat().st_size,
        "format_version": 2,
    }
    columns = {column["name"]: column for column in told["columns"]}
    assert columns["education"]["kind"] == "category"
    assert set(columns["education"]["categories"]) == {"none", "school", "college", "bachelor", "master"}
    assert columns["commute"]["missing"] == "completed from the other columns"
    assert columns["occupation"]["missing"] == "a category of its own"
    assert list(told["importance"].values()) == sorted(told["importance"].values(), reverse=True)
    assert set(told["importance"]) == set(columns)


@pytest.mark.parametrize("linear", [True, False])
def test_inspect_reads_files_of_estimators(tmp_path, linear):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = (library.BayesianLinearSVC if linear else library.BayesianSVC)(random_state=0)
    model.fit(X, rng.integers(0, 3, 60)).save(tmp_path / "plain.bayesvm")
    done = bayesvm("inspect", "plain.bayesvm", folder=tmp_path)
    assert "an estimator alone, without a table; classes: 0, 1, 2" in done.out
    assert json.loads(bayesvm("inspect", "plain.bayesvm", "--json", folder=tmp_path).out)["card"] == {}


def test_fit_without_local_models(tmp_path):
    rng = np.random.default_rng(0)
    write_csv(tmp_path / "t.csv", {"a": rng.normal(size=60), "y": rng.integers(0, 2, 60)})
    for option, local in (("--local", "auto"), ("--no-local", False)):
        done = bayesvm("fit", "t.csv", "-t", "y", option, "-o", "m.bayesvm", "-q", folder=tmp_path)
        assert done.code == 0, done.err
        assert library.load(tmp_path / "m.bayesvm").local == local


def test_predict_takes_a_model_of_an_estimator(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = library.BayesianLinearSVC().fit(X, X[:, 0] > 0)
    model.save(tmp_path / "plain.bayesvm")
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="x0,x1", comments="")
    done = bayesvm("predict", "plain.bayesvm", "rows.csv", "-q", folder=tmp_path)
    np.testing.assert_allclose(
        read_csv(done.out)["probability_True"].to_numpy(), model.predict_proba(X)[:, 1], rtol=1e-9
    )


def test_datasets_list_has_every_table(home):
    done = bayesvm("datasets", "list", folder=home)
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == list(CATALOGUE)
    told = json.loads(bayesvm("datasets", "list", "--json", folder=home).out)["datasets"]
    assert {each["name"]: each["download_megabytes"] for each in told}["people"] is None


@pytest.mark.parametrize("name", [name for name, entry in CATALOGUE.items() if entry.megabytes is None])
def test_datasets_fetch_writes_what_the_list_says(tmp_path, name):
    entry = CATALOGUE[name]
    done = bayesvm("datasets", "fetch", name, folder=tmp_path)
    assert f"bayesvm fit {name}.parquet --target {entry.target}" in done.out
    table = pyarrow.parquet.read_table(tmp_path / f"{name}.parquet")
    assert table.num_rows == entry.n_rows
    assert table.num_columns == entry.n_columns + 1
    assert len(set(table[entry.target].to_pylist())) == entry.n_classes
    done = bayesvm("datasets", "fetch", name, "--rows", 40, "--seed", 3, "-o", "some.csv", "-q", folder=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert pyarrow.csv.read_csv(tmp_path / "some.csv").num_rows == 40


def test_datasets_fetch_refuses_what_there_is_not(tmp_path):
    assert "there are people, waveform" in bayesvm("datasets", "fetch", "nope", folder=tmp_path).err
    assert (
        "iris has 150 rows, fewer than the requested 151"
        in bayesvm("datasets", "fetch", "iris", "--rows", 151, folder=tmp_path).err
    )
    assert bayesvm("datasets", "fetch", "iris", "--rows", 0, folder=tmp_path).code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_large_download_is_announced(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "bayesvm.datasets.catalogue.load_rows", lambda path, a, b: (np.zeros((b - a, 18), "f4"), np.ones(b - a, "i1"))
    )
    fake = replace(CATALOGUE["susy"], make=partial(catalogue._collisions, lambda: "nowhere"))
    monkeypatch.setitem(CATALOGUE, "susy", fake)
    done = bayesvm("datasets", "fetch", "susy", "--rows", 300_000, folder=tmp_path)
    assert "susy: a download of 879 MB" in done.err
    assert pyarrow.parquet.read_metadata(tmp_path / "susy.parquet").num_rows == 300_000


@pytest.mark.slow
def test_demo_goes_all_the_way(tmp_path):
    done = bayesvm("demo", "--rows", 500, "--out", "out", "-q", folder=tmp_path)
    assert done.code == 0, done.err
    for words in (
        "$ bayesvm fit",
        "$ bayesvm evaluate",
        "$ bayesvm predict",
        "true probabilities",
        "best in expectation",
        "Nystroem + logistic",
    ):
        assert words in done.out
    assert {"people.parquet", "people.bayesvm", "predictions.csv", "report.html"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }


def test_version(tmp_path):
    assert bayesvm("--version", folder=tmp_path).out == f"bayesvm {library.__version__}\n"


def test_predict_with_a_coverage_writes_sets(home):
    done = bayesvm("predict", "people.bayesvm", "new.csv", "-q", "--no-uncertainty", "--coverage", 0.95, folder=home)
    table = read_csv(done.out)
    assert table.column_names == ["prediction", "probability_average", "probability_high", "set"]
    written = np.array(table["set"].to_pylist(), str)
    sets = TableModel.load(home / "people.bayesvm").predict_set(home / "new.csv", 0.95)
    classes = np.array(["average", "high"])
    assert written.tolist() == ["|".join(classes[inside]) for inside in sets]
    truth = some_people(300, 1)["income"]
    inside = np.mean([name in each.split("|") for name, each in zip(truth, written, strict=True)])
    assert inside == pytest.approx(0.95, abs=0.05)
    wrong = bayesvm("predict", "people.bayesvm", "new.csv", "-q", "--coverage", 95, folder=home)
    assert wrong.code == 1
    assert "coverage must be strictly between 0 and 1" in wrong.err
