"""Local models that learn more, are interrupted, or learn from rows that memory does not hold."""

import logging
import os
import signal
import warnings

import dask.array as da
import distributed
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from bayesvm import BayesianSVC, open_table
from bayesvm.core.latent import Block
from bayesvm.data import blocks, bucket_files, dask_rows
from bayesvm.data.bucket_files import BucketFiles
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.workers import Workers
from bayesvm.inference import fitting, leaves
from bayesvm.storage import checkpoints
from tests.estimators.test_local import FEW, NEW, NEW_TWO, checkerboard

X, TWO, THREE = checkerboard(1_600)
HOW = FEW | {"local": True}


class KilledError(Exception):
    """An error that ends the fit."""


def fitted(**how):
    return BayesianSVC(**HOW | how).fit(X, TWO)


def probabilities(model):
    return model.predict_proba(NEW)[:, 1]


# ---- interrupted ----


@pytest.mark.parametrize("survived", [0, 1, 3])
def test_leaves_that_are_finished_are_not_fitted_again(survived, tmp_path, monkeypatch):
    """A killed fit resumes at the next group of leaves and is bit-identical to an uninterrupted one."""
    monkeypatch.setattr(leaves, "TOGETHER", 1)
    fit_leaves, calls = leaves.fitted_leaves, []

    def counted(rows, **known):
        if len(calls) == survived and not resumed:
            raise KilledError
        calls.append([mine.bucket for mine in rows])
        return fit_leaves(rows, **known)

    monkeypatch.setattr(leaves, "fitted_leaves", counted)
    keep, resumed = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0}, False
    with pytest.raises(KilledError):
        BayesianSVC(**HOW, n_jobs=1).fit(X, TWO, **keep)
    resumed = True
    model = BayesianSVC(**HOW, n_jobs=2).fit(X, TWO, **keep)
    n_leaves = model.fitted_.member.leaves.tree.n_leaves
    assert n_leaves == 4
    assert sorted(number for group in calls for number in group) == list(range(n_leaves))
    monkeypatch.setattr(leaves, "fitted_leaves", fit_leaves)
    np.testing.assert_array_equal(probabilities(model), probabilities(fitted()))


@pytest.mark.parametrize("stop", ["deadline", "request"])
@pytest.mark.parametrize("where", ["trial", "leaves"])
def test_a_fit_that_is_cut_short_in_its_local_models_has_none_and_says_so(stop, where, monkeypatch):
    monkeypatch.setattr(leaves, "TOGETHER", 1)
    name = "leaf_setup" if where == "trial" else "with_leaves"
    module = leaves if where == "trial" else fitting
    function = getattr(module, name)

    def cut_short(candidate, *args, **known):
        session = next(each for each in args if hasattr(each, "clock"))
        if stop == "deadline":
            session.clock.deadline = -np.inf
        else:
            session.clock.stop.make()
        return function(candidate, *args, **known)

    monkeypatch.setattr(module, name, cut_short)
    with pytest.warns(ConvergenceWarning):
        model = fitted(**({"time_limit": 1000} if stop == "deadline" else {}))
    assert model.fitted_.member.leaves is None
    report = str(model.tuning_report_)
    assert ("Local models were not tried" if where == "trial" else "They were not fitted") in report
    assert np.isfinite(model.predict_proba(NEW)).all()
    assert model.loo_log_loss_ < 0.7


# ---- streams ----


def test_a_stream_updates_the_leaves_that_its_rows_fall_into():
    model = fitted()
    before, members = log_loss(NEW_TWO, probabilities(model)), model.fitted_.members
    more, labels, _ = checkerboard(6_000, seed=5)
    left = more[:, 0] < 1  # one of four columns of fields
    model.partial_fit(more[left], labels[left])
    (member,), (earlier,) = model.fitted_.members, members
    rows = member.rows(model.fitted_.scaler(more[left]))
    touched = np.unique(member.leaves.tree.leaf_of(rows))
    for number, (now, then) in enumerate(zip(member.leaves.leaves, earlier.leaves.leaves, strict=True)):
        same = np.array_equal(now.functions[0].posterior.mean, then.functions[0].posterior.mean)
        assert same == (number not in touched)
        np.testing.assert_array_equal(now.features.inducing_points, then.features.inducing_points)
    np.testing.assert_array_equal(member.functions[0].posterior.mean, earlier.functions[0].posterior.mean)
    assert model.n_samples_ == 1_600 + left.sum()
    model.partial_fit(more[~left], labels[~left])
    assert log_loss(NEW_TWO, probabilities(model)) < before - 0.02


