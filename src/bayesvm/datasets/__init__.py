"""Generators with known Bayes probabilities, and real tables."""

from bayesvm.datasets.breiman import ringnorm, twonorm, waveform
from bayesvm.datasets.collisions import fetch_higgs, fetch_susy
from bayesvm.datasets.paper import fetch_raetsch, fetch_usps_3v5
from bayesvm.datasets.people import people
from bayesvm.datasets.tables import load_rows, load_table

__all__ = [
    "fetch_higgs",
    "fetch_raetsch",
    "fetch_susy",
    "fetch_usps_3v5",
    "load_rows",
    "load_table",
    "people",
    "ringnorm",
    "twonorm",
    "waveform",
]
