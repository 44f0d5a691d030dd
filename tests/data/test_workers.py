"""Threads: order is kept, errors come through, little is under way at once."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from bayesvm.data.workers import Workers


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_order(n_jobs):
    def slow_for_even(i, workspace):
        time.sleep(0.003 * (i % 2 == 0))
        return i

    with Workers(n_jobs) as workers:
        assert list(workers.map(slow_for_even, range(30))) == list(range(30))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_errors_come_through(n_jobs):
    with Workers(n_jobs) as workers, pytest.raises(ZeroDivisionError):
        list(workers.map(lambda i, workspace: 1 // (i - 5), range(20)))


def test_items_are_taken_only_as_they_are_needed():
    taken = []

    def items():
        for i in range(1000):
            taken.append(i)
            yield i

    with Workers(2) as workers:
        results = workers.map(lambda i, workspace: i, items())
        next(results)
        assert len(taken) < 10
        results.close()


def test_blas_uses_one_thread_inside_blocks():
    np.ones((2, 2)) @ np.ones((2, 2))
    with Workers(2) as workers:
        inside = list(
            workers.map(
                lambda _, workspace: [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"], range(4)
            )
        )
    assert all(n == 1 for threads in inside for n in threads)
    assert threading.active_count() < 50


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_item_may_map_items_of_its_own(n_jobs):
    with Workers(n_jobs) as workers:
        inner = lambda n, _: list(workers.map(lambda m, _: (threading.current_thread().name, 10 * n + m), range(3)))
        found = list(workers.map(inner, range(8)))
    assert [[number for _, number in row] for row in found] == [[10 * n + m for m in range(3)] for n in range(8)]
    assert all(len({thread for thread, _ in row}) == 1 for row in found)
