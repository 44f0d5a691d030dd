"""Every function of the engine can be sent to where rows are, and does not see how rows are cut into blocks."""

import pickle
from functools import partial, reduce
from itertools import pairwise
from operator import iadd

import numpy as np
import pytest

from bayesvm.core.cavities import Cavities, RowMarginals
from bayesvm.core.engine import NUMPY, NumpyEngine
from bayesvm.core.features import Effect, InducingFeatures, LinearFeatures
from bayesvm.core.heads import OneVsRest
from bayesvm.core.latent import Block, LatentFunction
from bayesvm.core.likelihoods import noisy
from bayesvm.core.posterior import DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.core.workspace import Workspace
from bayesvm.kernels import RBF, Matern

rng = np.random.default_rng(0)
N, D, M = 40, 3, 7  # weights: of five points, and of an effect with two
X, Y, OMEGA = rng.standard_normal((N, D)), rng.integers(0, 3, N), rng.uniform(0.2, 2, N)
EFFECT = Effect((1,), InducingFeatures.build(Matern(0.4, nu=0.5), np.array([[-0.5], [0.7]])))
FEATURES = InducingFeatures.build(RBF(1.5, 2.0) + 0.3 * Matern(0.8), rng.standard_normal((M - 2, D)), effects=(EFFECT,))
WIDE = LinearFeatures(np.array([0.5, 1.0, 2.0, 3.0]), intercept=True)
TASK = {"head": OneVsRest((0.3, 0.3, 0.4)), "likelihood": noisy("exact", 1.0)}


def posteriors(seed):
    roots = np.random.default_rng(seed).standard_normal((3, M, M))
    return [Gaussian.from_natural(NaturalParameters(np.eye(M) + A @ A.T, A[0])) for A in roots]


def view(posteriors, features=FEATURES, n_rows=0):
    offsets = 0.1, -0.2, 0.4
    functions = [LatentFunction(k, c, q) for k, (c, q) in enumerate(zip(offsets, posteriors, strict=True))]
    return NUMPY.view(features, functions, n_rows, np.float64)[0]


def adjoint_view(posteriors):
    functions = [LatentFunction(k, 0.1 * k, q) for k, q in enumerate(posteriors)]
    return NUMPY.adjoint_view(functions)


FINAL, BEFORE = posteriors(1), posteriors(2)
BOTH = {"before": view(BEFORE), "final": view(FINAL)}
MEAN_FIELD = [
    DiagonalGaussian(*pair) for pair in zip(rng.standard_normal((3, 4)), rng.uniform(0.1, 1, (3, 4)), strict=True)
]
OTHER = InducingFeatures.build(Matern(2.0), rng.standard_normal((7, D)))
MOVED = {"features": OTHER.prepared(None, np.float64), "width": 7, "offsets": (0.0, 0.1, 0.2)}
GIVEN = {  # what each function must know
    "statistics": {"view": view(FINAL)},
    "transfer": {"view": view(FINAL), **MOVED},
    "mean_field_gradient": {"view": view(MEAN_FIELD, WIDE)},
    "cavities": BOTH,
    "marginals": BOTH,
    "elbo_gradient": {"features": FEATURES, "view": adjoint_view(FINAL)},
}
JOINED = {"cavities": Cavities.joined, "marginals": RowMarginals.joined}  # the results of all others add up
every_function = pytest.mark.parametrize("name", GIVEN)


def in_blocks(*cuts):
    parts = [slice(a, b) for a, b in pairwise((0, *cuts, N))]
    return [Block(X[part], Y[part], OMEGA[part]) for part in parts]


def numbers(value):
    """All arrays in a result, in some fixed order."""
    if value is None:
        return []
    if isinstance(value, (int, float, np.ndarray)):
        return [np.asarray(value)]
    children = value.values() if isinstance(value, dict) else value
    if not isinstance(children, (list, tuple)) and not isinstance(value, dict):
        children = vars(value).values()
    return [array for child in children for array in numbers(child)]


def assert_same(one, other, **tolerance):
    found = list(zip(numbers(one), numbers(other), strict=True))
    assert found
    for a, b in found:
        np.testing.assert_allclose(a, b, **({"rtol": 1e-10, "atol": 1e-10} | tolerance))


def test_every_function_of_the_engine_is_tried_here():
    functions = {name for name, value in vars(NumpyEngine).items() if isinstance(value, staticmethod)}
    assert functions == {*GIVEN, "view", "adjoint_view"}


@every_function
def test_a_function_is_the_same_after_a_journey(name):
    work = partial(getattr(NUMPY, name), **GIVEN[name], **TASK)
    there = pickle.loads(pickle.dumps(work))  # noqa: S301
    assert_same(there(in_blocks(9, 30), Workspace()), work(in_blocks(9, 30), Workspace()), rtol=0, atol=0)


@every_function
@pytest.mark.parametrize("cuts", [(1,), (1, 7, 30), tuple(range(1, N))], ids=["two", "four", "a row each"])
def test_how_rows_are_cut_into_blocks_does_not_matter(name, cuts):
    work = partial(getattr(NUMPY, name), **GIVEN[name], **TASK)
    assert_same(work(in_blocks(*cuts), Workspace()), work(in_blocks(), Workspace()))


@every_function
def test_results_of_stripes_add_up(name):
    """As sources do it: a workspace and a call for every stripe."""
    work = partial(getattr(NUMPY, name), **GIVEN[name], **TASK)
    stripes = [work(in_blocks(12, 30)[i : i + 1], Workspace()) for i in range(3)]
    total = JOINED[name](stripes) if name in JOINED else reduce(iadd, stripes)
    assert_same(total, work(in_blocks(), Workspace()))


def test_results_do_not_live_in_the_workspace():
    """It is used again for the next stripe."""
    workspace = Workspace()
    for name, given in GIVEN.items():
        found = getattr(NUMPY, name)(in_blocks(), workspace, **given, **TASK)
        kept = [array.copy() for array in numbers(found)]
        getattr(NUMPY, name)(in_blocks(20)[1:], workspace, **given, **TASK)
        assert_same(numbers(found), kept, rtol=0, atol=0)
