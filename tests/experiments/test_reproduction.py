"""The paper's experiments on tiny tables: every competitor runs, every cell is filled, claims follow figures."""

import csv
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold

pytest.importorskip("experiments", reason="experiments do not come with the source distribution")
pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

import pyarrow as pa
from experiments.competitors.sample_search import SampleSearch
from experiments.registry import paper_methods
from experiments.registry.method import Method, ours, written_here
from experiments.registry.methods import METHODS
from experiments.registry.paper_methods import FIXED, TUNED, a_fifth
from experiments.registry.paper_sets import NAMES, contiguous, generated, shuffled
from experiments.registry.sets import DataSet, Split
from experiments.reproduction import __main__ as command
from experiments.reproduction import (
    auto_tuning,
    big_data,
    claims,
    inducing_points,
    page,
    paper,
    posterior,
    records,
    run_time,
    susy,
    table,
)
from experiments.runs import memory
from experiments.runs.measure import _measure_here, measure_alone
from experiments.runs.store import Store
from experiments.runs.sweep import Run, sweep
from pyarrow import parquet

from bayesvm.datasets import waveform
from bayesvm.kernels import RBF

pytestmark = pytest.mark.slow


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
        X, y = tiny({"waveform_raetsch": 800, "usps_3v5": 100}.get(name, 60))
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y.astype(np.int8)}
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BAYESVM_DATA", str(folder))
        patch.setattr(sys, "argv", ["reproduction", "--quick"])
        patch.setattr(big_data, "SIZES", (200, 250, 300))
        patch.setattr(run_time, "LADDERS", {name: (make, b[:2]) for name, (make, b) in run_time.LADDERS.items()})
        # A process for each run takes seconds, and has tests of its own; searches need not be long to be searches.
        patch.setattr("experiments.runs.sweep.measure_alone", partial(_measure_here, threads=1))
        patch.setattr(paper_methods, "SampleSearch", partial(SampleSearch, n_folds=2))
        patch.setattr(paper_methods, "GAMMAS", paper_methods.GAMMAS[:2])
        patch.setitem(paper_methods.KERNELS, "length_scale", paper_methods.LENGTHS[:2])
        command.main()
        store = Store(command.STORE)
        size = len(store.records)
        patch.setattr(sys, "argv", ["reproduction", "--quick", "--no-page"])
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


def test_figures_and_csv_files_are_beside_the_page(walked):
    folder = (walked / command.QUICK_PAGE).with_suffix("")
    for experiment in command.USUAL:
        with (folder / f"{experiment.NAME}.csv").open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) > 1
        assert (folder / f"{experiment.NAME}.svg").exists() == (experiment is not posterior)
        assert f"{folder.name}/{experiment.NAME}.svg" in page_of(walked) or experiment is posterior
    assert not list(folder.glob("*.part"))


def test_every_claim_has_its_line_and_a_quick_run_evaluates_none(walked):
    lines = page_of(walked).splitlines()
    for claim in claims.CLAIMS:
        (line,) = [line for line in lines if line.startswith(f"| {claim.text} |")]
        assert line.split(" | ")[1] == "needs the full run"
    assert "A first look" in page_of(walked)


def test_a_page_can_be_written_at_any_time(walked, tmp_path):
    """A run may be stopped anywhere, and tables may be missing: what is there is shown, nothing breaks."""
    everything = list(Store(walked / command.STORE).records.values())
    for kept in ([], everything[:1], everything[::7], [r for r in everything if "susy" not in r["set"]]):
        store = Store(tmp_path / f"{len(kept)}.jsonl")
        store.records = dict(enumerate(kept))
        page.write(command.EXPERIMENTS.values(), store, tmp_path / "page.md", quick=True)
        assert "## The paper's claims" in (tmp_path / "page.md").read_text()
    broken = [record | {"failure": "RuntimeError: it diverged"} for record in everything]
    store.records = dict(enumerate(broken))
    page.write(command.EXPERIMENTS.values(), store, tmp_path / "page.md", quick=True)
    assert "FAILED: gpc on heart/contiguous, 2 runs: RuntimeError: it diverged" in (tmp_path / "page.md").read_text()


