"""The minimiser, against objectives whose minima are known and against scipy."""

import numpy as np
import pytest
from scipy import optimize

from bayesvm.inference.descent import Curvature, Point, descend

FREE = np.full(6, -np.inf), np.full(6, np.inf)


def counted(function):
    calls = []

    def objective(x):
        calls.append(x)
        return function(x)

    return objective, calls


def quadratic(condition=100.0, centre=2.0):
    scale = np.geomspace(1.0, condition, 6)

    def function(x):
        return 0.5 * float(scale @ (x - centre) ** 2), scale * (x - centre)

    return function


def rosenbrock(x):
    return optimize.rosen(x), optimize.rosen_der(x)


def test_the_minimum_of_a_quadratic_is_found():
    found = descend(quadratic(), np.zeros(6), *FREE, most=60, region=0.5)
    np.testing.assert_allclose(found.x, 2.0, atol=0.01)


def test_a_curved_valley_is_followed():
    found = descend(rosenbrock, np.full(6, -0.5), *FREE, most=150, region=0.5)
    assert found.value < 0.01


def test_the_first_step_has_the_length_of_the_region():
    objective, calls = counted(quadratic())
    descend(objective, np.zeros(6), *FREE, most=2, region=0.3)
    assert np.linalg.norm(calls[1] - calls[0]) == pytest.approx(0.3)


def test_no_evaluation_leaves_the_box_and_its_border_is_reached():
    low, high = np.full(6, -1.0), np.array([1.0, 1.0, 1.0, 5.0, 5.0, 5.0])
    objective, calls = counted(quadratic(condition=4.0))
    found = descend(objective, np.zeros(6), low, high, most=40, region=1.0)
    assert all((low <= x).all() and (x <= high).all() for x in calls)
    np.testing.assert_allclose(found.x, np.minimum(2.0, high), atol=0.01)


def test_it_goes_back_from_where_the_objective_fails():
    def fragile(x):
        return (np.inf, np.zeros(6)) if np.linalg.norm(x) > 1.5 else quadratic(4.0)(x)

    objective, calls = counted(fragile)
    found = descend(objective, np.zeros(6), *FREE, most=40, region=3.0)
    assert any(np.linalg.norm(x) > 1.5 for x in calls)
    assert 1.2 < np.linalg.norm(found.x) <= 1.5
    assert found.value < quadratic(4.0)(np.zeros(6))[0]


def test_the_best_point_counts_and_a_minimum_ends_the_search():
    objective, calls = counted(quadratic(1.0))
    found = descend(objective, np.full(6, 2.0), *FREE, most=10, region=0.5)
    assert len(calls) < 10
    assert found.value == pytest.approx(0.0, abs=1e-6)


def test_curvature_stays_positive_where_the_objective_bends_down():
    model = Curvature(np.eye(2)).updated(np.array([1.0, 0.0]), np.array([-3.0, 1.0]))
    assert np.linalg.eigvalsh(model.matrix).min() > 0


def test_curvature_learns_what_a_step_saw():
    step, change = np.array([0.5, -0.2]), np.array([1.0, 0.3])
    np.testing.assert_allclose(Curvature(np.eye(2)).updated(step, change).matrix @ step, change)


def test_what_is_promised_is_the_gain_of_the_model():
    at = Point(np.zeros(2), 1.0, np.array([1.0, -2.0]))
    model = Curvature(np.diag([1.0, 4.0]))
    step = model.step(at, *(end[:2] for end in FREE), region=10.0)
    np.testing.assert_allclose(step, [-1.0, 0.5])
    assert model.promised(at, step) == pytest.approx(1.0)
