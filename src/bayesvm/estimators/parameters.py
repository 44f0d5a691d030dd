"""Estimators: checks of constructor parameters, with errors that say what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bayesvm.inference.learning_rates import AdaptiveRate, FixedRate, LearningRate, RobbinsMonro

Check = tuple[Callable[[Any], bool], str]


def one_of(*choices: Any) -> Check:
    """Exactly one of these values."""
    return _is_among(choices), "one of " + ", ".join(map(repr, choices))


def _is_among(choices: tuple[Any, ...]) -> Callable[[Any], bool]:
    return lambda value: any(value is c or (isinstance(c, str) and value == c) for c in choices)


def whole(least: int, *also: Any) -> Check:
    """An integer of at least ``least``, or one of the other values."""
    other = _is_among(also)

    def check(value: Any) -> bool:
        whole_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return other(value) or (whole_number and bool(value >= least))

    return check, _or(f"an integer ≥ {least}", also)


def real(fits: Callable[[float], bool], words: str, *also: Any) -> Check:
    """A finite number with a property, or one of the other values."""
    other = _is_among(also)

    def check(value: Any) -> bool:
        return other(value) or (
            isinstance(value, int | float | np.integer | np.floating)
            and not isinstance(value, bool)
            and bool(np.isfinite(value))
            and fits(float(value))
        )

    return check, _or(words, also)


def _or(first: str, also: tuple[Any, ...]) -> str:
    *others, last = [first, *map(repr, also)]
    return f"{', '.join(others)} or {last}" if others else last


COMMON: dict[str, Check] = {
    "inference": one_of("auto", "batch", "stochastic"),
    "batch_size": whole(1, "auto"),
    "learning_rate": real(lambda r: 0 < r <= 1, "a number in (0, 1]", "adaptive", "robbins_monro"),
    "max_iter": whole(1),
    "tol": real(lambda t: t >= 0, "a number ≥ 0"),
    "time_limit": real(lambda t: t > 0, "a number of seconds > 0", None),
    "warm_start": one_of(True, False),
    "precision": one_of("auto", "single", "double"),
    "verbose": real(lambda v: v >= 0, "a number ≥ 0", True, False),
}


CLASSIFIER: dict[str, Check] = {
    "bound": one_of("exact", "augmented"),
    "noise": real(lambda s: s >= 0, "a number ≥ 0", "auto"),
    "link": one_of("calibrated", "probit", "hinge", "paper"),
}


def check_parameters(estimator: Any, checks: Mapping[str, Check]) -> None:
    """Raise ``ValueError`` for the first invalid parameter."""
    for name, (fits, words) in checks.items():
        value = getattr(estimator, name)
        if not fits(value):
            raise ValueError(f"{type(estimator).__name__}: {name} must be {words}; got {value!r}")


def learning_rate(rate: Any) -> LearningRate:
    """The learning rate for a name or a number."""
    if rate == "adaptive":
        return AdaptiveRate()
    return RobbinsMonro() if rate == "robbins_monro" else FixedRate(float(rate))
