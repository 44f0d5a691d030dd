"""Evaluation: format numbers, names and lists for plots, reports and the command line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bayesvm.evaluation.metrics import Metric

METRIC_NAMES = {
    "error": "error",
    "brier": "Brier score",
    "log_loss": "log loss",
    "auc": "AUC",
    "calibration_error": "calibration error",
    "rmse": "RMSE",
    "mae": "mean absolute error",
    "r2": "R²",
    "log_density": "mean log density",
    "coverage": "coverage of 90% intervals",
}
IN_UNITS = {"rmse", "mae"}  # metrics whose size is that of the target
LEAST_SHOWN = 0.001  # upper end of a calibration error


def decimal(value: float, digits: int = 4) -> str:
    """Four decimals, or a dash for NaN.

    >>> decimal(0.12345), decimal(float("nan"))
    ('0.1235', '–')
    """
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def decimals_of(low: float, high: float) -> int:
    """Two to four decimals, as many as an interval supports.

    >>> decimals_of(0.163, 0.212), decimals_of(0.1855, 0.1901), decimals_of(0.1, 0.6)
    (3, 4, 2)
    """
    half = (high - low) / 2
    return min(4, max(2, 1 + math.ceil(-math.log10(half)))) if half > 0 else 4


def signed_interval(found: Sequence[float]) -> str:
    """A difference, with the ends of its interval.

    >>> signed_interval((-0.0113, -0.0261, 0.0034))
    '-0.011 (-0.026 to +0.003)'
    """
    value, low, high = (f"{each:+.{decimals_of(*found[1:])}f}" for each in found)
    return f"{value} ({low} to {high})"


def in_units(value: float, half: float = 0.0) -> str:
    """A number of any size; with as many digits as half the length of its interval supports, or four.

    >>> in_units(53_217.4, 1_100), in_units(0.03456, 0.004), in_units(53_217.4), in_units(1.5e-9)
    ('53,200', '0.0346', '53,220', '1.5e-09')
    """
    size = abs(value)
    if math.isnan(value):
        return "–"
    if size and not 1e-5 <= size < 1e15:
        return f"{value:.3g}"
    error = half if half > 0 else size / 100
    decimals = 2 - math.floor(math.log10(error)) - 1 if error > 0 else 2
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def three_digits(value: float) -> str:
    """Three digits, or the whole number if it has more.

    >>> three_digits(0.7361), three_digits(1893.2), three_digits(2.5e9)
    ('0.736', '1,893', '2.5e+09')
    """
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def percent(share: float) -> str:
    """Three digits, without trailing zeros.

    >>> percent(1.0), percent(0.95), percent(0.9517)
    ('100%', '95%', '95.2%')
    """
    return f"{100 * share:.3g}%"


def exact_percent(share: float) -> str:
    """One decimal, for columns of percentages.

    >>> exact_percent(1.0), exact_percent(0.77), exact_percent(0.9517)
    ('100.0%', '77.0%', '95.2%')
    """
    return f"{100 * share:.1f}%"


def rough_percent(share: float) -> str:
    """A whole percentage, with a decimal if it is small, or a dash for NaN.

    >>> rough_percent(0.314), rough_percent(0.012), rough_percent(0.0002), rough_percent(0.0)
    ('31%', '1.2%', '< 0.1%', '0%')
    """
    if math.isnan(share):
        return "–"
    if 0 < share < 0.0005:
        return "< 0.1%"
    return f"{100 * share:.1f}%" if 0 < share < 0.1 else f"{100 * share:.0f}%"


def probability(value: float) -> str:
    """Three decimals; a probability other than 0 and 1 is never rounded to them.

    >>> probability(0.5), probability(0.99996), probability(1e-9), probability(1.0)
    ('0.500', '> 0.999', '< 0.001', '1.000')
    """
    if 0 < value < 0.0005:
        return "< 0.001"
    return "> 0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def points(share: float) -> str:
    """Percentage points, with a decimal if they are small.

    >>> points(0.0432), points(0.123), points(0.0)
    ('4.3', '12', '0')
    """
    return rough_percent(share).removesuffix("%")


def signed_points(share: float) -> str:
    """Percentage points of a change.

    >>> signed_points(0.123), signed_points(-0.004), signed_points(0.0001)
    ('+12', '-0.4', '0')
    """
    number = f"{100 * share:+.1f}" if abs(share) < 0.0995 else f"{100 * share:+.0f}"
    return "0" if float(number) == 0 else number


def at_most(most: float) -> str:
    """A metric whose interval includes zero: only its upper end.

    >>> at_most(0.04302), at_most(0.0)
    ('at most 0.043', 'at most 0.001')
    """
    return f"at most {max(most, LEAST_SHOWN):.3f}"


def column_label(name: Any) -> str:
    """The name of a column, or a placeholder for an empty name, as pandas writes for its index.

    >>> column_label("age"), column_label(" ")
    ('age', '(unnamed column)')
    """
    return str(name) if str(name).strip() else "(unnamed column)"


def counted(n: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "category")
    ('1 row', '1,200 rows', '2 categories')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def duration(seconds: float) -> str:
    """The duration of a fit.

    >>> duration(4.72), duration(754), duration(9000)
    ('4.7 s', '12 min 34 s', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def cell(value: Any) -> str:
    """A value of a table; numbers with fractions have five digits, or none after the point if they are large.

    >>> cell(None), cell(float("nan")), cell(0.1 + 0.2), cell(28700.0), cell("red"), cell(1e9)
    ('missing', 'missing', '0.3', '28700', 'red', '1000000000')
    >>> cell(-0.0512295), cell(123456.78), cell(-0.0)
    ('-0.05123', '123457', '0')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if isinstance(value, float):
        whole = value.is_integer() or abs(value) >= 1e4
        return f"{value + 0.0:.0f}" if whole and abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def shortened(text: Any, most: int = 28) -> str:
    """A text, cut to a maximal number of characters.

    >>> shortened("a" * 30, 5)
    'aaaa…'
    """
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def listed(names: Sequence[Any], most: int) -> str:
    """The first names of a list, and how many more there are.

    >>> listed(["a", "b", "c"], 2), listed(["a"], 2)
    ('a, b and 1 more', 'a')
    """
    return ", ".join(map(str, names[:most])) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def metric_rows(metrics: Mapping[str, Metric]) -> list[list[str]]:
    """Name, value and interval of each metric; for a calibration error that may be zero, only the upper end.

    >>> metric_rows({"error": Metric(0.1, 0.08, 0.12), "calibration_error": Metric(0.01, 0.0, 0.043)})
    [['error', '0.100', '0.080 to 0.120'], ['calibration error', '', 'at most 0.043']]
    """
    rows = []
    for name, metric in metrics.items():
        if name in IN_UNITS:
            half = (metric.high - metric.low) / 2
            value, low, high = (in_units(each, half) for each in metric)
            rows.append([METRIC_NAMES[name], value, f"{low} to {high}"])
            continue
        digits = decimals_of(metric.low, metric.high)
        interval = f"{decimal(metric.low, digits)} to {decimal(metric.high, digits)}"
        unclear = name == "calibration_error" and (metric.may_be_zero or metric.high < LEAST_SHOWN)
        shown = ["", at_most(metric.high)] if unclear else [decimal(metric.value, digits), interval]
        rows.append([METRIC_NAMES[name], *shown])
    return rows


def metric_cell(name: str, metric: Metric) -> str:
    """The value of a metric; for a calibration error that may be zero, the upper end of its interval.

    >>> metric_cell("error", Metric(0.1, 0.08, 0.12)), metric_cell("calibration_error", Metric(0.01, 0.0, 0.043))
    ('0.1000', '≤ 0.043')
    """
    if name in IN_UNITS:
        return in_units(metric.value)
    if name == "calibration_error" and (metric.may_be_zero or metric.high < LEAST_SHOWN):
        return f"≤ {max(metric.high, LEAST_SHOWN):.3f}"
    return decimal(metric.value)
