"""Fits that are killed (SIGKILL) at random moments and resumed: the model is that of an uninterrupted fit."""

from __future__ import annotations

import hashlib
import multiprocessing
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform

SAME, OTHER, FAILED, LEFT = "bit-identical", "different bits", "resuming failed", "files left behind"
KILLS_OF_A_FIT = 4  # before it is allowed to end
MOST_SECONDS = 120.0
N_ROWS = 20_000

CASES: dict[str, Callable[[], Any]] = {
    "growing subsets": lambda: BayesianSVC(n_inducing=60, tune=None, tol=1e-7),
    "minibatches": lambda: BayesianSVC(n_inducing=30, tune=None, inference="stochastic", batch_size=2000, max_iter=8),
    "tuned": lambda: BayesianSVC(n_inducing=30),
    "three classes": lambda: BayesianSVC(n_inducing=40, tune=None),
    "mean field": lambda: BayesianLinearSVC(covariance="diagonal", max_iter=20),
}


def attack(n_kills: int, seed: int) -> tuple[Counter[str], list[str]]:
    """The outcomes of the fits after all kills, and a line for each failure."""
    rng = np.random.default_rng(seed)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    names = list(CASES)
    rng.shuffle(names)
    wholes: dict[str, tuple[str, float]] = {}
    while (left := n_kills - counts.total()) > 0:
        name = names[len(wholes) % len(names)] if len(wholes) < len(names) else str(rng.choice(names))
        with tempfile.TemporaryDirectory() as scratch:
            if name not in wholes:
                wholes[name] = undisturbed(name, Path(scratch))
            whole, seconds = wholes[name]
            killed, digest = disturbed(name, Path(scratch), min(left, KILLS_OF_A_FIT), seconds, rng)
            files = sorted(path.name for path in Path(scratch).iterdir())
        found = FAILED if digest is None else OTHER if digest != whole else LEFT if files != ["checkpoint"] else SAME
        counts[found] += killed
        if found != SAME:
            failures.append(f"{name}, seed {seed}: {found} after {killed} kills; files {files}")
    return counts, failures


def undisturbed(name: str, folder: Path) -> tuple[str, float]:
    """The digest and the duration of an uninterrupted fit."""
    began = time.monotonic()
    life = Life(name, None, folder / "whole", 1)
    life.join()
    digest = life.digest
    if digest is None:
        raise RuntimeError(f"the fit {name!r} fails without a kill")
    (folder / "whole").unlink()
    return digest, time.monotonic() - began


def disturbed(name: str, folder: Path, most: int, seconds: float, rng: np.random.Generator) -> tuple[int, str | None]:
    """How many kills hit the fit before it ended, and its digest."""
    checkpoint, result = folder / "checkpoint", folder / "result"
    killed = 0
    while True:
        life = Life(name, checkpoint, result, int(rng.integers(1, 3)))
        if killed == most:
            life.join()
            break
        time.sleep(rng.uniform(0, seconds))
        if not life.killed():
            break
        killed += 1
    digest = life.digest
    result.unlink(missing_ok=True)
    return killed, digest


class Life:
    """A process that fits, from its checkpoint if there is one."""

    def __init__(self, name: str, checkpoint: Path | None, result: Path, n_jobs: int) -> None:
        # A clean process is forked that has loaded everything: to load it anew takes seconds.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self._result = result
        self._process = context.Process(target=fit, args=(name, checkpoint, result, n_jobs))
        self._process.start()

    def killed(self) -> bool:
        """Whether it was still alive."""
        self._process.kill()
        self._process.join()
        return bool(self._process.exitcode is not None and self._process.exitcode < 0)

    def join(self) -> None:
        """Wait for its end."""
        self._process.join(MOST_SECONDS)
        if self._process.is_alive():
            self.killed()

    @property
    def digest(self) -> str | None:
        """The digest of the fit; None if it did not end."""
        return self._result.read_text() if self._process.exitcode == 0 else None


def fit(name: str, checkpoint: Path | None, result: Path, n_jobs: int) -> None:
    """In a separate process: fit, and write a digest of the predictions."""
    data = waveform(N_ROWS, random_state=0)
    y = np.where(data.X[:, 3] > 1.5, 2, data.y > 0) if name == "three classes" else data.y
    model = CASES[name]().set_params(random_state=0, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # budgets that end first
        model.fit(data.X, y, checkpoint=checkpoint, checkpoint_every=0.0)
    said = [model.predict_proba(data.X[:500]), *model.latent_mean_and_variance(data.X[:500]), model.elbo_trace_]
    result.write_text(hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in said)).hexdigest())
