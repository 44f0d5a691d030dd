"""Estimators: one class without labels: the density of the rows as a ratio to a background (D36)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesvm.core.conformal import conformal_p_values, conformal_threshold
from bayesvm.core.heads import Binary, ClassHead
from bayesvm.core.likelihoods import Likelihood, noisy
from bayesvm.estimators._attributes import FittedAttribute
from bayesvm.estimators._dask import lazy_on_dask
from bayesvm.estimators._inputs import ArrayRows
from bayesvm.estimators._kernel import KernelEstimator
from bayesvm.estimators._predicting import Parts
from bayesvm.estimators.background import (
    Background,
    numbers_of_training,
    of_training,
    require_memory,
    rows_to_learn_from,
    warn_of_few,
)
from bayesvm.estimators.classification import NOISE, class_head
from bayesvm.estimators.parameters import check_parameters, real
from bayesvm.estimators.validation import new_data, row_weights, training_rows_without_target
from bayesvm.inference.fitted import Fitted
from bayesvm.storage.models import Model

BACKGROUND_ROWS = 2  # background rows per training row; 1 and 4 are about as good
FARTHEST = 30.0  # probit beyond which ratios are not distinguished
ROWS_AT_ONCE = 8_192  # columns of written predictions
SIDES = np.array([-1, 1])  # labels of the background and of the rows


class BayesianOneClassSVM(OutlierMixin, KernelEstimator):
    """Outlier detection without labels: a density of the rows, and a rate of false alarms for new rows.

    The rows are distinguished from rows sampled from a heavy-tailed background with their mean and covariance. The
    score of a row is the log density of the background plus the log odds of the binary model, which leave-one-out tunes
    and calibrates; so it is itself a log density. The threshold is a quantile of leave-one-out scores.

    Parameters
    ----------
    contamination : float, default=0.05
        Share of new rows from the training distribution that ``predict`` flags as outliers: the rate of false alarms.
        Strictly between 0 and 1.
    kernel : "auto", a name or a kernel object, default="auto"
        As in ``BayesianSVC``.
    n_inducing : int, "auto" or None, default="auto"
        Number of inducing points, as in ``BayesianSVC``.
    max_iter : int, default=100
        Budget in passes over the data.
    tol : float, default=5e-5
        Stop when the estimated gain in ELBO of further updates is below this many nats per row.
    time_limit : float or None, default=None
        Budget in seconds. The current update is completed.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. Results are bit-identical for any number.
    random_state : int, RandomState or None, default=None
        Controls the randomness, including the background rows; pass an int for reproducible results.
    verbose : int, default=0
        1 shows the progress.

    Attributes
    ----------
    offset_ : float
        ``predict`` flags rows with a score below it as outliers; minus infinity if there are too few rows.
    loo_scores_ : array of shape (n_left_out,)
        Leave-one-out scores of training rows.
    loo_indices_ : array of shape (n_left_out,)
        Indices of the rows of X behind ``loo_scores_``: all rows up to about 6,700, a random sample beyond.
    n_samples_ : int
        Number of training rows with non-zero weight.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if X was a data frame.
    kernel_ : kernel
        The tuned kernel, on standardised columns.

    See Also
    --------
    BayesianSVC : Classification, if there are labels.

    Examples
    --------
    >>> from bayesvm import BayesianOneClassSVM
    >>> from bayesvm.datasets import twonorm
    >>> train, new = twonorm(300, random_state=0), twonorm(1000, random_state=1)
    >>> model = BayesianOneClassSVM(contamination=0.1, random_state=0).fit(train.X)
    >>> bool(0.05 < (model.predict(new.X) == -1).mean() < 0.15)
    True
    >>> model.predict(new.X[:1] + 10)
    array([-1])
    """

    _kind = "BayesianOneClassSVM"
    _parameter_checks = KernelEstimator._parameter_checks | {  # noqa: SLF001
        "contamination": real(lambda share: 0 < share < 1, "a share strictly between 0 and 1")
    }
    _seen = (*KernelEstimator._seen, "background_")  # noqa: SLF001

    # Parameters of BayesianSVC that are fixed here.
    max_inducing, inducing, learn_inducing, local = 2000, "kmeans", False, False
    inference, tune, tune_interval, scale, link = "auto", "loo", 10, "auto", "calibrated"
    batch_size, learning_rate = "auto", "adaptive"
    warm_start, precision = False, "auto"

    background_: Background

    n_samples_ = FittedAttribute(lambda fitted: fitted.n_samples and fitted.n_samples // (1 + BACKGROUND_ROWS))
    loo_indices_ = FittedAttribute(numbers_of_training)
    loo_log_loss_ = FittedAttribute(lambda fitted: fitted.left_out_loss)

    def __init__(
        self,
        contamination: float = 0.05,
        kernel: Any = "auto",
        n_inducing: Any = "auto",
        max_iter: int = 100,
        tol: float = 5e-5,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.contamination = contamination
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        """Fit the detector.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a data frame
            The rows. Columns of a data frame may hold text, categories and dates.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        **options
            ``groups``, ``callback``, ``checkpoint`` and ``checkpoint_every``, as in ``BayesianSVC``.

        Returns
        -------
        BayesianOneClassSVM
            The estimator itself.
        """
        return super().fit(X, None, sample_weight, **options)

    def _training_rows(self, outline: Any, X: Any, y: Any, sample_weight: Any) -> ArrayRows:
        """The given rows, followed by those of the background; y is the number of the side."""
        require_memory(X)
        X = training_rows_without_target(outline, X)
        weight = row_weights(sample_weight, X)
        kept = rows_to_learn_from(X, weight)
        rows, own = X[kept], np.ones(len(kept)) if weight is None else weight[kept]
        background = Background.of(rows, own)
        rng = np.random.default_rng([check_random_state(self.random_state).randint(2**31), len(rows)])
        drawn = background.draws(BACKGROUND_ROWS * len(rows), rng).astype(X.dtype)
        outline.background_ = background.spread_over(len(X), kept)
        others = np.full(len(drawn), own.mean())
        return ArrayRows(
            np.concatenate([rows, drawn]),
            np.repeat(np.array([1, 0], np.int8), [len(rows), len(drawn)]),
            None if weight is None else np.concatenate([own, others]),
            SIDES,
            np.array([others.sum(), own.sum()]),
            np.concatenate([kept, len(X) + np.arange(len(drawn))]),
        )

    def _grouped(self, outline: Any, rows: ArrayRows, groups: Any, X: Any) -> ArrayRows:
        return outline.background_.grouped(outline, rows, groups, X)

    def _new_head(self, rows: ArrayRows) -> ClassHead:
        return Binary((float(rows.totals[1] / rows.totals.sum()),))

    def _likelihood(self) -> Likelihood:
        return noisy("exact", NOISE)

    def _encoded(self, outline: Any, rows: Any, y: Any) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} learns without y, so held_out rows cannot be evaluated during the fit")

    def _labels(self, outline: Any) -> np.ndarray:
        return SIDES

    def _store(self, outline: Any, fitted: Fitted) -> None:
        """Keep the background scores of the rows that are left out, not those of all rows."""
        left_out = outline.background_.left_out[numbers_of_training(fitted)]
        outline.background_ = replace(outline.background_, left_out=left_out)
        outline.completion_ = None  # rows to predict must be complete, too
        super()._store(outline, fitted)
        if np.isneginf(self.offset_):
            warn_of_few(len(self.loo_scores_), self._loo_groups, self.contamination)

    def as_model(self) -> Model:
        """Return the content of a model file as a value.

        Returns
        -------
        Model
            Parameters, fitted state and columns.
        """
        return replace(super().as_model(), background=self.background_.state())

    @classmethod
    def from_model(cls, model: Model) -> Any:
        """Rebuild the estimator that ``as_model`` was called on.

        Parameters
        ----------
        model : Model
            What ``as_model`` returned.

        Returns
        -------
        BayesianOneClassSVM
            A fitted estimator.
        """
        estimator = super().from_model(model)
        estimator.background_ = Background.from_state(model.background)
        if len(estimator.background_.left_out) != of_training(model.fitted).sum():
            raise ValueError("the background has another number of rows left out than the model")
        return estimator

    @property
    def loo_scores_(self) -> np.ndarray:
        """Leave-one-out scores of training rows."""
        check_is_fitted(self)
        return self._odds(self.fitted_.left_out_moments)[of_training(self.fitted_)] + self.background_.left_out

    @property
    def offset_(self) -> float:
        """The score below which a row is flagged as an outlier (D36)."""
        check_parameters(self, self._parameter_checks)  # contamination may have been set after the fit
        return -conformal_threshold(-self.loo_scores_, self._loo_weight, 1 - self.contamination, self._loo_groups)

    @property
    def _loo_weight(self) -> np.ndarray:
        return self.fitted_.left_out_weight[of_training(self.fitted_)]

    @property
    def _loo_groups(self) -> np.ndarray | None:
        groups = self.fitted_.left_out_groups
        return None if groups is None else groups[of_training(self.fitted_)]

    def _odds(self, parts: Parts) -> np.ndarray:
        """Log of the ratio of the density to the background: log odds minus those without the columns (D36)."""
        z = np.clip(class_head(self.fitted_).decision(parts), -FARTHEST, FARTHEST)
        return np.asarray(log_ndtr(z) - log_ndtr(-z) + np.log(BACKGROUND_ROWS))

    def _scores(self, X: np.ndarray) -> np.ndarray:
        """Scores of checked rows."""
        return np.concatenate(list(self._predicted(X, self._odds, checked=True))) + self.background_.log_density(X)

    def _checked(self, X: Any) -> np.ndarray:
        require_memory(X)
        if hasattr(X := new_data(self, X), "toarray"):
            raise TypeError(f"{type(self).__name__} needs dense rows, as in training; pass X.toarray()")
        return np.asarray(X)

    @lazy_on_dask
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log density of the standardised columns of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a Dask array or data frame
            Rows with the columns of ``fit``.

        Returns
        -------
        array of shape (n_rows,)
            Scores in nats; lower scores are more unusual.
        """
        return self._scores(self._checked(X))

    @lazy_on_dask
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score minus ``offset_``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a Dask array or data frame
            Rows with the columns of ``fit``.

        Returns
        -------
        array of shape (n_rows,)
            Negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """Flag outliers.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a Dask array or data frame
            Rows with the columns of ``fit``.

        Returns
        -------
        array of int of shape (n_rows,)
            -1 for outliers (a share of ``contamination`` of new rows from the training distribution), 1 for others.
        """
        return np.where(self.decision_function(X) < 0, SIDES[0], SIDES[1])

    @lazy_on_dask
    def predict_p_value(self, X: Any) -> np.ndarray:
        """Return the probability that a row from the training distribution is at least as unusual.

        These are conformal p-values: a share of about p of new rows from the training distribution has a value of at
        most p. A p-value is not the probability that a row is an outlier, which depends on how frequent outliers are.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a Dask array or data frame
            Rows with the columns of ``fit``.

        Returns
        -------
        array of shape (n_rows,)
            p-values, at most ``contamination`` for the rows that ``predict`` flags.
        """
        return conformal_p_values(-self.loo_scores_, self._loo_weight, -self.score_samples(X), self._loo_groups)

    @lazy_on_dask
    def explain(self, X: Any) -> np.ndarray:
        """Return how much each column makes a row unusual.

        The value of a column is replaced by its expectation given the other columns, its conditional mean in the
        background. The contribution is the increase of the score.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a Dask array or data frame
            Rows with the columns of ``fit``.

        Returns
        -------
        array of shape (n_rows, n_features)
            Contributions in nats: larger ones make the row more unusual; negative where the value is more usual than
            the expected one.
        """
        plain, found = self._scores(X := self._checked(X)), np.empty(X.shape)
        for column in range(X.shape[1]):
            replaced = X.copy()
            replaced[:, column] = self.background_.expected(X, column)
            found[:, column] = self._scores(replaced) - plain
        return found

    def predictions(
        self, X: Any, *, uncertainty: bool = True, coverage: float | None = None
    ) -> Generator[dict[str, np.ndarray], None, None]:
        """Yield the columns of ``predict_to``: ``prediction``, ``score`` and, with ``uncertainty``, ``p_value``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows with the columns of ``fit``.
        uncertainty : bool, default=True
            Whether to add p-values.
        coverage : None
            For classification and regression only.

        Yields
        ------
        dict of arrays
            The columns for one chunk of rows.
        """
        if coverage is not None:
            raise ValueError(f"coverage is for prediction sets; the rate of a {type(self).__name__} is contamination")
        X = self._checked(X)
        scores, weight, offset, groups = self.loo_scores_, self._loo_weight, self.offset_, self._loo_groups
        for first in range(0, len(X), ROWS_AT_ONCE):
            score = self._scores(X[first : first + ROWS_AT_ONCE])
            part = {"prediction": np.where(score < offset, SIDES[0], SIDES[1]), "score": score}
            yield part | ({"p_value": conformal_p_values(-scores, weight, -score, groups)} if uncertainty else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = False
        return tags
