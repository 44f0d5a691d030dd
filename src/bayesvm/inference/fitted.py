"""Inference: a fitted model as a value. Predictions need nothing else; files, reports and exports use it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import Cavities
from bayesvm.core.conformal import CalibratedShares
from bayesvm.core.heads import Head, Regression
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.members import Member, MemberMoments, MemberViews
from bayesvm.data.blas import threads_for_matrices
from bayesvm.data.blocks import RowNumbers
from bayesvm.data.scaling import Scaler
from bayesvm.inference.tuning_report import Report

MANY_ROWS = 2**62  # predictions always use the coordinates for many rows


@dataclass(frozen=True)
class Training:
    """The record of training."""

    elbo: float
    trace: tuple[float, ...]  # the ELBO after each update
    passes: float  # rows read divided by the number of rows
    converged: bool
    interrupted: bool = False


@dataclass(frozen=True)
class Fitted:
    """The learned model: its head, its scaling, its members and its link.

    ``left_out`` are the leave-one-out marginals of each member for the rows ``left_out_rows`` of the user's table.
    After updates with a stream, the row numbers are unknown.
    """

    head: Head
    likelihood: Likelihood
    scale: str | None  # the name of the scaling
    scaler: Scaler
    members: tuple[Member, ...]
    link: Any
    training: Training
    left_out: tuple[Cavities, ...]
    left_out_rows: RowNumbers | None
    n_samples: int | None  # number of training rows; None in old files
    report: Report | None = None  # of tuning
    left_out_groups: RowNumbers | None = None  # of the left-out rows, if rows were left out in groups

    @property
    def member(self) -> Member:
        """The first member; usually the only one."""
        return self.members[0]

    @property
    def first_scaler(self) -> Scaler:
        """The scaling of the first member."""
        return self.member.scaler or self.scaler

    @cached_property
    def views(self) -> MemberViews:
        """The views for new rows, in double precision regardless of the precision of the fit.

        Single precision would change probabilities by up to a few thousandths, by different amounts in each batch.
        """
        return self.views_in(np.float64)

    def views_in(self, dtype: npt.DTypeLike) -> MemberViews:
        """The views in another precision."""
        with threads_for_matrices(max(member.features.n_weights for member in self.members)):
            return MemberViews.of(self.members, self.link, MANY_ROWS, dtype)

    @property
    def links(self) -> list[Any]:
        """The links of the members."""
        return [member.link or self.link for member in self.members]

    @cached_property
    def left_out_moments(self) -> list[MemberMoments]:
        """The leave-one-out marginals of every member, with the shares of the members."""
        return [
            MemberMoments(left.mean, left.variance, link, share)
            for left, link, share in zip(self.left_out, self.views.links, self.views.shares, strict=True)
        ]

    @property
    def left_out_y(self) -> npt.NDArray[Any]:
        """The targets of the left-out rows."""
        return self.left_out[0].y

    @property
    def left_out_weight(self) -> Array:
        """The weights of the left-out rows."""
        return self.left_out[0].weight

    @cached_property
    def calibrated_shares(self) -> CalibratedShares:
        """The map from shares of left-out rows to quantiles of their predicted distributions (D35)."""
        if not isinstance(self.head, Regression):
            raise TypeError(f"{type(self.head).__name__} is not for regression")
        y = self.head.centre + self.head.spread * self.left_out_y
        below = self.head.distribution(self.left_out_moments, y).clip(0, 1)
        return CalibratedShares.of(below, self.left_out_weight, self.left_out_groups)

    @cached_property
    def left_out_loss(self) -> float:
        """Leave-one-out estimate of ``-log p(y)``, as a weighted mean."""
        if len(self.left_out) == 1:
            left = self.left_out[0]
            losses = self.link.row_losses(left.mean, left.variance, left.y)
        else:
            losses = self.head.mixed_losses(self.left_out_moments, self.left_out_y)
        return float(np.average(losses, weights=self.left_out_weight))