def test_a_stream_ends_near_a_fit_to_all_its_rows():
    """With the same tree and points; sites of earlier parts are not updated again."""
    whole = fitted(warm_start=True)
    part = BayesianSVC(**HOW).fit(X, TWO)
    more, labels, _ = checkerboard(1_600, seed=6)
    part.partial_fit(more, labels)
    whole.fit(np.vstack([X, more]), np.concatenate([TWO, labels]))
    assert whole.fitted_.member.leaves.tree is not None
    gap = np.abs(probabilities(part) - probabilities(whole))
    assert gap.mean() < 0.03


def test_a_warm_start_keeps_tree_and_points():
    model = fitted(warm_start=True)
    first, before = model.fitted_.member.leaves, probabilities(model)
    model.fit(X, TWO)
    again = model.fitted_.member.leaves
    np.testing.assert_array_equal(again.tree.thresholds, first.tree.thresholds)
    for now, then in zip(again.leaves, first.leaves, strict=True):
        np.testing.assert_array_equal(now.features.inducing_points, then.features.inducing_points)
    gap = np.abs(probabilities(model) - before)
    assert gap.mean() < 0.02
    assert gap.max() < 0.25


# ---- elsewhere ----


def test_rows_in_files_are_sorted_by_bucket():
    rng = np.random.default_rng(0)
    rows, y, weight = rng.standard_normal((1_000, 3)), rng.integers(0, 2, 1_000), rng.uniform(0.5, 2, 1_000)
    parts = [Block(rows[i : i + 90], y[i : i + 90], weight[i : i + 90]) for i in range(0, 1_000, 90)]
    scaler = ColumnScaler(np.array([1.0, 0.0, 0.0]), np.array([2.0, 1.0, 1.0]))
    monkey = pytest.MonkeyPatch()
    monkey.setattr(bucket_files, "HELD_ENTRIES", 500)  # several runs

    def bucket_of(scaled):
        return np.clip(np.floor(2 * scaled[:, 1]).astype(int) + 3, 0, 7)

    with Workers(2) as workers:
        found = BucketFiles.of(iter(parts), bucket_of, 8, scaler, workers)
        monkey.undo()
        assert len(found.starts) > 3
        for mine in found.map(lambda group: group[0], [[bucket] for bucket in range(8)]):
            expected = np.flatnonzero(bucket_of(scaler(rows)) == mine.bucket)
            np.testing.assert_array_equal(mine.numbers, expected)
            np.testing.assert_array_equal(mine.block.X, scaler(rows)[expected])
            np.testing.assert_array_equal(mine.block.y, y[expected])
            np.testing.assert_array_equal(mine.block.weight, weight[expected])
    folder = found.copy.folder
    assert folder.exists()
    found.copy.remove()
    assert not folder.exists()


def test_a_table_that_memory_does_not_hold_is_bit_identical_to_one_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "HELD_ENTRIES", 1_200)
    monkeypatch.setattr(blocks, "FEWEST_HELD", 600)
    monkeypatch.setattr(bucket_files, "HELD_ENTRIES", 700)
    columns = {f"x{j}": column for j, column in enumerate(X.T)}
    parquet.write_table(pa.table(columns | {"y": TWO}), tmp_path / "rows.parquet", row_group_size=300)
    in_memory = fitted()
    (tmp_path / "copies").mkdir()
    folders, working_copy = [], bucket_files.WorkingCopy
    monkeypatch.setattr(bucket_files, "WorkingCopy", lambda inside: folders.append(inside) or working_copy(inside))
    with open_table(tmp_path / "rows.parquet", target="y", copy_to=tmp_path / "copies") as table:
        model = BayesianSVC(**HOW).fit(table)
    assert folders == [tmp_path / "copies"]
    assert model.fitted_.member.leaves.tree.n_leaves == 4
    np.testing.assert_array_equal(
        model.latent_mean_and_variance(pa_frame(NEW)), in_memory.latent_mean_and_variance(NEW)
    )


