"""Adjoints of kernels against finite differences of the kernels themselves (D15), and which parameters are learned."""

from functools import reduce
from operator import iadd

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from bayesvm.core.kernels.records import KernelGradient
from bayesvm.kernels import RBF, Constant, Laplacian, Linear, Matern, RationalQuadratic, Sum
from tests.oracles import numerical_gradient
from tests.own_kernels import Careless, Cauchy, PowerExponential, kernel_classes

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((9, 3)), rng.standard_normal((4, 3))
ADJOINT, ALONG = rng.standard_normal((9, 4)), rng.standard_normal(9)
SCALES = np.array([0.5, 1.0, 3.0])

KERNELS = [
    RBF(1.7, 2.0),
    RBF(SCALES, 2.0),
    RBF(1.7, 2.0, length_scale_bounds="fixed"),
    Matern(1.3, 2.0, nu=1.5),
    Matern(SCALES, 2.0, nu=1.5, variance_bounds="fixed"),
    Matern(SCALES, 2.0, nu=2.5),
    Matern(SCALES, 2.0, nu=0.5),
    RationalQuadratic(SCALES, 2.0, 0.7),
    RationalQuadratic(1.3, 2.0, 30.0, alpha_bounds="fixed"),
    Cauchy(SCALES, 2.0),
    PowerExponential(1.3, 2.0, 1.4),
    RBF(1.7) + 0.3 * RationalQuadratic(1.3, alpha=0.5),
    Laplacian(SCALES, 2.0),
    Laplacian(4.0, 2.0, variance_bounds="fixed") + 0.5 * RBF(),
    Linear(0.3),
    Constant(1.5),
    0.5 * RBF(SCALES) + Linear(0.1) + 2.0 * Constant(),
    Sum([RBF(SCALES, 2.0), Matern(1.3, 0.5)], [0.5, 2.0], weights_bounds="fixed"),
    0.7 * Sum([Matern(SCALES, 3.0), Linear(0.2)], [1.0, 0.4]) + RBF(),
    Sum([Sum([RBF(SCALES, 2.0), Linear(0.3)], weights_bounds="fixed"), Constant()], [0.5, 2.0]),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def test_every_kernel_class_is_here():
    assert kernel_classes() <= {type(kernel) for kernel in KERNELS}


@every_kernel
def test_the_recorded_matrix_is_the_kernel(kernel):
    np.testing.assert_allclose(kernel.recorded(X, Z).value, kernel(X, Z), rtol=1e-12, atol=1e-13)


@every_kernel
def test_pull_by_parameters(kernel):
    found = kernel.by_theta(kernel.recorded(X, Z).pull(ADJOINT))
    truth = numerical_gradient(lambda theta: np.sum(ADJOINT * kernel.at(theta)(X, Z)), kernel.log_parameters())
    np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-8)


@every_kernel
def test_pull_by_points(kernel):
    found = kernel.recorded(X, Z).pull_points(ADJOINT)
    truth = numerical_gradient(lambda points: np.sum(ADJOINT * kernel(X, points)), Z)
    np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-8)


@every_kernel
def test_pull_of_the_diagonal(kernel):
    found = kernel.by_theta(kernel.pull_diagonal(X, ALONG))
    truth = numerical_gradient(lambda theta: ALONG @ kernel.at(theta).diagonal(X), kernel.log_parameters())
    np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-8)


