"""Report: plots of predictions and of training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_auc_score, roc_curve

from bayesvm.evaluation import Predictions, thresholds
from bayesvm.evaluation.formatting import column_label, shortened
from bayesvm.inspection import (
    ElboTraceDisplay,
    ProbabilityHistogramDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    TuningPathDisplay,
    UncertaintyDisplay,
)
from bayesvm.inspection.colours import CLASSES
from bayesvm.report.svg import INK, drawn

MOST_CURVES = 10
POINTS_OF_CURVE = 200  # of a curve,
MOST_DOTS = 600  # and of a scatter plot; more points cannot be distinguished and make the file large
LEAST_GAIN = 0.002  # minimum range of the axis of the ELBO, relative
MANY_TIMES = 20  # ratio of values from which the axis is logarithmic
LONGEST = 16  # characters of a label
LEAST_FLAGGED = 10  # minimum number of rows for a lift
FEW = 2  # maximum number of curves for a legend inside the plot


def of_predictions(predictions: Predictions, target: str | None) -> dict[str, str]:
    """Plots that need only probabilities and true classes; ``target`` is the name of the column, if it has one."""
    labels = np.array([shortened(label, LONGEST) for label in predictions.classes], object)
    predictions = replace(predictions.counted(), classes=labels)
    title = "Reliability diagram: observed frequencies against predicted probabilities, with the number of rows"
    found: dict[str, tuple[Any, ...]] = {
        "reliability": (title, lambda ax: _reliability(ax, predictions, target), (5.0, 4.2)),
        "histogram": (
            "Histogram of the predicted probabilities by true class",
            lambda ax: _histogram(ax, predictions, target),
        ),
        "coverage": (
            "Error among the rows that are answered, against their share",
            lambda ax: RiskCoverageDisplay.of(predictions, ax=ax),
        ),
    }
    if curves := list(_one_against_the_rest(predictions)):
        size = (5.0, 3.9 if len(curves) <= FEW else 5.0)
        found["roc"] = ("ROC curves", lambda ax: _roc(ax, curves), size)
        found["precision"] = ("Precision-recall curves", lambda ax: _precision(ax, curves), size)
        if len(labels) == 2:
            found["thresholds"] = (
                "Precision and recall against the threshold",
                lambda ax: _thresholds(ax, predictions),
            )
            found["lift"] = ("Lift against the share of rows", lambda ax: _lift(ax, predictions))
    if predictions.aleatoric is not None and predictions.epistemic is not None:
        found["uncertainty"] = (
            "Epistemic against aleatoric uncertainty of the rows",
            lambda ax: UncertaintyDisplay.of(predictions, ax=ax, max_points=MOST_DOTS),
        )
    return {name: drawn(name, *how) for name, how in found.items()}


def of_training(estimator: Any, n_rows: float | None) -> dict[str, str]:
    """Plots of tuning and training."""
    found: dict[str, tuple[Any, ...]] = {}
    report = getattr(estimator, "tuning_report_", None)
    if report is not None and report.trials:
        title = "Leave-one-out log loss of all trials"
        found["tuning"] = (title, lambda ax: _tuning(ax, estimator), (5.0, 5.0))
    if report is not None and report.climb:
        found["climb"] = ("Parameters of the kernel, step by step", lambda ax: _climb(ax, estimator))
    if len(estimator.elbo_trace_) > 1:
        found["elbo"] = ("Evidence lower bound after each update", lambda ax: _elbo(ax, estimator, n_rows))
    return {name: drawn(name, *how) for name, how in found.items()}


def _name_probability(ax: Any, predictions: Predictions, target: str | None) -> None:
    """For two classes, name the column and the class; a display knows no name of the column."""
    if target is not None and len(predictions.classes) == 2:
        name = shortened(column_label(target), LONGEST)
        ax.set_xlabel(f"predicted probability of {name} = {predictions.classes[1]}", parse_math=False)


def _reliability(ax: Any, predictions: Predictions, target: str | None) -> None:
    ReliabilityDisplay.of(predictions, ax=ax)
    _name_probability(ax, predictions, target)
    for text in ax.texts:
        text.set_fontsize(8.5)  # readable on a phone


def _histogram(ax: Any, predictions: Predictions, target: str | None) -> None:
    display = ProbabilityHistogramDisplay.of(predictions, ax=ax)
    _name_probability(ax, predictions, target)
    ax.set_ylim(0, 1.25 * ax.get_ylim()[1])  # room for the legend
    ax.legend(title=None, ncols=len(display.labels), loc="upper center")


class _Curve(NamedTuple):
    """One class against the rest: true classes and scores of the rows, and the style of the curve."""

    label: str
    true: Any
    score: Any
    weight: Any
    look: dict[str, Any]


def _one_against_the_rest(predictions: Predictions) -> Iterator[_Curve]:
    """For two classes, the second; for more, the most frequent ones. Classes that do not occur have no curve."""
    count = np.bincount(predictions.y, minlength=len(predictions.classes))
    numbers = [1] if len(count) == 2 else sorted(np.argsort(-count, kind="stable")[:MOST_CURVES].tolist())
    there = [number for number in numbers if 0 < count[number] < predictions.n_rows]
    for i, k in enumerate(there):
        style = "solid" if i < len(CLASSES) else (0, (4, 1.5))
        look = {"color": CLASSES[i % len(CLASSES)], "linestyle": style}
        yield _Curve(predictions.classes[k], predictions.y == k, predictions.proba[:, k], predictions.weight, look)


def _roc(ax: Any, curves: list[_Curve]) -> None:
    ax.plot([0, 1], [0, 1], color=INK, alpha=0.45, linewidth=1)
    for curve in curves:
        false_positive, recall, _ = roc_curve(curve.true, curve.score, sample_weight=curve.weight)
        area = roc_auc_score(curve.true, curve.score, sample_weight=curve.weight)
        shown = thinned(false_positive, recall)
        ax.plot(false_positive[shown], recall[shown], label=f"{curve.label}: area {area:.3f}", **curve.look)
    ax.set(xlabel="false positive rate", ylabel="true positive rate (recall)")
    _explain(ax, len(curves), "lower right")


def _precision(ax: Any, curves: list[_Curve]) -> None:
    for curve in curves:
        precision, recall, _ = precision_recall_curve(curve.true, curve.score, sample_weight=curve.weight)
        shown = thinned(recall, precision)
        common = float(np.average(curve.true, weights=curve.weight))
        ax.plot(recall[shown], precision[shown], label=f"{curve.label}: {100 * common:.0f}% of rows", **curve.look)
        if len(curves) == 1:
            ax.axhline(common, color=INK, alpha=0.45, linewidth=1)
    ax.set_ylim(0, 1.04)
    ax.set(xlabel="recall", ylabel="precision")
    _explain(ax, len(curves), "lower left")


def _thresholds(ax: Any, predictions: Predictions) -> None:
    found = thresholds(predictions)
    t, precision, recall = found.threshold[1:], found.precision[1:], found.recall[1:]
    shown = thinned(t, recall)
    ax.plot(t[shown], precision[shown], label="precision")
    ax.plot(t[shown], recall[shown], label="recall")
    ax.plot(t[shown], found.flagged[1:][shown], color=INK, alpha=0.45, linewidth=1, label="share of rows flagged")
    ax.set_ylim(0, 1.18)
    ax.set_xlim(-0.02, 1.02)
    ax.set_yticks(np.linspace(0, 1, 6))
    ax.set(xlabel="threshold of the probability", ylabel="share")
    ax.legend(ncols=3, loc="upper center", columnspacing=1.0, handlelength=1.2)


def _lift(ax: Any, predictions: Predictions) -> None:
    found = thresholds(predictions)
    flagged, lift = found.flagged[1:], found.lift[1:]
    enough = flagged >= LEAST_FLAGGED / predictions.n_rows  # fewer rows are too noisy
    ax.plot(flagged[enough], lift[enough])
    ax.axhline(1, color=INK, alpha=0.45, linewidth=1)
    ax.set_ylim(0, 1.1 * max(1.0, float(lift[enough].max())))
    ax.set_xlim(-0.02, 1.02)
    ax.set(xlabel="share of rows flagged, the most probable first", ylabel="lift")


def _explain(ax: Any, n_curves: int, place: str) -> None:
    ax.set_xlim(-0.02, 1.02)
    if n_curves <= FEW:
        ax.legend(loc=place)
    else:
        ax.figure.legend(loc="outside lower center", ncols=2)


def thinned(x: Any, y: Any) -> Any:
    """Indices of points with about equal distances along a curve."""
    way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    return np.unique(np.searchsorted(way, np.linspace(0, way[-1], POINTS_OF_CURVE)).clip(max=len(way) - 1))


def _tuning(ax: Any, estimator: Any) -> None:
    TuningPathDisplay.from_estimator(estimator, ax=ax)
    ax.grid(visible=False, axis="x")
    # An outlier must not compress the other trials.
    loss = np.array([trial.loo for trial in estimator.tuning_report_.trials])
    most = np.median(loss) + max(4 * (np.median(loss) - loss.min()), 0.01)
    if loss.max() > most:
        ax.set_ylim(loss.min() - 0.15 * (most - loss.min()), most)
        for i in np.flatnonzero(loss > most):
            ax.text(i + 1, most, f"↑ {loss[i]:.2f}", ha="center", va="top", fontsize=8.5)
    handles = ax.get_legend().legend_handles
    ax.get_legend().remove()
    ax.figure.legend(handles=handles, loc="outside lower center", ncols=2)


def _elbo(ax: Any, estimator: Any, n_rows: float | None) -> None:
    ElboTraceDisplay.from_estimator(estimator, n_rows=n_rows, ax=ax)
    ax.ticklabel_format(axis="y", useOffset=False)
    low, high = ax.get_ylim()
    least = LEAST_GAIN * max(1.0, abs(high))
    if high - low < least:  # a flat curve should look flat
        ax.set_ylim((low + high - least) / 2, (low + high + least) / 2)


def _climb(ax: Any, estimator: Any) -> None:
    """The parameters that changed most, at most six."""
    path = np.array(estimator.tuning_report_.climb)[:, 1:]
    learned = estimator.kernel_.learned()
    names = [
        part.name.replace("_", " ") + (f" {j + 1}" if len(part.value) > 1 else "")
        for part in learned
        for j in range(len(part.value))
    ]
    moved = np.argsort(-np.abs(np.log(path[-1] / path[0])), kind="stable")[: len(CLASSES)]
    for k in np.sort(moved):
        ax.plot(np.arange(1, len(path) + 1), path[:, k], label=names[k] if k < len(names) else None)
    shown = path[:, moved]
    if shown.max() > MANY_TIMES * shown.min():
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")  # default labels would be math text, which is off
        ax.yaxis.set_minor_formatter("")
    ax.set(xlabel="step", ylabel="parameter of the kernel")
    ax.legend(loc="best")
