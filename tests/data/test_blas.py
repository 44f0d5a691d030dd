"""BLAS threads: one during computations of bayesvm, otherwise as many as before."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from bayesvm import BayesianSVC
from bayesvm.data.blas import SMALL_MATRICES, one_blas_thread, threads_for_matrices
from bayesvm.data.workers import Workers
from bayesvm.datasets import waveform


def threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    with ThreadpoolController().limit(limits=2):
        yield
        assert threads() == {2}


def test_users_that_overlap_are_counted():
    with one_blas_thread():
        inside, leave = threading.Event(), threading.Event()

        def other():
            with one_blas_thread():
                inside.set()
                leave.wait()

        caller = threading.Thread(target=other)
        caller.start()
        inside.wait()
    assert threads() == {1}
    leave.set()
    caller.join()
    assert threads() == {2}


def test_only_small_matrices_are_left_to_one_thread():
    with threads_for_matrices(SMALL_MATRICES):
        assert threads() == {1}
    with threads_for_matrices(SMALL_MATRICES + 1):
        assert threads() == {2}


def test_concurrent_predictions_give_the_threads_back():
    data = waveform(2_000, random_state=0)
    model = BayesianSVC(n_inducing=20, tune=None, random_state=0, n_jobs=2).fit(data.X, data.y)
    assert threads() == {2}
    expected, found = model.predict_proba(data.X), []
    start = threading.Barrier(8)

    def predict():
        start.wait()
        found.extend(model.predict_proba(data.X) for _ in range(5))

    callers = [threading.Thread(target=predict) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert threads() == {2}
    assert len(found) == 40
    assert all(np.array_equal(each, expected) for each in found)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_that_are_not_read_to_the_end_keep_no_limit(n_jobs):
    with Workers(n_jobs) as workers:
        results = workers.map(lambda i, workspace: threads(), range(20))
        assert next(results) == {1}
        if n_jobs == 1:  # with more, others may still be under way
            assert threads() == {2}
    assert threads() == {2}
    results.close()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_gives_the_threads_back(n_jobs):
    with Workers(n_jobs) as workers, pytest.raises(ZeroDivisionError):
        list(workers.map(lambda i, workspace: 1 // (i - 5), range(20)))
    assert threads() == {2}


FIT = """
import sys, warnings
import numpy as np
from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform
warnings.simplefilter("ignore")
data = waveform(1_500, random_state=0)
kernel = BayesianSVC(n_inducing=1_100, inducing="random", tune=None, max_iter=2, inference="batch", random_state=0)
wide = np.random.default_rng(0).normal(size=(60, 12_000))
diagonal = BayesianLinearSVC(covariance="diagonal", max_iter=4, random_state=0).fit(wide, wide[:, 0] > 0)
kernel.fit(data.X, data.y)
for said in (
    kernel.predict_proba(data.X),
    kernel.loo_proba_,
    kernel.sample_latent(data.X[:1_000], 2, random_state=0),
    diagonal.predict_proba(wide),
):
    sys.stdout.write(said.tobytes().hex())
"""


@pytest.mark.slow
def test_bits_do_not_depend_on_the_threads_that_blas_may_use():
    said = {
        n: subprocess.run(  # noqa: S603
            [sys.executable, "-c", FIT],
            env=os.environ | {"OPENBLAS_NUM_THREADS": n, "MKL_NUM_THREADS": n},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for n in "12"
    }
    assert len(said["1"]) > 16 * 1_500
    assert said["1"] == said["2"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers of POSIX")
def test_ctrl_c_at_any_moment_gives_the_threads_back():
    """Interrupts after 50 microseconds of entering and leaving, until 200 have come."""
    caught, old = 0, signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while caught < 200:
            try:
                signal.setitimer(signal.ITIMER_REAL, 5e-5)
                for _ in range(100):
                    with one_blas_thread():
                        pass
            except KeyboardInterrupt:
                caught += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    with one_blas_thread():  # lifts what an interrupted one left behind
        assert threads() == {1}
    assert threads() == {2}
