"""Warnings that point to the line of user code that called bayesvm, at any depth of the call stack."""

from __future__ import annotations

import sys
import threading
import warnings
from types import FrameType

# Packages whose frames may be between user code and a warning: cross_val_score of scikit-learn runs fits through
# joblib, possibly in a pool of threads, and `with` statements and decorators add frames of the standard library.
_BETWEEN = {"bayesvm", "sklearn", "joblib", "contextlib", "functools", "threadpoolctl"}
_BETWEEN |= {"threading", "concurrent", "multiprocessing"}


class ReadingNote(UserWarning):
    """Information about a detected file format; not a problem."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the first line outside bayesvm.

    A thread that reads ahead has no such line; its warnings belong to the call that the main thread waits for.
    """
    main = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
    caller = _outside(sys._getframe(1)) or _outside(main)  # noqa: SLF001
    if caller is None:
        warnings.warn(message, category, stacklevel=2)
        return
    names = caller.f_globals
    registry = names.setdefault("__warningregistry__", {})
    file, line = caller.f_code.co_filename, caller.f_lineno
    warnings.warn_explicit(message, category, file, line, names.get("__name__"), registry)


def _outside(frame: FrameType | None) -> FrameType | None:
    """The first frame, from this one outwards, that belongs to user code."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] in _BETWEEN:
        frame = frame.f_back
    return frame
