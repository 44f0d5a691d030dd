"""Evaluation: rows called positive above a threshold of the stated probability: precision, recall, costs and lift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesvm.evaluation.predictions import Floats, Predictions

ROUNDING = 1e-12  # of sums of weights, relative


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What each threshold means, of two classes: a row is called positive if its probability is at least that.

    Thresholds fall; the first one, infinity, calls no row positive. Shares are of the weight of all rows.

    Attributes
    ----------
    threshold : the stated probabilities that occur, each once
    called : share of the rows that are called positive
    hits : share of the rows that are called positive and are
    positives : share of the rows that are positive
    """

    threshold: Floats
    called: Floats
    hits: Floats
    positives: float

    @property
    def precision(self) -> Floats:
        """Share of the rows called positive that are; NaN where none is."""
        share: Floats = np.divide(self.hits, self.called, out=np.full(len(self.called), np.nan), where=self.called > 0)
        return share

    @property
    def recall(self) -> Floats:
        """Share of the positive rows that are called so; NaN if there are none."""
        return self.hits / self.positives if self.positives > 0 else np.full(len(self.hits), np.nan)

    @property
    def lift(self) -> Floats:
        """How many times more frequent positive rows are among those called positive than among all."""
        return self.precision / self.positives if self.positives > 0 else np.full(len(self.hits), np.nan)

    def cost(self, false_alarm: float, miss: float) -> Floats:
        """Mean cost of a row, if a false alarm and a missed positive row cost so much."""
        return false_alarm * (self.called - self.hits) + miss * (self.positives - self.hits)

    def at(self, threshold: float) -> int:
        """Which entry is that of a threshold, also of one that does not occur."""
        return int(np.searchsorted(-self.threshold, -threshold, side="right")) - 1

    def at_share(self, share: float) -> int:
        """Which entry calls at least that share of the rows positive, and the fewest of those."""
        place = int(np.searchsorted(self.called, share * (1 - ROUNDING)))
        return min(place, len(self.called) - 1)


def thresholds(predictions: Predictions) -> Thresholds:
    """Every threshold on the stated probability of the second of two classes.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, thresholds
    >>> said = Predictions.of([0, 1], [0, 1, 0, 1], [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
    >>> found = thresholds(said)
    >>> half = found.at(0.5)
    >>> float(found.precision[half]), float(found.recall[half]), float(found.cost(1, 10)[half])
    (0.5, 0.5, 2.75)
    """
    predictions = predictions.counted()
    p, weight = predictions.positive, predictions.weight_or_ones
    order = np.argsort(-p, kind="stable")
    ends = np.flatnonzero(np.diff(p[order], append=-1.0))  # the last row of each probability
    called, hits = (np.cumsum(values[order])[ends] for values in (weight, weight * (predictions.y == 1)))
    return Thresholds(
        np.concatenate(([np.inf], p[order][ends])),
        np.concatenate(([0.0], called / called[-1])),
        np.concatenate(([0.0], hits / called[-1])),
        float(hits[-1] / called[-1]),
    )


def cheapest_threshold(false_alarm: float, miss: float) -> float:
    """Where calling a row positive costs as much as not, if probabilities are calibrated.

    Calling it positive costs ``false_alarm · (1 - p)``, not calling it ``miss · p``: they are equal at
    ``false_alarm / (false_alarm + miss)``.

    >>> cheapest_threshold(1, 4)
    0.2
    """
    if min(false_alarm, miss) < 0 or false_alarm + miss <= 0:
        raise ValueError(f"costs must not be negative, nor both zero; got {false_alarm!r} and {miss!r}")
    return false_alarm / (false_alarm + miss)
