"""Arrays of an arena never overlap while they are lent, and their memory is used again afterwards."""

import numpy as np

from bayesvm.core.arena import Arena


def test_lent_arrays_do_not_overlap():
    arena = Arena()
    first, second = arena.empty((3, 4), np.float64), arena.empty((3, 4), np.float64)
    assert not np.shares_memory(first, second)
    arena.release(first)
    third = arena.empty((2, 4), np.float32)
    assert np.shares_memory(first, third)
    assert not np.shares_memory(second, third)


def test_reset_takes_everything_back():
    arena = Arena()
    before = [arena.empty((5,), np.float64), arena.empty((9,), np.float32)]
    arena.reset()
    after = [arena.empty((5,), np.float64), arena.empty((9,), np.float32)]
    assert all(np.shares_memory(a, b) for a, b in zip(before, after, strict=True))


def test_empty_shapes_are_fine():
    assert Arena().empty((0, 3), np.float64).shape == (0, 3)
