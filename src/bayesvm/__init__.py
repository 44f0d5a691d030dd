"""bayesvm: support vector machines with calibrated probabilities, for tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesvm import kernels
    from bayesvm.estimators import (
        BayesianLinearSVC,
        BayesianOneClassSVM,
        BayesianSVC,
        BayesianSVR,
        ColumnEffect,
        stop_on_interrupt,
    )
    from bayesvm.export import to_onnx
    from bayesvm.preparation import open_table
    from bayesvm.versions import show_versions
    from bayesvm.workflow import load

__version__ = "0.1.0"

__all__ = [
    "BayesianLinearSVC",
    "BayesianOneClassSVM",
    "BayesianSVC",
    "BayesianSVR",
    "ColumnEffect",
    "__version__",
    "kernels",
    "load",
    "open_table",
    "show_versions",
    "stop_on_interrupt",
    "to_onnx",
]

_PACKAGES = {
    "BayesianLinearSVC": "estimators",
    "BayesianOneClassSVM": "estimators",
    "BayesianSVC": "estimators",
    "BayesianSVR": "estimators",
    "ColumnEffect": "estimators",
    "load": "workflow",
    "open_table": "preparation",
    "show_versions": "versions",
    "stop_on_interrupt": "estimators",
    "to_onnx": "export",
}


def __getattr__(name: str) -> Any:
    """Import names when they are first used, so that the command line can exit cleanly on Ctrl-C during imports."""
    room = f"bayesvm.{_PACKAGES.get(name, name)}"
    try:
        found = import_module(room)
    except ModuleNotFoundError as error:
        if error.name != room:
            raise
        raise AttributeError(f"module 'bayesvm' has no attribute {name!r}") from None
    return getattr(found, name) if name in _PACKAGES else found


def __dir__() -> list[str]:
    return __all__
