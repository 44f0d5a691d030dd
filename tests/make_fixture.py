"""Writes tests/fixtures/version1.*: a small model file of format version 1, and what it predicts.

To be run once for each version of the format; the file is kept so that later versions are tested on it.
"""

from pathlib import Path

import numpy as np

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.persistence import VERSION

if __name__ == "__main__":
    folder = Path(__file__).parent / "fixtures"
    folder.mkdir(exist_ok=True)
    train, test = waveform(60, random_state=4), waveform(20, random_state=5)
    model = BayesianSVC(n_inducing=5, random_state=0).fit(train.X, train.y)
    model.save(folder / f"version{VERSION}.bayesvm")
    np.savetxt(folder / f"version{VERSION}.txt", model.predict_proba(test.X)[:, 1])
