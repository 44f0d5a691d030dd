"""Peak memory of a batch fit at N = 1,000,000 and M = 256, beyond the data itself. Run with `make bench`."""

import resource

import numpy as np

from bayesvm import BayesianSVC

N, D, M = 1_000_000, 18, 256


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D), dtype=np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    model = BayesianSVC(n_inducing=M, inference="batch", max_iter=2, tol=0, random_state=0)
    model.fit(X[:5000], y[:5000])  # what libraries allocate once
    before = peak_megabytes()
    model.fit(X, y)
    fitted = peak_megabytes()
    model.predict_proba(X)
    print(f"data {X.nbytes / 2**20:.0f} MB; N×M features in single precision would be {N * M * 4 / 2**20:.0f} MB")
    print(
        f"peak beyond the data: fit {fitted - before:.0f} MB, fit and predict_proba {peak_megabytes() - before:.0f} MB"
    )