def test_lines_of_an_earlier_page_stay_where_nothing_was_measured_again(walked, tmp_path):
    everything = list(Store(walked / command.STORE).records.values())
    store = Store(tmp_path / "empty.jsonl")

    def written(records, experiment=table):
        store.records = dict(enumerate(records))
        page.write([experiment], store, tmp_path / "page.md", quick=False)
        with (tmp_path / "page" / f"{experiment.NAME}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    first = written([record | {"when": "2020-01-01"} for record in everything])
    assert {line["measured"] for line in first} == {"2020-01-01"}
    ours = [record | {"when": "2021-02-03", "error": 0.25} for record in everything if record["method"] == "default"]
    second = written(ours)
    assert [line["method"] for line in second] == [line["method"] for line in first]
    for before, after in zip(first, second, strict=True):
        again = after["method"] == "default"
        assert (after["measured"] == "2021-02-03") == again
        assert (float(after["error"]) == 0.25) if again else (after == before)
    text = (tmp_path / "page.md").read_text()
    assert "Measured 2020-01-01 on" in text
    assert "; 2021-02-03 on" in text
    assert written([]) == second


# ---- its parts ----


def test_all_methods_have_the_same_fixed_kernel():
    X, _ = tiny()
    wanted = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 5.0**2)  # the paper's, θ = 5

    def kernel_of(model):
        known = model.get_params()
        gamma = next((value for name, value in known.items() if name.endswith("gamma")), None)
        if gamma is not None:
            return rbf_kernel(X, gamma=gamma)
        if "length_scale" in known:
            return RBF(known["length_scale"], known["variance"])(X, X)
        return known["kernel"](X, X)

    for name, method in FIXED.items():
        if not name.startswith("linear"):
            np.testing.assert_allclose(kernel_of(method.make(500, 0)), wanted, err_msg=name)


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
    np.testing.assert_allclose(found.predict_proba(X), wanted.predict_proba(X), rtol=1e-6)
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))
    few = SampleSearch(LogisticRegression(), grid, max_rows=50, random_state=0).fit(X, y)
    assert few.classifier_.get_params()["C"] == few.best_params_["C"]


def test_what_is_not_installed_is_skipped_with_a_message(tmp_path, capsys):
    missing = Method(lambda _n, _seed: None, "1", needs="no_such_module")
    sweep([Run("absent", missing, "tiny", DataSet(lambda _: None), 0)], Store(tmp_path / "s"))
    assert "no_such_module is not installed (see experiments/README.md), skipped: absent" in capsys.readouterr().out


def test_what_cannot_be_downloaded_is_skipped_with_its_reason(tmp_path, capsys):
    def split(_):
        raise ConnectionError("no network; put it there by hand")

    run = Run("logistic", METHODS["logistic"], "far", DataSet(split), 0)
    sweep([run], Store(tmp_path / "s"))
    assert "far is skipped: no network; put it there by hand" in capsys.readouterr().out


def test_a_set_that_must_be_alone_and_cannot_be_had_is_skipped_too(tmp_path, capsys):
    def split(_):
        raise ValueError("its checksum is wrong")

    run = Run("logistic", METHODS["logistic"], "far", DataSet(split, alone=True), 0)
    sweep([run, replace(run, seed=1)], Store(tmp_path / "s"))
    assert capsys.readouterr().out.count("far is skipped: its checksum is wrong") == 1


def test_failures_can_be_tried_again(tmp_path):
    X, y = tiny()
    run = Run("logistic", METHODS["logistic"], "tiny", DataSet(lambda _: Split(X, y, X, y)), 0)
    store = Store(tmp_path / "s")
    sweep([run], store)
    store.add(store.records[run.key] | {"failure": "out of luck"})
    sweep([run], store)
    assert store.records[run.key]["failure"] == "out of luck"
    sweep([run], store, retry=True)
    assert store.records[run.key]["failure"] is None


class Greedy(LogisticRegression):
    """Takes 200 MB for a moment."""

    def fit(self, X, y):
        np.ones(25_000_000)
        return super().fit(X, y)


@pytest.mark.skipif(not memory.REFERENCES.exists(), reason="elsewhere the peak is that of the whole process")
def test_a_run_of_its_own_process_reports_its_memory():
    X, y = tiny()
    greedy = Method(lambda _n, _seed: Greedy(), "1")
    held = np.ones(40_000_000)  # what the parent holds, 320 MB, is not the child's
    ours = next(run for run in big_data.runs() if run.data.alone)
    modest = measure_alone(ours.how, generated(200), 0)
    much = measure_alone(greedy, DataSet(lambda _: Split(X, y, X, y)), 0)
    assert modest["failure"] is None
    assert 20 < modest["peak_megabytes_before"] <= modest["peak_megabytes"] < 20 + held.nbytes / 2**20
    assert 150 < much["peak_megabytes"] - much["peak_megabytes_before"] < 250


