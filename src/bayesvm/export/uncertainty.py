"""Export: the uncertainty of predictions (D11), as in ``predict_uncertainty``."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesvm.core.heads.binary import REACH
from bayesvm.core.heads.one_vs_rest import DRAWS, normal_draws
from bayesvm.core.latent_expectations import NODES, WEIGHTS
from bayesvm.core.links import Hinge, Paper
from bayesvm.export.graph import Value, concatenated, exp, log, maximum, minimum, sqrt, where
from bayesvm.export.links import BINARY, LEAST, log_probabilities


def uncertainty_of(link: Any, m: Value, v: Value, logs: Value, n_classes: int) -> dict[str, Value]:
    """The columns of ``predict_uncertainty``; ``logs`` are the logarithms of the predicted probabilities."""
    no_variance = m.graph.constant(0.0, np.float64)  # the variance of a known f
    if n_classes == 2:
        return _two_classes(link, m, sqrt(v), no_variance, logs)
    return _many_classes(link, m, sqrt(v), no_variance, logs, normal_draws(n_classes))


def _two_classes(link: Any, m: Value, s: Value, no_variance: Value, logs: Value) -> dict[str, Value]:
    binary = BINARY[type(link)]
    first, second = binary(link, m + s * NODES, no_variance)
    aleatoric = -(exp(first) * first + exp(second) * second) @ WEIGHTS[:, None]
    stated = exp(logs).columns([1])
    if isinstance(link, Paper | Hinge):  # the link does not average over f, or by another rule: average here
        logs = concatenated([log(maximum(exp(side) @ WEIGHTS[:, None], LEAST)) for side in (first, second)])
    lower, upper = (exp(binary(link, m + s * reach, no_variance)[1]) for reach in (-REACH, REACH))
    total = entropy(logs, 1)
    aleatoric = minimum(aleatoric, total)
    split = {"total": total, "aleatoric": aleatoric, "epistemic": total - aleatoric}
    return split | {"lower": minimum(lower, stated), "upper": maximum(upper, stated)}


def _many_classes(
    link: Any, m: Value, s: Value, no_variance: Value, logs: Value, draws: np.ndarray
) -> dict[str, Value]:
    """The entropy of the predicted probabilities, split in the ratio at the draws; if that is 0, all aleatoric."""
    at_draws = log_probabilities(link, m.expanded(1) + s.expanded(1) * draws, no_variance)
    mean = exp(at_draws).sum(1) / DRAWS
    one = m.graph.constant(1.0, np.float64)
    possible = mean.apply("Greater", 0.0, dtype=np.bool_)
    whole = -(mean * log(where(possible, mean, one))).sum(2).flat()  # 0 log 0 is zero, as for entr
    aleatoric = entropy(at_draws, 2).sum(1).flat() / DRAWS
    total = entropy(logs, 1).flat()
    doubtful = whole.apply("Greater", 0.0, dtype=np.bool_)
    share = minimum(where(doubtful, aleatoric / where(doubtful, whole, one), one), 1.0)
    return {"total": total, "aleatoric": share * total, "epistemic": (1.0 - share) * total}


def entropy(logs: Value, axis: int) -> Value:
    """``-Σ p log p``."""
    return -(exp(logs) * logs).sum(axis)
