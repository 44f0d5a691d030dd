"""A request to stop ends a fit between two blocks with a usable model; without the option, Ctrl-C is Python's own."""

import os
import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.exceptions import ConvergenceWarning

from bayesvm import BayesianLinearSVC, BayesianSVC, open_table, stop_on_interrupt
from bayesvm.data.memory import MemorySource
from bayesvm.data.workers import Workers
from bayesvm.datasets import waveform
from bayesvm.inference import evidence, leaving_out, linear_model, training

DATA = waveform(1_500, random_state=0)
THREE = np.where(DATA.X[:, 3] > 1.5, 2, (DATA.y > 0).astype(int))

FITS = {
    "batch": (lambda: BayesianSVC(n_inducing=20, tune=None, inference="batch", tol=1e-7, random_state=0), DATA.y),
    "growing subsets": (lambda: BayesianSVC(n_inducing=20, tune=None, tol=1e-6, random_state=0), DATA.y),
    "minibatches": (
        lambda: BayesianSVC(
            n_inducing=20, tune=None, inference="stochastic", batch_size=500, max_iter=8, random_state=0
        ),
        DATA.y,
    ),
    "tuned": (lambda: BayesianSVC(n_inducing=20, random_state=0), DATA.y),
    "elbo": (lambda: BayesianSVC(n_inducing=20, tune="elbo", random_state=0), DATA.y),
    "linear": (lambda: BayesianLinearSVC(random_state=0, tol=1e-7), DATA.y),
    "mean field": (lambda: BayesianLinearSVC(covariance="diagonal", max_iter=6, random_state=0), THREE),
}


