"""A fit that is killed resumes where it was and ends with the same bits; one that is interrupted is usable."""

import errno
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bayesvm import BayesianLinearSVC, BayesianSVC, load, persistence, stop_on_interrupt
from bayesvm.datasets import waveform
from bayesvm.inference import training
from bayesvm.inference.tuning import Tuner

DATA = waveform(3000, random_state=0)
THREE = np.where(DATA.X[:, 3] > 1.5, 2, (DATA.y > 0).astype(int))

FITS = {
    "growing subsets": (lambda: BayesianSVC(n_inducing=20, tune=None, tol=1e-6, random_state=0), DATA.y),
    "minibatches": (
        lambda: BayesianSVC(
            n_inducing=20, tune=None, inference="stochastic", batch_size=500, max_iter=8, random_state=0
        ),
        DATA.y,
    ),
    "a fixed rate": (
        lambda: BayesianSVC(
            n_inducing=9,
            tune=None,
            inference="stochastic",
            batch_size=900,
            learning_rate=0.3,
            max_iter=6,
            random_state=0,
        ),
        DATA.y,
    ),
    "three classes": (lambda: BayesianSVC(n_inducing=15, tune=None, random_state=0), THREE),
    "linear": (lambda: BayesianLinearSVC(random_state=0, tol=1e-7), DATA.y),
    "mean field": (lambda: BayesianLinearSVC(covariance="diagonal", max_iter=6, random_state=0), THREE),
    "augmented": (
        lambda: BayesianSVC(n_inducing=10, bound="augmented", tune=None, max_iter=12, tol=0, random_state=0),
        DATA.y,
    ),
}


@pytest.fixture(autouse=True)
def _as_in_a_terminal():
    """A process that was started in the background ignores Ctrl-C."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)


class Killed(BaseException):
    """Not an error that anything would catch."""


def killer(at):
    """A callback that dies at its update number ``at``."""
    heard = []

    def callback(progress):
        heard.append(progress)
        if len(heard) == at:
            raise Killed

    return callback, heard


def reported(model):
    """The results of a fit, as bytes."""
    latent = np.concatenate([part.ravel() for part in model.latent_mean_and_variance(DATA.X[:200])])
    return (latent.tobytes(), model.predict_proba(DATA.X[:200]).tobytes(), model.elbo_trace_.tobytes(), model.n_passes_)


def fitted_in_pieces(make, y, path, moments):
    """Fit with the process 'dying' at each of the moments in turn, and then to the end."""
    for at in moments:
        callback, heard = killer(at)
        try:
            make().fit(DATA.X, y, callback=callback, checkpoint=path, checkpoint_every=0)
        except Killed:
            continue
        assert len(heard) < at
    return make().fit(DATA.X, y, checkpoint=path, checkpoint_every=0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_a_killed_fit_resumes_bit_identically(name, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SMALLEST_SUBSET", 150)
    make, y = FITS[name]
    callback, heard = killer(-1)
    whole = make().fit(DATA.X, y, callback=callback)
    n_updates = len(heard)
    assert n_updates >= 3
    rng = np.random.default_rng(0)
    for trial, moments in enumerate([[1], [n_updates], [2, 2, 2], rng.integers(1, n_updates + 1, 6).tolist()]):
        pieces = fitted_in_pieces(make, y, tmp_path / f"{trial}.checkpoint", moments)
        assert reported(pieces) == reported(whole), moments


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_tuned_fit_resumes_in_its_second_member_without_tuning_again(tmp_path, monkeypatch):
    X, y = DATA.X[:900], DATA.y[:900]
    make = lambda: BayesianSVC(n_inducing=30, random_state=3)
    callback, heard = killer(-1)
    whole = make().fit(X, y, callback=callback)
    assert len(whole.fitted_.members) > 1
    path = tmp_path / "fit.checkpoint"
    tunings = []
    tune = Tuner.tune
    monkeypatch.setattr(Tuner, "tune", lambda self, candidates: tunings.append(1) or tune(self, candidates))
    for _ in heard:  # lives of one update each, until one of the second member was kept
        with pytest.raises(Killed):
            make().fit(X, y, callback=killer(2)[0], checkpoint=path, checkpoint_every=0)
        if "training of member 1" in persistence.read(path)[2]:
            break
    else:
        pytest.fail("the second member was never reached")
    pieces = make().fit(X, y, checkpoint=path, checkpoint_every=0)
    assert len(tunings) == 1
    assert reported(pieces) == reported(whole)
    np.testing.assert_array_equal(pieces.inducing_points_, whole.inducing_points_)
    assert [(t.what, t.loo) for t in pieces.tuning_report_.trials] == [
        (t.what, t.loo) for t in whole.tuning_report_.trials
    ]


SCRIPT = """
import os, signal, sys, time
import numpy as np
from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
path, seconds, n_rows, settings = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), eval(sys.argv[4])
data = waveform(n_rows, random_state=0)
model = BayesianSVC(random_state=0, n_jobs=1, **settings)
model.fit(data.X[:300], data.y[:300])  # imports what a fit needs before the first fork, once
rng, kills, lives = np.random.default_rng(), 0, 0
while kills < 5 or not os.path.exists(path):
    lives += 1
    child = os.fork()  # importing everything again in each life would take seconds
    if child == 0:
        model.fit(data.X, data.y, checkpoint=path, checkpoint_every=0.0)
        os._exit(0)
    time.sleep(rng.uniform(0, seconds * (1 + lives / 10)))  # grows until a life reaches a checkpoint
    os.kill(child, signal.SIGKILL)
    if os.waitpid(child, 0)[1] == 0:
        os.remove(path)  # it came to its end: once more from the beginning
    else:
        kills += 1
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no kill -9 here")
@pytest.mark.parametrize(
    ("n_rows", "settings"),
    [
        (30_000, {"n_inducing": 80, "tune": None, "tol": 1e-7}),
        (1_500, {"kernel": "rbf", "n_inducing": 30, "tune": "loo", "local": True}),
    ],
    ids=["updates", "leaves"],
)
def test_kill_9_at_random_moments(tmp_path, n_rows, settings):
    data = waveform(n_rows, random_state=0)
    model = BayesianSVC(random_state=0, n_jobs=1, **settings)
    began = time.monotonic()
    whole = model.fit(data.X, data.y).predict_proba(data.X[:500])
    seconds = time.monotonic() - began
    path = tmp_path / "checkpoint"
    arguments = [sys.executable, "-W", "ignore", "-c", SCRIPT, path, str(seconds), str(n_rows), repr(settings)]
    subprocess.run(arguments, check=True, timeout=300)  # noqa: S603
    model.fit(data.X, data.y, checkpoint=path)
    np.testing.assert_array_equal(model.predict_proba(data.X[:500]), whole)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


