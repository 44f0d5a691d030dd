"""Estimators: fitted models to plain state and back, for ``bayesvm.persistence``."""
# ruff: noqa: SLF001  (this file reads and writes what the estimators keep to themselves)

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bayesvm import persistence
from bayesvm.core.features import InducingFeatures
from bayesvm.core.leave_one_out import Cavities
from bayesvm.core.statistics import Lens, View
from bayesvm.data.blas import threads_for_matrices
from bayesvm.estimators._checkpoints import KIND as CHECKPOINT
from bayesvm.estimators._parameters import check_parameters
from bayesvm.estimators._prediction import prediction_view
from bayesvm.estimators._schemas import attribute_names, check_model
from bayesvm.estimators._states import (
    features_from,
    features_state,
    from_plain,
    link_from,
    link_state,
    machine_from,
    machine_state,
    plain,
    scaler_from,
    scaler_state,
)
from bayesvm.estimators.classifier import BayesianSVC
from bayesvm.estimators.linear import BayesianLinearSVC
from bayesvm.inference.tuning import Report
from bayesvm.schema import Schema, anything
from bayesvm.storage.kernels import UntrustedKernelError

Made = TypeVar("Made")

ESTIMATORS = {cls.__name__: cls for cls in (BayesianSVC, BayesianLinearSVC)}


def save(model: Any, path: str | Path, beside: dict[str, Any] | None = None, schema: Schema = anything) -> None:
    """Write a fitted model; an existing file is replaced only when all is written.

    ``beside`` is a plain state that somebody else keeps in the same file, with a schema of its own.
    """
    kind = type(model).__name__
    if not hasattr(model, "_machines"):
        raise ValueError(f"this {kind} is not fitted; call fit before save")
    if kind not in ESTIMATORS:
        raise TypeError(f"a {kind} cannot be saved, because load would not know it; a {' or a '.join(ESTIMATORS)} can")
    public = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    public.pop("kernel_", None)
    report = public.pop("tuning_report_", None)
    if unknown := public.keys() - attribute_names(kind):
        warnings.warn(f"{min(unknown)} is not a fitted attribute of {kind} and is not saved", UserWarning, stacklevel=3)
    check_parameters(model, model._parameter_checks)  # or nobody could load it
    parameters = model.get_params(deep=False)
    state = {
        "parameters": {name: plain(value) for name, value in parameters.items()},
        "attributes": {name: value for name, value in public.items() if name not in unknown},
        "scaler": scaler_state(model._scaler),
        "features": features_state(model._features),
        "prepared": model._view.features.matrix
        if isinstance(model._features, InducingFeatures)
        else model._view.features.root,
        "lenses": [dict(vars(lens)) for lens in model._view.lenses],
        "machines": [machine_state(machine) for machine in model._machines],
        "link": link_state(model._link),
        "rates": model._rates,
        "leave_one_out": list(model._cavities[:4]),
        "tuning": None if report is None else report.state(),
        "beside": beside,
    }
    check_model(kind, parameters, state, schema)
    persistence.write(path, kind, state)


def load(path: str | Path, trusted: Iterable[str | type] = ()) -> Any:
    """Read a model that ``save`` wrote, with the same bits on the same machine. Runs no code from the file."""
    return load_both(path, lambda model, _: model, trusted=trusted)


def load_both(
    path: str | Path,
    made: Callable[[Any, Any], Made],
    schema: Schema = anything,
    trusted: Iterable[str | type] = (),
) -> Made:
    """What is made of the model and of what was kept beside it, which must fit the schema unless it is None.

    Only kernels of bayesvm and those of the trusted classes, or import paths, are made.
    """
    kind, state = persistence.read(path)
    if kind not in ESTIMATORS:
        remedy = "give a model" if kind == CHECKPOINT else "upgrade bayesvm"
        raise ValueError(f"{path}: holds a {kind!r}, which is no model that this version of bayesvm knows; {remedy}")
    try:
        with persistence.building(path):
            check_model(kind, ESTIMATORS[kind]().get_params(), state, schema)
            return made(_model(kind, state, list(trusted)), state.get("beside"))
    except UntrustedKernelError as error:
        raise UntrustedKernelError(f"{path}: {error}") from None


def _model(kind: str, state: dict[str, Any], trusted: Iterable[str | type]) -> Any:
    """The estimator of a state that was checked."""
    model = ESTIMATORS[kind](**{name: from_plain(value, trusted) for name, value in state["parameters"].items()})
    check_parameters(model, model._parameter_checks)
    for name, value in state["attributes"].items():
        setattr(model, name, value)
    model._scaler = scaler_from(state["scaler"])
    model._features = features_from(state["features"], trusted)
    if isinstance(model._features, InducingFeatures):
        model._kernel(model.kernel, model.n_features_in_)  # refuses one that there is not
        model.kernel_ = model._features.kernel
    with threads_for_matrices(model._features.n_weights):
        model._machines = tuple(machine_from(machine) for machine in state["machines"])
    model._view = View(
        model._features.with_prepared(state["prepared"]), tuple(Lens(**lens) for lens in state["lenses"])
    )
    if state["prepared"].dtype != np.float64:  # as it was kept when fits in single precision predicted in it, too
        model._view = prediction_view(model._features, model._machines)
    model._link = link_from(state["link"])
    model._rates = state["rates"]
    if state.get("tuning") is not None:
        model.tuning_report_ = Report.from_state(state["tuning"])
    model._cavities = Cavities(*state["leave_one_out"])
    return model
