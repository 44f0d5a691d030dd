"""Evaluation: rows flagged as positive above a threshold of the predicted probability: precision, recall, costs.

D40 derives the threshold that minimises costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesvm.evaluation.predictions import Predictions
from bayesvm.evaluation.rows import Floats

ROUNDING = 1e-12  # of sums of weights, relative


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Precision, recall and costs of all thresholds, for two classes.

    A row is flagged if its probability of the second class is at least the threshold. Thresholds decrease; the first
    one, infinity, flags no row. Shares are shares of the total weight.

    Parameters
    ----------
    threshold : array of shape (n_thresholds,)
        Infinity, and the distinct predicted probabilities.
    flagged : array of shape (n_thresholds,)
        Share of the rows that are flagged.
    true_positives : array of shape (n_thresholds,)
        Share of the rows that are flagged and belong to the second class.
    base_rate : float
        Share of the rows that belong to the second class.

    See Also
    --------
    thresholds : Compute all thresholds from predictions.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, thresholds
    >>> predicted = Predictions.of([0, 1], [0, 1, 0, 1], [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
    >>> thresholds(predicted).recall
    array([0. , 0.5, 0.5, 1. , 1. ])
    """

    threshold: Floats
    flagged: Floats
    true_positives: Floats
    base_rate: float

    @property
    def precision(self) -> Floats:
        """Share of the flagged rows that are positive; NaN if no row is flagged."""
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
        """Precision divided by the base rate."""
        return self.precision / self.base_rate if self.base_rate > 0 else np.full(len(self.true_positives), np.nan)

    def cost(self, false_positive: float, false_negative: float) -> Floats:
        """Return the mean cost per row.

        Parameters
        ----------
        false_positive : float
            Cost of a false positive.
        false_negative : float
            Cost of a false negative.

        Returns
        -------
        array of shape (n_thresholds,)
            Mean cost at each threshold.
        """
        return false_positive * (self.flagged - self.true_positives) + false_negative * (
            self.base_rate - self.true_positives
        )

    def at(self, threshold: float) -> int:
        """Return the index of a threshold.

        Parameters
        ----------
        threshold : float
            Any threshold, which need not be one of the predicted probabilities.

        Returns
        -------
        int
            Index of the entry that flags the same rows.
        """
        return int(np.searchsorted(-self.threshold, -threshold, side="right")) - 1

    def at_share(self, share: float) -> int:
        """Return the index of the highest threshold that flags a share of the rows.

        Parameters
        ----------
        share : float
            Minimal share of flagged rows.

        Returns
        -------
        int
            Index of the entry.
        """
        place = int(np.searchsorted(self.flagged, share * (1 - ROUNDING)))
        return min(place, len(self.flagged) - 1)


def thresholds(predictions: Predictions) -> Thresholds:
    """Compute all thresholds on the predicted probability of the second of two classes.

    Parameters
    ----------
    predictions : Predictions
        Predicted probabilities and true classes, of two classes.

    Returns
    -------
    Thresholds
        Precision, recall and costs of each threshold.

    See Also
    --------
    cheapest_threshold : The threshold that minimises costs.

    Examples
    --------
    >>> from bayesvm.evaluation import Predictions, thresholds
    >>> predicted = Predictions.of([0, 1], [0, 1, 0, 1], [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]])
    >>> found = thresholds(predicted)
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
    """Return the threshold that minimises expected costs, for calibrated probabilities (D40).

    Flagging a row costs ``false_positive · (1 - p)``, not flagging it ``false_negative · p``. Both are equal at
    ``p = false_positive / (false_positive + false_negative)``.

    Parameters
    ----------
    false_positive : float
        Cost of a false positive.
    false_negative : float
        Cost of a false negative.

    Returns
    -------
    float
        The threshold, between 0 and 1.

    Raises
    ------
    ValueError
        If a cost is negative, or both are zero.

    See Also
    --------
    thresholds : Observed costs of all thresholds.

    Examples
    --------
    >>> from bayesvm.evaluation import cheapest_threshold
    >>> cheapest_threshold(1, 4)
    0.2
    """
    if min(false_positive, false_negative) < 0 or false_positive + false_negative <= 0:
        raise ValueError(f"costs must not be negative or both zero; got {false_positive!r} and {false_negative!r}")
    return false_positive / (false_positive + false_negative)
