"""Estimators: load estimators from files."""

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
from bayesvm.suggest import did_you_mean

Made = TypeVar("Made")

SUFFIX = ".bayesvm"  # extension of files that `bayesvm fit` writes
MOST_LISTED = 5  # files listed in a message

ESTIMATORS: dict[str, type[BaseBayesianModel]] = {
    cls.__name__: cls for cls in (BayesianSVC, BayesianLinearSVC, BayesianOneClassSVM, BayesianSVR)
}


def load(path: str | Path, trusted: Iterable[Any] = ()) -> Any:
    """Load a model from a file that ``save`` wrote.

    No code from the file is executed. Predictions are bit-identical on the same machine.

    Parameters
    ----------
    path : path
        The file.
    trusted : iterable of classes, optional
        Classes of your own kernels that the file may contain.

    Returns
    -------
    BayesianSVC, BayesianLinearSVC or BayesianSVR
        The fitted estimator.
    """
    return load_both(path, lambda estimator, _: estimator, trusted=trusted)


def load_both(
    path: str | Path, made: Callable[[Any, Any], Made], schema: Schema = anything, trusted: Iterable[Any] = ()
) -> Made:
    """Call ``made`` with the estimator and the additional content of the file, which must match the schema."""
    _require_file(Path(path))
    parameters = {kind: cls().get_params() for kind, cls in ESTIMATORS.items()}
    model = read_model(path, parameters, trusted, schema)
    with building(path):
        return made(ESTIMATORS[model.kind].from_model(model), model.beside)


def _require_file(path: Path) -> None:
    """Require that the file of a model exists; the error names the nearest one that does."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the path of a model file in it")
    if path.exists():
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no such file: {path}; the folder {path.parent} does not exist")
    others = sorted(other.name for other in path.parent.glob(f"*{SUFFIX}"))
    if others:
        more = f" and {len(others) - MOST_LISTED} more" if len(others) > MOST_LISTED else ""
        there = f"the folder has {', '.join(others[:MOST_LISTED])}{more}"
        hint = did_you_mean(path.stem, [name.removesuffix(SUFFIX) for name in others])
        near = hint.replace("'?", f"{SUFFIX}'?") if hint.endswith("'?") else there
        raise FileNotFoundError(f"no such file: {path}; {near}")
    raise FileNotFoundError(
        f"no such file: {path}; check the path, or create the model with `bayesvm fit` or model.save (the current "
        f"folder is {Path.cwd()})"
    )
