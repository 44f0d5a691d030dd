"""Data: the number of BLAS threads. The setting is global to the process, so this module counts its users.

With one thread, products and factorisations are bit-identical regardless of the number of available processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any
from weakref import WeakSet

from threadpoolctl import ThreadpoolController

SMALL_MATRICES = 2048  # weights up to which one thread handles M×M matrices, which is also faster on a busy machine


class _User:
    """A caller inside the context. Its frame owns it, so it disappears even if Ctrl-C interrupts cleanup."""


class _Users:
    """The callers inside the context and, while a limit is active, the previous setting of each library."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), WeakSet[_User]()
        self.before: list[int] | None = None


_USERS = _Users()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any caller is inside: the first to enter sets the limit, the last removes it.

    If every caller set its own limit, overlapping calls in several threads would restore each other's. A Ctrl-C between
    two steps of cleanup may leave the limit in place; the next caller removes it.
    """
    shared, own = _libraries()
    user, before = _User(), _numbers(own)
    try:
        with _USERS.lock:
            _USERS.inside.add(user)
            if _USERS.before is None:
                _USERS.before = _numbers(shared)
            _set(shared, [1] * len(shared))
        _set(own, [1] * len(own))
        yield
    finally:
        with _USERS.lock:
            _USERS.inside.discard(user)
            if not _USERS.inside and _USERS.before is not None:
                _set(shared, _USERS.before)
                _USERS.before = None
        _set(own, before)


def threads_for_matrices(n_weights: int) -> AbstractContextManager[None]:
    """Use one BLAS thread for matrices of this size, unless they are large."""
    return one_blas_thread() if n_weights <= SMALL_MATRICES else nullcontext()


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """BLAS libraries with a setting per process, and those with a setting per thread.

    All libraries that bayesvm uses are loaded with it. Scanning takes milliseconds, so the result is cached.
    """
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [each for each in found if each.internal_api == "openblas" and each.threading_layer == "openmp"]
    return [each for each in found if each not in own], own


def _numbers(libraries: Sequence[Any]) -> list[int]:
    """The number of threads of each library."""
    return [library.get_num_threads() for library in libraries]


def _set(libraries: Sequence[Any], numbers: Sequence[int]) -> None:
    """Set the number of threads of each library."""
    for library, number in zip(libraries, numbers, strict=True):
        # Since threadpoolctl 3.7, one thread owns the setting; changes by other threads are ignored.
        release = getattr(library, "clear_controlling_thread", lambda **_: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)
