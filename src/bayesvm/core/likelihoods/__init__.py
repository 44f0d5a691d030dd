"""Core, likelihoods: one file each, all with the contract of ``contract.py``."""

from bayesvm.core.likelihoods.augmented_hinge import AugmentedHinge
from bayesvm.core.likelihoods.contract import Likelihood, LocalUpdate
from bayesvm.core.likelihoods.exact_hinge import ExactHinge

LIKELIHOODS: dict[str, Likelihood] = {"exact": ExactHinge(), "augmented": AugmentedHinge()}

__all__ = ["LIKELIHOODS", "AugmentedHinge", "ExactHinge", "Likelihood", "LocalUpdate"]
