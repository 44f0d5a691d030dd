"""Estimators: the base class of all estimators: ``fit`` validates, calls ``inference.fitting`` and stores.

The result of a fit is one value, ``fitted_``; scikit-learn's attributes read from it.
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
from bayesvm.estimators import groups as row_groups
from bayesvm.estimators._attributes import FittedAttribute
from bayesvm.estimators._inputs import CheckedRows
from bayesvm.estimators._predicting import PredictingModel, jobs
from bayesvm.estimators.columns import feature_names, n_features, recipe_of, use_recipe
from bayesvm.estimators.completing import completed
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
    """A model that is fitted by ``inference.fitting``. Subclasses define its targets and its features."""

    _parameter_checks = COMMON
    _feature_map: ClassVar[type]  # of its members
    _kind: ClassVar[str]  # the name in saved models; a class that does not set it itself cannot be saved
    _seen: ClassVar[tuple[str, ...]] = (
        "n_features_in_",
        "feature_names_in_",
        "completion_",
        "recipe_",
    )  # what a fit assigns besides ``fitted_``

    elbo_ = FittedAttribute(lambda fitted: fitted.training.elbo)
    elbo_trace_ = FittedAttribute(lambda fitted: np.array(fitted.training.trace))
    n_iter_ = FittedAttribute(lambda fitted: len(fitted.training.trace))
    n_passes_ = FittedAttribute(lambda fitted: fitted.training.passes)
    converged_ = FittedAttribute(lambda fitted: fitted.training.converged)
    interrupted_ = FittedAttribute(lambda fitted: fitted.training.interrupted)
    scale_ = FittedAttribute(lambda fitted: fitted.scale, may_be_none=True)
    n_samples_ = FittedAttribute(lambda fitted: fitted.n_samples, needs="a model file of version 2 or later")
    loo_indices_ = FittedAttribute(lambda fitted: fitted.left_out_rows)

    @abstractmethod
    def _model(self, n_features: int) -> Any:
        """The ``inference.fitting.FeatureModel`` for tables with this number of columns."""

    @abstractmethod
    def _training_rows(self, outline: Any, X: Any, y: Any, sample_weight: Any) -> CheckedRows:
        """The checked arguments of ``fit``; sets the attributes ``_seen`` of the outline, a copy of the estimator."""

    @abstractmethod
    def _new_head(self, rows: Any) -> Head:
        """The head, from the rows of a first fit."""

    @abstractmethod
    def _encoded(self, outline: Any, rows: Any, y: Any) -> np.ndarray:
        """The targets of held-out rows, encoded as the head expects them."""

    @abstractmethod
    def _likelihood(self) -> Likelihood:
        """The likelihood with which a fit starts."""

    def _grouped(self, outline: Any, rows: Any, groups: Any, X: Any) -> Any:
        """The checked rows with the numbers of their groups."""
        return row_groups.grouped(rows, groups, X)

    def _labels(self, outline: Any) -> np.ndarray | None:
        """The class labels; None for a regressor."""
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
        """Fit the model.

        Inside ``with bayesvm.stop_on_interrupt():``, Ctrl-C ends the fit early with a usable model and sets
        ``interrupted_``. After an error, the estimator is in the same state as before the call.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), data frame, Dask collection or table
            The rows. Columns of a data frame may hold text, categories, dates and missing values. A table of
            ``open_table`` contains y and the weights.
        y : array-like of shape (n_rows,)
            The targets: labels of any type for a classifier, at least two of them different; numbers for a regressor.
        sample_weight : array-like of shape (n_rows,), optional
            For a given kernel and link, a weight of 2 is equivalent to repeating the row, a weight of 0 to omitting
            it. Tuning and calibration leave out a row with its full weight.
        groups : array-like of shape (n_rows,), or str, optional
            A label for each row: numbers, text or dates, or a mixture. Rows with the same label, such as those of one
            patient, are left out together in tuning, in calibration and in the ``loo_`` attributes; there are no local
            models. For a table, this may be the name of a column, which is then not used as a feature.
        callback : callable, optional
            Called with a ``Progress`` after every update. A committee trains its members one after the other, and
            ``Progress.update`` starts again at 1 for each.
        checkpoint : path, optional
            File that is written during the fit, always completely or not at all. If the process dies, the same call
            resumes from this file with bit-identical results. It is kept after the fit; delete it to start again.
        checkpoint_every : float, default=30.0
            Seconds between two versions of the checkpoint.
        held_out : tuple (X, y) or table, optional
            Rows that are not used for training, a random 2,000 if there are more. ``verbose=1`` and ``callback``
            report their log loss during the fit; the fit does not depend on them.

        Returns
        -------
        BayesianSVC, BayesianLinearSVC or BayesianSVR
            The estimator itself.

        Raises
        ------
        ValueError
            If a parameter or a value in the data is invalid; the message names the parameter, or the row and column.

        Warns
        -----
        ConvergenceWarning
            If the budget was used up, or Ctrl-C ended the fit, before the ELBO converged to ``tol``.
        """
        check_parameters(self, self._parameter_checks)
        kept = self._checkpoint(checkpoint, checkpoint_every)
        with progress_display(self.verbose) as display:
            display.phase("reading labels")
            outline = copy(self)  # scikit-learn's validation sets attributes of its argument
            if not self.warm_start and hasattr(outline, "completion_"):
                del outline.completion_
            X = row_groups.without_column(X, groups)
            rows = self._training_rows(outline, X, y, sample_weight)
            rows = rows if groups is None else self._grouped(outline, rows, groups, X)
            if groups is not None and getattr(self, "local", False) is True:
                warn_user("local=True has no effect with groups: a leaf of a tree may hold only a few of them")
            rows = completed(outline, rows)
            start = self.fitted_ if self.warm_start and self._can_continue(outline) else None
            if start is not None:
                require_same_columns(columns_of(self), outline)
            settings, model = self._settings(outline), self._model(rows.n_features)
            self._require_memory(rows, model, settings)
            if isinstance(kept, CheckpointFile):
                data = rows.fingerprint() | row_groups.fingerprint(rows) | _digest(start)
                kept.belongs_to(identity(self, self._labels(outline), columns_of(outline), data))
            head = self._new_head(rows) if start is None else start.head
            listeners = Listeners(
                display, callback, HeldOut.of(outline, held_out, partial(self._encoded, outline, rows))
            )
            fitted = fitting.fit(settings, model, head, rows, listeners, kept, start)
        self._store(outline, fitted)
        self._warn_if_unfinished(fitted)
        return self

    # With metadata routing, the groups of a cross-validation are passed on to ``fit``.
    __metadata_request__fit: ClassVar = {"groups": True}

    def _learn_more(self, outline: Any, rows: CheckedRows) -> Any:
        """``partial_fit`` with checked rows."""
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
        """The checkpoint file, which may contain the classes of the given kernel."""
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
        """Whether to add local models; ``"auto"``: if they improve the leave-one-out estimate."""
        return False

    def _require_memory(self, rows: CheckedRows, model: Any, settings: Settings) -> None:
        require_memory(type(self).__name__, rows.n_features, model.wide_vectors(rows.n_rows, settings))

    def _can_continue(self, outline: Any) -> bool:
        """Whether there is an earlier fit of the same targets to start from."""
        if not hasattr(self, "fitted_"):
            return False
        functions = [function for member in self.fitted_.members for function in member.functions]
        return all(isinstance(function.posterior, Gaussian) for function in functions)

    def _store(self, outline: Any, fitted: Fitted) -> None:
        """Set the fitted attributes: ``_seen`` and ``fitted_``."""
        for name in self._seen:
            if hasattr(outline, name):
                setattr(self, name, getattr(outline, name))
            elif hasattr(self, name):
                delattr(self, name)
        self.fitted_ = fitted

    def save(self, path: Any) -> None:
        """Write the fitted model to one file, without pickle.

        ``bayesvm.load`` reads it; the loaded model makes bit-identical predictions on the same machine.

        Parameters
        ----------
        path : path
            The file to write.

        See Also
        --------
        bayesvm.load : Read the file.
        """
        write_model(path, self.as_model())

    def as_model(self) -> Model:
        """Return the content of a model file as a value.

        Returns
        -------
        Model
            Parameters, fitted state and columns.
        """
        kind = type(self).__name__
        if not hasattr(self, "fitted_"):
            raise ValueError(f"this {kind} is not fitted; call fit before save")
        if "_kind" not in vars(type(self)):
            raise TypeError(
                f"a {kind} cannot be saved, because load does not know this class; save the estimator it is based on"
            )
        check_parameters(self, self._parameter_checks)  # otherwise nobody could load it
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
        """Rebuild the estimator that ``as_model`` was called on.

        Parameters
        ----------
        model : Model
            What ``as_model`` returned.

        Returns
        -------
        BayesianSVC, BayesianLinearSVC or BayesianSVR
            A fitted estimator.
        """
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
                f"the fit was stopped by Ctrl-C after {training.passes:.1f} passes; the model is usable, but has not "
                "converged (interrupted_ is True). With checkpoint=…, the same call resumes from the checkpoint."
            )
        elif not training.converged and self.tol > 0:
            budget = f"{self.max_iter} passes" + ("" if self.time_limit is None else f" or {self.time_limit} seconds")
            message = (
                f"{type(self).__name__} used its budget of {budget} before the ELBO converged to "
                f"tol={self.tol:g} nats per row; raise max_iter (or time_limit), or tol if the model is good enough. "
                "elbo_trace_ shows the ELBO after each update."
            )
        else:
            return
        warn_user(message, ConvergenceWarning)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def _digest(start: Fitted | None) -> dict[str, Any]:
    """A checksum that identifies the model of an earlier fit."""
    if start is None:
        return {"the model it starts from": None}
    functions = [function for member in start.members for function in member.functions]
    means = b"".join(function.posterior.mean.tobytes() for function in functions)
    return {"the model it starts from": sha256(means).hexdigest()[:16]}
