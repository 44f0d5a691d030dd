"""Inference: a fitted model as a value. Predictions need nothing else; files, reports and exports read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.cavities import Cavities
from bayesvm.core.heads import Head
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.linalg import Array
from bayesvm.core.members import Member, MemberMoments, MemberViews
from bayesvm.data.blas import threads_for_matrices
from bayesvm.data.blocks import RowNumbers
from bayesvm.data.scaling import Scaler
from bayesvm.inference.tuning_report import Report

MANY_ROWS = 2**62  # prediction always sees the posterior in the coordinates made for many rows


@dataclass(frozen=True)
class Training:
    """How training went."""

    elbo: float
    trace: tuple[float, ...]  # the ELBO after each update
    passes: float  # rows read over rows given
    converged: bool
    interrupted: bool = False


@dataclass(frozen=True)
class Fitted:
    """What was learned: what is predicted, from which scaled columns, by which members, through which link.

    ``left_out`` are the leave-one-out marginals of each member, on the rows ``left_out_rows`` of the user's table; a
    stream does not know which rows those were.
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
    n_samples: int | None  # rows that it was fitted to; None in old files
    report: Report | None = None  # of tuning

    @property
    def member(self) -> Member:
        """The first member, which is the only one of an ordinary model."""
        return self.members[0]

    @property
    def first_scaler(self) -> Scaler:
        """The scaling that the first member sees."""
        return self.member.scaler or self.scaler

    @cached_property
    def views(self) -> MemberViews:
        """What new rows are seen with: in double precision, whatever that of the fit.

        Single precision would move a probability by up to some thousandths, and by another amount in another batch.
        """
        return self.views_in(np.float64)

    def views_in(self, dtype: npt.DTypeLike) -> MemberViews:
        """The same in another precision."""
        with threads_for_matrices(max(member.features.n_weights for member in self.members)):
            return MemberViews.of(self.members, self.link, MANY_ROWS, dtype)

    @property
    def links(self) -> list[Any]:
        """Those of the members."""
        return [member.link or self.link for member in self.members]

    @cached_property
    def left_out_moments(self) -> list[MemberMoments]:
        """The leave-one-out marginals as members of a committee see them."""
        return [
            MemberMoments(left.mean, left.variance, link, share)
            for left, link, share in zip(self.left_out, self.views.links, self.views.shares, strict=True)
        ]

    @property
    def left_out_y(self) -> npt.NDArray[Any]:
        """What was to be predicted of the rows left out."""
        return self.left_out[0].y

    @property
    def left_out_weight(self) -> Array:
        """Their weights."""
        return self.left_out[0].weight

    @cached_property
    def left_out_loss(self) -> float:
        """Leave-one-out estimate of ``-log p(y)``, averaged by weight."""
        if len(self.left_out) == 1:
            left = self.left_out[0]
            losses = self.link.row_losses(left.mean, left.variance, left.y)
        else:
            losses = self.head.mixed_losses(self.left_out_moments, self.left_out_y)
        return float(np.average(losses, weights=self.left_out_weight))
