"""The jitter ladder: nothing added when not needed, a warning when much is, an error that explains."""

import numpy as np
import pytest

from bayesvm.core.linalg import JitterWarning, NotFiniteError, NotPositiveDefiniteError, cholesky


def test_a_good_matrix_is_left_alone():
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    factor, jitter = cholesky(A, what="A")
    assert jitter == 0
    np.testing.assert_allclose(factor @ factor.T, A)


def test_a_singular_matrix_gets_jitter_and_a_warning():
    A = np.ones((3, 3)) - 1e-9 * np.eye(3)
    with pytest.warns(JitterWarning, match="the matrix is nearly singular"):
        factor, jitter = cholesky(A, what="the matrix")
    np.testing.assert_allclose(factor @ factor.T, A + jitter * np.eye(3), atol=1e-9)


@pytest.mark.parametrize(
    ("A", "message"), [(-np.eye(2), "not positive definite"), (np.full((2, 2), np.nan), "NaN or infinity")]
)
def test_a_hopeless_matrix_raises_a_typed_error(A, message):
    with pytest.raises((NotPositiveDefiniteError, NotFiniteError), match=message):
        cholesky(A, what="A")