@every_kernel
def test_adjoints_add_up_over_rows(kernel):
    whole, *halves = (
        KernelGradient(recorded.pull(adjoint), recorded.pull_points(adjoint))
        for rows in (slice(None), slice(4), slice(4, None))
        for recorded, adjoint in [(kernel.recorded(X[rows], Z), ADJOINT[rows])]
    )
    parts = reduce(iadd, halves)
    np.testing.assert_allclose(parts.points, whole.points, atol=1e-12)
    assert set(parts.parameters) == set(whole.parameters)
    for name, along in whole.parameters.items():
        np.testing.assert_allclose(parts.parameters[name], along, atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [RBF(SCALES), *(Matern(SCALES, nu=nu) for nu in (0.5, 1.5, 2.5)), RationalQuadratic(SCALES)],
    ids=repr,
)
def test_points_far_from_the_origin_and_on_the_rows_have_accurate_adjoints(kernel):
    far, points = X + 1e4, X[:4] + 1e4  # rows that are points: the distance's root has no derivative there
    found, near = kernel.recorded(far, points), kernel.recorded(X, X[:4])
    np.testing.assert_allclose(found.pull_points(ADJOINT), near.pull_points(ADJOINT), atol=1e-6)
    by_scale = (recorded.pull(ADJOINT)["length_scale"] for recorded in (found, near))
    np.testing.assert_allclose(*by_scale, atol=1e-6)
    truth = numerical_gradient(lambda Z: np.sum(ADJOINT * kernel(X, Z)), X[:4], step=1e-5)
    np.testing.assert_allclose(near.pull_points(ADJOINT), truth, atol=1e-4)


@every_kernel
def test_a_kernel_at_its_own_parameters_is_itself_and_is_not_changed(kernel):
    before, theta = repr(kernel), kernel.log_parameters()
    np.testing.assert_allclose(kernel.at(theta)(X, Z), kernel(X, Z), rtol=1e-12)
    moved = kernel.at(theta + 0.3)
    np.testing.assert_allclose(moved.log_parameters(), theta + 0.3)
    assert type(moved) is type(kernel)
    assert repr(kernel) == before


@every_kernel
def test_bounds_have_a_row_for_each_parameter_and_hold_where_the_kernel_is(kernel):
    theta, bounds = kernel.log_parameters(), kernel.log_bounds()
    assert bounds.shape == (len(theta), 2)
    assert (bounds[:, 0] <= theta).all()
    assert (theta <= bounds[:, 1]).all()


def test_bounds_are_those_given_but_never_leave_the_kernel_outside():
    kernel = RBF(5.0, 2.0, length_scale_bounds=(0.1, 3.0), variance_bounds=(1.0, 4.0))
    np.testing.assert_allclose(np.exp(kernel.log_bounds()), [[0.1, 5.0], [1.0, 4.0]])


def test_parameters_are_the_logarithms_in_the_order_of_the_constructor():
    np.testing.assert_allclose(np.exp(RBF(SCALES, 2.0).log_parameters()), [*SCALES, 2.0])
    kernel = RBF(2.0, 3.0).at(np.log([0.5, 4.0]))
    assert isinstance(kernel.length_scale, float)
    assert kernel.get_params()["length_scale"] == pytest.approx(0.5)
    assert kernel.variance == pytest.approx(4.0)
    np.testing.assert_allclose(RBF(SCALES, 2.0).at(np.log([1.0, 2.0, 3.0, 4.0])).length_scale, [1, 2, 3])


@pytest.mark.parametrize(
    ("kernel", "learned"),
    [
        (RBF(length_scale_bounds="fixed"), ["variance"]),
        (Matern(variance_bounds="fixed"), ["length_scale"]),
        (RBF(length_scale_bounds="fixed", variance_bounds="fixed"), []),
        (Linear(variance_bounds="fixed"), []),
        (RBF() + Linear(), ["weights", "k0__length_scale"]),
        (Sum([RBF(), Linear()], weights_bounds="fixed"), ["k0__length_scale", "k0__variance", "k1__variance"]),
        (Sum([RBF(length_scale_bounds="fixed"), Linear()]), ["weights"]),
    ],
    ids=repr,
)
def test_what_is_fixed_is_not_learned_and_a_sum_learns_weights_instead_of_variances(kernel, learned):
    assert [parameter.name for parameter in kernel.learned()] == learned
    assert len(kernel.log_parameters()) == sum(len(parameter.value) for parameter in kernel.learned())


