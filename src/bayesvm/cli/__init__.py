"""The command line: one file a command."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from bayesvm.extras import how_to_install


def main() -> None:
    """What ``bayesvm`` runs."""
    # Not where Ctrl-C is ignored, as in the background of a shell.
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handled:
        signal.signal(signal.SIGINT, _leave)
    _use_little_address_space()
    try:
        # Without the extra, a sentence is better than a traceback.
        from bayesvm.cli.app import run  # noqa: PLC0415
        from bayesvm.cli.console import show_exception  # noqa: PLC0415
    except ImportError as error:
        sys.exit(f"bayesvm: the command line needs {error.name}; {how_to_install('cli')}")
    sys.excepthook = show_exception
    if handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(run())


def _use_little_address_space() -> None:
    """Where memory is limited (``ulimit -v``), Arrow's own allocator would reserve more than the limit allows."""
    try:
        import resource  # noqa: PLC0415  (Windows has none)
    except ImportError:
        return
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if any(limit != resource.RLIM_INFINITY for limit in limits):
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def _leave(*_: Any) -> None:
    """Ctrl-C during imports, when nothing has begun; an exception would be shown by whatever is being loaded."""
    os.write(2, b"stopped\n")
    os._exit(130)
