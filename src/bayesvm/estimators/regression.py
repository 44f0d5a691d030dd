"""Estimators: the base class of regressors: means, densities, intervals."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesvm.core.conformal import require_coverage
from bayesvm.core.heads import Regression
from bayesvm.core.likelihoods import EpsilonInsensitive, Likelihood
from bayesvm.core.members import MemberMoments
from bayesvm.core.tube import noise_variance
from bayesvm.estimators._attributes import FittedAttribute
from bayesvm.estimators._dask import lazy_on_dask
from bayesvm.estimators._inputs import NumberedRows, stream_of_numbers, training_rows
from bayesvm.estimators._numbers import NUMBERS, NumberEncoder, as_numbers
from bayesvm.estimators._predicting import Parts
from bayesvm.estimators.base import BaseBayesianModel
from bayesvm.estimators.number_checks import checks_of, left_out_predictions, left_out_rmse, number_head
from bayesvm.estimators.parameters import check_parameters

FIRST_LIKELIHOOD = EpsilonInsensitive(0.25, 0.5)  # in spreads of y; a fit learns its own


class BaseBayesianSVR(RegressorMixin, BaseBayesianModel):
    """A regressor; subclasses define its features."""

    link = "calibrated"  # the only one; not a parameter

    epsilon_ = FittedAttribute(lambda fitted: number_head(fitted).spread * fitted.link.epsilon)
    noise_std_ = FittedAttribute(
        lambda fitted: float(
            number_head(fitted).spread * np.sqrt(noise_variance(fitted.link.epsilon, fitted.link.scale))
        )
    )
    loo_predictions_ = FittedAttribute(left_out_predictions)
    loo_rmse_ = FittedAttribute(left_out_rmse)
    loo_log_density_ = FittedAttribute(lambda fitted: -fitted.left_out_loss - float(np.log(number_head(fitted).spread)))
    calibration_factor_ = FittedAttribute(lambda fitted: fitted.link.factor)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Update the model with one part of a stream.

        The first call, unless ``fit`` was called before, sets the units of y, scaling, kernel, inducing points and the
        noise, which then stay fixed. Each call adds the sites of its rows permanently to the current posterior and
        refits the density of y to leave-one-out marginals kept from all parts (at most 20,000).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows of this part.
        y : array-like of shape (n_rows,)
            Their targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        BayesianSVR
            The estimator itself.
        """
        check_parameters(self, self._parameter_checks)
        outline = copy(self)
        encoder = self._encoder() if hasattr(self, "fitted_") else None
        return self._learn_more(outline, stream_of_numbers(outline, X, y, sample_weight, encoder))

    def _training_rows(self, outline: Any, X: Any, y: Any, sample_weight: Any) -> NumberedRows:
        rows: NumberedRows = training_rows(outline, X, y, sample_weight, NUMBERS)
        return rows

    def _new_head(self, rows: NumberedRows) -> Regression:
        return Regression(rows.encoder.centre, rows.encoder.spread)

    def _likelihood(self) -> Likelihood:
        return FIRST_LIKELIHOOD

    def _encoded(self, outline: Any, rows: NumberedRows, y: Any) -> np.ndarray:
        return rows.encoder(as_numbers(y, lambda row: f"held_out, row {row}", "y"), None)[0]

    def _encoder(self) -> NumberEncoder:
        head = self._head()
        return NumberEncoder(head.centre, head.spread)

    def _head(self) -> Regression:
        """The head, which maps moments of f to moments of y."""
        check_is_fitted(self)
        return number_head(self.fitted_)

    @lazy_on_dask
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the mean of y and, with ``return_std``, the standard deviation of a new y.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        return_std : bool, default=False
            Whether to also return standard deviations, which combine the uncertainty of f and the noise.

        Returns
        -------
        array of shape (n_rows,), or a tuple of two arrays
            The means; with ``return_std``, the means and the standard deviations.
        """
        head = self._head()
        if not return_std:
            return np.concatenate(list(self._predicted(X, head.mean)))
        both = self._predicted(X, lambda parts: (head.mean(parts), np.sqrt(head.variances(parts)["total"])))
        mean, deviation = map(np.concatenate, zip(*both, strict=True))
        return mean, deviation

    @lazy_on_dask
    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Predict quantiles of a new y.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        quantiles : sequence of numbers between 0 and 1
            Probabilities of the quantiles.

        Returns
        -------
        array of shape (n_rows, n_quantiles)
            The quantiles, with columns in the order of ``quantiles``.
        """
        shares = np.atleast_1d(np.asarray(quantiles, np.float64))
        if shares.ndim != 1 or not len(shares) or not ((shares > 0) & (shares < 1)).all():
            raise ValueError(f"quantiles must be one or more numbers above 0 and below 1; got {quantiles!r}")
        return np.concatenate(list(self._predicted(X, self._quantiles(shares))))

    @lazy_on_dask
    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Predict a central interval that contains a new y with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        coverage : float, default=0.9
            Probability of the interval, above 0 and below 1; y is below and above it with equal probability.

        Returns
        -------
        lower : array of shape (n_rows,)
            Lower ends.
        upper : array of shape (n_rows,)
            Upper ends.
        """
        require_coverage(coverage)
        found = self.predict_quantiles(X, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
        return found[:, 0], found[:, 1]

    @lazy_on_dask
    def predict_uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """Predict the uncertainty of each prediction, split into its aleatoric and epistemic parts.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        dict of arrays of shape (n_rows,)
            ``total``: variance of a new y. ``aleatoric``: variance of the noise, which more data would not reduce.
            ``epistemic``: variance of f, which more data would reduce; it includes the spread of the members' means of
            a committee. ``lower`` and ``upper``: a 90% interval for a new y.
        """
        return self._in_columns(X, self._uncertainty)

    def _quantiles(self, shares: Any) -> Any:
        """A function of moments that returns the calibrated quantiles (D35), one column per share."""
        head = self._head()
        return head.quantiles(self.fitted_.calibrated_shares(shares).tolist())

    def _uncertainty(self, parts: Parts) -> dict[str, np.ndarray]:
        head = self._head()
        lower, upper = self._quantiles([0.05, 0.95])(parts).T
        return head.variances(parts) | {"lower": lower, "upper": upper}

    def _in_columns(self, X: Any, what: Any) -> dict[str, np.ndarray]:
        parts = list(self._predicted(X, what))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @lazy_on_dask
    def sample_y(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw posterior samples of new y: f is drawn jointly for all rows, the noise independently for each row.

        Each draw of a committee takes one member. The quantiles of the draws of a row are those of
        ``predict_quantiles``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            At most 5,000 rows, because their joint covariance is factored.
        n : int, default=1
            Number of draws.
        random_state : int, RandomState or None, default=None
            Controls the randomness; pass an int for reproducible results.

        Returns
        -------
        array of shape (n, n_rows)
            One draw per row.
        """
        head, rng = self._head(), np.random.default_rng(check_random_state(random_state).randint(2**31))
        f, members = self._samples(X, n, int(rng.integers(2**31)))
        f = f[..., 0]
        each = [np.concatenate(part) for part in zip(*self._predicted(X, _moments), strict=True)]
        for number, (link, part) in enumerate(zip(self.fitted_.links, each, strict=True)):
            mine, (m, v) = members == number, part.T
            f[mine] = m + np.sqrt(link.factor) * (f[mine] - m) + link.sample_noise(m, v, int(mine.sum()), rng)
        # Drawn numbers are quantiles of a uniform share; the calibrated quantile of this share replaces them (D35).
        fitted, y = self.fitted_, head.centre + head.spread * f
        moments = [
            MemberMoments(part[:, [0]], part[:, [1]], link, share)
            for part, link, share in zip(each, fitted.links, fitted.views.shares, strict=True)
        ]
        for row, drawn in enumerate(y):
            y[row] = head.quantiles_at(moments, fitted.calibrated_shares(head.distribution(moments, drawn)), drawn)
        return y

    @lazy_on_dask
    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict the posterior mean and variance of the latent function, in the units of y, without noise.

        A committee returns the moments of the mixture: the variance includes the spread of the members' means.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        mean : array of shape (n_rows,)
            Posterior means.
        variance : array of shape (n_rows,)
            Posterior variances.
        """
        head = self._head()
        m, v = super().latent_mean_and_variance(X)
        return head.centre + head.spread * m, head.spread**2 * v

    @lazy_on_dask
    def sample_latent(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw joint posterior samples of the latent function, in the units of y.

        Each draw of a committee takes one member.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            At most 5,000 rows, because their joint covariance is factored.
        n : int, default=1
            Number of draws.
        random_state : int, RandomState or None, default=None
            Controls the randomness; pass an int for reproducible results.

        Returns
        -------
        array of shape (n, n_rows)
            One draw per row.
        """
        head = self._head()
        found: np.ndarray = head.centre + head.spread * super().sample_latent(X, n, random_state)
        return found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R².

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        y : array-like of shape (n_rows,), optional
            True targets; a table contains them.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows; a table contains them.

        Returns
        -------
        float
            1 for perfect predictions, 0 for a constant prediction of the mean of y.
        """
        y, predicted, sample_weight = self._evaluated(X, y, sample_weight)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def predictive_checks(self, X: Any, y: Any) -> dict[str, np.ndarray]:
        """Return what ``bayesvm.evaluation.RegressionPredictions.of`` needs to evaluate predictions.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or table
            Rows with the columns of ``fit``.
        y : array-like of shape (n_rows,)
            True targets.

        Returns
        -------
        dict of arrays of shape (n_rows,)
            ``mean`` and ``std`` of ``predict``; ``epistemic``, a variance; ``log_density``, the logarithm of the
            predicted density at y; ``below``, the predicted probability of a value below y.

        See Also
        --------
        bayesvm.evaluation.metrics : Metrics of the predictions.
        """
        check_is_fitted(self)
        numbers = as_numbers(y, lambda row: f"row {row}", "y")
        found: list[dict[str, np.ndarray]] = []
        first = 0
        for parts in self._predicted(X, _kept):
            stop = first + len(parts[0].mean)
            found.append(checks_of(self.fitted_, parts, numbers[first:stop]))
            first = stop
        if first != len(numbers):
            raise ValueError(f"X has {first} rows, but y has {len(numbers)}")
        return {name: np.concatenate([part[name] for part in found]) for name in found[0]}

    def predictions(
        self, X: Any, *, uncertainty: bool = True, coverage: float | None = None
    ) -> Generator[dict[str, np.ndarray], None, None]:
        """Yield the columns of ``predict_to``, one chunk of rows at a time.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        uncertainty : bool, default=True
            Whether to add standard deviations, the parts of the variance, and intervals.
        coverage : float, optional
            Probability of the interval from ``lower`` to ``upper``; default: 0.9.

        Yields
        ------
        dict of arrays
            The columns for one chunk of rows.
        """
        head = self._head()
        if coverage is not None:
            require_coverage(coverage)

        def columns(parts: Parts) -> dict[str, np.ndarray]:
            said = {"prediction": head.mean(parts)}
            if uncertainty:
                found = self._uncertainty(parts)
                said |= {"std": np.sqrt(found["total"])} | found
            if coverage is not None:
                ends = self._quantiles([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])(parts)
                said |= {"lower": ends[:, 0], "upper": ends[:, 1]}
            return said

        yield from self._predicted(X, columns)


def _moments(parts: Parts) -> list[np.ndarray]:
    return [np.column_stack([part.mean, part.variance]) for part in parts]


def _kept(parts: Parts) -> list[MemberMoments]:
    """Copies, since a workspace is used again for the next rows."""
    return [part._replace(mean=part.mean.copy(), variance=part.variance.copy()) for part in parts]
