"""Kernels against loops, scikit-learn and their own definition (D2)."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics.pairwise import laplacian_kernel

from bayesvm.core.kernels import with_broad_component
from bayesvm.core.kernels.stationary import PANEL_BYTES
from bayesvm.core.workspace import Workspace
from bayesvm.kernels import RBF, Constant, Laplacian, Linear, Matern, RationalQuadratic, Sum
from tests import oracles
from tests.own_kernels import Bessel, Branching, Cauchy, PowerExponential, kernel_classes

rng = np.random.default_rng(0)
A, B = rng.standard_normal((7, 3)), rng.standard_normal((5, 3))
SCALES = np.array([0.5, 1.0, 3.0])

CASES = {
    "rbf": (RBF(1.7, 2.0), lambda a, b: 2 * np.exp(-0.5 * np.sum((a - b) ** 2) / 1.7**2)),
    "rbf, one scale a feature": (RBF(SCALES, 2.0), lambda a, b: 2 * np.exp(-0.5 * np.sum(((a - b) / SCALES) ** 2))),
    "matern 1/2": (Matern(SCALES, 2.0, nu=0.5), lambda a, b: 2 * sk.Matern(SCALES, nu=0.5)([a], [b])[0, 0]),
    "matern 3/2": (Matern(1.3, 2.0, nu=1.5), lambda a, b: 2 * sk.Matern(1.3, nu=1.5)([a], [b])[0, 0]),
    "matern 5/2": (Matern(SCALES, 2.0, nu=2.5), lambda a, b: 2 * sk.Matern(SCALES, nu=2.5)([a], [b])[0, 0]),
    "rational quadratic": (
        RationalQuadratic(1.3, 2.0, 0.7),
        lambda a, b: 2 * sk.RationalQuadratic(1.3, alpha=0.7)([a], [b])[0, 0],
    ),
    "nearly rbf": (RationalQuadratic(1.7, 2.0, 1e12), lambda a, b: 2 * sk.RBF(1.7)([a], [b])[0, 0]),
    "somebody's own": (Cauchy(SCALES, 2.0), lambda a, b: 2 / (1 + np.sum(((a - b) / SCALES) ** 2))),
    "with a shape": (PowerExponential(1.3, 2.0, 1.4), lambda a, b: 2 * np.exp(-(np.linalg.norm((a - b) / 1.3) ** 1.4))),
    "no formula": (Branching(1.7, 2.0), lambda a, b: 2 * sk.RBF(1.7)([a], [b])[0, 0]),
    "a ufunc of scipy": (Bessel(1.7, 2.0), lambda a, b: 2 * sk.Matern(1.7, nu=0.5)([a], [b])[0, 0]),
    "laplacian": (Laplacian(SCALES, 2.0), lambda a, b: 2 * laplacian_kernel([a / SCALES], [b / SCALES], 1.0)[0, 0]),
    "linear": (Linear(0.3), lambda a, b: 0.3 * a @ b),
    "constant": (Constant(1.5), lambda a, b: 1.5),
    "sum": (0.5 * RBF(2.0) + Linear(0.1), lambda a, b: 0.5 * np.exp(-np.sum((a - b) ** 2) / 8) + 0.1 * a @ b),
}
every_kernel = pytest.mark.parametrize(("kernel", "definition"), CASES.values(), ids=CASES)


def test_every_kernel_class_has_a_case():
    assert kernel_classes() <= {type(kernel) for kernel, _ in CASES.values()}


@every_kernel
def test_matrix_is_the_definition(kernel, definition):
    np.testing.assert_allclose(kernel(A, B), oracles.kernel_matrix(definition, A, B), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(A), np.diag(oracles.kernel_matrix(definition, A, A)), rtol=1e-10)


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_block_of_many_panels_is_as_its_rows(kernel, definition, dtype):
    generator = np.random.default_rng(1)
    Z = generator.standard_normal((PANEL_BYTES // 8 // 50, 3))
    block = generator.standard_normal((260, 3)).astype(dtype)
    whole = kernel.against(Z, dtype)(block, Workspace()).copy()
    np.testing.assert_allclose(whole, kernel(block, Z), atol=1e-4 if dtype == np.float32 else 1e-12)


@every_kernel
def test_single_precision_is_close_and_picklable(kernel, definition):
    prepared = pickle.loads(pickle.dumps(kernel.against(B, np.float32)))  # noqa: S301
    found = prepared(A, Workspace())
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, oracles.kernel_matrix(definition, A, B), atol=5e-6)


@every_kernel
def test_clone_and_parameters_round_trip(kernel, definition):
    copy = clone(kernel)
    assert copy == kernel
    assert copy is not kernel
    assert type(kernel)(**kernel.get_params(deep=False)) == kernel


@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(1.0), Matern(1.0, nu=0.5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_far_away_are_as_accurate_as_near_ones(kernel, dtype):
    points = np.array([[0.0, 0.0], [3e4, 1.0], [1e7, 1e7]])
    rows = np.array([[3e4, 1.5], [1e7, 1e7], [1e90, 0.0], [-1e250, 1e250]])
    found = kernel.against(points, dtype)(rows, Workspace())
    half = float(kernel([[0.0]], [[0.5]])[0, 0])
    np.testing.assert_allclose(found, [[0, half, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]], atol=2e-3)


@pytest.mark.parametrize("kernel", [RBF(1.7), Matern(1.7), Matern(1.7, nu=2.5)])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 2e-7), (np.float64, 1e-14)])
def test_rows_near_points_that_are_far_apart_lose_no_digits(kernel, dtype, atol):
    rng = np.random.default_rng(0)
    points = rng.uniform(-1e6, 1e6, (30, 3))
    offset = 2.0 ** -rng.integers(0, 5, (30, 3))
    rows = points + offset  # exact but for the last bits of a point
    near = np.einsum("ij,ij->i", rows - points, rows - points)
    found = np.diag(kernel.against(points, dtype)(rows, Workspace()))
    expected = [kernel([[0.0]], [[np.sqrt(d)]])[0, 0] for d in near]
    np.testing.assert_allclose(found, expected, atol=atol)


def test_parts_of_a_sum_are_reached_by_name():
    kernel = RBF(1.0) + Linear()
    kernel.set_params(k0__length_scale=3.0, weights=[2.0, 0.5])
    assert kernel.get_params()["k0__length_scale"] == 3.0
    assert kernel == Sum([RBF(3.0), Linear()], [2.0, 0.5])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (RBF(-1.0), "length_scale must be positive"),
        (RBF([1.0, 2.0]), "one number, or one per column"),
        (RBF(variance=np.nan), "variance must be positive"),
        (RBF("long"), "length_scale must be positive"),
        (Matern(nu=0.7), "nu must be 0.5, 1.5 or 2.5"),
        (RationalQuadratic(alpha=0.0), "alpha must be positive"),
        (Sum([RBF()], [1.0, 2.0]), "give one per kernel"),
        (Sum([], []), "give one per kernel"),
        (-1.0 * RBF(), "weight must be positive"),
    ],
)
def test_senseless_parameters_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(A, B)


def test_unknown_parameter_is_refused():
    with pytest.raises(ValueError, match="has no parameter 'gamma'"):
        RBF().set_params(gamma=1.0)


@pytest.mark.parametrize(("scale", "far"), [(0.05, False), (0.4, False), (0.4, True), (2.0, False)])
def test_a_flat_kernel_is_had_without_its_offset_and_without_cancellation(scale, far):
    """Against the same in double precision, relative to the difference itself and not to the variance."""
    generator = np.random.default_rng(5)
    rows, Z = scale * generator.standard_normal((200, 3)), scale * generator.standard_normal((40, 3))
    if far:
        rows[7] = 50.0
    kernel = RBF(1.0, 7.0)
    squared = ((rows[:, None] - Z[None]) ** 2).sum(axis=2)
    found = kernel.minus_offset(7.0, Z, np.float32)(rows.astype(np.float32), Workspace())
    expected = 7.0 * np.expm1(-0.5 * ((rows.astype(np.float32).astype(float)[:, None] - Z[None]) ** 2).sum(axis=2))
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 3e-6 * 7.0 * min(1.0, 0.5 * np.median(squared))
    assert (found <= 0).all()


def test_only_flat_kernels_have_an_offset():
    Z = np.random.default_rng(0).standard_normal((30, 4))
    assert RBF(10.0, 3.0).offset(RBF(10.0, 3.0)(Z)) == 3.0
    assert RBF(0.5, 3.0).offset(RBF(0.5, 3.0)(Z)) == 0.0
    for kernel in (Matern(10.0), Linear(), RBF(10.0) + Linear()):
        assert kernel.offset(kernel(Z)) == 0.0


# ---- kernels like another one ----

FIXED = {"length_scale_bounds": "fixed", "variance_bounds": "fixed"}
STRETCHED = {
    "one length-scale": (RBF(2.0, 3.0), RBF(4.0, 15.0)),
    "one for every feature": (Matern(SCALES, 3.0, nu=0.5), Matern(2 * SCALES, 15.0, nu=0.5)),
    "a fixed length-scale": (
        RBF(2.0, 3.0, length_scale_bounds="fixed"),
        RBF(2.0, 15.0, length_scale_bounds="fixed"),
    ),
    "a fixed variance": (RBF(2.0, 3.0, variance_bounds="fixed"), RBF(4.0, 3.0, variance_bounds="fixed")),
    "nothing": (RBF(2.0, 3.0, **FIXED), RBF(2.0, 3.0, **FIXED)),
    "a shape": (RationalQuadratic(2.0, 3.0, 0.7), RationalQuadratic(4.0, 15.0, 0.7)),
    "no length-scale": (Linear(0.3), Linear(1.5)),
    "a sum": (
        Sum([RBF(2.0, 3.0), Matern(1.0, **FIXED)], [1.0, 0.5]),
        Sum([RBF(4.0, 3.0), Matern(1.0, **FIXED)], [5.0, 2.5]),
    ),
    "a sum of fixed weights": (
        Sum([RBF(2.0, 3.0), Linear(0.3)], [1.0, 0.5], "fixed"),
        Sum([RBF(4.0, 15.0), Linear(1.5)], [1.0, 0.5], "fixed"),
    ),
    "a sum in a sum": (
        Sum([Sum([RBF(2.0, 3.0), Matern(1.0)], [1.0, 2.0]), Linear(0.3)], [1.0, 0.5]),
        Sum([Sum([RBF(4.0, 3.0), Matern(2.0)], [1.0, 2.0]), Linear(0.3)], [5.0, 2.5]),
    ),
}


@pytest.mark.parametrize(("kernel", "expected"), STRETCHED.values(), ids=STRETCHED)
def test_stretching_multiplies_the_learned_length_scales_and_variances_and_nothing_else(kernel, expected):
    before = clone(kernel)
    found = kernel.stretched(2.0, 5.0)
    assert kernel == before
    assert type(found) is type(expected)
    same, others = found.get_params(), expected.get_params()
    assert same.keys() == others.keys()
    for name, value in same.items():
        if isinstance(value, (float, np.ndarray)):
            np.testing.assert_allclose(value, others[name], err_msg=name)
    np.testing.assert_allclose(found(A, B), expected(A, B))
    np.testing.assert_allclose(kernel.stretched(1.0, 1.0)(A, B), kernel(A, B))


def test_stretching_ends_at_the_bounds():
    kernel = RBF(2.0, 3.0, length_scale_bounds=(1.5, 3.0), variance_bounds=(2.0, 4.0))
    for factor, expected in ((100.0, (3.0, 4.0)), (0.01, (1.5, 2.0))):
        found = kernel.stretched(factor, factor)
        assert (found.length_scale, found.variance) == pytest.approx(expected)


@pytest.mark.parametrize("n_features", [1, 5, 60])
@pytest.mark.parametrize("kernel", [RBF(1.0, 4.0), Matern(1.0, 4.0)], ids=repr)
def test_a_broad_component_is_nearly_constant_among_the_data_and_zero_far_away(kernel, n_features):
    before = clone(kernel)
    both = with_broad_component(kernel, n_features)
    assert kernel == before
    rows = np.random.default_rng(0).standard_normal((200, n_features))  # as standard scaling makes them
    broad = both(rows) - kernel(rows)
    variance = broad.max()
    assert variance > 0.1
    np.testing.assert_allclose(np.diag(broad), variance)
    assert np.median(broad) > 0.95 * variance
    far = rows[:1] + 100 * np.sqrt(n_features)
    assert np.abs(both(rows, far)).max() < 1e-6
    np.testing.assert_allclose(both.diagonal(far), both.diagonal(rows[:1]))


def test_of_a_broad_component_only_the_variance_is_learned():
    both = with_broad_component(Matern(1.0, 4.0), 3)
    learned = {parameter.name: len(parameter.value) for parameter in both.learned()}
    assert learned == {"weights": 2, "k0__length_scale": 1}
    wider = both.stretched(2.0, 1.0)
    plain, stretched = (kernel.kernels[1](A, B) for kernel in (both, wider))
    np.testing.assert_array_equal(plain, stretched)
    assert wider.kernels[0].length_scale == pytest.approx(2.0)
