"""Warnings that point to the line of the user's code which led to them, however deep in the package they arise."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from pathlib import Path
from types import FrameType

PACKAGE = f"{Path(__file__).parent}{os.sep}"


def warn_user(message: str) -> None:
    """Issue a ``UserWarning`` at the line outside this package that called into it.

    Rows are read ahead in threads; what happens there is due to the call that the main thread waits for.
    """
    main = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
    caller = _caller(main) or _caller(sys._getframe())  # noqa: SLF001
    if caller is None:
        warnings.warn(message, UserWarning, stacklevel=2)
        return
    names = caller.f_globals
    registry = names.setdefault("__warningregistry__", {})
    file, line = caller.f_code.co_filename, caller.f_lineno
    warnings.warn_explicit(message, UserWarning, file, line, names.get("__name__"), registry)


def _caller(frame: FrameType | None) -> FrameType | None:
    """Of the frames from this one outwards, the last one that called into the package."""
    found = None
    while frame is not None and frame.f_back is not None:
        ours, outer = (each.f_code.co_filename.startswith(PACKAGE) for each in (frame, frame.f_back))
        found = frame.f_back if ours and not outer else found
        frame = frame.f_back
    return found
