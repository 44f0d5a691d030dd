"""Core, likelihoods: one module each; ``contract.py`` defines their common interface."""

from collections.abc import Callable

from bayesvm.core.likelihoods.augmented_hinge import AugmentedHinge
from bayesvm.core.likelihoods.contract import Likelihood
from bayesvm.core.likelihoods.epsilon_insensitive import EpsilonInsensitive
from bayesvm.core.likelihoods.exact_hinge import ExactHinge

_BOUNDS: dict[str, Callable[[float], Likelihood]] = {"exact": ExactHinge, "augmented": AugmentedHinge}
LIKELIHOODS = {name: bound(0.0) for name, bound in _BOUNDS.items()}  # without noise, as in the paper


def noisy(bound: str, noise: float) -> Likelihood:
    """The bound of this name, with noise added to f (D22)."""
    return _BOUNDS[bound](noise)


__all__ = ["LIKELIHOODS", "AugmentedHinge", "EpsilonInsensitive", "ExactHinge", "Likelihood", "noisy"]
