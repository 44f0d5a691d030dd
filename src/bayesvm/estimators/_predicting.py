"""Estimators: predictions of all models, block by block: moments and samples of f, files of predictions.

Predictions read ``fitted_`` and the columns seen in ``fit``; they do not change the estimator.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesvm.core.latent import Block
from bayesvm.core.linalg import OUT_OF_RANGE, NotFiniteError
from bayesvm.core.members import MemberMoments, mixed_moments
from bayesvm.core.sampling import drawn_members, joint_samples
from bayesvm.core.workspace import Workspace
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import block_rows
from bayesvm.data.checks import MissingTargetError
from bayesvm.data.completion import DRAWS, incomplete
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import ColumnScaler
from bayesvm.data.streams import map_table
from bayesvm.data.tables import Table
from bayesvm.data.tables.writing import writing_table
from bayesvm.data.workers import Workers
from bayesvm.estimators._dask import lazy_on_dask
from bayesvm.estimators.columns import n_features
from bayesvm.estimators.completing import Completing, completion_of
from bayesvm.estimators.names import check_names
from bayesvm.estimators.notebooks import headline_html
from bayesvm.estimators.tables import table_to_predict
from bayesvm.estimators.validation import new_data
from bayesvm.inference.fitted import Fitted
from bayesvm.preparation import Recipe

MOST_JOINT_ROWS = 5_000  # rows whose joint covariance sample_latent factors

Parts = Sequence[MemberMoments]
Result = TypeVar("Result")


class PredictingModel(BaseEstimator, metaclass=ABCMeta):
    """Predictions that classifiers and regressors share."""

    n_features_in_: int
    n_jobs: int | None
    fitted_: Fitted
    recipe_: Recipe | None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name.

        Parameters
        ----------
        **params : dict
            Names and values. A parameter of a kernel object has a name like ``kernel__length_scale``.

        Returns
        -------
        BayesianSVC, BayesianLinearSVC or BayesianSVR
            The estimator itself.
        """
        check_names(self, params)
        return super().set_params(**params)

    def _html_repr(self) -> str:
        """The HTML representation; ``_repr_html_`` and ``_repr_mimebundle_`` of scikit-learn call it."""
        return headline_html(self) + str(super()._html_repr())

    def _predicted(
        self, X: Any, what: Callable[[Parts], Result], *, checked: bool = False
    ) -> Generator[Result, None, None]:
        """A function of the moments of f, a chunk of rows at a time; ``checked`` rows come from ``new_data``."""
        check_is_fitted(self)
        fitted, views = self.fitted_, self.fitted_.views

        def work(blocks: Iterable[Block], workspace: Workspace) -> Result:
            parts = Completing(self, fitted.scaler).moments(views, blocks, workspace)
            if not all(np.isfinite(part.mean).all() and np.isfinite(part.variance).all() for part in parts):
                raise NotFiniteError(f"predictions are not finite: {OUT_OF_RANGE}")
            return what(parts)

        with Workers(jobs(self.n_jobs)) as workers:
            rows = views.block_rows(block_rows(views.n_weights, n_features(self)))
            if isinstance(X, Table):
                yield from map_table(table_to_predict(self, X), work, ColumnScaler(), workers, rows)
            else:
                X = X if checked else new_data(self, X)
                y = np.zeros(X.shape[0], np.int8)
                yield from MemorySource(X, y, None, ColumnScaler(), workers, rows).map(work)

    @lazy_on_dask
    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict the posterior mean and variance of the latent function f.

        A committee returns the moments of the mixture: the variance includes the spread of the members' means.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), Dask collection or table
            Rows with the columns of ``fit``.

        Returns
        -------
        mean : array of shape (n_rows,), or (n_rows, n_classes) for more than two classes
            Posterior means of f.
        variance : array of the same shape
            Posterior variances of f.
        """
        m, v = map(np.concatenate, zip(*self._predicted(X, mixed_moments), strict=True))
        return (m[:, 0], v[:, 0]) if m.shape[1] == 1 else (m, v)

    def features_of(self, X: Any) -> Any:
        """Return the features that the model computes from the columns of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows with the columns of ``fit``.

        Returns
        -------
        array or sparse matrix of shape (n_rows, n_features)
            The features that ``recipe_`` makes of the columns; X itself if there is no recipe.
        """
        return new_data(self, X)

    @abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row."""

    def _evaluated(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Targets, predictions and weights, in memory; a table contains targets and weights."""
        if isinstance(X, Table) and y is None:
            try:
                parts, weights = zip(*X.targets(), strict=True)
            except MissingTargetError:
                X = X.labelled()
                parts, weights = zip(*X.targets(), strict=True)
            y, sample_weight = np.concatenate(parts), None if weights[0] is None else np.concatenate(weights)
        elif is_dask(X):
            y, sample_weight = (part.compute() if is_dask(part) else part for part in (y, sample_weight))
        predicted: Any = self.predict(X)
        return y, predicted.compute() if is_dask(predicted) else predicted, sample_weight

    def predict_to(self, X: Any, path: Any, *, uncertainty: bool = True, coverage: float | None = None) -> None:
        """Write predictions to a Parquet, Arrow or CSV file, one chunk of rows at a time. Needs ``bayesvm[tables]``.

        The first column is ``prediction``. A classifier adds a column ``probability_<class>`` for each class. The file
        appears when it is complete.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or table of shape (n_rows, n_columns)
            Rows with the columns of ``fit``.
        path : path
            The file to write; the ending selects the format.
        uncertainty : bool, default=True
            Whether to add the columns of ``predict_uncertainty``.
        coverage : float, optional
            For a classifier, add the column ``set`` with the classes of ``predict_set`` at this coverage, separated by
            ``|``. For a regressor, the coverage of ``lower`` and ``upper``.
        """
        if is_dask(X):
            raise TypeError(
                "predict_to takes a table or rows in memory; predictions for a Dask collection are lazy, so write "
                "them on the cluster with dask.array.to_zarr or dask.dataframe.from_dask_array(…).to_parquet"
            )
        if isinstance(X, Table) and X.is_made_of(path):
            raise ValueError(f"{path} is a file of the table itself; write the predictions to another file")

        with (
            writing_table(path) as append,
            closing(self.predictions(X, uncertainty=uncertainty, coverage=coverage)) as parts,
        ):
            for part in parts:
                append(part)

    @abstractmethod
    def predictions(
        self, X: Any, *, uncertainty: bool = True, coverage: float | None = None
    ) -> Generator[dict[str, np.ndarray], None, None]:
        """Yield the columns of ``predict_to``, one chunk of rows at a time."""

    @lazy_on_dask
    def sample_latent(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw joint posterior samples of the latent function f.

        Each draw of a committee takes one member.

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
        array of shape (n, n_rows), or (n, n_rows, n_classes) for more than two classes
            The draws.
        """
        f, _ = self._samples(X, n, random_state)
        return f[..., 0] if f.shape[-1] == 1 else f

    def _samples(self, X: Any, n: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draws of f, of shape (n, n_rows, n_functions), and the index of the member of each draw."""
        X = new_data(self, X)
        if X.shape[0] > MOST_JOINT_ROWS:
            raise ValueError(
                f"X has {X.shape[0]} rows, but joint samples factor a covariance of at most {MOST_JOINT_ROWS}; "
                "pass fewer"
            )
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        X, fitted = X.toarray() if hasattr(X, "toarray") else X, self.fitted_
        with one_blas_thread():
            members = drawn_members(fitted.views.shares, n, rng)
            if not len(incomplete(X)):
                return joint_samples(fitted.members, fitted.scaler(X), members, rng), members
            # Each draw takes one of the completions of missing values; together they have the mean of the prediction.
            which = rng.permutation(DRAWS)[np.arange(n) % DRAWS]
            found, means = np.empty((n, X.shape[0], len(fitted.member.functions))), []
            for number, draw in enumerate(completion_of(self).draws(X)):
                mine, scaled = np.flatnonzero(which == number), fitted.scaler(draw)
                if len(mine):
                    found[mine] = joint_samples(fitted.members, scaled, members[mine], rng)
                parts = fitted.views.moments([Block(scaled, np.zeros(len(scaled)), None)], Workspace())
                means.append([part.mean for part in parts])
            if not fitted.head.averages_completions:
                predicted = Completing(self, fitted.scaler).moments(
                    fitted.views, [Block(X, np.zeros(len(X)), None)], Workspace()
                )
                for number, part in enumerate(predicted):
                    found[members == number] += part.mean - np.mean([mean[number] for mean in means], axis=0)
            return found, members


def jobs(n_jobs: int | None) -> int:
    """The number of threads; ``None`` means all cores, and one core inside a parallel search of joblib."""
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))
