"""Export: why a prediction is uncertain (D11), as ``predict_uncertainty`` says it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesvm.core.known import NODES, WEIGHTS
from bayesvm.core.links import Hinge, Paper
from bayesvm.estimators._prediction import DRAWS, REACH, normal_draws
from bayesvm.export.graph import Value, concatenated, exp, log, maximum, minimum, sqrt
from bayesvm.export.links import BINARY, LEAST, log_probabilities


def uncertainty_of(link: Any, m: Value, v: Value, logs: Value, n_classes: int) -> dict[str, Value]:
    """The columns of ``predict_uncertainty``; ``logs`` are the logarithms of the predicted probabilities."""
    known = m.graph.constant(0.0, np.float64)  # the variance of an f that is known
    if n_classes == 2:
        return _two_classes(link, m, sqrt(v), known, logs)
    return _many_classes(link, m, sqrt(v), known, normal_draws(n_classes))


def _two_classes(link: Any, m: Value, s: Value, known: Value, logs: Value) -> dict[str, Value]:
    binary = BINARY[type(link)]
    first, second = binary(link, m + s * NODES, known)
    aleatoric = -(exp(first) * first + exp(second) * second) @ WEIGHTS[:, None]
    if isinstance(link, Paper | Hinge):  # no average over f, or one by another rule: the average itself, then
        logs = concatenated([log(maximum(exp(side) @ WEIGHTS[:, None], LEAST)) for side in (first, second)])
    stated = exp(logs).columns([1])
    lower, upper = (exp(binary(link, m + s * reach, known)[1]) for reach in (-REACH, REACH))
    interval = {"lower": minimum(lower, stated), "upper": maximum(upper, stated)}
    return _split(-(exp(logs) * logs).sum(1), aleatoric) | interval


def _many_classes(link: Any, m: Value, s: Value, known: Value, draws: np.ndarray) -> dict[str, Value]:
    at_draws = log_probabilities(link, m.expanded(1) + s.expanded(1) * draws, known)
    p = exp(at_draws)
    mean = p.sum(1) / DRAWS
    return _split(
        -(mean * log(maximum(mean, LEAST))).sum(2),
        -(p * at_draws).sum(2).sum(1) / DRAWS,
    )


def _split(total: Value, aleatoric: Value) -> dict[str, Value]:
    known = minimum(aleatoric, total)
    return {"total": total, "aleatoric": known, "epistemic": total - known}
