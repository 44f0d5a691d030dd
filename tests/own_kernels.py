"""Kernels as users write them, outside the package, and the members of the family that are inside."""

import numpy as np
from scipy.special import kve

from bayesvm.kernels import Kernel, LogNormal, Parameter, Stationary


def kernel_classes():
    """Every kernel class of bayesvm that can be made; a new one without tests makes tests fail."""

    def below(cls):
        return {cls, *(sub for child in cls.__subclasses__() for sub in below(child))}

    return {cls for cls in below(Kernel) if cls.__module__.startswith("bayesvm") and not cls.__abstractmethods__}


class Cauchy(Stationary):
    """``1 / (1 + d²)``: one method is all."""

    def profile(self, squared):
        value = 1 / (1 + squared)
        return value, 2 * value**2


class PowerExponential(Stationary):
    """``exp(-d^p)`` with a shape parameter that is learned."""

    parameters = Stationary.parameters | {"power": Parameter(LogNormal(1.0, 1.0), bounds=(0.1, 2.0))}

    def __init__(self, length_scale=1.0, variance=1.0, power=1.0):
        super().__init__(length_scale, variance)
        self.power = power

    def profile(self, squared):
        raised = squared ** (self.power / 2)
        value = np.exp(-raised)
        return value, self.power * value * raised / squared


class Branching(Stationary):
    """The RBF kernel in a way that is no formula of ufuncs."""

    def profile(self, squared):
        value = np.where(squared > 1e3, 0.0, np.exp(-0.5 * squared))
        return value, value


class Bessel(Stationary):
    """Matern 1/2 by a ufunc that NumPy does not have."""

    def profile(self, squared):
        d = np.sqrt(squared + 1e-300)
        value = np.sqrt(2 / np.pi * d) * kve(0.5, d) * np.exp(-d)
        return value, value / d


class Careless(Stationary):
    """Bounds without a prior."""

    def __init__(self, length_scale=1.0, variance=1.0, shape=1.0, shape_bounds=(0.1, 10.0)):
        super().__init__(length_scale, variance)
        self.shape = shape
        self.shape_bounds = shape_bounds

    def profile(self, squared):
        value = np.exp(-self.shape * squared)
        return value, 2 * self.shape * value
