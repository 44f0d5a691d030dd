"""The page about many rows: its arithmetic, its tables from a small stored example, and the peer that it races."""

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="benchmarks do not come with the source distribution")

from benchmarks.scaling import arithmetic, page, store
from benchmarks.scaling.algorithm1 import Algorithm1

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.kernels import RBF

MACHINE = {
    "when": "2026-01-02T03:04+00:00",
    "processor": "some processor",
    "cores": 2,
    "blas": "openblas 0.3",
    "numpy": "2.0",
    "gemm_single": 1.5e11,
    "gemm_double": 8e10,
    "others": 0.01,
}
PASSES = [
    {
        "what": "pass",
        "m": m,
        "n_rows": 1000,
        "share": 0.9 if m < 512 else 0.5,
        "seconds_per_million": 0.5,
        "step_seconds": 0.25,
    }
    for m in (64, 256, 512, 1024)
]


def test_a_tree_of_sums_has_a_task_for_every_partition_and_every_addition():
    assert arithmetic.tree(1) == (1, 0)
    assert arithmetic.tree(8) == (9, 1)
    assert arithmetic.tree(100) == (100 + 13 + 2 + 1, 3)


def test_bytes_that_move():
    assert arithmetic.sum_bytes(10) == 8 * 112
    assert arithmetic.model_bytes(10, 3) == 4 * (100 + 50 + 20)


def test_seconds_of_a_core_scale_with_the_operations_of_a_pass():
    assert arithmetic.core_seconds(PASSES, 64, 18, 2) == pytest.approx(1e-6)
    assert arithmetic.core_seconds(PASSES, 1000, 18, 2) == pytest.approx(1e-6 * 3_036_000 / 3_182_592)
    assert arithmetic.step_seconds(PASSES, 512) == 0.25


def test_a_cluster_by_hand():
    found = arithmetic.cluster(1_000_000, 10, 4, 1e-5, 0.5, 1.5, d=3, bytes_per_row=10, per_partition=100_000)
    assert (found["partitions"], found["tasks"], found["levels"]) == (10, 13, 2)
    # 10 partitions on 4 cores are 3 rounds of 1 s; the tree has two levels of 5 ms and 8 sums of 896 bytes.
    one = 3.0 + 2 * (0.005 + 8 * 896 / 1e9) + 0.5
    assert found["pass_seconds"] == pytest.approx(one)
    assert found["fit_seconds"] == pytest.approx((2 + 3) * one)
    assert found["efficiency"] == pytest.approx(2.5 / one)
    assert (found["sums_moved"], found["model_moved"], found["read"]) == (12 * 896, 4 * 680, 1e7)
    assert found["largest"] == "rows"


def test_memory_does_not_depend_on_the_rows():
    found = arithmetic.memory(64, 18, 2)
    assert found["held rows"] == pytest.approx(1.6e8, rel=1e-6)
    assert found["model"] == 48 * 64 * 64


def test_local_models_by_hand():
    found = arithmetic.local_models(4_000_000, 10, 9)
    assert found["leaves"] == 10_000
    assert found["hours"] == pytest.approx(300 / 3600)
    assert found["minutes"] == pytest.approx(0.5)
    assert (found["shuffled"], found["edges"]) == (8 * 4_000_000 * 10, 4 * 16)
    assert found["model"] == 10_000 * (180_000 + 5_400)
    assert "| 10^9 | 2,500,000 | 20.8 | 12.5 |" in page.local_section()


def test_the_page_is_written_from_what_is_kept(tmp_path):
    fit = {"m": 64, "n_rows": 1000, "seconds": 2.0, "tuning_seconds": 1.0, "passes": 2.5}
    more = {
        "share": 0.1,
        "share_without_tuning": 0.2,
        "difference_of_f": 0.002,
        "largest_f": 3.0,
        "both_converged": True,
    }
    store.keep("gemm", MACHINE, [*PASSES, {"what": "fit"} | fit | more], tmp_path)
    text = page.text(store.kept(tmp_path))
    assert "**Missed: M = 512, 1024.**" in text
    assert "**Missed: 2.0e-03 at M = 64.**" in text
    assert "Measured 2026-01-02 on some processor" in text
    assert "Not measured yet." in text  # the other tables
    assert "| 10^11 | 1000 | 4,096 |" in text


def test_the_peer_is_the_papers_algorithm():
    data = waveform(300, random_state=0)
    X, y = np.asarray(data.X, np.float64), np.where(np.asarray(data.y) > 0, 1.0, -1.0)
    kernel, points = RBF(5.0, 2.0), X[:12]
    how = {"bound": "augmented", "inference": "batch", "tune": None, "scale": None, "precision": "double"}
    ours = BayesianSVC(kernel, inducing=points, **how, max_iter=1000, tol=0).fit(X, y)
    peer = Algorithm1(kernel, points)
    for _ in range(1000):
        peer.step(X, y, len(y), 1.0)
    for mine, theirs in zip(ours.latent_mean_and_variance(X), peer.predicted(X), strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-6)
