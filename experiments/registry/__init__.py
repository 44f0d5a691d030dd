"""Registry: data sets × methods × metrics, each a table of names, for every experiment to choose from."""

from experiments.registry.methods import METHODS
from experiments.registry.metrics import METRICS
from experiments.registry.sets import QUICK, SETS, TOUCHED, UNTOUCHED

__all__ = ["METHODS", "METRICS", "QUICK", "SETS", "TOUCHED", "UNTOUCHED"]
