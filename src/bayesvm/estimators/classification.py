"""Estimators: shared code of the kernel and the linear classifier: labels, probabilities, class weights."""

from __future__ import annotations

from collections.abc import Generator
from copy import copy
from typing import Any

import numpy as np
from scipy.special import log_ndtr, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesvm.core.conformal import prediction_set_thresholds, require_coverage
from bayesvm.core.heads import Binary, ClassHead, OneVsRest
from bayesvm.core.likelihoods import Likelihood, noisy
from bayesvm.data.blocks import rounded_sum
from bayesvm.estimators._attributes import FittedAttribute
from bayesvm.estimators._classes import warn_if_costly
from bayesvm.estimators._dask import lazy_on_dask
from bayesvm.estimators._inputs import LabelledRows, stream_rows, training_rows
from bayesvm.estimators._predicting import Parts
from bayesvm.estimators.base import BaseBayesianModel
from bayesvm.estimators.labels import codes_of, written_labels, written_sets
from bayesvm.estimators.parameters import check_parameters
from bayesvm.estimators.validation import require_whole_labels
from bayesvm.inference.fitted import Fitted
from bayesvm.storage.models import Model

CALIBRATED, CALIBRATED_FOR_TWO = "link='calibrated'", "link='calibrated' and two classes"
NOISE = 1.0  # variance; 0.3 and 3 are about as good; with many rows, all are far better than none


def class_head(fitted: Fitted) -> ClassHead:
    """The head of a model that predicts classes."""
    if not isinstance(fitted.head, ClassHead):
        raise TypeError(f"{type(fitted.head).__name__} does not predict classes")
    return fitted.head


def _error(fitted: Fitted) -> float:
    """Error rate of the leave-one-out predictions, weighted."""
    wrong = class_head(fitted).probabilities(fitted.left_out_moments).argmax(axis=1) != fitted.left_out_y
    return float(np.average(wrong, weights=fitted.left_out_weight))


