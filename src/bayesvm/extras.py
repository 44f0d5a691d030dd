"""Libraries that only an extra of the package installs, loaded when a function first needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def how_to_install(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "bayesvm[{extra}]" (in a clone of the repository: pip install ".[{extra}]")'


def optional(module: str, extra: str) -> Any:
    """The module, or an error that says which extra installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{module} is needed here and cannot be imported; {how_to_install(extra)}") from error
