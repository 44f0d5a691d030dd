"""Storage: fitted models in files. Reading a file executes no code from it, and imports only trusted classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt

from bayesvm import persistence
from bayesvm.data.blas import threads_for_matrices
from bayesvm.data.completion import Completion
from bayesvm.inference.fitted import Fitted
from bayesvm.preparation import Recipe
from bayesvm.schema import Schema, anything
from bayesvm.storage.kernels import UntrustedKernelError
from bayesvm.storage.schemas import check_model
from bayesvm.storage.states import fitted_from, fitted_state, from_plain, plain
from bayesvm.storage.version1 import upgraded

CHECKPOINT = "checkpoint"  # the kind of file that is not a model


@dataclass(frozen=True)
class Model:
    """The content of a file: kind and parameters of the estimator, its columns and classes, and the fitted model."""

    kind: str
    parameters: dict[str, Any]
    classes: npt.NDArray[Any] | None  # labels of the outcomes, if the head has any
    n_features: int
    feature_names: npt.NDArray[Any] | None
    fitted: Fitted
    beside: Any = None  # additional plain state that a caller stores in the same file
    completion: Completion | None = None  # of missing values
    recipe: Recipe | None = None  # computes the features from columns of any kind
    background: dict[str, Any] | None = None  # of a one-class model (D36)


def write_model(path: str | PathLike[str], model: Model, schema: Schema = anything) -> None:
    """Write a model; replaces an existing file only once everything is written. ``schema`` describes ``beside``."""
    state = {
        "parameters": {name: plain(value) for name, value in model.parameters.items()},
        "classes": model.classes,
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "fitted": fitted_state(model.fitted),
        "beside": model.beside,
    }
    if model.completion is not None:
        state["completion"] = {each.name: getattr(model.completion, each.name) for each in fields(model.completion)}
    if model.recipe is not None:
        state["recipe"] = model.recipe.state()
    if model.background is not None:
        state["background"] = model.background
    check_model(model.parameters, state, schema)
    persistence.write(path, model.kind, state)


def read_model(
    path: str | PathLike[str],
    parameters_of: dict[str, Iterable[str]],
    trusted: Iterable[Any] = (),
    schema: Schema = anything,
) -> Model:
    """The model in a file, bit-identical on the same machine; ``parameters_of`` has the parameters of each kind."""
    trusted = [trusted] if isinstance(trusted, str | type) else list(trusted)
    kind, version, state = persistence.read(path)
    if kind not in parameters_of:
        remedy = "pass a model file" if kind == CHECKPOINT else "upgrade bayesvm"
        raise ValueError(f"{path} contains a {kind!r}, which this version of bayesvm cannot read as a model; {remedy}")
    try:
        with persistence.building(Path(path)):
            if version == 1:
                state = upgraded(state)
            state = _with_recipe(state)
            check_model(parameters_of[kind], state, schema)
            return _model(kind, state, trusted)
    except UntrustedKernelError as error:
        raise UntrustedKernelError(f"{path}: {error}") from None


def _model(kind: str, state: dict[str, Any], trusted: Iterable[Any]) -> Model:
    """The model of a validated state."""
    with threads_for_matrices(_largest_matrix(state["fitted"])):
        fitted = fitted_from(state["fitted"], trusted)
        _ = fitted.views  # a model that cannot predict is an error of the file, not of the first prediction
    for left_out in fitted.left_out:
        fitted.head.require(left_out.y, state["classes"])
    for link in fitted.links:
        if type(link) not in fitted.head.links:
            raise ValueError(f"the link {type(link).__name__} does not belong to the head {type(fitted.head).__name__}")
    parameters = {name: from_plain(value, trusted) for name, value in state["parameters"].items()}
    names, beside = state["feature_names"], state.get("beside")
    recipe = None if state.get("recipe") is None else Recipe.from_state(state["recipe"])
    completion = None
    if state.get("completion") is not None:
        # Earlier versions learned no loadings from rows without missing values.
        completion = Completion(**{"unneeded": not state["completion"]["loadings"].size} | state["completion"])
    return Model(
        kind,
        parameters,
        state["classes"],
        int(state["n_features"]),
        names,
        fitted,
        beside,
        completion,
        recipe,
        state.get("background"),
    )


def _with_recipe(state: dict[str, Any]) -> dict[str, Any]:
    """Move the recipe of earlier files, stored in ``beside``, into the model; except that of LIBSVM files."""
    beside = state.get("beside")
    if not isinstance(beside, dict) or not isinstance(beside.get("recipe"), dict) or "recipe" in state:
        return state
    recipe = beside["recipe"]
    if recipe.get("numbered") is not None:
        return state
    return state | {"recipe": recipe, "beside": {name: beside[name] for name in beside if name != "recipe"}}


def _largest_matrix(fitted: dict[str, Any]) -> int:
    posteriors = [function["posterior"] for member in fitted["members"] for function in member["functions"]]
    return max((len(q["linear"]) for q in posteriors if "precision" in q), default=1)
