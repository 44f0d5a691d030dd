"""Estimators: models in files, as estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from bayesvm.estimators.base import BaseBayesianModel
from bayesvm.estimators.classifier import BayesianSVC
from bayesvm.estimators.linear import BayesianLinearSVC
from bayesvm.estimators.one_class import BayesianOneClassSVM
from bayesvm.estimators.regressor import BayesianSVR
from bayesvm.persistence import building
from bayesvm.schema import Schema, anything
from bayesvm.storage.models import read_model

Made = TypeVar("Made")

ESTIMATORS: dict[str, type[BaseBayesianModel]] = {
    cls.__name__: cls for cls in (BayesianSVC, BayesianLinearSVC, BayesianOneClassSVM, BayesianSVR)
}


def load(path: str | Path, trusted: Iterable[Any] = ()) -> Any:
    """Read a model that ``save`` wrote, with the same bits on the same machine. Runs no code from the file."""
    return load_both(path, lambda estimator, _: estimator, trusted=trusted)


def load_both(
    path: str | Path, made: Callable[[Any, Any], Made], schema: Schema = anything, trusted: Iterable[Any] = ()
) -> Made:
    """What is made of the model and of what was kept beside it, which must fit the schema unless it is None."""
    parameters = {kind: cls().get_params() for kind, cls in ESTIMATORS.items()}
    model = read_model(path, parameters, trusted, schema)
    with building(path):
        return made(ESTIMATORS[model.kind].from_model(model), model.beside)