class BaseBayesianSVC(ClassifierMixin, BaseBayesianModel):
    """A classifier; subclasses define its features."""

    _seen = ("n_features_in_", "feature_names_in_", "completion_", "recipe_", "classes_")

    classes_: np.ndarray
    bound: str
    noise: Any
    tune: str | None

    loo_proba_ = FittedAttribute(lambda fitted: class_head(fitted).probabilities(fitted.left_out_moments))
    loo_log_loss_ = FittedAttribute(lambda fitted: fitted.left_out_loss)
    noise_ = FittedAttribute(lambda fitted: fitted.likelihood.noise)
    loo_error_ = FittedAttribute(_error)
    calibration_scale_ = FittedAttribute(lambda fitted: _parameter(fitted, "scale"), needs=CALIBRATED)
    calibration_bias_ = FittedAttribute(lambda fitted: _parameter(fitted, "bias"), needs=CALIBRATED)
    calibration_share_ = FittedAttribute(lambda fitted: getattr(fitted.link, "share", None), needs=CALIBRATED_FOR_TWO)

    @available_if(lambda self: getattr(self, "covariance", "full") == "full")
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Update the model with one part of a stream.

        The first call, unless ``fit`` was called before, sets scaling, kernel and inducing points, which then stay
        fixed. Each call adds the sites of its rows permanently to the current posterior and refits the link to
        leave-one-out marginals kept from all parts (at most 20,000). A committee updates every member and keeps the
        weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows of this part.
        y : array-like of shape (n_rows,)
            Their labels.
        classes : array-like of shape (n_classes,), optional
            All labels that the stream will have; required in the first call.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        BayesianSVC or BayesianLinearSVC
            The estimator itself.
        """
        check_parameters(self, self._parameter_checks)
        first = not hasattr(self, "fitted_")
        outline = copy(self)
        outline.classes_ = self._stream_classes(classes, first=first)
        return self._learn_more(outline, stream_rows(outline, X, y, sample_weight, first=first))

    def _stream_classes(self, classes: Any, *, first: bool) -> np.ndarray:
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs `classes`: all labels that the stream will have")
        require_whole_labels(classes, "classes")
        if not first:
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(f"`classes` differs from the first call's {self.classes_.tolist()}")
            return self.classes_
        found = np.unique(classes)
        if len(found) < 2:
            raise ValueError(f"`classes` must hold at least two labels, got {found.tolist()}")
        return found

    def _training_rows(self, outline: Any, X: Any, y: Any, sample_weight: Any) -> LabelledRows:
        rows: LabelledRows = training_rows(outline, X, y, sample_weight)
        outline.classes_ = rows.classes
        warn_if_costly(rows.classes, rows.n_rows)
        return rows

    def _new_head(self, rows: LabelledRows) -> ClassHead:
        """One latent function for two classes, otherwise one per class; with the base rates."""
        share = rounded_sum(rows.totals) + 0.5
        rates = tuple((share / share.sum()).tolist())
        return Binary(rates[1:]) if len(rates) == 2 else OneVsRest(rates)

    def _likelihood(self) -> Likelihood:
        usual = NOISE if self.tune in {"auto", "loo"} else 0.0  # the bound of the paper has no noise (D22)
        return noisy(self.bound, usual if self.noise == "auto" else float(self.noise))

    def _can_continue(self, outline: Any) -> bool:
        return super()._can_continue(outline) and list(outline.classes_) == list(self.classes_)

    def _encoded(self, outline: Any, rows: LabelledRows, y: Any) -> np.ndarray:
        require_whole_labels(y, "held_out")
        y = np.asarray(y)
        unknown = ~np.isin(y, outline.classes_)
        if unknown.any():
            raise ValueError(
                f"held_out has the label {y[unknown].tolist()[0]!r}, which is not among the classes of the training "
                f"rows, {outline.classes_.tolist()}; leave such rows out"
            )
        return codes_of(outline.classes_, y)

    @classmethod
    def from_model(cls, model: Model) -> Any:
        """Rebuild the estimator that ``as_model`` was called on.

        Parameters
        ----------
        model : Model
            What ``as_model`` returned.

        Returns
        -------
        BayesianSVC or BayesianLinearSVC
            A fitted estimator.
        """
        estimator = super().from_model(model)
        estimator.classes_ = np.asarray(model.classes)
        return estimator

    def _head(self) -> ClassHead:
        """The head, which maps moments of f to probabilities."""
        check_is_fitted(self)
        return class_head(self.fitted_)

    @lazy_on_dask
    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores of the classes, in the same order as the probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_classes) for more than two classes
            The probit of the probability of the second class; for more than two classes, a logit per class.
        """
        return np.concatenate(list(self._predicted(X, self._head().decision)))

    @lazy_on_dask
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities; a committee returns the weighted mean over its members.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Probabilities, with columns in the order of ``classes_``.

        See Also
        --------
        predict_uncertainty : How uncertain each probability is.
        predict_set : Sets of classes with a given coverage.
        """
        return np.concatenate(list(self._predicted(X, self._head().probabilities)))

    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict logarithms of class probabilities, accurate even where these round to zero or one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Log probabilities, with columns in the order of ``classes_``.
        """
        z = self.decision_function(X)
        return np.column_stack([log_ndtr(-z), log_ndtr(z)]) if z.ndim == 1 else log_softmax(z, axis=1)

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        array of shape (n_rows,)
            Class labels.
        """
        head = self._head()
        return np.concatenate(list(self._predicted(X, lambda parts: self._named(head.decision(parts)))))

    def _named(self, z: np.ndarray) -> np.ndarray:
        return self.classes_[(z > 0).astype(int) if z.ndim == 1 else z.argmax(axis=1)]

    @lazy_on_dask
    def predict_uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """Predict the uncertainty of each prediction, split into its aleatoric and epistemic parts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        dict of arrays of shape (n_rows,)
            ``total``: entropy of the class probabilities, in nats. ``aleatoric``: expected entropy if f were known,
            which more data would not reduce. ``epistemic``: the difference, which more data would reduce; it includes
            the disagreement between the members of a committee. For two classes also ``lower`` and ``upper``: a 95%
            credible interval for the probability of the second class.

        See Also
        --------
        sample_proba : Joint draws of the probabilities, also for more than two classes.
        """
        head = self._head()
        parts = list(self._predicted(X, head.uncertainty_of(self.fitted_.links)))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @lazy_on_dask
    def predict_set(self, X: Any, coverage: float = 0.9, *, per_class: bool = False) -> np.ndarray:
        """Predict sets of classes that contain the class of a new row with about the probability ``coverage``.

        Thresholds come from the leave-one-out probabilities of the fit. They assume that new rows are exchangeable with
        the training rows, and carry no finite-sample guarantee. A set is empty if no class reaches its threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        coverage : float, default=0.9
            Share of new rows whose set contains their class, strictly between 0 and 1. If there are too few training
            rows, every class is in every set.
        per_class : bool, default=False
            Whether the coverage holds for the rows of each class, with one threshold per class, and not only on
            average.

        Returns
        -------
        array of bool of shape (n_rows, n_classes)
            Whether a class is in the set; columns in the order of ``classes_``.

        See Also
        --------
        predict_proba : Probabilities of the classes.

        Examples
        --------
        >>> from bayesvm import BayesianLinearSVC
        >>> from bayesvm.datasets import waveform
        >>> train, new = waveform(500, random_state=0), waveform(1000, random_state=1)
        >>> model = BayesianLinearSVC(random_state=0).fit(train.X, train.y)
        >>> sets = model.predict_set(new.X, coverage=0.95)
        >>> sets.shape
        (1000, 2)
        """
        head, thresholds = self._head(), self._set_thresholds(coverage, per_class=per_class)
        return np.concatenate(list(self._predicted(X, lambda parts: 1 - head.probabilities(parts) <= thresholds)))

    def _set_thresholds(self, coverage: float, *, per_class: bool = False) -> np.ndarray:
        """The largest value of ``1 - p`` with which a class is in the set, per class (D35)."""
        require_coverage(coverage)
        fitted = self.fitted_
        return prediction_set_thresholds(
            self._head().probabilities(fitted.left_out_moments),
            fitted.left_out_y,
            fitted.left_out_weight,
            coverage,
            each=per_class,
            groups=fitted.left_out_groups,
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        y : array-like of shape (n_rows,), optional
            True labels; a table contains them.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows; a table contains them.

        Returns
        -------
        float
            Share of correct predictions, weighted.
        """
        y, predicted, sample_weight = self._evaluated(X, y, sample_weight)
        return accuracy_score(y, predicted, sample_weight=sample_weight)

    def predictions(
        self, X: Any, *, uncertainty: bool = True, coverage: float | None = None
    ) -> Generator[dict[str, np.ndarray], None, None]:
        """Yield the columns of ``predict_to``, one chunk of rows at a time.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.
        uncertainty : bool, default=True
            Whether to add the columns of ``predict_uncertainty``.
        coverage : float, optional
            Coverage of prediction sets; adds the column ``set``.

        Yields
        ------
        dict of arrays
            The columns for one chunk of rows.
        """
        head = self._head()
        uncertainty_of = head.uncertainty_of(self.fitted_.links) if uncertainty else None
        thresholds = None if coverage is None else self._set_thresholds(coverage)
        names = written_labels(self.classes_) if coverage is not None else []

        def columns(parts: Parts) -> dict[str, np.ndarray]:
            each = zip(self.classes_, head.probabilities(parts).T, strict=True)
            said = {"prediction": self._named(head.decision(parts))} | {f"probability_{label}": p for label, p in each}
            if thresholds is not None:
                said["set"] = written_sets(1 - head.probabilities(parts) <= thresholds, names)
            return said | (uncertainty_of(parts) if uncertainty_of else {})

        yield from self._predicted(X, columns)

    @lazy_on_dask
    def sample_proba(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw joint posterior samples of the class probabilities.

        Each draw is a draw of ``sample_latent`` mapped through the link. A draw of a committee takes one member.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            At most 5,000 rows, because their joint covariance is factored.
        n : int, default=1
            Number of draws.
        random_state : int, RandomState or None, default=None
            Controls the randomness; pass an int for reproducible results.

        Returns
        -------
        array of shape (n, n_rows, n_classes)
            Probabilities, with the last axis in the order of ``classes_``.
        """
        f, members = self._samples(X, n, random_state)
        found = np.empty((*f.shape[:2], len(self.classes_)))
        for number, link in enumerate(self.fitted_.links):
            mine = f[members == number].reshape(-1, f.shape[-1])
            found[members == number] = link.probabilities(mine, np.zeros(mine.shape)).reshape(-1, *found.shape[1:])
        return found


def _parameter(fitted: Fitted, name: str) -> np.ndarray | None:
    """A parameter of a calibrated link; None for other links."""
    calibrated = class_head(fitted).is_calibrated(fitted.link)
    return np.atleast_1d(getattr(fitted.link, name)) if calibrated else None
