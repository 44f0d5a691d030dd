"""Inference: the settings of a fit, as validated values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvm.core.likelihoods import Likelihood
from bayesvm.inference.learning_rates import LearningRate

SINGLE_FROM = 1_000_000  # total features N·M from which blocks are in single precision


@dataclass(frozen=True)
class Settings:
    """The settings that kernel and linear models share; the docstrings of the estimators explain them."""

    likelihood: Likelihood
    inference: str
    tune: str | None
    tune_interval: int
    scale: str | None
    link: str
    batch_size: int
    learning_rate: LearningRate
    max_iter: int
    tol: float
    time_limit: float | None
    precision: str
    n_jobs: int
    seed: int
    column_names: tuple[str, ...] | None = None  # for messages
    local: bool | str = False  # whether to use local models; "auto" decides by leave-one-out

    @property
    def base_rates(self) -> bool:
        """Whether the prior mean is chosen so that rows far from all data get the base rates (D11)."""
        return self.link != "paper"

    @property
    def plain_scale(self) -> str | None:
        """The scaling if tuning does not choose one."""
        return "standard" if self.scale == "auto" else self.scale

    def column(self, number: int) -> str:
        """The name of a column in messages."""
        return str(number) if self.column_names is None else repr(self.column_names[number])

    def dtype(self, n_features: int) -> Any:
        """The floating-point type of blocks, given the total number of features."""
        if self.precision == "auto":
            return np.float32 if n_features >= SINGLE_FROM else np.float64
        return {"single": np.float32, "double": np.float64}[self.precision]
