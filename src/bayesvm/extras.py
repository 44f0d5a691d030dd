"""Optional libraries, installed by extras of the package and imported when a function first needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def how_to_install(extra: str) -> str:
    """The command that installs an extra."""
    return (
        f'install the extra [{extra}]: pip install ".[{extra}]" in a clone of the repository, or '
        f'pip install "bayesvm[{extra}]" from a package index'
    )


def optional(module: str, extra: str) -> Any:
    """Import a module, or raise an error that names the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"this feature needs {module}, which cannot be imported; {how_to_install(extra)}") from error
