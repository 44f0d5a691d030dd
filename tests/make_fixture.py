"""Writes tests/fixtures/versionN*: small files of the present format version, and what the models predict.

To be run once for each version of the format, by the last code that writes it; the files are kept so that later
versions are tested on them: ``PYTHONPATH=src python tests/make_fixture.py``.
"""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from bayesvm import BayesianLinearSVC, BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.persistence import VERSION

FOLDER = Path(__file__).parent / "fixtures"


class Killed(BaseException):
    """Ends a fit in the middle."""


def kill(progress):
    raise Killed


def write(model, name, rows):
    model.save(FOLDER / f"version{VERSION}{name}.bayesvm")
    np.savetxt(FOLDER / f"version{VERSION}{name}.txt", model.predict_proba(rows))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    train, test = waveform(60, random_state=4), waveform(20, random_state=5)
    X, rows = train.X[:, 4:8], test.X[:, 4:8]
    frame, labels = pd.DataFrame(X, columns=list("abcd")), np.where(train.y > 0, "yes", "no")
    weights = np.where(np.arange(60) < 6, 0.0, 1.0)
    tuned = BayesianSVC(n_inducing=6, random_state=0, n_jobs=1).fit(frame, labels, weights)
    write(tuned, "_tuned", pd.DataFrame(rows, columns=list("abcd")))
    three = np.where(train.X[:, 12] > 2.0, 2, train.y > 0)
    write(BayesianLinearSVC(random_state=0, n_jobs=1).fit(X, three), "_linear", rows)
    with suppress(Killed):
        BayesianSVC(n_inducing=3, tune=None, random_state=0, n_jobs=1).fit(
            X, train.y, callback=kill, checkpoint=FOLDER / f"version{VERSION}.checkpoint", checkpoint_every=0
        )
