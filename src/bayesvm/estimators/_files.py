"""Estimators: fitted models to plain state and back, for ``bayesvm.persistence``."""
# ruff: noqa: SLF001  (this file reads and writes what the estimators keep to themselves)

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bayesvm import persistence
from bayesvm.core import kernels, links
from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.kernel import VARIANCES
from bayesvm.core.leave_one_out import Cavities
from bayesvm.core.posterior import DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.core.statistics import Lens, Machine, View
from bayesvm.data.quantiles import QuantileScaler
from bayesvm.data.scaling import ColumnScaler
from bayesvm.estimators.classifier import BayesianSVC
from bayesvm.estimators.linear import BayesianLinearSVC
from bayesvm.inference.tuning import Report

ESTIMATORS = {cls.__name__: cls for cls in (BayesianSVC, BayesianLinearSVC)}
KERNELS = {cls.__name__: cls for cls in (kernels.RBF, kernels.Matern, kernels.Linear, kernels.Constant)}
SCALERS = {cls.__name__: cls for cls in (ColumnScaler, QuantileScaler)}
LINKS = {cls.__name__: cls for cls in (links.Probit, links.Paper, links.Hinge, links.Softmax)}


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model; an existing file is replaced only when all is written."""
    if not hasattr(model, "_machines"):
        raise ValueError(f"this {type(model).__name__} is not fitted; call fit before save")
    public = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    public.pop("kernel_", None)
    report = public.pop("tuning_report_", None)
    lenses = [vars(lens) for lens in model._view.lenses]
    state = {
        "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "attributes": public,
        "scaler": {"name": type(model._scaler).__name__} | vars(model._scaler),
        "features": _features_state(model._features),
        "prepared": model._view.features.whitening
        if isinstance(model._features, InducingFeatures)
        else model._view.features.root,
        "lenses": lenses,
        "machines": [_machine_state(machine) for machine in model._machines],
        "link": _link_state(model._link),
        "rates": model._rates,
        "leave_one_out": list(model._cavities),
        "tuning": None if report is None else report.state(),
    }
    persistence.write(path, type(model).__name__, state)


def load(path: str | Path) -> Any:
    """Read a model that ``save`` wrote: the same predictions, to the last bit. Runs no code from the file."""
    kind, state = persistence.read(path)
    if kind not in ESTIMATORS:
        raise ValueError(f"{path}: holds a {kind!r}, which this version of bayesvm does not know; upgrade bayesvm")
    model = ESTIMATORS[kind](**{name: _from_plain(value) for name, value in state["parameters"].items()})
    for name, value in state["attributes"].items():
        setattr(model, name, value)
    scaler = dict(state["scaler"])
    model._scaler = SCALERS[scaler.pop("name", "ColumnScaler")](**scaler)  # the first files had but one kind
    model._features = _features_from(state["features"])
    if isinstance(model._features, InducingFeatures):
        model.kernel_ = model._features.kernel
    model._machines = tuple(_machine_from(machine) for machine in state["machines"])
    model._view = View(
        model._features.with_prepared(state["prepared"]), tuple(Lens(**lens) for lens in state["lenses"])
    )
    model._link = _link_from(state["link"])
    model._rates = state["rates"]
    if state.get("tuning") is not None:
        model.tuning_report_ = Report.from_state(state["tuning"])
    model._cavities = Cavities(*state["leave_one_out"])
    return model


def _plain(value: Any) -> Any:
    """A constructor parameter as plain state."""
    if isinstance(value, kernels.Kernel):
        return {"kernel": _kernel_state(value)}
    if isinstance(value, dict):
        return {"mapping": [[key, item] for key, item in value.items()]}
    if isinstance(value, np.random.RandomState):
        return None  # a generator's inner state is not part of a fitted model
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    return value


def _from_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(map(tuple, value["mapping"])) if "mapping" in value else _kernel_from(value["kernel"])
    return value


def _kernel_state(kernel: kernels.Kernel) -> dict[str, Any]:
    if isinstance(kernel, kernels.Sum):
        parts = [_kernel_state(part) for part in kernel.kernels]
        return {"sum": parts, "weights": list(kernel.checked_weights()), "weights_bounds": kernel.weights_bounds}
    name = type(kernel).__name__
    if name not in KERNELS:
        raise TypeError(f"a kernel of type {name} cannot be saved; those of bayesvm.kernels can")
    return {"name": name, "parameters": kernel.get_params(deep=False)}


def _kernel_from(state: dict[str, Any]) -> kernels.Kernel:
    if "sum" in state:
        parts = [_kernel_from(part) for part in state["sum"]]
        return kernels.Sum(parts, state["weights"], state.get("weights_bounds", VARIANCES))
    return KERNELS[state["name"]](**state["parameters"])


def _features_state(features: Any) -> dict[str, Any]:
    if isinstance(features, InducingFeatures):
        return {
            "kernel": _kernel_state(features.kernel),
            "inducing_points": features.inducing_points,
            "whitening": features.whitening,
            "jitter": features.jitter,
        }
    return {"root": features.root, "intercept": features.intercept}


def _features_from(state: dict[str, Any]) -> Any:
    if "kernel" in state:
        points, whitening = state["inducing_points"], state["whitening"]
        return InducingFeatures(_kernel_from(state["kernel"]), points, whitening, state.get("jitter", 0.0))
    return LinearFeatures(**state)


def _machine_state(machine: Machine) -> dict[str, Any]:
    q = machine.posterior
    moments = vars(q.natural) if isinstance(q, Gaussian) else {"mean": q.mean, "variance": q.variance}  # type: ignore[attr-defined]
    return {"label": machine.label, "offset": machine.offset, "posterior": moments}


def _machine_from(state: dict[str, Any]) -> Machine:
    moments = state["posterior"]
    full = "precision" in moments
    q = Gaussian.from_natural(NaturalParameters(**moments)) if full else DiagonalGaussian(**moments)
    return Machine(state["label"], state["offset"], q)


def _link_state(link: Any) -> dict[str, Any]:
    if isinstance(link, links.Normalised):
        return {"normalised": _link_state(link.binary)}
    return {"name": type(link).__name__, "parameters": dict(vars(link))}


def _link_from(state: dict[str, Any]) -> Any:
    if "normalised" in state:
        return links.Normalised(_link_from(state["normalised"]))
    return LINKS[state["name"]](**state["parameters"])
