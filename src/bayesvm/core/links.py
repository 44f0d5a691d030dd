"""Core: from the marginal N(m, v) of f to P(y = +1), as the probit of that probability (D11)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayesvm.core.linalg import Array

Link = Callable[[Array, Array], Array]


def probit(m: Array, v: Array) -> Array:
    """``m / √(1+v)``: P(f + unit normal noise > 0)."""
    return m / np.sqrt(1 + v)


def paper(m: Array, v: Array) -> Array:
    """``m / (1+v)``: as printed in the paper, without the root; for reproducing it only."""
    return m / (1 + v)


LINKS: dict[str, Link] = {"probit": probit, "paper": paper}
