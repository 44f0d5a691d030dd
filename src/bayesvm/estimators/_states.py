"""Estimators: the parts of fitted models as plain state (names, numbers, arrays), and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bayesvm.core import links
from bayesvm.core.features import InducingFeatures, LinearFeatures
from bayesvm.core.kernels import Kernel
from bayesvm.core.posterior import DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.core.statistics import Machine
from bayesvm.data.quantiles import QuantileScaler
from bayesvm.data.scaling import ColumnScaler
from bayesvm.storage.kernels import kernel_from, kernel_state

SCALERS = {cls.__name__: cls for cls in (ColumnScaler, QuantileScaler)}
LINKS = {cls.__name__: cls for cls in (links.Probit, links.TwoProbits, links.Paper, links.Hinge, links.Softmax)}


def plain(value: Any) -> Any:
    """A constructor parameter as plain state."""
    if isinstance(value, Kernel):
        return {"kernel": kernel_state(value)}
    if isinstance(value, dict):
        return {"mapping": [[key, item] for key, item in value.items()]}
    if isinstance(value, np.random.RandomState):
        return None  # a generator's inner state is not part of a fitted model
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    return value


def from_plain(value: Any, trusted: Iterable[str | type] = ()) -> Any:
    if isinstance(value, dict):
        return dict(map(tuple, value["mapping"])) if "mapping" in value else kernel_from(value["kernel"], trusted)
    return value


def features_state(features: Any) -> dict[str, Any]:
    if isinstance(features, InducingFeatures):
        return {
            "kernel": kernel_state(features.kernel),
            "inducing_points": features.inducing_points,
            "whitening": features.whitening,
            "jitter": features.jitter,
            "offset": features.offset,
        }
    return {"root": features.root, "intercept": features.intercept}


def features_from(state: dict[str, Any], trusted: Iterable[str | type] = ()) -> Any:
    if "kernel" in state:
        kernel = kernel_from(state["kernel"], trusted, "features.kernel")
        offset = state.get("offset", state.get("level", 0.0))  # as it was called at first
        return InducingFeatures(kernel, state["inducing_points"], state["whitening"], state.get("jitter", 0.0), offset)
    return LinearFeatures(**state)


def scaler_state(scaler: Any) -> dict[str, Any]:
    return {"name": type(scaler).__name__} | vars(scaler)


def scaler_from(state: dict[str, Any]) -> Any:
    fields = dict(state)
    return SCALERS[fields.pop("name", "ColumnScaler")](**fields)  # the first files had but one kind


def machine_state(machine: Machine) -> dict[str, Any]:
    q = machine.posterior
    moments = vars(q.natural) if isinstance(q, Gaussian) else {"mean": q.mean, "variance": q.variance}  # type: ignore[attr-defined]
    return {"label": machine.label, "offset": machine.offset, "posterior": moments}


def machine_from(state: dict[str, Any]) -> Machine:
    moments = state["posterior"]
    full = "precision" in moments
    q = Gaussian.from_natural(NaturalParameters(**moments)) if full else DiagonalGaussian(**moments)
    return Machine(state["label"], state["offset"], q)


def link_state(link: Any) -> dict[str, Any]:
    if isinstance(link, links.Normalised):
        return {"normalised": link_state(link.binary)}
    return {"name": type(link).__name__, "parameters": dict(vars(link))}


def link_from(state: dict[str, Any]) -> Any:
    if "normalised" in state:
        return links.Normalised(link_from(state["normalised"]))
    return LINKS[state["name"]](**state["parameters"])
