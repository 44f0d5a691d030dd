"""Estimators: what the kernel and the linear classifier share: labels, probabilities, and weights of classes."""

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

NOISE = 1.0  # variance; .3 and 3 are about as good, and all far better than none where rows are many


def class_head(fitted: Fitted) -> ClassHead:
    """The head of a model that predicts classes."""
    if not isinstance(fitted.head, ClassHead):
        raise TypeError(f"{type(fitted.head).__name__} does not predict classes")
    return fitted.head


def _error(fitted: Fitted) -> float:
    """Share of the rows left out whose class is not the most probable one."""
    wrong = class_head(fitted).probabilities(fitted.left_out_moments).argmax(axis=1) != fitted.left_out_y
    return float(np.average(wrong, weights=fitted.left_out_weight))


class BaseBayesianSVC(ClassifierMixin, BaseBayesianModel):
    """A classifier; subclasses say what its features are."""

    _seen = ("n_features_in_", "feature_names_in_", "completion_", "recipe_", "classes_")

    classes_: np.ndarray
    bound: str
    noise: Any
    tune: str | None

    loo_proba_ = FittedAttribute(lambda fitted: class_head(fitted).probabilities(fitted.left_out_moments))
    loo_log_loss_ = FittedAttribute(lambda fitted: fitted.left_out_loss)
    noise_ = FittedAttribute(lambda fitted: fitted.likelihood.noise)
    loo_error_ = FittedAttribute(_error)
    calibration_scale_ = FittedAttribute(lambda fitted: _parameter(fitted, "scale"))
    calibration_bias_ = FittedAttribute(lambda fitted: _parameter(fitted, "bias"))
    calibration_share_ = FittedAttribute(lambda fitted: getattr(fitted.link, "share", None))

    @available_if(lambda self: getattr(self, "covariance", "full") == "full")
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more part of a stream.

        The first call (if there was no ``fit``) needs ``classes``, all labels that will come; it sets scaling, kernel
        and inducing points, which stay as they are. Each part's sites are added to the posterior so far, for good;
        the link is fitted again to leave-one-out marginals remembered from all parts (at most 20,000). Of a committee,
        every member learns, and the weights stay.
        """
        check_parameters(self, self._parameter_checks)
        first = not hasattr(self, "fitted_")
        outline = copy(self)
        outline.classes_ = self._stream_classes(classes, first=first)
        return self._learn_more(outline, stream_rows(outline, X, y, sample_weight, first=first))

    def _stream_classes(self, classes: Any, *, first: bool) -> np.ndarray:
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs `classes`, all labels that will come")
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
        """One function for two classes, one for each of more; with their base rates."""
        share = rounded_sum(rows.totals) + 0.5
        rates = tuple((share / share.sum()).tolist())
        return Binary(rates[1:]) if len(rates) == 2 else OneVsRest(rates)

    def _likelihood(self) -> Likelihood:
        usual = NOISE if self.tune in {"auto", "loo"} else 0.0  # the paper's bound has none (D22)
        return noisy(self.bound, usual if self.noise == "auto" else float(self.noise))

    def _can_continue(self, outline: Any) -> bool:
        return super()._can_continue(outline) and list(outline.classes_) == list(self.classes_)

    def _encoded(self, outline: Any, rows: LabelledRows, y: Any) -> np.ndarray:
        require_whole_labels(y, "held_out")
        y = np.asarray(y)
        unknown = ~np.isin(y, outline.classes_)
        if unknown.any():
            raise ValueError(
                f"held_out has the label {y[unknown].tolist()[0]!r}, which no row to learn from has; they have "
                f"{outline.classes_.tolist()}"
            )
        return codes_of(outline.classes_, y)

    @classmethod
    def from_model(cls, model: Model) -> Any:
        """The estimator that ``as_model`` was called on."""
        estimator = super().from_model(model)
        estimator.classes_ = np.asarray(model.classes)
        return estimator

    def _head(self) -> ClassHead:
        """What turns moments of f into probabilities."""
        check_is_fitted(self)
        return class_head(self.fitted_)

    @lazy_on_dask
    def decision_function(self, X: Any) -> np.ndarray:
        """Ordered like the probabilities: the probit of P(second class); with more classes their logits, in columns."""
        return np.concatenate(list(self._predicted(X, self._head().decision)))

    @lazy_on_dask
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, columns in the order of ``classes_``; of a committee, their weighted mean."""
        return np.concatenate(list(self._predicted(X, self._head().probabilities)))

    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, accurate where those round to zero or one."""
        z = self.decision_function(X)
        return np.column_stack([log_ndtr(-z), log_ndtr(z)]) if z.ndim == 1 else log_softmax(z, axis=1)

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        head = self._head()
        return np.concatenate(list(self._predicted(X, lambda parts: self._named(head.decision(parts)))))

    def _named(self, z: np.ndarray) -> np.ndarray:
        return self.classes_[(z > 0).astype(int) if z.ndim == 1 else z.argmax(axis=1)]

    @lazy_on_dask
    def predict_uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """How uncertain each prediction is, and why.

        Returns
        -------
        dict of arrays of shape (n_rows,)
            ``total``: entropy of the class probabilities, in nats. ``aleatoric``: the entropy expected if f were known;
            more data would not remove it. ``epistemic``: the difference; more data would. The disagreement of a
            committee's members is epistemic. With two classes also ``lower`` and ``upper``: a 95 % credible interval
            for the probability of the second class.
        """
        head = self._head()
        parts = list(self._predicted(X, head.uncertainty_of(self.fitted_.links)))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @lazy_on_dask
    def predict_set(self, X: Any, coverage: float = 0.9, *, per_class: bool = False) -> np.ndarray:
        """Set of classes that contains the class of a new row with about the probability ``coverage``.

        Thresholds come from the leave-one-out probabilities of the fit. They assume that new rows are exchangeable with
        those of training, and carry no finite-sample guarantee. A set may be empty: the row is unlike all classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), a table or a Dask collection
            Rows to predict.
        coverage : float, default=0.9
            Share of new rows whose set contains their class, strictly between 0 and 1. Where training has too few rows
            to tell, every class is in the set.
        per_class : bool, default=False
            Whether the coverage holds for the rows of each class, with a threshold for each, and not only on average.

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
        """What ``1 - p`` of each class must not exceed for the class to be in the set (D35)."""
        require_coverage(coverage)
        fitted = self.fitted_
        return prediction_set_thresholds(
            self._head().probabilities(fitted.left_out_moments),
            fitted.left_out_y,
            fitted.left_out_weight,
            coverage,
            each=per_class,
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the rows, or of their weight, whose class is predicted; a table has its labels in it."""
        y, predicted, sample_weight = self._judged(X, y, sample_weight)
        return accuracy_score(y, predicted, sample_weight=sample_weight)

    def predictions(
        self, X: Any, *, uncertainty: bool = True, coverage: float | None = None
    ) -> Generator[dict[str, np.ndarray], None, None]:
        """The columns of ``predict_to``, some rows after the others."""
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
        """Joint posterior samples of the class probabilities at some rows, of shape (n, n_rows, n_classes).

        Each is what a known f would mean: ``sample_latent`` through the link. At most 5,000 rows.
        """
        f, members = self._samples(X, n, random_state)
        found = np.empty((*f.shape[:2], len(self.classes_)))
        for number, link in enumerate(self.fitted_.links):
            mine = f[members == number].reshape(-1, f.shape[-1])
            found[members == number] = link.probabilities(mine, np.zeros(mine.shape)).reshape(-1, *found.shape[1:])
        return found


def _parameter(fitted: Fitted, name: str) -> np.ndarray | None:
    """A parameter of a calibrated link, which plain links do not have."""
    calibrated = class_head(fitted).is_calibrated(fitted.link)
    return np.atleast_1d(getattr(fitted.link, name)) if calibrated else None
