"""Kernels for ``BayesianSVC(kernel=…)``, in the convention of scikit-learn, and base classes for your own kernels.

``RBF(length_scale=ℓ, variance=σ²)`` is ``σ² exp(-‖x-x'‖²/2ℓ²)``; θ of the paper is √2·ℓ.
Length-scales are in units of the scaled inputs.
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
