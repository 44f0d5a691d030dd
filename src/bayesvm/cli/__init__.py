"""The command line: one file a command."""

from __future__ import annotations

import sys


def main() -> None:
    """What ``bayesvm`` runs."""
    try:
        from bayesvm.cli.app import run  # noqa: PLC0415  (without the extra, a sentence is better than a traceback)
    except ImportError as error:
        sys.exit(f'bayesvm: the command line needs {error.name}; pip install "bayesvm[cli]"')
    sys.exit(run())
