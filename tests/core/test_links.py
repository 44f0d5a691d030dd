"""Links against quadrature (D11)."""

import numpy as np
from scipy import integrate, stats
from scipy.special import ndtr

from bayesvm.core.links import LINKS


def test_probit_is_the_expected_probit():
    for m, v in [(-1.0, 0.3), (0.4, 2.0), (3.0, 10.0)]:
        s = np.sqrt(v)
        expected = integrate.quad(lambda f, m=m, s=s: ndtr(f) * stats.norm(m, s).pdf(f), m - 10 * s, m + 10 * s)[0]
        np.testing.assert_allclose(ndtr(LINKS["probit"](m, v)), expected, atol=1e-8)


def test_paper_is_the_printed_formula():
    np.testing.assert_allclose(LINKS["paper"](2.0, 3.0), 0.5)
