"""Estimators: Ctrl-C ends a fit early and keeps the model."""

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
    """Let Ctrl-C end a fit early and keep the model, inside a ``with`` statement in the main thread.

    The first Ctrl-C ends the running fit within seconds, after its last complete update: the model is usable, and
    ``interrupted_`` is true. A second Ctrl-C, or one before the first complete update, raises ``KeyboardInterrupt`` as
    usual. If the process ignores Ctrl-C, for example in the background of a shell, it is still ignored.

    Yields
    ------
    None
        No value. The previous signal handler is restored at the end of the ``with`` statement.

    See Also
    --------
    BayesianSVC.fit : Writes checkpoints, from which a fit resumes.

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
        yield  # signals arrive in the main thread only
        return
    running: list[StopRequest] = []

    def ask(number: int, frame: Any) -> None:
        stop = running[-1] if running else StopRequest()
        if stop.made or not stop.heeded:
            before(number, frame)
            return
        with suppress(OSError):  # not print, which the signal may have interrupted
            os.write(2, b"bayesvm: stopping after the last complete update; press Ctrl-C again to stop immediately\n")
        stop.make()

    token = RUNNING.set(running)
    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        RUNNING.reset(token)
