"""Estimators: what all share, whatever they predict and from which features: ``fit`` validates, calls and stores.

What is learned is one value, ``fitted_``; scikit-learn's attributes are read from it.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from bayesvm.core.heads import Head
from bayesvm.core.likelihoods import Likelihood
from bayesvm.core.posterior import Gaussian
from bayesvm.data.capacity import require_memory
from bayesvm.estimators._attributes import FittedAttribute
from bayesvm.estimators._inputs import CheckedRows
from bayesvm.estimators._predicting import PredictingModel, jobs
from bayesvm.estimators.columns import feature_names, n_features, recipe_of, use_recipe
from bayesvm.estimators.completing import completed
from bayesvm.estimators.groups import grouped, without_column
from bayesvm.estimators.held_out import HeldOut
from bayesvm.estimators.parameters import COMMON, check_parameters, learning_rate
from bayesvm.estimators.validation import columns_of, require_same_columns
from bayesvm.inference import fitting
from bayesvm.inference.fitted import Fitted
from bayesvm.inference.session import Listeners, NoCheckpoint
from bayesvm.inference.settings import Settings
from bayesvm.inference.training import Callback
from bayesvm.progress import progress_display
from bayesvm.storage.checkpoints import CheckpointFile, identity
from bayesvm.storage.kernels import classes_of, require_storable
from bayesvm.storage.models import Model, write_model
from bayesvm.warn import warn_user

BATCH_SIZE = 4096


class BaseBayesianModel(PredictingModel):
    """A model that learns by ``inference.fitting``. Subclasses say what is predicted, and from which features."""

    _parameter_checks = COMMON
    _feature_map: ClassVar[type]  # of its members
    _kind: ClassVar[str]  # what a saved model is called; a class that does not set it itself cannot be saved
    _seen: ClassVar[tuple[str, ...]] = (
        "n_features_in_",
        "feature_names_in_",
        "completion_",
        "recipe_",
    )  # what a fit assigns beside ``fitted_``

    elbo_ = FittedAttribute(lambda fitted: fitted.training.elbo)
    elbo_trace_ = FittedAttribute(lambda fitted: np.array(fitted.training.trace))
    n_iter_ = FittedAttribute(lambda fitted: len(fitted.training.trace))
    n_passes_ = FittedAttribute(lambda fitted: fitted.training.passes)
    converged_ = FittedAttribute(lambda fitted: fitted.training.converged)
    interrupted_ = FittedAttribute(lambda fitted: fitted.training.interrupted)
    scale_ = FittedAttribute(lambda fitted: fitted.scale, may_be_none=True)
    n_samples_ = FittedAttribute(lambda fitted: fitted.n_samples)
    loo_indices_ = FittedAttribute(lambda fitted: fitted.left_out_rows)

    @abstractmethod
    def _model(self, n_features: int) -> Any:
        """What to learn from tables with so many columns: an ``inference.fitting.FeatureModel``."""

    @abstractmethod
    def _training_rows(self, outline: Any, X: Any, y: Any, sample_weight: Any) -> CheckedRows:
        """What ``fit`` was given, checked; what the data say of ``_seen`` is assigned to the outline, a copy."""

    @abstractmethod
    def _new_head(self, rows: Any) -> Head:
        """What is predicted, as the rows of a first fit show it."""

    @abstractmethod
    def _encoded(self, outline: Any, rows: Any, y: Any) -> np.ndarray:
        """The y of rows that are not learned from, as numbers that the head knows."""

    @abstractmethod
    def _likelihood(self) -> Likelihood:
        """The bound with which a fit starts."""

    def _labels(self, outline: Any) -> np.ndarray | None:
        """Those of the outcomes, if what is predicted has some."""
        return getattr(outline, "classes_", None)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        callback: Callback | None = None,
        checkpoint: Any = None,
        checkpoint_every: float = 30.0,
        held_out: Any = None,
    ) -> Any:
        """Fit to rows ``X`` and what is to be predicted of them, ``y``.

        Inside ``with bayesvm.stop_on_interrupt():`` Ctrl-C ends the fit early with a usable model, and
        ``interrupted_`` is true. After an error the estimator is what it was before the call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or a Dask array or data frame
            Or a table of ``open_table``, which has y and weights in it.
        y : array-like of shape (n_rows,)
            Of a classifier, two or more classes of any type; of a regressor, numbers.
        sample_weight : array-like of shape (n_rows,), optional
            For a given kernel and link, a weight of 2 counts as the row given twice, a weight of 0 as the row left
            out. Tuning and calibration leave a row out with all its weight.
        groups : array-like of shape (n_rows,), optional
            A label of any type for every row: rows with the same label, such as those of one patient, are left out
            together in tuning, calibration and the ``loo_`` attributes. There are no local models then. Of a table,
            it may be the name of a column, which is not learned from.
        callback : callable, optional
            Called with a ``Progress`` after every update; of a committee, one member is trained after the other, and
            ``Progress.update`` starts again at 1.
        checkpoint : path, optional
            A file that is written during the fit, whole or not at all. If the process dies, the same call resumes from
            there with bit-identical results. It is left there at the end; delete it to start anew.
        checkpoint_every : float
            Seconds between two versions of that file.
        held_out : (X, y) or a table, optional
            Rows that are not learned from, a random 2,000 if there are more: ``verbose=1`` and ``callback`` report
            their log loss during the fit, which does not depend on them.
        """
        check_parameters(self, self._parameter_checks)
        kept = self._checkpoint(checkpoint, checkpoint_every)
        with progress_display(self.verbose) as display:
            display.phase("reading labels")
            outline = copy(self)  # scikit-learn's validation writes to what it is given
            if not self.warm_start and hasattr(outline, "completion_"):
                del outline.completion_
            X = without_column(X, groups)
            rows = self._training_rows(outline, X, y, sample_weight)
            rows = rows if groups is None else grouped(rows, groups, X)
            rows = completed(outline, rows)
            start = self.fitted_ if self.warm_start and self._can_continue(outline) else None
            if start is not None:
                require_same_columns(columns_of(self), outline)
            settings, model = self._settings(outline), self._model(rows.n_features)
            self._require_memory(rows, model, settings)
            if isinstance(kept, CheckpointFile):
                data = rows.fingerprint() | _digest(start)
                kept.belongs_to(identity(self, self._labels(outline), columns_of(outline), data))
            head = self._new_head(rows) if start is None else start.head
            listeners = Listeners(
                display, callback, HeldOut.of(outline, held_out, partial(self._encoded, outline, rows))
            )
            fitted = fitting.fit(settings, model, head, rows, listeners, kept, start)
        self._store(outline, fitted)
        self._warn_if_unfinished(fitted)
        return self

    # With metadata routing, groups of a cross-validation reach ``fit``, too.
    __metadata_request__fit: ClassVar = {"groups": True}

    def _learn_more(self, outline: Any, rows: CheckedRows) -> Any:
        """``partial_fit`` of checked rows."""
        rows = completed(outline, rows)
        start = getattr(self, "fitted_", None)
        settings, model = self._settings(outline), self._model(rows.n_features)
        self._require_memory(rows, model, settings)
        head = self._new_head(rows) if start is None else start.head
        with progress_display(self.verbose) as display:
            fitted = fitting.update(settings, model, head, rows, Listeners(display), start)
        self._store(outline, fitted)
        return self

    def _checkpoint(self, path: Any, every: float) -> CheckpointFile | NoCheckpoint:
        """The file, which may name the classes of the kernel that was given."""
        if path is None:
            return NoCheckpoint()
        kernel = getattr(self, "kernel", None)
        require_storable(kernel)  # now, not after tuning
        return CheckpointFile.open(path, every, classes_of(kernel))

    def _settings(self, outline: Any) -> Settings:
        return Settings(
            likelihood=self._likelihood(),
            inference=self.inference,
            tune=self.tune,
            tune_interval=self.tune_interval,
            scale=self.scale,
            link=self.link,
            batch_size=BATCH_SIZE if self.batch_size == "auto" else int(self.batch_size),
            learning_rate=learning_rate(self.learning_rate),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            time_limit=self.time_limit,
            precision=self.precision,
            n_jobs=jobs(self.n_jobs),
            seed=check_random_state(self.random_state).randint(2**31),
            column_names=feature_names(outline),
            local=self._local(),
        )

    def _local(self) -> bool | str:
        """Whether there are local models; ``"auto"``: where they pay."""
        return False

    def _require_memory(self, rows: CheckedRows, model: Any, settings: Settings) -> None:
        require_memory(type(self).__name__, rows.n_features, model.wide_vectors(rows.n_rows, settings))

    def _can_continue(self, outline: Any) -> bool:
        """Whether there is an earlier fit to start from, which predicts the same."""
        if not hasattr(self, "fitted_"):
            return False
        functions = [function for member in self.fitted_.members for function in member.functions]
        return all(isinstance(function.posterior, Gaussian) for function in functions)

    def _store(self, outline: Any, fitted: Fitted) -> None:
        """Assign what was learned, ``_seen`` and ``fitted_``, and nothing else."""
        for name in self._seen:
            if hasattr(outline, name):
                setattr(self, name, getattr(outline, name))
            elif hasattr(self, name):
                delattr(self, name)
        self.fitted_ = fitted

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, without pickle; ``bayesvm.load`` reads it back, to the same bits."""
        write_model(path, self.as_model())

    def as_model(self) -> Model:
        """All that a file of this model holds, as a value."""
        kind = type(self).__name__
        if not hasattr(self, "fitted_"):
            raise ValueError(f"this {kind} is not fitted; call fit before save")
        if "_kind" not in vars(type(self)):
            raise TypeError(
                f"a {kind} cannot be saved, because load would not know it; save the estimator it is based on"
            )
        check_parameters(self, self._parameter_checks)  # or nobody could load it
        for name in vars(self):
            if name.endswith("_") and not name.startswith("_") and name not in {*self._seen, "fitted_"}:
                warn_user(f"{name} is not a fitted attribute of {kind} and is not saved")
        names = feature_names(self)
        return Model(
            self._kind,
            self.get_params(deep=False),
            self._labels(self),
            n_features(self),
            None if names is None else np.array(names, object),
            self.fitted_,
            completion=getattr(self, "completion_", None),
            recipe=recipe_of(self),
        )

    @classmethod
    def from_model(cls, model: Model) -> Any:
        """The estimator that ``as_model`` was called on."""
        estimator = cls(**model.parameters)
        check_parameters(estimator, cls._parameter_checks)
        if not all(isinstance(member.features, cls._feature_map) for member in model.fitted.members):
            raise ValueError(f"the members of a {cls.__name__} have {cls._feature_map.__name__}")
        estimator.fitted_, estimator.recipe_ = model.fitted, model.recipe
        estimator.completion_ = model.completion
        if model.recipe is None:
            estimator.n_features_in_ = model.n_features
            if model.feature_names is not None:
                estimator.feature_names_in_ = model.feature_names
            return estimator
        if len(model.recipe.names) != model.n_features:
            raise ValueError(f"the recipe makes {len(model.recipe.names)} features of {model.n_features}")
        use_recipe(estimator, model.recipe)
        return estimator

    def _warn_if_unfinished(self, fitted: Fitted) -> None:
        training = fitted.training
        if training.interrupted:
            message = (
                f"the fit was stopped by Ctrl-C after {training.passes:.1f} passes; the model is usable, but not as "
                "good as it could be (interrupted_ is True). With checkpoint=… the same call resumes from what was "
                "kept."
            )
        elif not training.converged and self.tol > 0:
            budget = f"{self.max_iter} passes" + ("" if self.time_limit is None else f" or {self.time_limit} seconds")
            message = (
                f"{type(self).__name__} used its budget of {budget} before the ELBO settled to "
                f"tol={self.tol:g} nats per row; raise max_iter (or time_limit), or tol if that is good enough. "
                "elbo_trace_ shows how far it was."
            )
        else:
            return
        warn_user(message, ConvergenceWarning)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def _digest(start: Fitted | None) -> dict[str, Any]:
    """Tells the model of an earlier fit apart from others."""
    if start is None:
        return {"the model it starts from": None}
    functions = [function for member in start.members for function in member.functions]
    means = b"".join(function.posterior.mean.tobytes() for function in functions)
    return {"the model it starts from": sha256(means).hexdigest()[:16]}
