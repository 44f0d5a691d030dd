"""The main job on an embedded default: one million rows of Breiman's waveform, trained, judged and pictured.

Run with `make demo`. The Bayes limit is computed from the known densities: nobody can do better.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform


def figures(y, probability):
    """Error, Brier score and log loss."""
    return (
        np.mean((probability > 0.5) != (y == 1)),
        brier_score_loss(y, probability, pos_label=1),
        log_loss(y, probability),
    )


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--inducing", type=int, default=64)
    arguments.add_argument("--out", type=Path, default=Path("out"))
    options = arguments.parse_args()

    print(f"Generating {options.rows:,} rows of the waveform problem (21 columns, class 1 against the rest) …")
    train, test = waveform(options.rows, random_state=0), waveform(200_000, random_state=1)

    print(f"Training BayesianSVC with {options.inducing} inducing points …")
    start = time.perf_counter()
    ours = BayesianSVC(n_inducing=options.inducing, random_state=0, verbose=1).fit(train.X, train.y)
    our_seconds = time.perf_counter() - start
    print(f"{ours.n_iter_} updates, {ours.n_passes_:.2f} passes over the rows, converged: {ours.converged_}")

    print(f"Training scikit-learn's Nystroem({options.inducing}) + logistic regression on the same rows …")
    start = time.perf_counter()
    peer = make_pipeline(
        StandardScaler(),
        Nystroem(gamma=1 / (2 * train.X.shape[1]), n_components=options.inducing, random_state=0),
        LogisticRegression(C=10, max_iter=300),
    ).fit(train.X, train.y)
    peer_seconds = time.perf_counter() - start

    probabilities = {
        "Bayes limit": test.probability,
        "BayesianSVC": ours.predict_proba(test.X)[:, 1],
        "Nystroem + logistic": peer.predict_proba(test.X)[:, 1],
    }
    seconds = {"BayesianSVC": our_seconds, "Nystroem + logistic": peer_seconds}
    print(f"\n{'on 200,000 new rows':>22}  {'error':>7}  {'Brier':>7}  {'log loss':>8}  {'training':>9}")
    for name, probability in probabilities.items():
        error, brier, loss = figures(test.y, probability)
        took = f"{seconds[name]:7.1f} s" if name in seconds else ""
        print(f"{name:>22}  {error:7.4f}  {brier:7.4f}  {loss:8.4f}  {took:>9}")
    print(f"\nTraining was {peer_seconds / our_seconds:.1f} times as fast as Nystroem + logistic regression.")
    draw(test.y, probabilities, options.out / "calibration.png")


def draw(y, probabilities, path):
    """Calibration curves: how often the class occurred among rows that were given a probability."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, (curve, histogram) = plt.subplots(
        2, 1, figsize=(6, 7), height_ratios=(3, 1), sharex=True, layout="constrained"
    )
    curve.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="perfect")
    for (name, probability), style in zip(probabilities.items(), (":", "-", "--"), strict=True):
        observed, stated = calibration_curve(y, probability, n_bins=20, pos_label=1)
        curve.plot(stated, observed, style, label=name)
    histogram.hist(probabilities["BayesianSVC"], bins=40, color="0.6")
    histogram.set(
        yscale="log", ylabel="rows", xlabel="stated probability of class 1 (below: how often BayesianSVC states it)"
    )
    curve.set(ylabel="share of class 1", title="Waveform: calibration on new rows")
    curve.legend()
    figure.savefig(path, dpi=120)
    print(f"Calibration picture: {path}")


if __name__ == "__main__":
    main()
