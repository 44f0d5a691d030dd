"""Estimators: what a fitted model says of new rows: probabilities, uncertainty, samples. All in blocks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy.special import entr, log_ndtr, log_softmax, ndtr, softmax
from scipy.stats import norm, qmc
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesvm.core.features import Features
from bayesvm.core.latent_expectations import LatentExpectations
from bayesvm.core.linalg import OUT_OF_RANGE, NotFiniteError, cholesky
from bayesvm.core.statistics import Block, Machine, View
from bayesvm.core.workspace import Workspace
from bayesvm.data.blas import one_blas_thread
from bayesvm.data.blocks import block_rows
from bayesvm.data.dask_rows import is_dask
from bayesvm.data.memory import MemorySource
from bayesvm.data.scaling import Scaler
from bayesvm.data.streams import map_table
from bayesvm.data.tables import Table
from bayesvm.data.tables.writing import writing_table
from bayesvm.data.workers import Workers
from bayesvm.estimators._dask import lazy_on_dask
from bayesvm.estimators.tables import table_to_predict
from bayesvm.estimators.validation import new_data

DRAWS = 64  # quasi-random points of the latent functions, for uncertainty with many classes
MOST_JOINT_ROWS = 5_000  # whose joint covariance is factored for sample_latent
MANY_ROWS = 2**62  # prediction always sees the posterior in the coordinates made for many rows
REACH = norm.ppf(0.975)  # standard deviations of a 95 % interval to either side

Result = TypeVar("Result")


class PredictionMixin:
    """Prediction from the parts of a fitted estimator."""

    classes_: np.ndarray
    n_features_in_: int
    n_jobs: int | None
    link: str
    _scaler: Scaler
    _features: Any
    _machines: tuple[Machine, ...]
    _view: View
    _link: Any

    def _predicted(self, X: Any, what: Callable[[np.ndarray, np.ndarray], Result]) -> Generator[Result, None, None]:
        """Something about the mean and variance of f, a column for each machine, for some rows after the others."""
        check_is_fitted(self)

        def work(blocks: Iterable[Block], workspace: Workspace) -> Result:
            m, v = self._view.moments(blocks, workspace)
            if not (np.isfinite(m).all() and np.isfinite(v).all()):
                raise NotFiniteError(f"predictions are not finite: {OUT_OF_RANGE}")
            return what(m, v)

        with Workers(jobs(self.n_jobs)) as workers:
            rows = block_rows(len(self._view.lenses[0].mean), self.n_features_in_)
            if isinstance(X, Table):
                yield from map_table(table_to_predict(self, X), work, self._scaler, workers, rows)
            else:
                X = new_data(self, X)
                codes = np.zeros(X.shape[0], np.int8)
                yield from MemorySource(X, codes, None, self._scaler, workers, rows).map(work)

    @lazy_on_dask
    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of the latent function f at each row; with many classes a column for each."""
        m, v = map(np.concatenate, zip(*self._predicted(X, lambda m, v: (m, v)), strict=True))
        return (m[:, 0], v[:, 0]) if len(self.classes_) == 2 else (m, v)

    def _decision(self, m: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._link.score(m[:, 0], v[:, 0]) if len(self.classes_) == 2 else self._link.logits(m, v)

    @lazy_on_dask
    def decision_function(self, X: Any) -> np.ndarray:
        """Ordered like the probabilities: the probit of P(second class); with more classes their logits, in columns."""
        return np.concatenate(list(self._predicted(X, self._decision)))

    @lazy_on_dask
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, columns in the order of ``classes_``."""
        return np.concatenate(list(self._predicted(X, lambda m, v: probabilities(self._decision(m, v)))))

    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, accurate where those round to zero or one."""
        z = self.decision_function(X)
        return np.column_stack([log_ndtr(-z), log_ndtr(z)]) if z.ndim == 1 else log_softmax(z, axis=1)

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        return np.concatenate(list(self._predicted(X, lambda m, v: self._named(self._decision(m, v)))))

    def _named(self, z: np.ndarray) -> np.ndarray:
        return self.classes_[(z > 0).astype(int) if z.ndim == 1 else z.argmax(axis=1)]

    @lazy_on_dask
    def predict_uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """How uncertain each prediction is, and why.

        Returns
        -------
        dict of arrays of shape (n_rows,)
            ``total``: entropy of the class probabilities, in nats. ``aleatoric``: the entropy expected if f were known;
            more data would not remove it. ``epistemic``: the difference; more data would. With two classes also
            ``lower`` and ``upper``: a 95 % credible interval for the probability of the second class.
        """
        parts = list(self._predicted(X, self._uncertainty()))
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
        how_sure = self._uncertainty() if uncertainty else None

        def columns(m: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
            z = self._decision(m, v)
            each = zip(self.classes_, probabilities(z).T, strict=True)
            said = {"prediction": self._named(z)} | {f"probability_{label}": p for label, p in each}
            return said | (how_sure(m, v) if how_sure else {})

        yield from self._predicted(X, columns)

    def _uncertainty(self) -> Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]:
        """What is told of some rows; all that the rows share is done once."""
        check_is_fitted(self)
        if len(self.classes_) > 2:
            return self._many_class_uncertainty
        return partial(self._two_class_uncertainty, LatentExpectations.by(self._link))

    def _two_class_uncertainty(self, known: LatentExpectations, m: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        m, v = m[:, 0], v[:, 0]
        s = np.sqrt(v)
        # The paper's formula is no average over f, and the hinge link is one already: the average itself, then.
        averaged = self.link in ("paper", "hinge")
        stated = np.asarray(ndtr(self._link.score(m, v)))
        mean = known.mean_probability(m, s) if averaged else stated
        total = entr(mean) + entr(1 - mean)
        aleatoric = np.minimum(known.mean_entropy(m, s), total)
        reach = REACH * s
        lower, upper = (ndtr(self._link.score(m + sign * reach, np.zeros(len(m)))) for sign in (-1, 1))
        return {
            "total": total,
            "aleatoric": aleatoric,
            "epistemic": total - aleatoric,
            "lower": np.minimum(lower, stated),
            "upper": np.maximum(upper, stated),
        }

    def _many_class_uncertainty(self, m: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        s = np.sqrt(v)
        mean, aleatoric = np.zeros(m.shape), np.zeros(len(m))
        for draw in normal_draws(m.shape[1]):
            p = softmax(self._link.logits(m + s * draw, np.zeros(m.shape)), axis=1)
            mean += p / DRAWS
            aleatoric += entr(p).sum(axis=1) / DRAWS
        # The entropy is that of the probabilities which are stated; how it divides is seen at the points (D11).
        total = entr(softmax(self._decision(m, v), axis=1)).sum(axis=1)
        whole = entr(mean).sum(axis=1)
        share = np.minimum(np.divide(aleatoric, whole, out=np.ones(len(m)), where=whole > 0), 1.0)
        return {"total": total, "aleatoric": share * total, "epistemic": (1 - share) * total}

    @lazy_on_dask
    def sample_latent(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint posterior samples of f at some rows, of shape (n, n_rows), with a last axis for many classes.

        At most 5,000 rows, since their joint covariance is factored.
        """
        X = new_data(self, X)
        if X.shape[0] > MOST_JOINT_ROWS:
            raise ValueError(
                f"joint samples need a factored covariance: at most {MOST_JOINT_ROWS} rows, got {X.shape[0]}"
            )
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        rows = self._scaler(X.toarray() if hasattr(X, "toarray") else X)
        with one_blas_thread():
            return self._joint_samples(rows, n, rng)

    def _joint_samples(self, rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        phi, prior_variance = self._features.prepared(None, np.float64)(rows, Workspace())
        residual = None
        if prior_variance is not None:
            covariance = self._features.kernel(rows) - phi @ phi.T
            scale = float(np.mean(prior_variance))
            residual, _ = cholesky(covariance / scale + 1e-9 * np.eye(len(rows)), what="the residual covariance")
            residual *= np.sqrt(scale)
        samples = []
        for machine in self._machines:
            q = machine.posterior
            weights = q.mean + q.spread(rng.standard_normal((n, len(q.mean))))
            draws = machine.offset + weights @ phi.T
            if residual is not None:
                draws += rng.standard_normal((n, len(rows))) @ residual.T
            samples.append(draws)
        return samples[0] if len(samples) == 1 else np.stack(samples, axis=-1)

    @lazy_on_dask
    def sample_proba(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Joint posterior samples of the class probabilities at some rows, of shape (n, n_rows, n_classes).

        Each is what a known f would mean: ``sample_latent`` through the link. At most 5,000 rows.
        """
        f = self.sample_latent(X, n, random_state)
        known = np.zeros(f.shape)
        if len(self.classes_) > 2:
            rows = self._link.logits(f.reshape(-1, f.shape[-1]), known.reshape(-1, f.shape[-1]))
            return softmax(rows, axis=1).reshape(f.shape)
        z = self._link.score(f, known)
        return np.stack([ndtr(-z), ndtr(z)], axis=-1)


def prediction_view(features: Features, machines: Sequence[Machine], dtype: npt.DTypeLike = np.float64) -> View:
    """What new rows are seen with: in double precision, whatever that of the fit.

    Single precision would move a probability by up to some thousandths, and by another amount in another batch.
    """
    return View.of(features, machines, MANY_ROWS, dtype)[0]


def normal_draws(n_classes: int) -> np.ndarray:
    """Quasi-random points of N(0, I), a row each, that do so for more classes (D11)."""
    points = qmc.Sobol(n_classes, scramble=False).random(DRAWS) + 0.5 / DRAWS  # the middles of a fine grid's cells
    return norm.ppf(points)


def probabilities(decision: np.ndarray) -> np.ndarray:
    """Class probabilities from the scores of two classes or the logits of more."""
    if decision.ndim == 1:
        return np.column_stack([ndtr(-decision), ndtr(decision)])
    return softmax(decision, axis=1)


def jobs(n_jobs: int | None) -> int:
    """``None`` means all cores (and one inside a parallel search, as joblib says)."""
    return int(effective_n_jobs(-1 if n_jobs is None else n_jobs))
