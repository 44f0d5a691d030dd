"""Inference: what the user asked for, as values that were checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesvm.core.likelihoods import Likelihood
from bayesvm.inference.learning_rates import LearningRate

SINGLE_FROM = 1_000_000  # features in all, N·M, from which blocks are in single precision


@dataclass(frozen=True)
class Settings:
    """What kernel and linear models have in common; the estimators' docstrings explain each."""

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
    local: bool | str = False  # whether there are local models; "auto": where leave-one-out says so

    @property
    def base_rates(self) -> bool:
        """Whether the prior mean is chosen such that a row far from all data gets the base rates (D11)."""
        return self.link != "paper"

    @property
    def plain_scale(self) -> str | None:
        """The scaling where none is chosen by tuning."""
        return "standard" if self.scale == "auto" else self.scale

    def column(self, number: int) -> str:
        """What a column is called in messages."""
        return str(number) if self.column_names is None else repr(self.column_names[number])

    def dtype(self, n_features: int) -> Any:
        """The type of numbers in blocks with so many features in all."""
        if self.precision == "auto":
            return np.float32 if n_features >= SINGLE_FROM else np.float64
        return {"single": np.float32, "double": np.float64}[self.precision]
