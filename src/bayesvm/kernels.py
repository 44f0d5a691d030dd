"""Kernels for ``BayesianSVC(kernel=…)``, in scikit-learn's convention, and what a kernel of your own is made of.

``RBF(length_scale=ℓ, variance=σ²)`` is ``σ² exp(-‖x-x'‖²/2ℓ²)``; the paper's θ is √2·ℓ.
Length-scales are in units of the scaled inputs (``scale="auto"`` standardises the columns).
"""

from bayesvm.core.kernels import (
    RBF,
    Constant,
    Kernel,
    Laplacian,
    Linear,
    LogNormal,
    Matern,
    Parameter,
    RationalQuadratic,
    SharedLogNormal,
    Stationary,
    Sum,
)

__all__ = ["RBF", "Constant", "Kernel", "Laplacian", "Linear", "LogNormal", "Matern", "Parameter"]
__all__ += ["RationalQuadratic", "SharedLogNormal", "Stationary", "Sum"]
