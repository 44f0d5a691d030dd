"""Every plot of `bayesvm.inspection`, into out/gallery: `python examples/gallery.py [--dark]`."""

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, make_moons

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.inspection import (
    DecisionBoundaryDisplay,
    EffectDisplay,
    ElboTraceDisplay,
    PartialDependenceDisplay,
    ProbabilityHistogramDisplay,
    RelevanceDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    TuningPathDisplay,
    UncertaintyDisplay,
)
from bayesvm.kernels import RBF


def plots():
    """Yield names and displays."""
    X, y = make_moons(300, noise=0.25, random_state=0)
    moons = BayesianSVC(n_inducing=30, random_state=0).fit(X, y)
    yield "boundary", DecisionBoundaryDisplay.from_estimator(moons, X, y)

    iris = load_iris()
    X, y = iris.data[:, 2:], iris.target_names[iris.target]
    flowers = BayesianSVC(n_inducing=30, random_state=0).fit(X[::2], y[::2])
    yield (
        "boundary_three_classes",
        DecisionBoundaryDisplay.from_estimator(flowers, X, y, feature_names=iris.feature_names[2:]),
    )
    yield "reliability_three_classes", ReliabilityDisplay.from_estimator(flowers, X[1::2], y[1::2], n_bins=6)
    yield "probabilities_three_classes", ProbabilityHistogramDisplay.from_estimator(flowers, X[1::2], y[1::2])

    cells = load_breast_cancer()
    X, y = cells.data, cells.target_names[cells.target]
    tumours = BayesianSVC(n_inducing=80, random_state=0).fit(X, y)
    worst = [list(cells.feature_names).index(name) for name in ("worst texture", "worst concave points")]
    yield (
        "boundary_two_of_thirty",
        DecisionBoundaryDisplay.from_estimator(tumours, X, y, features=worst, feature_names=cells.feature_names),
    )
    yield (
        "partial_dependence",
        PartialDependenceDisplay.from_estimator(tumours, X, "worst texture", feature_names=list(cells.feature_names)),
    )

    train, test = waveform(3_000, random_state=0), waveform(5_000, random_state=1)
    waves = BayesianSVC(n_inducing=80, random_state=0).fit(train.X, train.y)
    yield "tuning", TuningPathDisplay.from_estimator(waves)
    yield "reliability", ReliabilityDisplay.from_estimator(waves, test.X, test.y)
    yield "risk_coverage", RiskCoverageDisplay.from_estimator(waves, test.X, test.y)
    yield "probabilities", ProbabilityHistogramDisplay.from_estimator(waves, test.X, test.y)
    yield "uncertainty", UncertaintyDisplay.from_estimator(waves, test.X, test.y)

    plain = BayesianSVC(n_inducing=80, tune=None, random_state=0).fit(train.X, train.y)
    yield "elbo", ElboTraceDisplay.from_estimator(plain)
    kernel = RBF(length_scale=np.full(21, 4.0), variance=4.0)
    ours = BayesianSVC(kernel, tune="loo", n_inducing=60, random_state=0).fit(train.X, train.y)
    names = [f"t = {t}" for t in range(21)]
    yield "relevance", RelevanceDisplay.from_estimator(ours, feature_names=names, top=12)

    rng = np.random.default_rng(0)
    level = rng.integers(4, size=400)
    X = np.column_stack([rng.normal(size=400), np.eye(4)[level]])
    y = X[:, 0] + np.array([0.0, 1.0, -1.0, 0.5])[level] + rng.normal(size=400) > 0
    places = BayesianSVC(n_inducing=40, random_state=0).fit(X, y)
    names = ["height", "city", "forest", "mountains", "seaside"]
    yield (
        "partial_dependence_levels",
        PartialDependenceDisplay.from_estimator(places, X, names[1:], feature_names=names, feature_name="place"),
    )

    X = np.column_stack([rng.normal(size=2500), rng.integers(1, 13, 2500), rng.integers(1, 8, 2500)])
    y = X[:, 0] + np.where((X[:, 1] + X[:, 2]) % 2 == 1, 4, -4) + rng.logistic(size=2500) > 0
    sales = BayesianSVC(n_inducing=50, random_state=0).fit(X, y)
    yield "effect_of_a_pair", EffectDisplay.from_estimator(sales, X=X, feature_names=["price", "month", "weekday"])

    X = np.column_stack([rng.normal(size=(1500, 2)), rng.integers(12, size=1500)])
    y = X[:, 0] + 4 * (X[:, 2] % 2) - 2 + rng.logistic(size=1500) > 0
    codes = BayesianSVC(RBF(), scale="standard", n_inducing=50, random_state=0).fit(X, y)
    yield "effect", EffectDisplay.from_estimator(codes, X=X, feature_names=["height", "width", "code"])


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path, default=Path("out/gallery"))
    arguments.add_argument("--dark", action="store_true")
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with plt.style.context("dark_background" if options.dark else "default"):
        for name, display in plots():
            path = options.out / f"{name}.png"
            display.figure_.savefig(path, dpi=110)
            plt.close(display.figure_)
            print(path)


if __name__ == "__main__":
    main()
