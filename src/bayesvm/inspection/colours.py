"""Inspection: colours. Text, lines and series use the settings of matplotlib, so they follow its style and work on dark
backgrounds; faint elements are transparent. Colour-blind readers can distinguish the colours of the classes.
"""

from __future__ import annotations

from typing import Any

from bayesvm.extras import optional

# Okabe and Ito's palette without black and yellow: each is visible on white and on black.
CLASSES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "os^Dv*P"  # one more than colours, so that their combinations distinguish many classes
MIDDLE = "#A89C94"  # between two classes; differs from the background, which means "uncertain"
FAINT = 0.45


def ink() -> Any:
    """The colour of text, for lines that show no data."""
    return optional("matplotlib", "plots").rcParams["text.color"]


def series(number: int) -> Any:
    """The colour of a line or bar, from the cycle of the style."""
    cycle = optional("matplotlib", "plots").rcParams["axes.prop_cycle"].by_key().get("color", list(CLASSES))
    return cycle[number % len(cycle)]


def of_class(number: int) -> str:
    """The colour of a class, by its index."""
    return CLASSES[number % len(CLASSES)]


def marker(number: int) -> str:
    """The marker of a class, for print without colours."""
    return MARKERS[number % len(MARKERS)]
