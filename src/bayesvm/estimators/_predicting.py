"""Estimators: what a fitted classifier says of new rows: probabilities, uncertainty, samples. All in blocks.

Everything is read from ``fitted_``, ``classes_`` and the columns seen in ``fit``; nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from scipy.special import log_ndtr, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesvm.core.heads import ClassHead
from bayesvm.core.latent import Block
from bayesvm.core.linalg import OUT_OF_RANGE, NotFiniteError
from bayesvm.core.members import MemberMoments, mixed_moments
from bayesvm.core.sampling import drawn_members, joint_samples
from bayesvm.core.workspace import Workspace
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import block_rows
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.memory import MemorySource
from bayesvm.data.streams import map_table
from bayesvm.data.tables import Table
from bayesvm.data.tables.writing import writing_table
from bayesvm.data.workers import Workers
from bayesvm.estimators._dask import lazy_on_dask
from bayesvm.estimators.names import check_names
from bayesvm.estimators.notebooks import headline_html
from bayesvm.estimators.tables import table_to_predict
from bayesvm.estimators.validation import new_data
from bayesvm.inference.fitted import Fitted

MOST_JOINT_ROWS = 5_000  # whose joint covariance is factored for sample_latent

Parts = Sequence[MemberMoments]
Result = TypeVar("Result")


class PredictingClassifier(ClassifierMixin, BaseEstimator):
    """The predictions of a fitted classifier."""

    classes_: np.ndarray
    n_features_in_: int
    n_jobs: int | None
    fitted_: Fitted

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name; those of a kernel object as ``kernel__length_scale``."""
        check_names(self, params)
        return super().set_params(**params)

    def _html_repr(self) -> str:
        """For notebooks: scikit-learn's ``_repr_html_`` and ``_repr_mimebundle_`` call it."""
        return headline_html(self) + str(super()._html_repr())

    def _head(self) -> ClassHead:
        """What turns moments of f into probabilities."""
        check_is_fitted(self)
        return class_head(self.fitted_)

    def _predicted(self, X: Any, what: Callable[[Parts], Result]) -> Generator[Result, None, None]:
        """Something about the moments of f, for some rows after the others."""
        check_is_fitted(self)
        fitted, views = self.fitted_, self.fitted_.views

        def work(blocks: Iterable[Block], workspace: Workspace) -> Result:
            parts = views.moments(blocks, workspace)
            if not all(np.isfinite(part.mean).all() and np.isfinite(part.variance).all() for part in parts):
                raise NotFiniteError(f"predictions are not finite: {OUT_OF_RANGE}")
            return what(parts)

        with Workers(jobs(self.n_jobs)) as workers:
            rows = views.block_rows(block_rows(views.n_weights, self.n_features_in_))
            if isinstance(X, Table):
                yield from map_table(table_to_predict(self, X), work, fitted.scaler, workers, rows)
            else:
                X = new_data(self, X)
                y = np.zeros(X.shape[0], np.int8)
                yield from MemorySource(X, y, None, fitted.scaler, workers, rows).map(work)

    @lazy_on_dask
    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of the latent function f at each row; with many classes a column for each.

        Of a committee, those of the mixture: the variance includes how far the members' means are apart.
        """
        m, v = map(np.concatenate, zip(*self._predicted(X, mixed_moments), strict=True))
        return (m[:, 0], v[:, 0]) if len(self.classes_) == 2 else (m, v)

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

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the rows, or of their weight, whose class is predicted; a table has its labels in it."""
        if isinstance(X, Table) and y is None:
            parts, weights = zip(*X.targets(), strict=True)
            y, sample_weight = np.concatenate(parts), None if weights[0] is None else np.concatenate(weights)
        elif is_dask(X):
            y, sample_weight = (part.compute() if is_dask(part) else part for part in (y, sample_weight))
        predicted = self.predict(X)
        return accuracy_score(y, predicted.compute() if is_dask(predicted) else predicted, sample_weight=sample_weight)

    def predict_to(self, X: Any, path: Any, *, uncertainty: bool = True) -> None:
        """Write predictions to a Parquet, Arrow or CSV file, some rows at a time: of a table, or of rows in memory.

        The columns are ``prediction``, ``probability_`` and the class for every class and, unless ``uncertainty`` is
        false, those of ``predict_uncertainty``. The file appears when it is whole; needs ``bayesvm[tables]``.
        """
        if is_dask(X):
            raise TypeError(
                "predict_to takes a table or rows in memory; of a Dask collection, predict_proba(X) is lazy, and "
                "dask.array.to_zarr or dask.dataframe.from_dask_array(…).to_parquet writes it on the cluster"
            )
        if isinstance(X, Table) and X.is_made_of(path):
            raise ValueError(f"{path} is a file of the table itself; write the predictions to another one")

        with writing_table(path) as append, closing(self.predictions(X, uncertainty=uncertainty)) as parts:
            for part in parts:
                append(part)

    def predictions(self, X: Any, *, uncertainty: bool = True) -> Generator[dict[str, np.ndarray], None, None]:
        """The columns of ``predict_to``, some rows after the others."""
        head = self._head()
        uncertainty_of = head.uncertainty_of(self.fitted_.links) if uncertainty else None

        def columns(parts: Parts) -> dict[str, np.ndarray]:
            each = zip(self.classes_, head.probabilities(parts).T, strict=True)
            said = {"prediction": self._named(head.decision(parts))} | {f"probability_{label}": p for label, p in each}
            return said | (uncertainty_of(parts) if uncertainty_of else {})

        yield from self._predicted(X, columns)

    @lazy_on_dask
    def sample_latent(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint posterior samples of f at some rows, of shape (n, n_rows), with a last axis for many classes.

        At most 5,000 rows, since their joint covariance is factored. Of a committee, each draw takes one member.
        """
        f, _ = self._samples(X, n, random_state)
        return f[..., 0] if len(self.classes_) == 2 else f

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

    def _samples(self, X: Any, n: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draws of f, of shape (n, n_rows, n_functions), and the numbers of the members that they come from."""
        X = new_data(self, X)
        if X.shape[0] > MOST_JOINT_ROWS:
            raise ValueError(
                f"joint samples need a factored covariance: at most {MOST_JOINT_ROWS} rows, got {X.shape[0]}"
            )
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        rows = self.fitted_.scaler(X.toarray() if hasattr(X, "toarray") else X)
        with one_blas_thread():
            members = drawn_members(self.fitted_.views.shares, n, rng)
            return joint_samples(self.fitted_.members, rows, members, rng), members


def class_head(fitted: Fitted) -> ClassHead:
    """The head of a model that predicts classes."""
    if not isinstance(fitted.head, ClassHead):
        raise TypeError(f"{type(fitted.head).__name__} does not predict classes")
    return fitted.head


def jobs(n_jobs: int | None) -> int:
    """``None`` means all cores (and one inside a parallel search, as joblib says)."""
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))