def test_a_finished_checkpoint_gives_the_model_again_without_a_pass(tmp_path):
    make, y = FITS["growing subsets"]
    first = make().fit(DATA.X, y, checkpoint=tmp_path / "c")
    callback, heard = killer(-1)
    again = make().fit(DATA.X, y, checkpoint=tmp_path / "c", callback=callback)
    assert reported(again) == reported(first)
    assert heard == []


@pytest.mark.parametrize(
    ("change", "rows", "word"),
    [
        ({"n_inducing": 21}, slice(None), "n_inducing was '20' and is '21'"),
        ({"random_state": 1}, slice(None), "random_state"),
        ({}, slice(0, 2000), "the number of rows was 3000 and is 2000"),
        ({}, slice(None, None, -1), "the checksum of the data"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(change, rows, word, tmp_path):
    make, y = FITS["growing subsets"]
    make().fit(DATA.X, y, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match=f"belongs to another fit.*{word}.*Delete it"):
        make().set_params(**change).fit(DATA.X[rows], y[rows], checkpoint=tmp_path / "c")
    make().set_params(n_jobs=2, verbose=0).fit(DATA.X, y, checkpoint=tmp_path / "c")


def test_one_changed_value_is_other_data(tmp_path):
    make, y = FITS["growing subsets"]
    make().fit(DATA.X, y, checkpoint=tmp_path / "c")
    other = DATA.X.copy()
    other[1234, 5] += 1e-9
    with pytest.raises(ValueError, match="the checksum of the data was"):
        make().fit(other, y, checkpoint=tmp_path / "c")


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["time", "Ctrl-C"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_stopped_while_it_was_tuned_starts_anew(stop, tmp_path, monkeypatch):
    """The state after an interrupted tuning must not be resumed."""
    X, y = DATA.X[:1500], DATA.y[:1500]
    make = lambda **how: BayesianSVC(n_inducing=20, random_state=0, **how)
    whole = make().fit(X, y)
    with monkeypatch.context() as patch:
        tune = Tuner._first

        def stopped(self, *args):
            found = tune(self, *args)
            if stop == "time":
                self.clock.deadline = -np.inf
            else:
                self.clock.stop.make()
            return found

        patch.setattr(Tuner, "_first", stopped)
        short = make().fit(X, y, checkpoint=tmp_path / "c", checkpoint_every=0)
    assert reported(short) != reported(whole)
    assert reported(make().fit(X, y, checkpoint=tmp_path / "c", checkpoint_every=0)) == reported(whole)


def test_files_that_a_killed_process_left_are_removed(tmp_path):
    make, y = FITS["linear"]
    for name in ("c", "c-2"):
        (tmp_path / f".{name}-0123456789abcdef.bayesvm.tmp").write_bytes(b"half")
    make().fit(DATA.X, y, checkpoint=tmp_path / "c")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".c-2-0123456789abcdef.bayesvm.tmp", "c"]


def test_a_raised_budget_resumes(tmp_path):
    make = lambda passes: BayesianSVC(
        n_inducing=20, tune=None, inference="batch", tol=0, max_iter=passes, random_state=0
    )
    make(2).fit(DATA.X, DATA.y, checkpoint=tmp_path / "c")
    assert reported(make(5).fit(DATA.X, DATA.y, checkpoint=tmp_path / "c")) == reported(make(5).fit(DATA.X, DATA.y))


def test_without_a_seed_a_fit_resumes_with_the_seed_it_had(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SMALLEST_SUBSET", 150)
    make = lambda: BayesianSVC(n_inducing=20, tune=None)
    with pytest.raises(Killed):
        make().fit(DATA.X, DATA.y, callback=killer(4)[0], checkpoint=tmp_path / "c", checkpoint_every=0)
    first, second = (make().fit(DATA.X, DATA.y, checkpoint=tmp_path / "c") for _ in range(2))
    assert reported(first) == reported(second)


def test_files_that_are_no_checkpoint_are_refused(tmp_path):
    model = FITS["linear"][0]().fit(DATA.X, DATA.y)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="not a checkpoint: it contains a BayesianLinearSVC"):
        model.fit(DATA.X, DATA.y, checkpoint=tmp_path / "model")
    assert load(tmp_path / "model").elbo_ == model.elbo_
    (tmp_path / "text").write_text("no safetensors")
    with pytest.raises(ValueError, match="text"):
        model.fit(DATA.X, DATA.y, checkpoint=tmp_path / "text")
    with pytest.raises(IsADirectoryError, match="is a folder; pass the path of a file"):
        model.fit(DATA.X, DATA.y, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="checkpoint_every must be a nonnegative number"):
        model.fit(DATA.X, DATA.y, checkpoint=tmp_path / "c", checkpoint_every="x")
    with pytest.raises(FileNotFoundError, match="folder of the checkpoint"):
        model.fit(DATA.X, DATA.y, checkpoint=tmp_path / "nowhere" / "c")


def test_a_full_disk_leaves_the_old_checkpoint_and_the_fit_resumes(tmp_path, monkeypatch):
    make, y = FITS["growing subsets"]
    path = tmp_path / "c"
    with pytest.raises(Killed):
        make().fit(DATA.X, y, callback=killer(3)[0], checkpoint=path, checkpoint_every=0)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(
        UserWarning,
        match="continues without its checkpoint: .*c could not be written .No space left on device.; the previous",
    ) as warned:
        model = make().fit(DATA.X, y, checkpoint=path, checkpoint_every=0)
    assert len(warned) == 1
    assert reported(model) == reported(make().fit(DATA.X, y))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def interrupter(at):
    """A callback that presses Ctrl-C at an update."""
    heard = []

    def callback(progress):
        heard.append(progress)
        if len(heard) == at:
            os.kill(os.getpid(), signal.SIGINT)

    return callback


def test_control_c_once_leaves_a_usable_marked_model_and_a_checkpoint_to_resume_from(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(training, "SMALLEST_SUBSET", 150)
    make, y = FITS["growing subsets"]
    whole = make().fit(DATA.X, y)
    with pytest.warns(ConvergenceWarning, match="stopped by Ctrl-C after .* usable"), stop_on_interrupt():
        model = make().fit(DATA.X, y, callback=interrupter(3), checkpoint=tmp_path / "c", checkpoint_every=1e9)
    assert "stopping after the last complete update" in capfd.readouterr().err
    assert model.interrupted_
    assert not model.converged_
    assert not whole.interrupted_
    assert model.score(DATA.X, y) > 0.8
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").interrupted_
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert reported(make().fit(DATA.X, y, checkpoint=tmp_path / "c")) == reported(whole)


def test_control_c_twice_stops_at_once():
    def callback(progress):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            time.sleep(0.01)  # the handler runs between two instructions

    with pytest.raises(KeyboardInterrupt), stop_on_interrupt():
        FITS["growing subsets"][0]().fit(DATA.X, DATA.y, callback=callback)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["mean field", "minibatches"])
def test_whatever_was_interrupted_resumes_bit_identically(name, tmp_path):
    make, y = FITS[name]
    whole = make().fit(DATA.X, y)
    with stop_on_interrupt():
        model = make().fit(DATA.X, y, callback=interrupter(2), checkpoint=tmp_path / "c", checkpoint_every=0)
    assert model.interrupted_
    assert model.n_passes_ < whole.n_passes_
    assert reported(make().fit(DATA.X, y, checkpoint=tmp_path / "c")) == reported(whole)


def test_a_checkpoint_knows_the_model_that_a_warm_fit_starts_from(tmp_path):
    model = FITS["growing subsets"][0]().set_params(warm_start=True).fit(DATA.X, DATA.y)
    model.fit(DATA.X[:2000], DATA.y[:2000], checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="the model it starts from"):
        model.fit(DATA.X[:2000], DATA.y[:2000], checkpoint=tmp_path / "c")


def test_another_listener_for_control_c_is_left_alone():
    heard = []
    old = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = FITS["linear"][0]().fit(DATA.X, DATA.y, callback=interrupter(1))
    finally:
        signal.signal(signal.SIGINT, old)
    assert heard == [1]
    assert not model.interrupted_
