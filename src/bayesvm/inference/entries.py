"""Inference: the candidates of tuning, and their current results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bayesvm.core.features import Effect, InducingFeatures
from bayesvm.core.kernels import Kernel
from bayesvm.data.scaling import Scaler
from bayesvm.inference.judgements import Judgement, Rows
from bayesvm.inference.tuning_report import Trial


@dataclass(frozen=True)
class Candidates:
    """The scalings and kernels to try; the plain scaling comes first, and kernels are ordered from smooth to rough."""

    scalers: Mapping[str | None, Scaler]
    kernels: Mapping[str, Kernel]
    whole_recipe: bool  # whether tuning may change more than the parameters of one kernel
    relevance: bool  # whether tuning may learn one length-scale per feature


@dataclass(frozen=True)
class Entry:
    """The current state of a candidate: its rows, its judgement, and its line in the report."""

    scale: str | None
    name: str  # name of the kernel family
    rows: Rows
    judgement: Judgement
    trial: Trial
    effects: tuple[Effect, ...] = ()  # effects in addition to the kernel (D26)
    gained: float = 0.0  # reduction of log loss with twice the points
    fresh: Judgement | None = None  # on rows that were not used to learn its kernel

    @property
    def features(self) -> InducingFeatures:
        """The features of the judgement."""
        return inducing_features(self.judgement)

    @property
    def kernel(self) -> Kernel:
        """The learned kernel."""
        return self.features.kernel

    @property
    def prior_variance(self) -> float:
        """The prior variance of f, averaged over the inducing points."""
        return float(np.mean(self.features.diagonal(self.features.inducing_points)))

    @property
    def verdict(self) -> Judgement:
        """The judgement that determines the score."""
        return self.fresh or self.judgement

    @property
    def score(self) -> float:
        """Leave-one-out log loss; if many parameters were learned, on rows not used to learn them."""
        return self.trial.loo


def noise(one: Entry, other: Entry) -> float:
    """The standard error of the difference between the scores of two entries on the same rows."""
    return one.verdict.error(one.verdict.losses - other.verdict.losses)


def inducing_features(judgement: Judgement) -> InducingFeatures:
    """The features of a judgement of a kernel."""
    if not isinstance(judgement.features, InducingFeatures):
        raise TypeError("tuning a kernel needs inducing points")
    return judgement.features
