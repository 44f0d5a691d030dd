"""Data: reading ahead in a thread, so that the disk works while the processor does."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TypeVar

T = TypeVar("T")


class _End:
    """The end of the items, or an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def read_ahead(items: Iterator[T], depth: int = 2) -> Generator[T, None, None]:
    """Yield the items, fetching up to ``depth`` of them in advance.

    An error is raised at its position among the items. If the reader stops early, the thread ends after the item that
    it is fetching, and ``items`` is closed.
    """
    fetched: SimpleQueue[T | _End] = SimpleQueue()
    free = Semaphore(depth)
    stopped = False

    def fetch() -> None:
        end = _End()
        try:
            try:
                while free.acquire() and not stopped:
                    try:
                        item = next(items)
                    except StopIteration:
                        break
                    fetched.put(item)
                    del item  # so that the thread holds no item while it waits for space
            finally:  # here, because another thread cannot close a running generator
                getattr(items, "close", lambda: None)()
        except BaseException as error:  # noqa: BLE001  (it is raised where the items are read)
            end = _End(error)
        fetched.put(end)

    thread = Thread(target=fetch, name="bayesvm-read-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := fetched.get(), _End):
            free.release()
            yield item
            del item
        if item.error is not None:
            raise item.error
    finally:
        stopped = True
        free.release()
        if not sys.is_finalizing():  # during finalization threads are suspended, and joining one would block forever
            thread.join()
