"""Estimators: Ctrl-C that ends a fit early and keeps its model."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from bayesvm.data.stopping import StopRequest
from bayesvm.inference.session import RUNNING


@contextmanager
def stop_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end a fit early and keep its model, for the length of a ``with`` statement in the main thread.

    The first Ctrl-C ends the fit under way within seconds, with its last complete update: the model is usable, and
    ``interrupted_`` is true. The second one, or one where there is nothing to keep yet, raises ``KeyboardInterrupt``
    as usual. Where the process ignores Ctrl-C, as in the background of a shell, it stays ignored.

    Examples
    --------
    >>> import bayesvm
    >>> from bayesvm.datasets import waveform
    >>> data = waveform(500, random_state=0)
    >>> with bayesvm.stop_on_interrupt():
    ...     model = bayesvm.BayesianSVC(n_inducing=20, tune=None).fit(data.X, data.y)
    >>> model.interrupted_
    False
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    running: list[StopRequest] = []

    def ask(number: int, frame: Any) -> None:
        stop = running[-1] if running else StopRequest()
        if stop.made or not stop.heeded:
            before(number, frame)
            return
        with suppress(OSError):  # not by print, which may be what was interrupted
            os.write(2, b"bayesvm: stopping with the last complete update; Ctrl-C again stops at once\n")
        stop.make()

    token = RUNNING.set(running)
    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        RUNNING.reset(token)
