"""Data: threads for blocks. Each block uses one BLAS thread; many blocks run in parallel.

Results are returned in the order of the blocks, so sums are bit-identical for any number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from threading import local
from typing import Self, TypeVar

import numpy as np

from bayesvm.core.workspace import Workspace
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.stopping import Stopped, StopRequest

Item = TypeVar("Item")
Result = TypeVar("Result")


def quiet_overflow() -> np.errstate:
    """Suppress NumPy's warnings about infinity and NaN, which name no cause; results are checked and rejected later."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


class Workers:
    """A thread pool, open within a ``with`` statement."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self._workspaces: SimpleQueue[Workspace] = SimpleQueue()
        self._pool: ThreadPoolExecutor | None = None
        self._here = local()  # whether this thread is running an item
        self.stop = StopRequest()
        self._abandoned = False
        self.watch: Callable[[int, int], None] | None = (
            None  # is called with the number of processed rows of a pass, and the total
        )

    def _run(self, function: Callable[[Item, Workspace], Result], item: Item) -> Result:
        try:
            workspace = self._workspaces.get_nowait()
        except Empty:
            workspace = Workspace()
        workspace.reset()
        outer, self._here.busy = self._busy, True
        try:
            # Not around a whole pass, because the consumer of its results may not finish it.
            with quiet_overflow(), one_blas_thread():
                return function(item, workspace)
        finally:
            self._here.busy = outer
            self._workspaces.put(workspace)

    @property
    def _busy(self) -> bool:
        return getattr(self._here, "busy", False)

    def __enter__(self) -> Self:
        if self.n_jobs > 1:
            self._pool = ThreadPoolExecutor(self.n_jobs, thread_name_prefix="bayesvm")
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def check(self) -> None:
        """Raise if the pass was aborted. Call it between two blocks."""
        if self._abandoned:
            raise Stopped
        self.stop.check()

    def watched(self, results: Iterable[Result], rows_each: int, n_rows: int) -> Iterator[Result]:
        """Yield the results of a pass and report its progress to ``watch``."""
        if self.watch is not None:
            self.watch(0, n_rows)
        for number, result in enumerate(results, 1):
            if self.watch is not None:
                self.watch(min(number * rows_each, n_rows), n_rows)
            yield result

    def map(self, function: Callable[[Item, Workspace], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply ``function`` to every item, in order, with at most two pending items per thread.

        The function also gets a workspace, which is reused for one item after another as long as the pool is open. It
        may call ``map`` itself; the inner items then run one after another in its thread.
        """
        # Submitting a small block would take longer than processing it.
        alone = isinstance(items, Sized) and len(items) == 1
        if self._pool is None or alone or self._busy:
            yield from (self._run(function, item) for item in items)
            return
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(self._pool.submit(self._run, function, item))
                if len(waiting) > 2 * self.n_jobs:
                    yield waiting[0].result()
                    waiting.popleft()
            while waiting:
                yield waiting[0].result()
                waiting.popleft()
        finally:
            if waiting:  # after an error, after Ctrl-C, or if the consumer stops early
                self._abandoned = True
                wait([future for future in waiting if not future.cancel()])
                self._abandoned = False
