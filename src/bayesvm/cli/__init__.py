"""The command line: one file a command."""

from __future__ import annotations

import sys


def main() -> None:
    """What ``bayesvm`` runs."""
    try:
        # Without the extra, a sentence is better than a traceback.
        from bayesvm.cli.app import run  # noqa: PLC0415
        from bayesvm.cli.console import show_exception  # noqa: PLC0415
    except ImportError as error:
        sys.exit(f'bayesvm: the command line needs {error.name}; pip install "bayesvm[cli]"')
    sys.excepthook = show_exception
    sys.exit(run())
