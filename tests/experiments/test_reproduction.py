"""The paper's experiments on tiny tables: every competitor runs, every cell is filled, claims follow figures."""

import csv
import sys

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold

pytest.importorskip("experiments", reason="experiments do not come with the source distribution")
pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

import pyarrow as pa
from experiments.competitors.sample_search import SampleSearch
from experiments.registry.method import Method
from experiments.registry.methods import METHODS
from experiments.registry.paper_methods import FIXED, GAMMA, LENGTH, TUNED, a_fifth
from experiments.registry.paper_sets import NAMES, contiguous, shuffled
from experiments.registry.sets import DataSet, Split
from experiments.reproduction import __main__ as command
from experiments.reproduction import big_data, claims, paper, posterior, records, run_time, susy, table
from experiments.runs.measure import measure_alone
from experiments.runs.store import Store
from experiments.runs.sweep import Run, sweep
from pyarrow import parquet

from bayesvm.datasets import waveform
from bayesvm.kernels import RBF


def tiny(n_rows=60, seed=0):
    data = waveform(n_rows, random_state=seed)
    return data.X[:, 8:14], data.y.astype(np.int64)


# ---- the whole walk ----


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """`python -m experiments.reproduction --quick` where all tables are tiny; the folder it ran in."""
    folder = tmp_path_factory.mktemp("reproduction")
    names = [f"{name}_raetsch" for name in NAMES] + ["usps_3v5", "susy_train", "susy_test"]
    for name in names:
        X, y = tiny(800 if name.startswith("waveform") else 60)
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y.astype(np.int8)}
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BAYESVM_DATA", str(folder))
        patch.setattr(sys, "argv", ["reproduction", "--quick"])
        patch.setattr(big_data, "SIZES", (200, 250, 300))
        patch.setattr(run_time, "LADDERS", {name: (make, b[:2]) for name, (make, b) in run_time.LADDERS.items()})
        command.main()
        store = Store(command.STORE)
        size = len(store.records)
        command.main()
        assert len(Store(command.STORE).records) == size, "what is in the store is not run again"
    return folder


def page_of(folder):
    return (folder / command.QUICK_PAGE).read_text()


def test_every_competitor_ran_and_none_failed(walked):
    store = Store(walked / command.STORE)
    assert [(r["method"], r["failure"]) for r in store.records.values() if r["failure"]] == []
    ran = {record["method"] for record in store.records.values()}
    wanted = {name for labels in table.LABELS.values() for name in labels}
    assert wanted - ran == {name for name in wanted if not METHODS[name].is_available()}
    assert wanted == {*FIXED, *TUNED, "default", "hgb"}
    assert {record["n_threads"] for record in store.records.values()} == {1}


def test_all_cells_of_the_page_are_filled(walked):
    page = page_of(walked)
    for line in page.splitlines():
        if "not run" in line:
            assert line.startswith("| S-GPC"), line
    assert "nan" not in page
    for experiment in command.USUAL:
        assert f"## {experiment.TITLE}" in page
    assert f"## {susy.TITLE}" not in page


def test_figures_and_numbers_lie_beside_the_page(walked):
    folder = (walked / command.QUICK_PAGE).with_suffix("")
    for experiment in command.USUAL:
        with (folder / f"{experiment.NAME}.csv").open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) > 1
        assert (folder / f"{experiment.NAME}.svg").exists() == (experiment is not posterior)
        assert f"{folder.name}/{experiment.NAME}.svg" in page_of(walked) or experiment is posterior
    assert not list(folder.glob("*.part"))


def test_every_claim_has_its_line_and_a_verdict(walked):
    lines = page_of(walked).splitlines()
    for claim in claims.CLAIMS:
        (line,) = [line for line in lines if line.startswith(f"| {claim.text} |")]
        assert line.split(" | ")[1].strip("*") in {claims.HOLDS, claims.FAILS, claims.UNTESTED}


# ---- its parts ----


def test_all_methods_have_the_same_fixed_kernel():
    X, _ = tiny()
    ours = RBF(LENGTH, 1.0)(X, X)
    np.testing.assert_allclose(ours, rbf_kernel(X, gamma=GAMMA))
    np.testing.assert_allclose(ours, gp_kernels.RBF(LENGTH)(X))
    assert ours[0, 1] == pytest.approx(np.exp(-np.sum((X[0] - X[1]) ** 2) / 5.0**2))


