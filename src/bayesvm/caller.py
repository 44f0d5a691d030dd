"""Where warnings point: to the line of the user's program that called bayesvm, however deep the warning is raised."""

from __future__ import annotations

import sys
from types import FrameType

# Packages whose frames lie between the user's line and a warning: cross_val_score of scikit-learn runs fits through
# joblib, and `with` statements and decorators leave frames of the standard library.
_BETWEEN = {"bayesvm", "sklearn", "joblib", "contextlib", "functools", "threadpoolctl"}


def caller_level() -> int:
    """The ``stacklevel`` with which ``warnings.warn``, called next to it, points to the first line outside bayesvm.

    Where a thread begins inside bayesvm or joblib there is no such line; then it points to the outermost frame.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  (inspect.stack would read all source files)
    level = 1
    while frame is not None and _is_between(frame):
        frame = frame.f_back
        level += 1
    return level if frame is not None else level - 1


def _is_between(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] in _BETWEEN
