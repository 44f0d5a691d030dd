"""Problems with a known answer: generators whose Bayes probabilities can be computed."""

from bayesvm.datasets.breiman import ringnorm, twonorm, waveform

__all__ = ["ringnorm", "twonorm", "waveform"]
