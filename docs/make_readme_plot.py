"""Draw readme.svg, the picture of README.md and of the landing page: python docs/make_readme_plot.py."""

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.ensemble import HistGradientBoostingClassifier

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.inspection import DecisionBoundaryDisplay, ReliabilityDisplay

PATH = Path(__file__).parent / "readme.svg"
# The same bytes from the same versions of the libraries: no random ids, no date.
STYLE = {"svg.hashsalt": "bayesvm", "font.size": 9, "axes.titlesize": 10}


def draw(path: Path = PATH) -> None:
    """Draw reliability curves of two models, beside a decision boundary with uncertainty."""
    with plt.rc_context(STYLE):
        size = {"figsize": (8.6, 3.6), "layout": "constrained", "facecolor": "white"}
        figure, (left, right) = plt.subplots(1, 2, **size)

        train, test = waveform(2_000, random_state=0), waveform(20_000, random_state=1)
        models = {
            "BayesianSVC": BayesianSVC(random_state=0),
            "gradient boosting": HistGradientBoostingClassifier(random_state=0),
        }
        for name, model in models.items():
            model.fit(train.X, train.y)
            ReliabilityDisplay.from_estimator(
                model, test.X, test.y, n_bins=12, ax=left, name=name, strip=False
            )
        left.set(
            title="Are the probabilities calibrated?", xlabel="predicted probability"
        )

        X, y = make_moons(240, noise=0.2, random_state=0)
        seen = abs(X[:, 0] - 1.1) > 0.45  # a gap without rows
        model = BayesianSVC(n_inducing=40, random_state=0).fit(X[seen], y[seen])
        DecisionBoundaryDisplay.from_estimator(
            model,
            X[seen],
            y[seen],
            ax=right,
            inducing=False,
            margin=False,
            key=False,
            interpolation="none",  # embeds 100 × 100 pixels, which viewers interpolate
        )
        right.set(title="Colour: probability. Pale: too few data", xlabel="", ylabel="")
        right.set(xticks=[], yticks=[])

        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    draw()
