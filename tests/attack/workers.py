"""Dask workers that are killed (SIGKILL) during a fit: the model is that of an uninterrupted fit."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import Counter
from typing import Any, Self

import numpy as np

from bayesvm import BayesianSVC

SAME, OTHER, FAILED = "bit-identical", "different bits", "fit failed"
N_ROWS, N_UPDATES = 8_000, 9
LONGEST_DELAY = 0.1  # seconds from the end of an update to the kill: while the next pass is under way


def attack(n_kills: int, seed: int) -> tuple[Counter[str], list[str]]:
    """The outcomes of fits that each lost a worker, and a line for each failure."""
    import dask.array as da  # noqa: PLC0415  (an extra)
    import distributed  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    X = np.random.default_rng(0).normal(size=(N_ROWS, 5))
    y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] > 0).astype(int)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with (
        distributed.LocalCluster(
            processes=True, n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows, labels = (client.persist(da.from_array(each, chunks=(1000, *each.shape[1:]))) for each in (X, y))
        whole = said(fitted(rows, labels), X)
        while counts.total() < n_kills:
            client.wait_for_workers(2, timeout=60)
            with Killer(int(rng.choice(list(client.run(os.getpid).values()))), rng) as killer:
                try:
                    found = SAME if said(fitted(rows, labels, killer), X) == whole else OTHER
                except Exception as error:  # noqa: BLE001  (all of them are counted)
                    found = f"{FAILED}: {error!r}"
                hit = killer.hit
            counts[found] += hit
            if found != SAME:
                failures.append(f"seed {seed}, after update {killer.at}: {found}")
    return counts, failures


class Killer:
    """A callback that kills a process soon after a random update."""

    def __init__(self, victim: int, rng: np.random.Generator) -> None:
        self.at, self.hit = int(rng.integers(1, N_UPDATES)), False
        self._victim = victim
        self._timer = threading.Timer(rng.uniform(0, LONGEST_DELAY), self._kill)

    def __call__(self, progress: Any) -> None:
        if progress.update == self.at:
            self._timer.start()

    def _kill(self) -> None:
        os.kill(self._victim, signal.SIGKILL)
        self.hit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def fitted(rows: Any, labels: Any, callback: Any = None) -> BayesianSVC:
    """The fit that is disturbed."""
    model = BayesianSVC(n_inducing=40, tune=None, inference="batch", max_iter=N_UPDATES, tol=0, random_state=0)
    return model.fit(rows, labels, callback=callback)


def said(model: BayesianSVC, X: np.ndarray) -> bytes:
    """The results of a fit."""
    return b"".join(part.tobytes() for part in (model.elbo_trace_, model.loo_proba_, model.predict_proba(X[:500])))
