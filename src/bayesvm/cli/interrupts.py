"""The command line: what Ctrl-C does while modules are imported, when no command has begun."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def leaving_on_interrupt() -> Iterator[None]:
    """End the process at once; an exception would be shown, or swallowed, by whatever is being imported.

    Does nothing where Ctrl-C is ignored, as in the background of a shell, or handled by somebody else.
    """
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not handled or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: Any) -> None:
    os.write(2, b"stopped\n")
    os._exit(130)
