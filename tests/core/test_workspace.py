"""Arrays of a workspace never overlap while they are lent, and their memory is used again afterwards."""

import numpy as np

from bayesvm.core.workspace import Workspace


def test_lent_arrays_do_not_overlap():
    workspace = Workspace()
    first, second = workspace.empty((3, 4), np.float64), workspace.empty((3, 4), np.float64)
    assert not np.shares_memory(first, second)
    workspace.release(first)
    third = workspace.empty((2, 4), np.float32)
    assert np.shares_memory(first, third)
    assert not np.shares_memory(second, third)


def test_reset_takes_everything_back():
    workspace = Workspace()
    before = [workspace.empty((5,), np.float64), workspace.empty((9,), np.float32)]
    workspace.reset()
    after = [workspace.empty((5,), np.float64), workspace.empty((9,), np.float32)]
    assert all(np.shares_memory(a, b) for a, b in zip(before, after, strict=True))


def test_empty_shapes_are_fine():
    assert Workspace().empty((0, 3), np.float64).shape == (0, 3)
