"""Evaluation: rows flagged as positive above a threshold of the stated probability: precision, recall, costs.

The threshold that suits costs is D40's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesvm.evaluation.predictions import Predictions
from bayesvm.evaluation.rows import Floats

ROUNDING = 1e-12  # of sums of weights, relative


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What each threshold means, of two classes: a row is flagged if its probability of the second is at least that.

    Thresholds fall; the first one, infinity, flags no row. Shares are of the weight of all rows.

    Attributes
    ----------
    threshold : the stated probabilities that occur, each once
    flagged : share of the rows that are flagged
    true_positives : share of the rows that are flagged and of the second class
    base_rate : share of the rows that are of the second class
    """

    threshold: Floats
    flagged: Floats
    true_positives: Floats
    base_rate: float

    @property
    def precision(self) -> Floats:
        """Share of the flagged rows that are positive; NaN where none is flagged."""
        share: Floats = np.divide(
            self.true_positives, self.flagged, out=np.full(len(self.flagged), np.nan), where=self.flagged > 0
        )
        return share

    @property
    def recall(self) -> Floats:
        """Share of the positive rows that are flagged; NaN if there are none."""
        return self.true_positives / self.base_rate if self.base_rate > 0 else np.full(len(self.true_positives), np.nan)

    @property
    def lift(self) -> Floats:
        """How many times more frequent positive rows are among the flagged ones than among all."""
        return self.precision / self.base_rate if self.base_rate > 0 else np.full(len(self.true_positives), np.nan)

    def cost(self, false_positive: float, false_negative: float) -> Floats:
        """Mean cost of a row, if a false positive and a false negative cost so much."""
        return false_positive * (self.flagged - self.true_positives) + false_negative * (
            self.base_rate - self.true_positives
        )

    def at(self, threshold: float) -> int:
        """Which entry is that of a threshold, also of one that does not occur."""
        return int(np.searchsorted(-self.threshold, -threshold, side="right")) - 1

    def at_share(self, share: float) -> int:
        """Which entry flags at least that share of the rows, and the fewest of those."""
        place = int(np.searchsorted(self.flagged, share * (1 - ROUNDING)))
        return min(place, len(self.flagged) - 1)


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
    flagged, true_positives = (np.cumsum(values[order])[ends] for values in (weight, weight * (predictions.y == 1)))
    return Thresholds(
        np.concatenate(([np.inf], p[order][ends])),
        np.concatenate(([0.0], flagged / flagged[-1])),
        np.concatenate(([0.0], true_positives / flagged[-1])),
        float(true_positives[-1] / flagged[-1]),
    )


def cheapest_threshold(false_positive: float, false_negative: float) -> float:
    """Where flagging a row costs as much as not flagging it, if probabilities are calibrated.

    Flagging costs ``false_positive · (1 - p)``, not flagging ``false_negative · p``. Both are equal at
    ``p = false_positive / (false_positive + false_negative)``.

    >>> cheapest_threshold(1, 4)
    0.2
    """
    if min(false_positive, false_negative) < 0 or false_positive + false_negative <= 0:
        raise ValueError(f"costs must not be negative, nor both zero; got {false_positive!r} and {false_negative!r}")
    return false_positive / (false_positive + false_negative)
