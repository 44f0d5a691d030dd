"""What noise before the hinge is worth (D22), where the probability of every row is known.

Run with ``python -m experiments.tuning.noise``; the table is in docs/tuning.md. Some minutes.
"""

import numpy as np
from scipy.special import expit

from bayesvm import BayesianSVC
from bayesvm.datasets import people, waveform

NOISES = (0.0, 0.3, 1.0, 3.0)
SIZES = (2_000, 20_000, 200_000)
N_TEST = 50_000


def waves(n_rows, seed):
    made = waveform(n_rows, random_state=seed)
    return made.X, made.y, made.probability


def hills(n_rows, seed):
    """Two columns, and a probability that changes smoothly between .1 and .9."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 2))
    p = expit(1.2 * np.sin(3 * X[:, 0]) + X[:, 1])
    return X, rng.random(n_rows) < p, p


def earnings(n_rows, seed):
    """The table ``people`` as numbers: categories become columns, missing values a median and a column that says so."""
    made, known = people(n_rows, random_state=seed), people(10_000, random_state=0)
    columns = []
    for name, values in made.columns.items():
        if name == "id":
            continue
        if values.dtype == object:
            levels = set(map(str, known.columns[name]))  # None among them
            columns += [np.array([str(value) == level for value in values], float) for level in sorted(levels)]
        else:
            numbers = values.astype(float)
            columns += [np.where(np.isnan(numbers), 25.0, numbers), np.isnan(numbers).astype(float)]
    return np.column_stack(columns), made.income == "high", made.probability


def distance(model, X, p):
    """Mean divergence of the stated from the true probabilities, in nats: log loss above the best possible."""
    q = model.predict_proba(X)[:, 1]
    return float(np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))))


def main():
    print("| problem | N | " + " | ".join(f"noise {noise:g}" for noise in NOISES) + " |")
    print("|---|--:|" + "--:|" * len(NOISES))
    for name, draw in (("hills", hills), ("people", earnings), ("waveform", waves)):
        asked, _, truth = draw(N_TEST, 1)
        truth = np.clip(truth, 1e-12, 1 - 1e-12)
        for size in SIZES:
            X, y, _ = draw(size, 0)
            found = [distance(BayesianSVC(noise=noise, random_state=0).fit(X, y), asked, truth) for noise in NOISES]
            print(f"| {name} | {size:,} | " + " | ".join(f"{value:.4f}" for value in found) + " |", flush=True)


if __name__ == "__main__":
    main()