def test_what_is_fixed_stays():
    kernel = RBF(1.7, 2.0, length_scale_bounds="fixed")
    moved = kernel.at(np.log([5.0]))
    assert (moved.length_scale, moved.variance) == (1.7, pytest.approx(5.0))
    assert moved.length_scale_bounds == "fixed"
    weighed = (RBF(1.0, 2.0) + Linear(0.3)).at(np.log([4.0, 0.5, 1.5]))
    assert weighed == Sum([RBF(pytest.approx(1.5), 2.0), Linear(0.3)], [pytest.approx(4.0), pytest.approx(0.5)])


def test_a_length_scale_for_every_feature_is_the_same_kernel_with_more_to_learn():
    for kernel in (RBF(1.7, 2.0), Matern(1.3), 2.0 * RBF(1.7) + Linear()):
        wide = kernel.per_feature(3)
        np.testing.assert_allclose(wide(X, Z), kernel(X, Z))
        assert len(wide.log_parameters()) == len(kernel.log_parameters()) + 2
    assert RBF(SCALES).per_feature(3) == RBF(SCALES)
    assert Linear().per_feature(3) == Linear()
    fixed = RBF(1.7, length_scale_bounds="fixed")
    assert fixed.per_feature(3) == fixed


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (2.0, 1.0), (-1.0, 1.0), (1.0, 1.0), (np.nan, 1.0)])
@pytest.mark.parametrize(
    "make",
    [
        lambda bounds: RBF(length_scale_bounds=bounds),
        lambda bounds: RBF() + Matern(length_scale_bounds=bounds),
    ],
    ids=["alone", "in a sum"],
)
def test_senseless_bounds_are_refused(make, bounds):
    with pytest.raises(ValueError, match="length_scale_bounds must be 'fixed' or two numbers 0 < low < high, got"):
        make(bounds).log_parameters()


@pytest.mark.parametrize("bounds", ["free", 3.0, None, (1.0,), (1.0, 2.0, 3.0), ("a", "b")])
def test_bounds_of_another_kind_are_refused(bounds):
    with pytest.raises(ValueError, match="variance_bounds must be 'fixed' or two numbers"):
        Linear(variance_bounds=bounds).learned()


def test_senseless_values_are_refused_before_their_logarithm_is_taken():
    with pytest.raises(ValueError, match="length_scale must be positive"):
        RBF(-1.0).log_parameters()
    with pytest.raises(ValueError, match="weight must be positive"):
        (-1.0 * RBF()).log_parameters()


def test_repr_shows_bounds_only_where_they_are_not_the_usual_ones():
    assert repr(RBF(2.0)) == "RBF(length_scale=2.0, variance=1.0)"
    assert "length_scale_bounds='fixed'" in repr(RBF(length_scale_bounds="fixed"))
    assert "variance_bounds" not in repr(RBF(length_scale_bounds="fixed"))
    assert "bounds" not in repr(RBF() + Linear())
    assert "weights_bounds=(1, 2)" in repr(Sum([RBF()], [1.0], (1, 2)))


def test_bounds_without_a_prior_are_refused_by_class_and_parameter():
    with pytest.raises(TypeError, match="Careless has shape_bounds, but declares no prior for shape"):
        Careless().learned()


def test_length_scales_are_those_of_the_first_part_that_has_some():
    assert Linear().length_scales is None
    assert RBF(2.0).length_scales == 2.0
    assert (Linear() + Matern(3.0) + RBF(2.0)).length_scales == 3.0
    assert Cauchy(SCALES).length_scales is SCALES
    assert (Linear() + Constant()).length_scales is None


def test_relevance_is_one_value_per_feature_in_the_kernel_or_a_part_of_it():
    kernels = [RBF(SCALES), Linear() + Cauchy(SCALES), RBF(2.0), Linear(), RBF() + Linear()]
    assert [kernel.has_relevance for kernel in kernels] == [True, True, False, False, False]


