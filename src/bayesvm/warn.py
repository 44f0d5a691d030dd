"""Warnings that point to the line of the user's code which led to them, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

PACKAGE = f"{Path(__file__).parent}/"


def warn_user(message: str) -> None:
    """Issue a ``UserWarning`` at the innermost line outside this package."""
    frame, level = sys._getframe(1), 2  # noqa: SLF001  (as the warnings module itself does)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
