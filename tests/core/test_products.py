"""Products with triangular matrices against NumPy's product with the same matrix."""

import numpy as np
import pytest

from bayesvm.core.features import InducingFeatures
from bayesvm.core.products import PANEL, times_upper
from bayesvm.core.workspace import Workspace
from bayesvm.kernels import RBF

rng = np.random.default_rng(0)


@pytest.mark.parametrize("size", [1, PANEL - 1, PANEL, PANEL + 1, 2 * PANEL + 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_panels_are_the_whole_product(size, dtype):
    rows, upper = rng.normal(size=(30, size)).astype(dtype), np.triu(rng.normal(size=(size, size))).astype(dtype)
    out = np.full((30, size), np.nan, dtype)
    assert times_upper(rows, upper, out) is out
    np.testing.assert_allclose(out, rows @ upper, rtol=1e-4 if dtype == np.float32 else 1e-11, atol=1e-4)


@pytest.mark.parametrize("rotated", [False, True])
def test_features_are_whitened_rows_in_any_basis(rotated):
    """``phi = basisᵀ L^-1 k(Z, x)``, by a solve with the factor."""
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(200, 3))
    kernel = RBF(1.0, 2.0)
    features = InducingFeatures.build(kernel, Z)
    basis = np.linalg.qr(rng.normal(size=(200, 200)))[0] if rotated else None
    found, _ = features.prepared(basis, np.float64)(X, Workspace())
    matrix = kernel(Z)
    factor = np.linalg.cholesky(matrix + features.jitter * np.mean(np.diag(matrix)) * np.eye(200))
    phi = np.linalg.solve(factor, kernel(Z, X)).T
    np.testing.assert_allclose(found, phi if basis is None else phi @ basis, atol=1e-6)
