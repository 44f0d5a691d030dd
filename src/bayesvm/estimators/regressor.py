"""Estimators: the kernel regressor."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesvm.core.heads import Regression
from bayesvm.core.likelihoods import EpsilonInsensitive, Likelihood
from bayesvm.core.tube import noise_variance
from bayesvm.estimators._attributes import FittedAttribute
from bayesvm.estimators._dask import lazy_on_dask
from bayesvm.estimators._inputs import NumberedRows, stream_of_numbers, training_rows
from bayesvm.estimators._kernel import KERNEL, KernelEstimator
from bayesvm.estimators._numbers import NUMBERS, NumberEncoder, as_numbers
from bayesvm.estimators._predicting import Parts
from bayesvm.estimators.parameters import check_parameters
from bayesvm.inference.fitted import Fitted

FIRST_LIKELIHOOD = EpsilonInsensitive(0.25, 0.5)  # in spreads of y; a fit finds its own


def number_head(fitted: Fitted) -> Regression:
    """The head of a model that predicts numbers."""
    if not isinstance(fitted.head, Regression):
        raise TypeError(f"{type(fitted.head).__name__} does not predict numbers")
    return fitted.head


def _left_out_residuals(fitted: Fitted) -> np.ndarray:
    head = number_head(fitted)
    return head.centre + head.spread * fitted.left_out_y - head.mean(fitted.left_out_moments)


def _loo_predictions(fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
    head, parts = number_head(fitted), fitted.left_out_moments
    return head.mean(parts), np.sqrt(head.variances(parts)["total"])


def _loo_rmse(fitted: Fitted) -> float:
    return float(np.sqrt(np.average(_left_out_residuals(fitted) ** 2, weights=fitted.left_out_weight)))


class BayesianSVR(RegressorMixin, KernelEstimator):
    """Bayesian support vector regression with a kernel and inducing points.

    The loss is that of an SVR: nothing inside a tube of half width ε, and growing in proportion beyond it, so outliers
    have little influence. Its width, its slope and the kernel are learned by leave-one-out; with nothing set there is
    nothing to tune. Predictions come with standard deviations, intervals and quantiles, calibrated on the rows left
    out. As in ``BayesianSVC``, several models may be averaged, and local models added.

    Parameters
    ----------
    kernel : "auto", a name or a kernel object
        "auto" averages RBF and Laplacian. The names are "rbf", "laplacian", "matern12", "matern32", "matern52",
        "rational_quadratic" and "linear". A name stands for that kernel with variance 4 and length-scale √D (D for
        "laplacian") on the scaled inputs, where tuning starts; ``tune="auto"`` and "loo" add a broad RBF, which is
        nearly constant among the rows. A kernel of ``bayesvm.kernels``, or your own, is tuned in the parameters whose
        bounds are not "fixed", and has one length-scale or one for every feature, as given.
    n_inducing : int, "auto" or None
        Number of inducing points of each member. "auto" without tuning: 300. With tuning: a fifth of the rows up to
        300, then a twelfth of them up to 500, and at least 100. On its last sample, tuning also tries twice its own
        number of points; if that lowers the leave-one-out log loss by .004 and there are no local models, the fit has
        up to 700 points, and by .012 up to 2,000. There are at least five rows for each point beyond 100, and
        rows × points², shared by the members, is at most 2·10¹⁰ beyond 300 points. There are never more points than
        distinct rows.
        None: every distinct row, the full batch model of the paper.
    max_inducing : int
        The most that "auto" may take; 2000 by default.
    inducing : "kmeans", "random", "greedy", "gmm" or array of shape (n_inducing, n_features)
        How inducing points are chosen: k-means from AFK-MC² seeds, at random, by
        greatest conditional variance, by a Gaussian mixture, with distances measured in the kernel's length-scales; an
        array gives them, in the units of X.
    learn_inducing : bool
        Whether the points are moved by the gradient of the leave-one-out loss; they over-fit easily.
    local : "auto", True or False
        Whether local models are added to the mean of the model: a tree divides the rows into leaves of about 400, and
        each leaf has up to 150 inducing points of its own. "auto": with ``tune="auto"`` and from 4,000 rows on, where
        leave-one-out on some leaves says that they pay. True needs ``tune="auto"`` or "loo".
    inference : "auto", "batch" or "stochastic"
        "batch": updates over all rows. "stochastic": minibatches (the paper's algorithm 1), then at least
        one pass over all rows. "auto": batch, after growing random subsets if there are many rows.
    tune : "auto", "loo", "elbo" or None
        "auto": the whole recipe. "loo": the kernel's learned parameters by the gradient of the leave-one-out log
        density. "elbo": the paper's way, ``tune_interval`` variational updates and one gradient step of the ELBO in
        turn. None leaves the kernel fixed. The noise (ε and the scale of the loss) is always learned.
    tune_interval : int
        Variational updates between two steps of ``tune="elbo"``.
    scale : "auto", "standard", "common", "quantile" or None
        "standard": each column to mean 0 and standard deviation 1. "common": one divisor for all columns, for pixels
        and spectra. "quantile": ranks to normal scores, for heavy tails; beyond the extremes it goes on linearly.
        "auto": the best of them by leave-one-out with ``tune="auto"``, or an average over those that are about as good;
        else "standard".
    batch_size : int or "auto"
        Rows of a minibatch; "auto" is 4096.
    learning_rate : "adaptive", "robbins_monro" or a number in (0, 1]
        Step size of stochastic inference.
    max_iter : int
        Budget in passes over the data, rejected steps included.
    tol : float
        Stop when the ELBO that further updates could gain is estimated below this, in nats per row;
        of a tuned model with the default also if it is below .01 in all. 0 uses the whole budget.
    time_limit : float or None
        Budget in seconds; the update under way is finished.
    warm_start : bool
        Whether a further ``fit`` keeps scaling, kernel and inducing points and starts from the posterior so far.
    precision : "auto", "single" or "double"
        Of the arithmetic inside blocks when fitting; sums are always double, and so are predictions. "auto": single
        when rows times inducing points reach one million.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it, to the last bit.
    random_state : int, RandomState or None
        Controls the randomness. An int makes results bit-identical on one machine with one set of library versions.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    epsilon_ : float
        Half the width of the tube inside which an error costs nothing, in the units of y, at an average row; of the
        heaviest member.
    noise_std_ : float
        Standard deviation of y around the latent function at an average row, in the units of y; of the heaviest member.
    loo_predictions_ : tuple of two arrays
        Means and standard deviations of the rows ``loo_indices_``, each predicted without itself, from this one fit.
    loo_rmse_, loo_log_density_ : float
        Leave-one-out estimates of the root of the mean squared error and of the mean log density of y, in its units.
    loo_indices_ : array
        Rows of X that were left out: all of them up to 20,000, a random choice beyond.
    calibration_factor_ : float
        By which the variance of the latent function is multiplied, fitted to the rows left out.
    kernel_, scale_, inducing_points_, effects_, relevance_, tuning_report_ : as of ``BayesianSVC``
    elbo_, elbo_trace_, n_iter_, n_passes_, converged_, interrupted_, n_samples_ : as of ``BayesianSVC``
    n_features_in_, feature_names_in_ : int, array of str
        Of the columns of X; the names if it was a frame or a table.

    See Also
    --------
    BayesianSVC : The same for classes.
    bayesvm.load : Read a model that ``save`` wrote.

    Notes
    -----
    y is centred at its median and divided by a robust measure of its spread; all results are in its own units.
    Of a committee, the density of y is the weighted mean of the members' densities; intervals and quantiles are those
    of that mean, and the spread between the members' means is epistemic.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesvm import BayesianSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    >>> model = BayesianSVR(random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.0]], return_std=True)
    >>> bool(abs(mean[0]) < 0.1 and 0.08 < std[0] < 0.15)
    True
    """

    _kind = "BayesianSVR"
    _parameter_checks = KERNEL
    link = "calibrated"  # the only one; not a parameter

    epsilon_ = FittedAttribute(lambda fitted: number_head(fitted).spread * fitted.link.epsilon)
    noise_std_ = FittedAttribute(
        lambda fitted: float(
            number_head(fitted).spread * np.sqrt(noise_variance(fitted.link.epsilon, fitted.link.scale))
        )
    )
    loo_predictions_ = FittedAttribute(_loo_predictions)
    loo_rmse_ = FittedAttribute(_loo_rmse)
    loo_log_density_ = FittedAttribute(lambda fitted: -fitted.left_out_loss - float(np.log(number_head(fitted).spread)))
    calibration_factor_ = FittedAttribute(lambda fitted: fitted.link.factor)

    def __init__(
        self,
        kernel: Any = "auto",
        n_inducing: Any = "auto",
        max_inducing: int = 2000,
        inducing: Any = "kmeans",
        learn_inducing: bool = False,
        local: Any = "auto",
        inference: str = "auto",
        tune: str | None = "auto",
        tune_interval: int = 10,
        scale: str | None = "auto",
        batch_size: Any = "auto",
        learning_rate: Any = "adaptive",
        max_iter: int = 100,
        tol: float = 5e-5,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.max_inducing = max_inducing
        self.inducing = inducing
        self.learn_inducing = learn_inducing
        self.local = local
        self.inference = inference
        self.tune = tune
        self.tune_interval = tune_interval
        self.scale = scale
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from one more part of a stream.

        The first call (if there was no ``fit``) sets the units of y, scaling, kernel, inducing points and the noise,
        which stay as they are. Each part's sites are added to the posterior so far, for good; the density of y is
        fitted again to leave-one-out marginals remembered from all parts (at most 20,000).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows of this part.
        y : array-like of shape (n_rows,)
            Their numbers.
        sample_weight : array-like of shape (n_rows,), optional
            Their weights.

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
        """What turns moments of f into numbers."""
        check_is_fitted(self)
        return number_head(self.fitted_)

    @lazy_on_dask
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of y at each row and, with ``return_std``, the standard deviation of a new y there.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        return_std : bool
            Whether the deviations are returned, too: that of f and that of the noise together.

        Returns
        -------
        array of shape (n_rows,), or two of them
            The means, and the deviations if they were asked for.
        """
        head = self._head()
        if not return_std:
            return np.concatenate(list(self._predicted(X, head.mean)))
        both = self._predicted(X, lambda parts: (head.mean(parts), np.sqrt(head.variances(parts)["total"])))
        mean, deviation = map(np.concatenate, zip(*both, strict=True))
        return mean, deviation

    @lazy_on_dask
    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of a new y at each row, of shape (n_rows, n_quantiles).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        quantiles : sequence of numbers between 0 and 1
            The probabilities with which y is below each of them.

        Returns
        -------
        array of shape (n_rows, n_quantiles)
            In the order of ``quantiles``.
        """
        shares = np.atleast_1d(np.asarray(quantiles, np.float64))
        if shares.ndim != 1 or not ((shares > 0) & (shares < 1)).all():
            raise ValueError(f"quantiles must be numbers above 0 and below 1; got {quantiles!r}")
        return np.concatenate(list(self._predicted(X, self._head().quantiles(shares.tolist()))))

    @lazy_on_dask
    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of an interval that contains a new y with this probability; both sides miss equally.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        coverage : number between 0 and 1
            The probability of the interval.

        Returns
        -------
        two arrays of shape (n_rows,)
            The lower and the upper ends.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be above 0 and below 1; got {coverage!r}")
        found = self.predict_quantiles(X, [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
        return found[:, 0], found[:, 1]

    @lazy_on_dask
    def predict_uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """How uncertain each prediction is, and why.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        dict of arrays of shape (n_rows,)
            ``total``: variance of a new y. ``aleatoric``: that of the noise; more data would not remove it.
            ``epistemic``: that of f, and of a committee the spread between its members' means; more data would.
            ``lower`` and ``upper``: a 90 % interval for a new y.
        """
        return self._in_columns(X, self._uncertainty)

    def _uncertainty(self, parts: Parts) -> dict[str, np.ndarray]:
        head = self._head()
        lower, upper = head.quantiles([0.05, 0.95])(parts).T
        return head.variances(parts) | {"lower": lower, "upper": upper}

    def _in_columns(self, X: Any, what: Any) -> dict[str, np.ndarray]:
        parts = list(self._predicted(X, what))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @lazy_on_dask
    def sample_y(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint posterior samples of new y at some rows, of shape (n, n_rows): f is drawn jointly, noise row by row.

        Of a committee, each draw takes one member.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            At most 5,000 rows.
        n : int
            Number of draws.
        random_state : int, RandomState or None
            Controls the randomness; pass an int for reproducible results.

        Returns
        -------
        array of shape (n, n_rows)
            A draw in each row.
        """
        head, rng = self._head(), np.random.default_rng(check_random_state(random_state).randint(2**31))
        f, members = self._samples(X, n, int(rng.integers(2**31)))
        f = f[..., 0]
        each = [np.concatenate(part) for part in zip(*self._predicted(X, _moments), strict=True)]
        for number, (link, moments) in enumerate(zip(self.fitted_.links, each, strict=True)):
            mine, (m, v) = members == number, moments.T
            f[mine] = m + np.sqrt(link.factor) * (f[mine] - m) + link.sample_noise(m, v, int(mine.sum()), rng)
        return head.centre + head.spread * f

    @lazy_on_dask
    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of the latent function at each row, in the units of y, without noise.

        Of a committee, those of the mixture: the variance includes how far the members' means are apart.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        two arrays of shape (n_rows,)
            Means and variances.
        """
        head = self._head()
        m, v = super().latent_mean_and_variance(X)
        return head.centre + head.spread * m, head.spread**2 * v

    @lazy_on_dask
    def sample_latent(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint posterior samples of the latent function at some rows, in the units of y, of shape (n, n_rows).

        Of a committee, each draw takes one member.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            At most 5,000 rows, since their joint covariance is factored.
        n : int
            Number of draws.
        random_state : int, RandomState or None
            Controls the randomness; pass an int for reproducible results.

        Returns
        -------
        array of shape (n, n_rows)
            A draw in each row.
        """
        head = self._head()
        found: np.ndarray = head.centre + head.spread * super().sample_latent(X, n, random_state)
        return found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The coefficient of determination R².

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        y : array-like of shape (n_rows,), optional
            The numbers; a table has them in it.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        float
            One for perfect predictions, zero for the mean of y.
        """
        y, predicted, sample_weight = self._judged(X, y, sample_weight)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def predictions(self, X: Any, *, uncertainty: bool = True) -> Generator[dict[str, np.ndarray], None, None]:
        """The columns of ``predict_to``, some rows after the others.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        uncertainty : bool
            Whether deviations, parts of the variance and intervals are among them.

        Yields
        ------
        dict of arrays
            The columns for some rows.
        """
        head = self._head()

        def columns(parts: Parts) -> dict[str, np.ndarray]:
            said = {"prediction": head.mean(parts)}
            if not uncertainty:
                return said
            found = self._uncertainty(parts)
            return said | {"std": np.sqrt(found["total"])} | found

        yield from self._predicted(X, columns)


def _moments(parts: Parts) -> list[np.ndarray]:
    return [np.column_stack([part.mean, part.variance]) for part in parts]