@every_kernel
def test_the_penalty_has_the_derivative_that_it_says(kernel):
    theta = kernel.log_parameters() + 0.3
    truth = numerical_gradient(lambda theta: kernel.at(theta).penalty(3)[0], theta)
    np.testing.assert_allclose(kernel.at(theta).penalty(3)[1], truth, rtol=1e-6, atol=1e-8)


# ---- columns of two values ----

TWO_VALUED = np.column_stack([X[:, 0], X[:, 1] > 0, np.where(X[:, 2] > 0.3, 2.5, -1.0)])


@pytest.mark.parametrize("rows", [TWO_VALUED, TWO_VALUED[:, 1:], TWO_VALUED[:1], TWO_VALUED[:0]], ids=len)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_two_values_have_the_matrix_and_the_adjoint_of_any_column(rows, dtype):
    width, atol = rows.shape[1], 1e-4 if dtype == np.float32 else 1e-10
    kernel, points, adjoint = Laplacian(SCALES[:width], 2.0), Z[:, :width], ADJOINT[: len(rows)]
    expected = 2 * np.exp(-cdist(rows / SCALES[:width], points / SCALES[:width], "cityblock"))
    recorded = kernel.recorded(rows.astype(dtype), points)
    np.testing.assert_allclose(recorded.value, expected, atol=atol)
    found = kernel.by_theta(recorded.pull(adjoint.astype(dtype)))
    truth = numerical_gradient(lambda theta: np.sum(adjoint * kernel.at(theta)(rows, points)), kernel.log_parameters())
    np.testing.assert_allclose(found, truth, rtol=1e-4, atol=atol)


def test_the_share_of_a_column_in_distances():
    points = rng.standard_normal((400, 3)) * [1.0, 2.0, 4.0]
    for kernel, power in ((RBF(SCALES), 2), (Laplacian(SCALES), 1), (Linear() + Laplacian(SCALES), 1)):
        pairs = np.abs(points[:200] - points[200:]) / SCALES
        expected = (pairs**power).mean(axis=0)
        found = kernel.column_distances(points)
        np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=0.03)
    assert Linear().column_distances(points) is None


@every_kernel
def test_a_recorder_in_single_precision_is_near_the_kernel(kernel):
    """Rows stay in double precision: differences between them lose nothing."""
    record = kernel.recorder(Z, np.float32)(X, None)
    assert record.value.dtype == np.float32
    np.testing.assert_allclose(record.value, kernel(X, Z), rtol=1e-5, atol=1e-5)
    found, truth = (kernel.by_theta(each.pull(ADJOINT)) for each in (record, kernel.recorded(X, Z)))
    np.testing.assert_allclose(found, truth, rtol=1e-4, atol=1e-4)


def test_parts_of_a_sum_that_have_nothing_to_learn_are_computed_once():
    fixed = RBF(7.0, 1.0, "fixed", "fixed")
    kernel = 2.0 * RBF(SCALES) + 0.5 * fixed
    constant = kernel.constant(X, Z, np.float64)
    assert constant[0] is None
    np.testing.assert_allclose(constant[1], fixed(X, Z))
    moved = kernel.at(kernel.log_parameters() + 0.3)
    whole, known = moved.recorded(X, Z), moved.recorder(Z, np.float64)(X, constant)
    np.testing.assert_allclose(known.value, whole.value)
    np.testing.assert_allclose(moved.by_theta(known.pull(ADJOINT)), moved.by_theta(whole.pull(ADJOINT)))
    # What was given is used, and not computed again.
    without = moved.recorder(Z, np.float64)(X, [None, np.zeros_like(constant[1])])
    np.testing.assert_allclose(without.value, moved.checked_weights()[0] * moved.kernels[0](X, Z))
    with pytest.raises(TypeError, match="no part of the sum is constant"):
        known.pull_points(ADJOINT)
    assert RBF().constant(X, Z, np.float64) is None
    assert (RBF() + Linear()).constant(X, Z, np.float64) is None
