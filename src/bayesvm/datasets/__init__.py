"""Problems with a known answer (generators whose Bayes probabilities can be computed), and tables from a folder."""

from bayesvm.datasets.breiman import ringnorm, twonorm, waveform
from bayesvm.datasets.tables import load_table

__all__ = ["load_table", "ringnorm", "twonorm", "waveform"]
