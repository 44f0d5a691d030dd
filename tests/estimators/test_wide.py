"""Tables that are wider than memory can hold are refused before anything of that width is allocated."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from bayesvm import BayesianLinearSVC, BayesianSVC, open_table
from bayesvm.data.capacity import memory_bytes
from bayesvm.workflow import fit_table

MODELS = {
    "kernel": lambda: BayesianSVC(tune=None, random_state=0),
    "linear": lambda: BayesianLinearSVC(covariance="diagonal", max_iter=2, tol=0, random_state=0),
}


def wide(n_features, n_rows=20):
    rows = np.arange(n_rows)
    columns = np.concatenate([rows % 5, 10 + rows, np.full(n_rows, n_features - 1)])
    return sparse.csr_matrix((np.ones(3 * n_rows), (np.tile(rows, 3), columns)), (n_rows, n_features)), rows % 2


def peak_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", MODELS)
def test_one_large_index_is_refused_and_takes_no_memory(name, tmp_path, monkeypatch):
    monkeypatch.setattr("bayesvm.data.capacity.memory_bytes", lambda: 16e9)
    (tmp_path / "t.libsvm").write_text("1 1:1\n0 2:1\n1 40000000:1\n0 1:1 2:1\n" * 3)
    message = (
        r"X has 40,000,000 columns, for which Bayesian\w*SVC needs about .* GB .*half of the 16.0 GB .*largest index"
    )

    def refused():
        with pytest.raises(ValueError, match=message):
            MODELS[name]().fit(open_table(tmp_path / "t.libsvm"))
        with pytest.raises(ValueError, match=message):
            fit_table(tmp_path / "t.libsvm", estimator=MODELS[name]())
        with pytest.raises(ValueError, match=message):
            MODELS[name]().fit(*wide(40_000_000))

    assert peak_bytes(refused) < 100e6  # one vector of that width has 320 MB


def test_a_wide_table_that_can_be_held_is_reported(monkeypatch):
    monkeypatch.setattr("bayesvm.data.capacity.memory_bytes", lambda: 20e6)
    with pytest.warns(UserWarning, match=r"X has 5,000 columns, .* 0\.0 GB of memory\. Use fewer"):
        MODELS["linear"]().fit(*wide(5_000))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_features"), [("kernel", 20_000), ("linear", 10_000)])
def test_the_estimate_is_of_the_right_size(name, n_features, monkeypatch):
    estimates = []
    monkeypatch.setattr("bayesvm.estimators.base.require_memory", lambda *given: estimates.append(given))
    X, y = wide(n_features)
    measured = peak_bytes(lambda: MODELS[name]().fit(X, y))
    ((_, width, n_vectors),) = estimates
    assert width == n_features
    assert 1 / 3 < measured / (8 * width * n_vectors) < 3


def test_limits_of_the_process_count():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**33, resource.RLIM_INFINITY));"
        "from bayesvm.data.capacity import memory_bytes; print(memory_bytes() <= 2**33)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "True\n"
    assert memory_bytes() > 2**27
