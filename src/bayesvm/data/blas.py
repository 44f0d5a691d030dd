"""Data: how many threads BLAS may use. The setting belongs to the process, so its users are counted here.

With one thread, products and factorisations have the same bits whatever the machine is allowed to use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL_MATRICES = 2048  # weights up to which M×M matrices are left to one thread; it is also faster on a busy machine


class _Users:
    """How many are inside, and what each library was set to before the first of them."""

    def __init__(self) -> None:
        self.lock, self.inside, self.before = Lock(), 0, [0]


_USERS = _Users()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS kept to one thread while anybody is inside: the first to enter sets the limit, the last to leave lifts it.

    Limits of their own would bring back each other's where calls in several threads overlap.
    """
    shared, own = _libraries()
    before = _set(own, [1] * len(own))
    with _USERS.lock:
        if not _USERS.inside:
            _USERS.before = _set(shared, [1] * len(shared))
        _USERS.inside += 1
    try:
        yield
    finally:
        with _USERS.lock:
            _USERS.inside -= 1
            if not _USERS.inside:
                _set(shared, _USERS.before)
        _set(own, before)


def threads_for_matrices(n_weights: int) -> AbstractContextManager[None]:
    """One BLAS thread for matrices of so many rows and columns, unless they are large."""
    return one_blas_thread() if n_weights <= SMALL_MATRICES else nullcontext()


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """BLAS libraries set for the whole process, and those set for each thread by itself.

    All that bayesvm uses are loaded with it; to look for them takes milliseconds, so once.
    """
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [each for each in found if each.internal_api == "openblas" and each.threading_layer == "openmp"]
    return [each for each in found if each not in own], own


def _set(libraries: Sequence[Any], numbers: Sequence[int]) -> list[int]:
    """Set the number of threads of each library; what they were."""
    before = [library.get_num_threads() for library in libraries]
    for library, number in zip(libraries, numbers, strict=True):
        # From threadpoolctl 3.7 on, one thread owns the setting, and what others set or restore is ignored.
        release = getattr(library, "clear_controlling_thread", lambda **_: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)
    return before
