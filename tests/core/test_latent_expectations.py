"""Averages over f from tables against the quadrature itself, which asks the link at every node (D11)."""

import numpy as np
import pytest
from scipy.special import entr, ndtr

from bayesvm.core.latent_expectations import ROWS_AT_ONCE, LatentExpectations
from bayesvm.core.links import PLAIN_LINKS, Probit, TwoProbits

LINKS = {
    **PLAIN_LINKS,
    "steep": Probit(40.0, -3.0),
    "flat": Probit(0.02, 0.5),
    "two probits": TwoProbits((0.9, 0.6), (0.3, -0.4), 0.3),
    "two unlike probits": TwoProbits((12.0, 2.0), (2.0, -3.0), 0.7),
}


def marginals(n_rows):
    """As models have them, and some that are far from all."""
    rng = np.random.default_rng(0)
    m, s = 4 * rng.standard_normal(n_rows), np.exp(0.7 * rng.standard_normal(n_rows))
    m[:4], s[:3] = (1e6, -1e300, 30.0, 0.0), (1.0, 1.0, 1e-9)
    return m, s


def at_every_node(link, m, s):
    nodes, weights = np.polynomial.hermite_e.hermegauss(48)
    z = np.array([link.score(m + s * node, np.zeros(len(m))) for node in nodes])
    weights = weights / weights.sum()
    return weights @ ndtr(z), weights @ (entr(ndtr(z)) + entr(ndtr(-z)))


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("n_rows", [0, 5, ROWS_AT_ONCE + 7])
def test_tables_give_what_the_nodes_give(link, n_rows):
    m, s = marginals(max(n_rows, 4))
    m, s = m[:n_rows], s[:n_rows]
    known = LatentExpectations.by(link)
    probability, entropy = at_every_node(link, m, s)
    np.testing.assert_allclose(known.mean_probability(m, s), probability, rtol=0, atol=1e-6)
    np.testing.assert_allclose(known.mean_entropy(m, s), entropy, rtol=0, atol=1e-6)
