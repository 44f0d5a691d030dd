"""Datasets: libraries that only the extra ``datasets`` installs, loaded when a function first needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(module: str) -> Any:
    """The module, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f'{module} is needed here and cannot be imported; pip install "bayesvm[datasets]"') from error