@pytest.fixture(autouse=True)
def _as_in_a_terminal():
    """A process that was started in the background ignores Ctrl-C."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


def press():
    os.kill(os.getpid(), signal.SIGINT)


class Blocks:
    """Counts the blocks that are read, and presses Ctrl-C before some of them."""

    def __init__(self, monkeypatch, *at):
        self.read, self.after = 0, 0
        block = MemorySource._block

        def counted(source, *given):
            self.read += 1
            self.after += bool(self.read > min(at, default=np.inf))
            if self.read in at:
                press()
            return block(source, *given)

        monkeypatch.setattr(MemorySource, "_block", counted)


def reported(model):
    return model.predict_proba(DATA.X[:200]).tobytes(), model.elbo_trace_.tobytes(), model.n_passes_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("name", FITS)
def test_ctrl_c_in_a_pass_leaves_a_model_and_a_checkpoint_to_resume_from(name, share, tmp_path, monkeypatch):
    monkeypatch.setattr("bayesvm.inference.fitting.block_rows", lambda *_: 100)
    monkeypatch.setattr(training, "SMALLEST_SUBSET", 300)
    for module in (leaving_out, linear_model):
        monkeypatch.setattr(module, "FEW_LOO_ROWS", 500)
    make, y = FITS[name]
    with monkeypatch.context() as patch:
        blocks = Blocks(patch)
        whole = make().set_params(n_jobs=1).fit(DATA.X, y)
    model = make().set_params(n_jobs=1)
    with monkeypatch.context() as patch, stop_on_interrupt():
        Blocks(patch, int(share * blocks.read))
        model.fit(DATA.X, y, checkpoint=tmp_path / "c", checkpoint_every=0)
        assert model.interrupted_
        assert np.isfinite(model.loo_log_loss_)
        assert model.score(DATA.X, y) > (0.5 if name == "mean field" else 0.75)  # of its classes some had one pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    again = make().fit(DATA.X, y, checkpoint=tmp_path / "c", checkpoint_every=0)
    assert reported(again) == reported(whole)


def test_a_pass_is_abandoned_at_the_next_block(monkeypatch):
    monkeypatch.setattr("bayesvm.inference.fitting.block_rows", lambda *_: 10)
    monkeypatch.setattr(training, "SMALLEST_SUBSET", 50)
    for module in (leaving_out, linear_model):
        monkeypatch.setattr(module, "FEW_LOO_ROWS", 50)
    make, y = FITS["batch"]
    model = make().set_params(n_jobs=1)
    blocks = Blocks(
        monkeypatch, 310
    )  # 300 are read to look for copies and for the columns, so this is in the first pass
    with stop_on_interrupt(), pytest.warns(ConvergenceWarning, match="stopped by Ctrl-C"):
        model.fit(DATA.X, y)
    assert blocks.after <= 5 + 5  # a step and leave-one-out on few rows
    assert len(model.loo_proba_) == 50


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_without_the_option_the_estimator_is_what_it_was(n_jobs):
    make, y = FITS["batch"]
    model = make().set_params(n_jobs=n_jobs).fit(DATA.X, y)
    before = reported(model)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA.X, y, callback=lambda progress: press())
    assert reported(model) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_fit_installs_no_handler():
    seen = []
    FITS["batch"][0]().fit(DATA.X, DATA.y, callback=lambda progress: seen.append(signal.getsignal(signal.SIGINT)))
    assert set(seen) == {signal.default_int_handler}


def test_the_second_ctrl_c_goes_to_the_handler_before():
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    with stop_on_interrupt():
        with pytest.warns(ConvergenceWarning, match="Ctrl-C"):
            model = FITS["batch"][0]().fit(DATA.X, DATA.y, callback=lambda progress: [press(), press()])
        press()  # where no fit is under way
    assert model.interrupted_
    assert len(heard) >= 2


def test_where_ctrl_c_is_ignored_it_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_on_interrupt():
        model = FITS["batch"][0]().fit(DATA.X, DATA.y, callback=lambda progress: press())
    assert not model.interrupted_
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_fit_in_another_thread_is_not_interrupted():
    found = []
    with stop_on_interrupt():
        fit = threading.Thread(target=lambda: found.append(FITS["batch"][0]().fit(DATA.X, DATA.y)))
        fit.start()
        with pytest.raises(KeyboardInterrupt):
            press()
        fit.join()
    assert not found[0].interrupted_


def test_ctrl_c_before_training_stops_at_once(monkeypatch):
    model = FITS["batch"][0]()
    monkeypatch.setattr("bayesvm.inference.inducing.select", lambda *_: press() or time.sleep(1))
    with stop_on_interrupt(), pytest.raises(KeyboardInterrupt):
        model.fit(DATA.X, DATA.y)
    assert not hasattr(model, "classes_")


def test_climbing_the_elbo_ends_with_the_time(monkeypatch):
    steps = []
    gradient = evidence.elbo_gradient
    monkeypatch.setattr(evidence, "elbo_gradient", lambda *given: [steps.append(1), gradient(*given)][1])
    with pytest.warns(ConvergenceWarning):
        BayesianSVC(n_inducing=20, tune="elbo", time_limit=1e-9, random_state=0).fit(DATA.X, DATA.y)
    assert not steps


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["files", "dask"])
def test_rows_elsewhere_are_left_too(kind, tmp_path, monkeypatch):
    make, y = FITS["batch"]
    if kind == "files":
        columns = {f"c{number}": values for number, values in enumerate(DATA.X.T)}
        parquet.write_table(pa.table(columns | {"y": y}), tmp_path / "t.parquet")
        given = (open_table(tmp_path / "t.parquet", "y"),)
    else:
        da = pytest.importorskip("dask.array")
        given = da.from_array(DATA.X, chunks=(500, -1)), da.from_array(y, chunks=500)
    heard = []

    def second(progress):
        heard.append(progress)
        if len(heard) == 2:
            threading.Timer(0.02, press).start()  # most probably in the next pass

    with stop_on_interrupt():
        model = make().set_params(max_iter=10_000, tol=0).fit(*given, callback=second)
    assert model.interrupted_
    assert model.score(*given) > 0.75


def test_whoever_leaves_a_pass_does_not_wait_for_its_stripes():
    began, done = [], []

    def blocks(number, workspace):
        for _ in range(1000):
            workers.check()
            began.append(number)
            time.sleep(0.001)
        done.append(number)

    with Workers(2) as workers:
        results = workers.map(blocks, range(10))
        threading.Timer(0.05, press).start()
        with pytest.raises(KeyboardInterrupt):
            next(results)
    assert not done
    assert set(began) <= {0, 1}
