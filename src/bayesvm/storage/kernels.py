"""Storage: convert kernels to plain state, validate it, and convert it back.

A kernel of bayesvm is stored by its class name, any other kernel by the import path of its class. Importing that path
runs its module, so the caller must trust it explicitly.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from inspect import isabstract
from typing import Any

import numpy as np

from bayesvm.core import kernels
from bayesvm.core.kernels import Kernel, Sum
from bayesvm.core.kernels.parameters import VARIANCE
from bayesvm.schema import (
    Schema,
    Sizes,
    array,
    bound,
    each,
    either,
    flag,
    items,
    nothing,
    one_of,
    positive,
    real,
    record,
    satisfying,
    text,
    value,
)

# The kernels of bayesvm, which files refer to by class name; sums have a format of their own.
KERNELS: dict[str, type[Kernel]] = {
    name: cls
    for name, cls in vars(kernels).items()
    if isinstance(cls, type) and issubclass(cls, Kernel) and not (cls is Sum or isabstract(cls))
}

TINY = float(np.finfo(np.float64).smallest_subnormal)
BOUNDS = either(one_of("fixed"), items(bound, bound), array("fiu", 2, least=TINY, infinite=True))
PER_FEATURE = either(positive, array("fiu", None, least=TINY), each(positive))
PARAMETER = either(nothing, flag, text, real, array("fiub", None, infinite=True), each(real))  # of a custom kernel


def _one_kernel(cls: type[Kernel]) -> Schema:
    learnable = {name: PER_FEATURE if p.per_feature else positive for name, p in cls.parameters.items()}
    bounds = dict.fromkeys((f"{name}_bounds" for name in learnable), BOUNDS)
    fixed = {name: one_of(*values) for name, values in cls.choices.items()}
    return record({"name": one_of(cls.__name__), "parameters": record(learnable | fixed, bounds)})


def kernel_schema(found: Any, path: str, sizes: Sizes) -> None:
    """The schema of a kernel or a sum of kernels; the parts of a sum may be sums."""
    KERNEL(found, path, sizes)


KERNEL = either(
    record(
        {
            "name": value("the import path of a class", lambda found: isinstance(found, str) and "." in found),
            "parameters": record({}, others=PARAMETER),
        }
    ),
    satisfying(
        record({"sum": each(kernel_schema), "weights": each(positive)}, {"weights_bounds": BOUNDS}),
        "a sum with one weight for each of its kernels",
        lambda found, _: len(found["sum"]) == len(found["weights"]) > 0,
    ),
    *map(_one_kernel, KERNELS.values()),
)


class UntrustedKernelError(ImportError):
    """A file names a class that is not part of bayesvm, and the caller has not allowed its import."""


def kernel_state(kernel: Kernel) -> dict[str, Any]:
    """A kernel as plain state; raises TypeError if it could not be loaded again."""
    if type(kernel) is Sum:
        parts = [kernel_state(part) for part in kernel.kernels]
        return {"sum": parts, "weights": list(kernel.checked_weights()), "weights_bounds": kernel.weights_bounds}
    cls, parameters = type(kernel), kernel.get_params(deep=False)
    if KERNELS.get(cls.__name__) is cls:
        return {"name": cls.__name__, "parameters": parameters}
    path = import_path(cls)
    try:
        importable = cls.__module__ != "__main__" and _imported(path) is cls
    except ImportError:
        importable = False
    if not importable:
        raise TypeError(
            f"the kernel {cls.__name__} cannot be saved because load could not import {path}; define the class at the "
            "top level of an importable module, not in a script, a notebook or a function"
        )
    return {"name": path, "parameters": parameters}


def kernel_from(state: dict[str, Any], trusted: Iterable[str | type] = (), member: str = "kernel") -> Kernel:
    """The kernel from a state that matches ``KERNEL``. Imports only the ``trusted`` import paths or classes."""
    trusted = [trusted] if isinstance(trusted, str) else list(trusted)
    if "sum" in state:
        parts = [kernel_from(part, trusted, f"{member}.sum[{i}]") for i, part in enumerate(state["sum"])]
        return Sum(parts, state["weights"], state.get("weights_bounds", VARIANCE.bounds))
    name = state["name"]
    allowed: dict[str, Any] = KERNELS | {item if isinstance(item, str) else import_path(item): item for item in trusted}
    if name not in allowed:
        raise UntrustedKernelError(
            f"{member} is an instance of {name}, which is not part of bayesvm; loading it would run its code. "
            f"Inspect it; if you trust it, bayesvm.load(path, trusted=[{name!r}])"
        )
    cls = allowed[name] if isinstance(allowed[name], type) else _imported(name)
    if not (isinstance(cls, type) and issubclass(cls, Kernel)):
        raise TypeError(f"{member}: {name} is not a subclass of bayesvm.kernels.Kernel")
    return cls(**state["parameters"])


def require_storable(kernel: Any) -> None:
    """Raise an error that names what a file could not store; accepts anything that is not a kernel."""
    if isinstance(kernel, Kernel):
        KERNEL(kernel_state(kernel), "kernel", {})


def classes_of(kernel: Any) -> set[type]:
    """The classes of a kernel and of the parts of a sum; empty for anything else."""
    if isinstance(kernel, Sum):
        return {cls for part in kernel.kernels for cls in classes_of(part)}
    return {type(kernel)} if isinstance(kernel, Kernel) else set()


def import_path(cls: type) -> str:
    """The import path of a class: ``package.module.Class``."""
    return f"{cls.__module__}.{cls.__qualname__}"


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except AttributeError as error:
        raise ImportError(f"there is no {name} in {module}") from error