def pa_frame(rows):
    return pa.table({f"x{j}": column for j, column in enumerate(rows.T)}).to_pandas()


@pytest.fixture
def few_rows_held(monkeypatch):
    """Tables of 1,600 rows do not fit into the memory of the client."""
    monkeypatch.setattr(blocks, "HELD_ENTRIES", 1_200)
    monkeypatch.setattr(blocks, "FEWEST_HELD", 600)


def distributed_rows():
    return da.from_array(X, chunks=(450, 2)), da.from_array(TWO, chunks=450)


@pytest.mark.usefixtures("few_rows_held")
def test_partitions_are_cut_up_by_leaf_and_each_leaf_is_fitted_where_its_rows_meet(monkeypatch):
    """Sums of the model below are added up in another order than in memory."""
    shuffled = []
    cut_up = dask_rows.cut_up
    monkeypatch.setattr(dask_rows, "cut_up", lambda *args: shuffled.append(1) or cut_up(*args))
    model, alone = BayesianSVC(**HOW).fit(*distributed_rows()), fitted()
    assert len(shuffled) == 4
    assert model.fitted_.member.leaves.tree.n_leaves == alone.fitted_.member.leaves.tree.n_leaves == 4
    np.testing.assert_allclose(probabilities(model), probabilities(alone), atol=0.02)
    assert model.loo_log_loss_ == pytest.approx(alone.loo_log_loss_, abs=0.01)


@pytest.mark.usefixtures("few_rows_held")
def test_a_leaf_without_rows_on_a_cluster_keeps_its_model():
    model = fitted(warm_start=True)
    before = model.fitted_.member.leaves
    corner = (X[:, 0] < 2) & (X[:, 1] < 2)
    rows = da.from_array(np.tile(X[corner], (3, 1)), chunks=(300, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # copies of rows
        model.fit(rows, da.from_array(np.tile(TWO[corner], 3), chunks=300))
    filled = np.unique(before.tree.leaf_of(model.fitted_.first_scaler(X[corner])))
    assert len(filled) < before.tree.n_leaves
    for number, (now, then) in enumerate(zip(model.fitted_.member.leaves.leaves, before.leaves, strict=True)):
        same = np.array_equal(now.functions[0].posterior.mean, then.functions[0].posterior.mean)
        assert same == (number not in filled)


@pytest.mark.slow
@pytest.mark.usefixtures("few_rows_held")
def test_leaves_survive_a_killed_worker_and_a_killed_client_fits_no_finished_leaf_again(tmp_path, monkeypatch):
    """A worker is killed while leaves are fitted, later the client. Neither changes a bit."""
    monkeypatch.setattr(leaves, "TOGETHER", 1)
    keep = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0}
    kept = []
    with (
        distributed.LocalCluster(
            processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = distributed_rows()
        whole = probabilities(BayesianSVC(**HOW).fit(*rows))
        keep_leaves = checkpoints.LeafMemory.keep

        def killing(memory, finished, *, now=False):
            keep_leaves(memory, finished, now=now)
            kept.append(len(finished))
            if len(kept) == 1:
                os.kill(client.submit(os.getpid, pure=False).result(), signal.SIGKILL)
            if len(kept) == 3:
                raise KilledError

        monkeypatch.setattr(checkpoints.LeafMemory, "keep", killing)
        with pytest.raises(KilledError):
            BayesianSVC(**HOW).fit(*rows, **keep)
        model = BayesianSVC(**HOW).fit(*rows, **keep)
    assert kept[:3] == [1, 2, 3]
    assert kept[3] == 4
    np.testing.assert_array_equal(probabilities(model), whole)
