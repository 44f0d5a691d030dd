"""Reading ahead: the same items, errors in their place, and no thread left behind."""

import subprocess
import sys
import threading
import time

import pytest

from bayesvm.data.read_ahead import read_ahead


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "bayesvm-read-ahead"]


@pytest.mark.parametrize("depth", [1, 2, 100])
def test_all_items_come_in_order(depth):
    assert list(read_ahead(iter(range(50)), depth)) == list(range(50))
    assert list(read_ahead(iter([]), depth)) == []
    assert threads() == []


def test_at_most_depth_items_wait():
    fetched = []

    def items():
        for number in range(10):
            fetched.append(number)
            yield number

    reader = read_ahead(items(), 3)
    assert next(reader) == 0
    give_up = time.monotonic() + 30
    while len(fetched) < 4 and time.monotonic() < give_up:
        time.sleep(0.01)
    time.sleep(0.05)
    assert fetched == [0, 1, 2, 3]  # one is in hand, three wait
    reader.close()


def test_fetching_continues_while_the_reader_works():
    second_fetched = threading.Event()

    def items():
        yield 1
        second_fetched.set()
        yield 2

    for number in read_ahead(items()):
        assert number == 2 or second_fetched.wait(30)


def test_an_error_comes_in_its_place():
    def items():
        yield 1
        yield 2
        raise OSError("the disk is gone")

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):
        seen.extend(read_ahead(items(), 10))
    reader = read_ahead(items(), 10)
    assert [next(reader), next(reader)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(reader)
    assert threads() == []


@pytest.mark.parametrize("taken", [1, 3])
def test_stopping_early_ends_the_thread_and_closes_the_source(taken):
    closed_by = []

    def items():
        try:
            yield from range(1000)
        finally:
            closed_by.append(threading.current_thread().name)

    reader = read_ahead(items())
    for _ in range(taken):
        next(reader)
    assert len(threads()) == 1
    reader.close()
    assert threads() == []
    assert closed_by == ["bayesvm-read-ahead"]


def test_an_error_of_the_reader_ends_the_thread():
    with pytest.raises(ZeroDivisionError):
        [1 / number for number in read_ahead(iter(range(10)))]
    assert threads() == []


def test_a_reader_that_is_never_used_starts_nothing():
    read_ahead(iter(range(10)))
    assert threads() == []


def test_a_reader_left_open_does_not_keep_the_program_from_ending():
    code = "from bayesvm.data.read_ahead import read_ahead\nitems = read_ahead(iter(range(10)))\nnext(items)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0  # noqa: S603
