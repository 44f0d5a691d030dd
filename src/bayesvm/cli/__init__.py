"""The command line: one module per command, imported when the command is called."""

from __future__ import annotations

import os
import sys

from bayesvm.cli.interrupts import leaving_on_interrupt
from bayesvm.extras import how_to_install


def main() -> None:
    """Entry point of ``bayesvm``."""
    _use_little_address_space()
    with leaving_on_interrupt():
        try:
            # Without the extra, print a message instead of a traceback.
            from bayesvm.cli.app import run  # noqa: PLC0415
            from bayesvm.cli.console import show_exception  # noqa: PLC0415
        except ImportError as error:
            sys.exit(f"bayesvm: the command line needs {error.name}; {how_to_install('cli')}")
    sys.excepthook = show_exception
    sys.exit(run())


def _use_little_address_space() -> None:
    """If memory is limited (``ulimit -v``), use the system allocator, since Arrow's would reserve too much."""
    try:
        import resource  # noqa: PLC0415  (Windows has none)
    except ImportError:
        return
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if any(limit != resource.RLIM_INFINITY for limit in limits):
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