def test_the_newest_record_counts(tmp_path):
    X, y = tiny()
    run = Run("logistic", METHODS["logistic"], "tiny", DataSet(lambda _: Split(X, y, X, y)), 0)
    store = Store(tmp_path / "s")
    sweep([run], store)
    (record,) = store.records.values()
    store.add(record | {"version": "older", "when": "2000-01-01", "error": 1.0})
    assert records.found(store, [run]) == [record]


# ---- claims ----


def table_lines(**seconds):
    """All sets alike; S-BSVM has the best error and Brier score unless `loser` is set."""
    loser = seconds.pop("loser", None)
    return [
        {"protocol": "contiguous", "set": name, "method": method, "fit_seconds": seconds.get(method, 1.0)}
        | dict.fromkeys(("error", "brier"), 0.3 if method == loser else 0.2)
        for name in NAMES
        for method in paper.METHODS
    ]


def ladder_lines(**changes):
    """Every method arrives after one second at an error of .1; changes are by method: (seconds, log loss)."""
    return [
        {"method": method, "budget": 1, "n_train": 10, "failure": None}
        | dict.fromkeys(("error", "brier", "log_loss"), changes.get(method, (1.0, 0.1))[1])
        | {"fit_seconds": changes.get(method, (1.0, 0.1))[0]}
        for method in run_time.LADDERS
    ]


def tuning_lines(found_loss=0.2, steps=3, seconds=1.0):
    methods = (auto_tuning.AS_IN_THE_PAPER, auto_tuning.FROM_NEAR)
    grid = {"method": "grid, augmented bound", "theta": 5.0, "log_loss": 0.2, "fit_seconds": 0.1}
    found = {"theta": 5.0, "log_loss": found_loss, "fit_seconds": seconds, "steps": steps}
    return [{"set": name} | line for name in NAMES for line in (grid, *({"method": m} | found for m in methods))]


def point_lines(few=0.1, many=0.1, seconds=1.0, converged=True):
    lines = [
        {"how": how, "points": size, "folds": 10, "fit_seconds": seconds if size == 640 else 0.1}
        | {"error": 0.2 if how == "random" else few if size <= 14 else many}
        for how in inducing_points.WAYS
        for size in inducing_points.SIZES
    ]
    return [*lines, {"how": "full mixture alone", "points": 14, "converged": converged, "fit_seconds": 1.0}]


def susy_lines(auc=0.86, theta=5.0, seconds=60.0):
    models = (big_data.AS_IN_THE_PAPER, big_data.DEFAULT_64, big_data.TUNED_AS_IN_THE_PAPER)
    figures = {"auc": auc, "brier": 0.15, "theta": theta, "n_train": 10, "fit_seconds": 1.0}
    big = {"set": "generated", "method": big_data.TWO_PASSES, "n_train": 5_000_000, "fit_seconds": seconds}
    return [*({"set": big_data.SUSY, "method": m} | figures for m in models), big | {"above_bayes": 0.01}]


