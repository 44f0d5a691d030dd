"""How many inducing points a fit has: what was asked for, or what is worth its time."""

import dataclasses

import numpy as np
import pytest

from bayesvm.inference import kernel_model
from bayesvm.inference.kernel_model import KernelModel
from bayesvm.kernels import RBF

AUTO = KernelModel({"rbf": RBF()}, "auto", 10_000, "kmeans", learn_inducing=False, learn_relevance=True)
ROWS = 300, 1_000, 20_000, 1_000_000


@pytest.mark.parametrize("n_rows", ROWS)
def test_more_points_are_taken_where_they_gain_something(n_rows):
    sizes = [AUTO.size(n_rows, gained) for gained in (-1.0, 0.0, 0.008, 0.1, np.inf)]
    assert sizes == sorted(sizes)
    assert sizes[0] >= min(n_rows, kernel_model.FEWEST)
    assert sizes[-1] <= max(kernel_model.FEWEST, n_rows // kernel_model.ROWS_PER_POINT)
    assert AUTO.size(n_rows) == min(n_rows, kernel_model.SOME)  # without tuning


def test_the_usual_number_grows_with_the_rows():
    found = [AUTO.size(n_rows, 0.0) for n_rows in (50, 300, 1_000, 3_000, 6_000, 20_000)]
    assert found == [50, 100, 200, 300, 500, 500]


def test_a_gain_buys_more_points_as_long_as_a_pass_is_affordable():
    assert AUTO.size(20_000, np.inf) > AUTO.size(20_000, 0.0)
    few, many = AUTO.size(20_000, np.inf), AUTO.size(2_000_000, np.inf)
    assert few > many == kernel_model.SOME
    for n_rows in (20_000, 50_000, 200_000):
        size = AUTO.size(n_rows, np.inf)
        assert size == kernel_model.SOME or n_rows * size**2 <= kernel_model.PASS_BUDGET


def test_members_of_a_committee_share_the_budget(monkeypatch):
    monkeypatch.setattr(kernel_model, "PASS_BUDGET", 20_000 * 900**2)
    alone, of_four = AUTO.size(20_000, np.inf), AUTO.size(20_000, np.inf, members=4)
    assert (alone, of_four) == (900, 450)
    assert AUTO.size(20_000, np.inf, members=100) == kernel_model.SOME


@pytest.mark.parametrize("gained", [0.0, np.inf])
@pytest.mark.parametrize("n_rows", ROWS)
def test_what_was_asked_for_is_what_there_is(n_rows, gained):
    assert dataclasses.replace(AUTO, n_inducing=77).size(n_rows, gained) == 77
    assert dataclasses.replace(AUTO, n_inducing=10**7).size(n_rows, gained) == n_rows
    assert dataclasses.replace(AUTO, n_inducing=None).size(n_rows, gained) == n_rows
    assert dataclasses.replace(AUTO, inducing=np.zeros((12, 3))).size(n_rows, gained) == 12
    assert dataclasses.replace(AUTO, max_inducing=50).size(n_rows, gained) == 50
