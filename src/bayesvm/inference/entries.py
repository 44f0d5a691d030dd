"""Inference: what tuning may try, and a candidate as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bayesvm.core.features import Effect, InducingFeatures
from bayesvm.core.kernels import Kernel
from bayesvm.data.scaling import Scaler
from bayesvm.inference.hyperparameters import Judgement, Rows
from bayesvm.inference.tuning_report import Trial


@dataclass(frozen=True)
class Candidates:
    """What may be tried; the first scaling is the plain one, kernels go from smooth to rough."""

    scalers: Mapping[str | None, Scaler]
    kernels: Mapping[str, Kernel]
    whole_recipe: bool  # whether more may be changed than the parameters of one kernel
    relevance: bool  # whether one length-scale for every feature may be learned


@dataclass(frozen=True)
class Entry:
    """A candidate as it stands: the rows it was judged on, its judgement, and its line in the report."""

    scale: str | None
    name: str  # of the kernel's family
    rows: Rows
    judgement: Judgement
    trial: Trial
    effects: tuple[Effect, ...] = ()  # that the fit has beside the kernel (D26)
    gained: float = 0.0  # log loss by which twice the points are better
    fresh: Judgement | None = None  # on rows that its kernel was not learned on

    @property
    def features(self) -> InducingFeatures:
        """Those of the judgement."""
        return inducing_features(self.judgement)

    @property
    def kernel(self) -> Kernel:
        """As it was learned."""
        return self.features.kernel

    @property
    def prior_variance(self) -> float:
        """That of f, averaged over the inducing points."""
        return float(np.mean(self.features.diagonal(self.features.inducing_points)))

    @property
    def verdict(self) -> Judgement:
        """The judgement that its score comes from."""
        return self.fresh or self.judgement

    @property
    def score(self) -> float:
        """Leave-one-out log loss; of many parameters, on rows that they were not learned on."""
        return self.trial.loo


def noise(one: Entry, other: Entry) -> float:
    """The standard error of the difference between the scores of two entries on the same rows."""
    return one.verdict.error(one.verdict.losses - other.verdict.losses)


def inducing_features(judgement: Judgement) -> InducingFeatures:
    """The features of a judgement of a kernel."""
    if not isinstance(judgement.features, InducingFeatures):
        raise TypeError("a tuned kernel has inducing points")
    return judgement.features
