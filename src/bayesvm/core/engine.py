"""Core: the engine that reduces blocks of rows. NumPy is the only one; another would be one more module like this."""

from __future__ import annotations

from bayesvm.core.cavities import block_cavities, block_marginals
from bayesvm.core.gradients import block_elbo_gradient
from bayesvm.core.latent import View
from bayesvm.core.statistics import block_gradient, block_statistics, block_transfer


class NumpyEngine:
    """Blocks as NumPy arrays, one BLAS thread each, with temporary arrays in a workspace.

    Each function takes blocks and a workspace, and its other inputs by keyword. A source of rows runs a
    ``functools.partial`` of it where the rows are stored. All results except cavities and marginals are additive.
    """

    statistics = staticmethod(block_statistics)
    transfer = staticmethod(block_transfer)
    marginals = staticmethod(block_marginals)
    mean_field_gradient = staticmethod(block_gradient)
    cavities = staticmethod(block_cavities)
    elbo_gradient = staticmethod(block_elbo_gradient)
    view = staticmethod(View.of)
    adjoint_view = staticmethod(View.for_adjoints)


NUMPY = NumpyEngine()
