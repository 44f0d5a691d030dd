"""Plots of predictions: what they draw is what scikit-learn and plain counting find."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.evaluation import Predictions
from bayesvm.inspection import (
    ProbabilityHistogramDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    UncertaintyDisplay,
    colours,
)

RNG = np.random.default_rng(0)
P = RNG.random(600) ** 2
Y = np.where(RNG.random(600) < P, "yes", "no")
FOUR = [ProbabilityHistogramDisplay, ReliabilityDisplay, RiskCoverageDisplay, UncertaintyDisplay]
IRIS, KINDS = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model():
    data = waveform(300, random_state=0)
    return BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(data.X, data.y)


@pytest.fixture(scope="module")
def new():
    return waveform(500, random_state=1)


@pytest.fixture(scope="module")
def flowers():
    return BayesianSVC(n_inducing=20, tune=None, random_state=0).fit(IRIS[::2], KINDS[::2])


@pytest.fixture(scope="module")
def of_flowers(flowers):
    found = flowers.predict_uncertainty(IRIS[1::2])
    split = {name: found[name] for name in ("aleatoric", "epistemic")}
    return Predictions.of(flowers.classes_, KINDS[1::2], flowers.predict_proba(IRIS[1::2]), **split)


def numbers(display):
    return {name: value for name, value in vars(display).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("display", FOUR)
def test_three_ways_to_the_same_plot(display, model, new, ax):
    p, found = model.predict_proba(new.X), model.predict_uncertainty(new.X)
    split = {name: found[name] for name in ("aleatoric", "epistemic")}
    weight = RNG.random(500)
    given = {"sample_weight": weight, "ax": ax}
    drawn = display.from_estimator(model, new.X, new.y, **given)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    others = [
        display.from_predictions(new.y, p, sample_weight=weight, **split),
        display.from_predictions(new.y, p[:, 1], classes=[-1, 1], sample_weight=weight, **split),
        display.of(Predictions.of([-1, 1], new.y, p, weight=weight, **split)),
    ]
    assert numbers(drawn)
    for other in others:
        assert other.ax_ is not ax
        for name, value in numbers(drawn).items():
            np.testing.assert_allclose(getattr(other, name), value)


def test_reliability_is_that_of_scikit_learn():
    found = ReliabilityDisplay.from_predictions(Y, P, n_bins=10)
    observed, predicted = calibration_curve(Y == "yes", P, n_bins=10, strategy="quantile")
    x, drawn = found.line_.get_data()
    np.testing.assert_allclose(x, predicted, atol=1e-3)
    np.testing.assert_allclose(drawn, observed, atol=0.02)
    ends = np.array([path.vertices for path in found.intervals_.get_paths()])
    np.testing.assert_allclose(ends[:, 0], np.column_stack([x, found.low]))
    np.testing.assert_allclose(ends[:, 1], np.column_stack([x, found.high]))
    assert found.ax_.get_xlabel() == "predicted probability of y = yes"


def test_the_strip_counts_the_rows_and_is_below_the_shares():
    found = ReliabilityDisplay.from_predictions(Y, P)
    heights = np.array([bar.get_height() for bar in found.strip_])
    np.testing.assert_allclose(heights / heights.sum(), np.histogram(P, 25, (0, 1))[0] / 600)
    assert max(bar.get_y() + bar.get_height() for bar in found.strip_) < 0
    assert found.ax_.get_ylim()[0] < min(bar.get_y() for bar in found.strip_)
    assert found.ax_.texts[0].get_text().startswith("of 600 rows, the highest bar has ")


def test_two_models_on_the_same_axes(ax):
    ReliabilityDisplay.from_predictions(Y, P, ax=ax, name="ours")
    second = ReliabilityDisplay.from_predictions(Y, np.sqrt(P), ax=ax, name="theirs", strip=False)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["perfect", "ours", "theirs"]
    assert second.strip_ is None
    assert ax.get_ylim()[0] < -0.2  # the first one's strip is still there
    drawn = {line.get_label(): line.get_color() for line in ax.get_lines()}
    assert (drawn["ours"], drawn["theirs"]) == (colours.series(0), colours.series(1))


def test_reliability_of_many_classes(of_flowers):
    found = ReliabilityDisplay.of(of_flowers, n_bins=3)
    assert found.ax_.get_xlabel() == "predicted probability of the most probable class"
    assert found.predicted @ np.ones(3) / 3 == pytest.approx(of_flowers.proba.max(axis=1).mean(), abs=0.02)
    one = ReliabilityDisplay.of(of_flowers, pos_label=2, n_bins=1)
    assert one.predicted[0] == pytest.approx(of_flowers.proba[:, 2].mean())
    assert one.observed[0] == pytest.approx((KINDS[1::2] == 2).mean())
    first = ReliabilityDisplay.from_predictions(Y, P, pos_label="no", n_bins=1)
    assert first.predicted[0] == pytest.approx(1 - P.mean())


def test_risk_and_coverage_by_counting(ax):
    found = RiskCoverageDisplay.from_predictions(Y, P, ax=ax, name="ours")
    doubt, wrong = np.minimum(P, 1 - P), (P > 0.5) != (Y == "yes")
    for coverage, risk in list(np.transpose(found.line_.get_data()))[::50]:
        kept = np.argsort(doubt)[: round(coverage * 600)]
        assert risk == pytest.approx(wrong[kept].mean())
        at = np.flatnonzero(found.predicted_line_.get_xdata() == coverage)[0]
        assert found.predicted_line_.get_ydata()[at] == pytest.approx(doubt[kept].mean())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [f"ours, observed (area {found.area:.3g})", "ours, predicted"]
    again = RiskCoverageDisplay.from_predictions(Y, P, ax=ax)
    assert again.line_.get_color() != found.line_.get_color()


def test_histograms_are_of_the_rows_of_each_class():
    found = ProbabilityHistogramDisplay.from_predictions(Y, P, n_bins=10)
    for k, label in enumerate(("no", "yes")):
        rows = P[label == Y]
        counts, edges = np.histogram(rows, 10, (0, 1))
        values, drawn_edges, _ = found.steps_[k].get_data()
        np.testing.assert_allclose(values, counts / len(rows))
        np.testing.assert_allclose(drawn_edges, edges)
        assert found.ax_.get_legend().get_texts()[k].get_text() == f"{label} ({len(rows)})"
    assert found.ax_.get_legend().get_title().get_text() == "truth (rows)"
    other = ProbabilityHistogramDisplay.from_predictions(Y, P, n_bins=10, pos_label="no")
    np.testing.assert_allclose(other.shares, found.shares[::-1, ::-1])


def test_histograms_of_many_classes(of_flowers):
    found = ProbabilityHistogramDisplay.of(of_flowers)
    assert found.labels == ["correct", "wrong"]
    assert found.counts == [of_flowers.correct.sum(), (~of_flowers.correct).sum()]
    assert found.ax_.get_legend().get_title().get_text() == "prediction (rows)"
    one = ProbabilityHistogramDisplay.of(of_flowers, pos_label=1, n_bins=2)
    assert one.labels == ["not 1", "1"]
    assert one.shares[1, 1] == pytest.approx((of_flowers.proba[KINDS[1::2] == 1, 1] >= 0.5).mean())


def test_uncertainty_has_right_and_wrong_rows_apart(model, new):
    found = UncertaintyDisplay.from_estimator(model, new.X, new.y)
    said = model.predict_uncertainty(new.X)
    right = model.predict(new.X) == new.y
    for part, rows in ((found.right_, right), (found.wrong_, ~right)):
        np.testing.assert_allclose(part.get_offsets(), np.column_stack([said["aleatoric"], said["epistemic"]])[rows])
    legend = found.ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [f"correct ({right.sum()})", f"wrong ({(~right).sum()})"]
    assert not legend.get_title().get_text()


def test_of_many_rows_a_choice_is_drawn_always_the_same(model):
    a, e = RNG.random((2, 5000))
    correct = RNG.random(5000) < 0.9
    found, again = (UncertaintyDisplay(a, e, correct).plot() for _ in range(2))
    assert len(found.right_.get_offsets()) + len(found.wrong_.get_offsets()) == 2000
    assert found.ax_.get_legend().get_title().get_text() == "drawn: 2,000 of 5,000 rows"
    np.testing.assert_array_equal(found.wrong_.get_offsets(), again.wrong_.get_offsets())


def test_pipelines_and_other_classifiers(new):
    ours = make_pipeline(StandardScaler(), BayesianSVC(n_inducing=10, tune=None)).fit(new.X, new.y)
    inner = ours[-1].predict_uncertainty(ours[:-1].transform(new.X))
    found = UncertaintyDisplay.from_estimator(ours, new.X, new.y)
    np.testing.assert_allclose(found.epistemic, inner["epistemic"])
    theirs = LogisticRegression().fit(new.X, new.y)
    ReliabilityDisplay.from_estimator(theirs, new.X, new.y)
    with pytest.raises(TypeError, match="got LogisticRegression"):
        UncertaintyDisplay.from_estimator(theirs, new.X, new.y)


@pytest.mark.parametrize("display", FOUR)
def test_errors(display, model, new):
    with pytest.raises(NotFittedError):
        display.from_estimator(BayesianSVC(), new.X, new.y)
    with pytest.raises(ValueError, match="not among the classes \\[-1, 1\\]: 0, 2"):
        display.from_estimator(model, new.X, new.y + 1)
    with pytest.raises(ValueError, match="proba has 2 classes, but y_true has 1: \\['no'\\]; pass"):
        display.from_predictions(["no", "no"], [0.1, 0.2])


@pytest.mark.parametrize("display", [ReliabilityDisplay, ProbabilityHistogramDisplay])
def test_unknown_pos_label(display):
    with pytest.raises(ValueError, match="pos_label 'maybe' is not a class; the classes are \\['no', 'yes'\\]"):
        display.from_predictions(Y, P, pos_label="maybe")


def test_uncertainty_needs_both_parts():
    with pytest.raises(ValueError, match="no aleatoric and epistemic parts: pass both"):
        UncertaintyDisplay.from_predictions(Y, P, aleatoric=P)
