"""The command line: Ctrl-C while modules are imported, before a command starts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def leaving_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C exit the process immediately; modules under import would print or swallow an exception.

    Does nothing if Ctrl-C is ignored, for example in the background of a shell, or has another handler.
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
