"""Export: links, from the moments of f to probabilities (D11), all in double precision.

A binary link returns the logarithms of both probabilities, elementwise for m and v of any shape; a link for more than
two classes returns logits along the last axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import erfcx

from bayesvm.core.links import HINGE_NODES, HINGE_WEIGHTS, Hinge, Normalised, Paper, Probit, Softmax, TwoProbits
from bayesvm.export.graph import Value, absolute, concatenated, exp, log, maximum, minimum, sqrt, where

Both = tuple[Value, Value]  # log P(first class), log P(second class)
LEAST = 1e-300  # a probability, as in core.links

# log(erfcx(x)/t) with t = 2/(2+x) is smooth in t on [0, 1]: a polynomial in 2t-1 of degree 31 is accurate to 3e-15.
_POWERS = 32


def _scaled_tail(s: np.ndarray) -> np.ndarray:
    t = (1 + s) / 2
    tail: np.ndarray = np.log(erfcx(2 * (1 - t) / t) / t)
    return tail


_TAIL = Chebyshev.interpolate(_scaled_tail, _POWERS - 1).convert(kind=Polynomial).coef


def log_probits(z: Value) -> Both:
    """``log Φ(-z)`` and ``log Φ(z)``, both to full relative accuracy.

    onnxruntime has no Erf in double precision, and Erf would round probabilities below 1e-16 to zero.
    """
    x = absolute(z) * np.sqrt(0.5)
    t = 2 / (2 + x)
    smaller = log(0.5 * t) - x * x + _polynomial(2 * t - 1, _TAIL)
    larger = log(1 - exp(smaller))
    positive = z.apply("Greater", 0.0, dtype=np.bool_)
    return where(positive, smaller, larger), where(positive, larger, smaller)


def _polynomial(s: Value, coefficients: np.ndarray) -> Value:
    """``Σ c_k sᵏ``: each iteration doubles the number of powers along a new last axis."""
    power = s.expanded(-1)
    powers = concatenated([power * 0.0 + 1.0, power], axis=-1)
    for _ in range(int(np.log2(len(coefficients))) - 1):
        power = power * power
        powers = concatenated([powers, powers * power], axis=-1)
    return powers.dot(coefficients)


def _probit(link: Probit, m: Value, v: Value) -> Both:
    return log_probits((m * link.scale + link.bias) / sqrt(v * link.scale**2 + 1.0))


def _two_probits(link: TwoProbits, m: Value, v: Value) -> Both:
    a, b = np.array(link.scale), np.array(link.bias)
    parts = log_probits((m.expanded(-1) * a + b) / sqrt(v.expanded(-1) * a**2 + 1.0))
    shares = np.array([1 - link.share, link.share])
    first, second = (log(maximum(exp(part).dot(shares), LEAST)) for part in parts)
    return first, second


def _paper(_: Paper, m: Value, v: Value) -> Both:
    return log_probits(m / (v + 1.0))


def _hinge(_: Hinge, m: Value, v: Value) -> Both:
    f = m.expanded(-1) + sqrt(v).expanded(-1) * HINGE_NODES
    odds = (maximum(f + 1.0, 0.0) - maximum(1.0 - f, 0.0)) * 2.0
    # Not the operator Sigmoid: that of onnxruntime rounds numbers below 1e-16 to zero.
    larger = 1 / (1.0 + exp(-absolute(odds)))
    sides = (exp(minimum(side, 0.0)) * larger for side in (-odds, odds))
    first, second = (log(maximum(side.dot(HINGE_WEIGHTS), LEAST)) for side in sides)
    return first, second


def _softmax(link: Softmax, m: Value, v: Value) -> Value:
    return m * link.scale / sqrt(v + 1.0) + np.array(link.bias)


def _normalised(link: Normalised, m: Value, v: Value) -> Value:
    return BINARY[type(link.binary)](link.binary, m, v)[1]


BINARY: dict[type, Callable[[Any, Value, Value], Both]] = {
    Probit: _probit,
    TwoProbits: _two_probits,
    Paper: _paper,
    Hinge: _hinge,
}
MANY_CLASSES: dict[type, Callable[[Any, Value, Value], Value]] = {Softmax: _softmax, Normalised: _normalised}


def log_probabilities(link: Any, m: Value, v: Value) -> Value:
    """Log probabilities along the last axis; m and v have one column for two classes, otherwise one per class."""
    if type(link) in BINARY:
        return concatenated(BINARY[type(link)](link, m, v))
    return MANY_CLASSES[type(link)](link, m, v).apply("LogSoftmax", axis=-1)
