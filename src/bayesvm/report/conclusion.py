"""Report: the conclusion, two sentences about the target, the quality and the important columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayesvm.evaluation import Metric
from bayesvm.evaluation.formatting import column_label, counted, points, shortened
from bayesvm.workflow import EvaluatedRows, TableModel
from bayesvm.workflow.importance import Importance

TRUSTED = 0.05  # calibration error up to which the probabilities can be trusted
MOST_NAMED = 3  # columns
LEAST_PART = 0.25  # importance relative to the first column, below which a column is not named
LEAST_CHANGE = 0.005  # change of the probabilities, below which a column does not matter


def conclusion(
    model: TableModel, evaluated: str, quality: dict[str, Any], important: Importance | None
) -> tuple[str, str]:
    """Two sentences; ``evaluated`` names the rows, ``quality`` is the result of ``sections.quality``."""
    error: Metric = quality["metrics"]["error"]
    right = accuracy(error.value)
    interval = f"{100 * (1 - error.high):.1f} to {accuracy(error.low)}"
    others = [f"always guessing {shortened(quality['usual'])} has {accuracy(quality['usual_error'])}"]
    others += [f"{each['name']} {accuracy(each['error'])}" for each in quality["baselines"]]
    first = (
        f"This model predicts {_predicted(model)} and has an accuracy of {right} (95%: {interval}), evaluated "
        f"{evaluated}; {joined_words(others)}{' on the same rows' if quality['baselines'] else ''}."
    )
    second = f"{_trust(quality['metrics']['calibration_error'])}{named_columns(important)}."
    return first, second


def caveat(model: TableModel) -> str:
    """A sentence about columns that alone explain the target; empty without such columns."""
    found = model.card.get("leaks") or []
    if not found:
        return ""
    share = max(share for _, share in found)
    names = joined_words([shortened(column_label(name)) for name, _ in found[:MOST_NAMED]])
    what = "of the variance of the target" if model.is_regression else "of the rows"
    verb = "explains" if model.is_regression else "predicts the class of"
    shown = "all" if share == 1 else f"{100 * share:.1f}%"
    subject = f"{names} alone {verb}" if len(found) == 1 else f"Each of {names} alone {verb} up to"
    return (
        f"Caution: {subject} {shown} {what}. If it is not known before the target, the metrics of this report do not "
        "apply to new rows."
    )


def evaluated_on(evaluated: EvaluatedRows, *, given: bool) -> str:
    """Describe the evaluated rows, to follow "evaluated"; ``given`` if they are a separate table."""
    source = evaluated.source
    if given:
        return f"on {source} ({counted(evaluated.predictions.n_rows, 'row')})"
    if source.startswith("leave-one-out"):
        return f"on its {counted(evaluated.predictions.n_rows, 'training row')}, each left out in turn"
    if source.startswith("held out: "):
        return f"on {source.removeprefix('held out: ')}, held out of training"
    return f"by {source}"


def accuracy(error: float) -> str:
    """The accuracy for an error rate.

    >>> accuracy(0.187)
    '81.3%'
    """
    return f"{100 * (1 - error):.1f}%"


def _predicted(model: TableModel) -> str:
    target, labels = model.card.get("target"), [shortened(label) for label in model.estimator.classes_]
    classes = f"{labels[0]} or {labels[1]}" if len(labels) == 2 else f"one of {len(labels)} classes"
    return f"{column_label(target)} ({classes})" if target else classes


def _trust(calibration: Metric) -> str:
    most = points(calibration.high)
    if calibration.may_be_zero and calibration.high <= TRUSTED:
        return f"Its probabilities can be trusted to within {most} percentage points on average (95%)"
    if calibration.may_be_zero or calibration.high == 0:
        off = f"off by at most {most} percentage points on average (95%)"
        return f"On these rows, its probabilities are {off}"
    return (
        f"Its probabilities are off by {points(calibration.value)} percentage points on average "
        f"(95%: {points(calibration.low)} to {most})"
    )


def named_columns(important: Importance | None, least_change: float = LEAST_CHANGE, what: str = "them") -> str:
    """Which columns matter for ``what``, the predictions, as the end of a sentence."""
    if important is None:
        return ""
    if important.change[0] < least_change:
        return f"; no column matters for {what}"
    least = LEAST_PART * important.change[0]
    names = [
        shortened(column_label(name))
        for name, change in zip(important.names[:MOST_NAMED], important.change, strict=False)
        if change >= least
    ]
    return (
        f"; the column that matters most is {names[0]}" if len(names) == 1 else f"; {joined_words(names)} matter most"
    )


def joined_words(parts: Sequence[str]) -> str:
    """Joined with commas and "and"."""
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