def test_inducing_points_are_as_many_as_the_paper_says():
    folds = {"breast_cancer": 263, "diabetes": 768, "flare": 144, "german": 1000, "heart": 270, "splice": 2991}
    found = {name: a_fifth(n - n // 10) for name, n in folds.items()}
    assert found == {"breast_cancer": 47, "diabetes": 138, "flare": 26, "german": 100, "heart": 49, "splice": 100}


def test_contiguous_folds_are_slabs_and_forget_the_last_rows():
    X, y = np.arange(57.0)[:, None], np.resize([1, -1], 57)
    splits = [contiguous(lambda: (X, y)).split(fold) for fold in range(10)]
    tested = np.concatenate([split.X_test[:, 0] for split in splits])
    np.testing.assert_array_equal(tested, np.arange(50))
    assert all(len(split.y_train) == 52 for split in splits)


def test_shuffled_folds_test_every_row_once_and_keep_the_shares():
    X, y = np.arange(60.0)[:, None], np.repeat([1, -1], [20, 40])
    splits = [shuffled(lambda: (X, y)).split(fold) for fold in range(10)]
    np.testing.assert_array_equal(np.sort(np.concatenate([split.X_test[:, 0] for split in splits])), X[:, 0])
    assert {int(np.sum(split.y_test == 1)) for split in splits} == {2}


def test_a_search_on_a_sample_chooses_as_a_grid_search_there():
    X, y = tiny(120)
    grid = {"C": [1e-4, 1.0, 1e4]}
    found = SampleSearch(LogisticRegression(), grid, max_rows=200, random_state=0).fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    wanted = GridSearchCV(LogisticRegression(), grid, scoring="neg_log_loss", cv=folds).fit(X, y)
    assert found.best_params_ == wanted.best_params_
    np.testing.assert_array_equal(found.predict_proba(X), wanted.predict_proba(X))
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))
    few = SampleSearch(LogisticRegression(), grid, max_rows=50, random_state=0).fit(X, y)
    assert few.classifier_.get_params()["C"] == few.best_params_["C"]


def test_what_is_not_installed_is_skipped_with_a_message(tmp_path, capsys):
    missing = Method(lambda _n, _seed: None, "1", needs="no_such_module")
    sweep([Run("absent", missing, "tiny", DataSet(lambda _: None), 0)], Store(tmp_path / "s"))
    assert "absent is skipped: no_such_module is not installed" in capsys.readouterr().out


def test_what_cannot_be_downloaded_is_skipped_with_its_reason(tmp_path, capsys):
    def split(_):
        raise ConnectionError("no network; put it there by hand")

    run = Run("logistic", METHODS["logistic"], "far", DataSet(split), 0)
    sweep([run], Store(tmp_path / "s"))
    assert "far is skipped: no network; put it there by hand" in capsys.readouterr().out


def test_a_run_of_its_own_process_tells_its_memory():
    X, y = tiny()
    record = measure_alone(METHODS["logistic"], DataSet(lambda _: Split(X, y, X, y)), 0)
    assert record["failure"] is None
    assert 20 < record["peak_megabytes_before"] <= record["peak_megabytes"] < 5000
    assert record["n_threads"] >= 1


def test_the_newest_record_counts(tmp_path):
    X, y = tiny()
    run = Run("logistic", METHODS["logistic"], "tiny", DataSet(lambda _: Split(X, y, X, y)), 0)
    store = Store(tmp_path / "s")
    sweep([run], store)
    (record,) = store.records.values()
    store.add(record | {"version": "older", "when": "2000-01-01", "error": 1.0})
    assert records.found(store, [run]) == [record]


def test_claims_follow_the_figures():
    def lines(seconds_of_ecm):
        return [
            {"protocol": "contiguous", "set": "heart", "method": method, "fit_seconds": seconds}
            for method, seconds in (("sbsvm", 1.0), ("ecm", seconds_of_ecm))
        ]

    claim = claims.CLAIMS[0]
    assert claim.judge(lines(30.0))[0] == claims.HOLDS
    assert claim.judge(lines(2.0))[0] == claims.FAILS
    verdicts = {how for _, how, _ in claims.judged({})}
    assert verdicts == {claims.UNTESTED}


def test_time_to_arrive_is_that_of_the_first_fit_near_the_best():
    points = [{"fit_seconds": s, "log_loss": loss} for s, loss in ((1, 0.5), (2, 0.2015), (4, 0.2), (8, 0.21))]
    assert run_time.arrival(points) == 2


def test_the_paper_is_quoted_for_all_its_sets():
    assert set(paper.TABLE) == set(NAMES)
    assert all(set(row) == set(paper.METHODS) for row in paper.TABLE.values())
