"""Inspection: colours. Text, lines and series come from matplotlib's settings, so that a style or a dark page changes
them; what is faint is the same colour, more transparent. Classes have colours that colour-blind readers tell apart.
"""

from __future__ import annotations

from typing import Any

from bayesvm.extras import optional

# Okabe and Ito's palette without black and yellow: each is visible on white and on black.
CLASSES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "os^Dv*P"  # one more than colours, so that both together tell many classes apart
MIDDLE = "#A89C94"  # between two classes: neither, yet not the background, which means "not known"
FAINT = 0.45


def ink() -> Any:
    """The colour of text, for lines that explain and do not show data."""
    return optional("matplotlib", "plots").rcParams["text.color"]


def series(number: int) -> Any:
    """Of a line or bar: the style's, in turn."""
    cycle = optional("matplotlib", "plots").rcParams["axes.prop_cycle"].by_key().get("color", list(CLASSES))
    return cycle[number % len(cycle)]


def of_class(number: int) -> str:
    """Of the class of that number."""
    return CLASSES[number % len(CLASSES)]


def marker(number: int) -> str:
    """The same by shape, for print without colours."""
    return MARKERS[number % len(MARKERS)]
