"""Data: how many threads BLAS may use. The setting belongs to the process, so its users are counted here.

With one thread, products and factorisations have the same bits whatever the machine is allowed to use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any
from weakref import WeakSet

from threadpoolctl import ThreadpoolController

SMALL_MATRICES = 2048  # weights up to which M×M matrices are left to one thread; it is also faster on a busy machine


class _User:
    """Somebody inside; gone with the frame that holds it, even if Ctrl-C comes at the worst moment."""


class _Users:
    """Who is inside, and what each library was set to before the first of them, while there is a limit."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), WeakSet[_User]()
        self.before: list[int] | None = None


_USERS = _Users()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread while any caller is inside: the first to enter sets the limit, the last lifts it.

    Limits of their own would bring back each other's where calls in several threads overlap. A Ctrl-C between two
    steps of leaving may leave the limit behind; the next user lifts it.
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
    """One BLAS thread for matrices of so many rows and columns, unless they are large."""
    return one_blas_thread() if n_weights <= SMALL_MATRICES else nullcontext()


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """BLAS libraries set for the whole process, and those set for each thread by itself.

    All that bayesvm uses are loaded with it; scanning takes milliseconds, so the result is cached.
    """
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [each for each in found if each.internal_api == "openblas" and each.threading_layer == "openmp"]
    return [each for each in found if each not in own], own


def _numbers(libraries: Sequence[Any]) -> list[int]:
    """How many threads each library uses."""
    return [library.get_num_threads() for library in libraries]


def _set(libraries: Sequence[Any], numbers: Sequence[int]) -> None:
    """Set the number of threads of each library."""
    for library, number in zip(libraries, numbers, strict=True):
        # From threadpoolctl 3.7 on, one thread owns the setting, and what others set or restore is ignored.
        release = getattr(library, "clear_controlling_thread", lambda **_: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)