PAPERS = run_time.REFERENCE
JUDGED = {  # the beginning of the claim: figures with which it holds, figures with which it does not
    "S-BSVM up to 22 times faster": (table_lines(ecm=15.0), table_lines(ecm=5.0)),
    "up to 700 times faster than GPC": (table_lines(gpc=400.0), table_lines(gpc=40.0)),
    "S-BSVM best in error": (table_lines(loser="gpc"), table_lines(loser="sbsvm")),
    "the SVM with Platt scaling is the fastest": (table_lines(svm_platt=0.1), table_lines(svm_platt=2.0)),
    "S-BSVM around 10 times faster than ECM": (ladder_lines(ECM=(9.0, 0.1)), ladder_lines(ECM=(2.0, 0.1))),
    "with slightly better predictions": (ladder_lines(ECM=(1.0, 0.11)), ladder_lines(ECM=(1.0, 0.09))),
    "B-BSVM is the slowest": (ladder_lines(**{"B-BSVM": (9.0, 0.1)}), ladder_lines(ECM=(9.0, 0.1))),
    "GPC around 5000 times": (ladder_lines(GPC=(3000.0, 0.1)), ladder_lines(GPC=(30.0, 0.1))),
    "S-GPC has a run time": (ladder_lines(), ladder_lines(**{"S-GPC, natural gradients": (9.0, 0.1)})),
    "S-GPC is very unstable": (ladder_lines(**{PAPERS: (1.0, 0.05)}), ladder_lines()),
    "the SVM (libsvm) has a run time": (ladder_lines(), ladder_lines(**{"SVM + Platt": (9.0, 0.1)})),
    "tuning by ELBO gradients finds": (tuning_lines(), tuning_lines(found_loss=0.21)),
    "in only 5 hyperparameter steps": (tuning_lines(), tuning_lines(steps=6)),
    "0.3 s against 188 s": (tuning_lines(), tuning_lines(seconds=10.0)),
    "k-means is much better": (point_lines(), point_lines(few=0.19)),
    "1% of the rows": (point_lines(), point_lines(many=0.05)),
    "and decrease the run time": (point_lines(), point_lines(seconds=0.1)),
    "the Gaussian mixture fails": (point_lines(converged=False), point_lines()),
    "SUSY: AUC 0.84": (susy_lines(), susy_lines(auc=0.82)),
    "SUSY: tuning finds": (susy_lines(), susy_lines(theta=9.0)),
    "5,000,000 rows in 10 minutes": (susy_lines(), susy_lines(seconds=900.0)),
}
NEVER_JUDGED = ("similar results of inducing points", "a deep net reaches")


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.text)
def test_a_claim_follows_the_figures(claim):
    if claim.text.startswith(NEVER_JUDGED):
        return
    (cases,) = [lines for beginning, lines in JUDGED.items() if claim.text.startswith(beginning)]
    assert [claim.judge(lines)[0] for lines in cases] == [claims.HOLDS, claims.FAILS]


def test_a_method_that_failed_is_unstable():
    (claim,) = [claim for claim in claims.CLAIMS if "unstable" in claim.text]
    lines = ladder_lines()
    lines += [line | {"failure": "it diverged"} for line in lines if line["method"].startswith("S-GPC")]
    assert claim.judge(lines)[0] == claims.HOLDS


def test_what_was_not_run_is_not_judged():
    assert {how for _, how, _ in claims.judged({})} == {claims.UNTESTED}
    without = [line for line in table_lines(ecm=15.0) if line["set"] != "waveform"]
    assert next(iter(claims.judged({"table": without})))[1] == claims.UNTESTED


def test_time_to_arrive_is_that_of_the_first_fit_near_the_best():
    points = [{"fit_seconds": s, "brier": score} for s, score in ((1, 0.5), (2, 0.2015), (4, 0.2), (8, 0.21))]
    assert run_time.arrival(points) == 2


def test_calibration_errors_of_folds_are_pooled():
    folds = [{"calibration_sums": [1.0, -0.5], "n_test": 10}, {"calibration_sums": [-1.0, -0.5], "n_test": 10}]
    assert table.pooled_calibration_error(folds) == pytest.approx(1 / 20)


def test_options_choose_among_runs():
    runs = table.runs()
    chosen = [run for run in runs if command.is_meant(run, SimpleNamespace(needs="gpytorch", match="heart/contiguous"))]
    assert {run.method for run in chosen} == {"sgpc_natural", "sgpc_adam"}
    assert len(chosen) == 20
    assert all(command.is_meant(run, SimpleNamespace(needs="", match="")) for run in runs)


def test_a_version_follows_the_recipe_at_every_size():
    def few(n_rows):
        return min(n_rows, 50)

    def other(n_rows):
        return min(n_rows, 60)

    assert ours(n_inducing=few).version == ours(n_inducing=few).version
    assert ours(n_inducing=few).version != ours(n_inducing=other).version
    assert ours(n_inducing=few).version.partition("-")[0] == ours(tune=None).version.partition("-")[0]
    of_modules = {written_here(lambda _n, _seed: "a recipe", module).version for module in ("ecm", "gibbs")}
    assert len(of_modules) == 2


def test_the_paper_is_quoted_for_all_its_sets():
    assert set(paper.TABLE) == set(NAMES)
    assert all(set(row) == set(paper.METHODS) for row in paper.TABLE.values())
