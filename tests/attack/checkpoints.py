"""Damaged and forged checkpoints: a fit refuses them, naming the file, or ends with the same bits."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform
from tests.attack.model_files import REFUSED, damaged, forged_header, forged_state, forged_tensor, opened

RESUMED = "resumed, bit-identical"
DATA = waveform(150, random_state=0)
X, Y = DATA.X[:, :4], DATA.y
THREE = np.where(X[:, 3] > 1.0, 2, (Y > 0).astype(int))
FITS = [
    (lambda: BayesianSVC(n_inducing=5, tune=None, tol=1e-7, random_state=0), THREE),
    (lambda: BayesianSVC(n_inducing=4, kernel="rbf", scale="quantile", tune="loo", tol=1e-7, random_state=0), Y),
    (
        lambda: BayesianSVC(
            n_inducing=4, tune=None, inference="stochastic", batch_size=40, max_iter=6, tol=0, random_state=0
        ),
        Y,
    ),
    (lambda: BayesianSVC(n_inducing=6, tol=1e-7, random_state=0), THREE),  # a committee
    (lambda: BayesianLinearSVC(covariance="diagonal", max_iter=8, tol=0, random_state=0), THREE),
]
# Parts of any length, and parts that may be missing: another one is another state that a fit could have reached.
FREE = re.compile(
    r"identity|prepared\.(others\.\d+\.)?(scale$|report|chosen|functions$|features\.kernel.*_bounds)"
    r"|prepared\.others(\.\d+)?$"
    r"|[^.]*\.(trace|epoch|states|passes|rows|contraction)|.*\.(memory|distance|elbo)"
)
WAYS = {"damaged": damaged, "state": forged_state, "tensor": forged_tensor, "header": forged_header}


class KilledError(BaseException):
    """Not caught by any handler."""


def killed_at(update):
    """A callback that ends a fit at an update."""
    heard = []

    def callback(progress):
        heard.append(progress)
        if len(heard) == update:
            raise KilledError

    return callback


def bits(model):
    """The results of a fit, as bytes."""
    return model.predict_proba(X).tobytes() + model.elbo_trace_.tobytes()


def attack(n_files, seed=0):
    """Attack so many checkpoints of killed fits; the number of each outcome."""
    rng, counts = np.random.default_rng(seed), Counter({REFUSED: 0, RESUMED: 0})
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        path, targets = Path(folder) / "fit.checkpoint", []
        for make, y in FITS:
            path.unlink(missing_ok=True)
            try:
                make().fit(X, y, callback=killed_at(3), checkpoint=path, checkpoint_every=0)
            except KilledError:
                targets.append((make, y, bits(make().fit(X, y)), opened(path)))
        assert len(targets) == len(FITS)
        for number in range(n_files):
            make, y, whole, original = targets[rng.integers(len(targets))]
            way = list(WAYS)[number % len(WAYS)]
            path.write_bytes(WAYS[way](original, rng, FREE))
            try:
                model = make().fit(X, y, checkpoint=path, checkpoint_every=1e9)
            except ValueError as error:
                assert str(path) in str(error), f"{number} of {seed} ({way}) does not name the file: {error}"  # noqa: PT017
                counts[REFUSED] += 1
            except Exception as error:
                raise AssertionError(f"checkpoint {number} of seed {seed} ({way}): {error!r:.500}") from error
            else:
                assert bits(model) == whole, f"checkpoint {number} of seed {seed} ({way}) has other bits"
                counts[RESUMED] += 1
    return dict(counts)
