"""Estimators: checks of parameter names in ``set_params`` and grid searches; errors say what to set instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayesvm.core.kernels import NAMED
from bayesvm.suggest import did_you_mean

# Parameter names of other support vector machines and Gaussian processes.
ELSEWHERE = {
    "C": "use the variance of the kernel instead, which tune='auto' learns",
    "gamma": "use the length_scale of the kernel instead, 1 / sqrt(2 * gamma), which tune='auto' learns",
    "probability": "predict_proba is always available",
    "length_scale": "it is a parameter of the kernel: set kernel=RBF() of bayesvm.kernels, then kernel__length_scale",
}


def check_names(estimator: Any, params: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for the first parameter that cannot be set."""
    own = estimator.get_params(deep=False)
    for name in params:
        outer, _, inner = name.partition("__")
        if outer not in own:
            hint = ELSEWHERE.get(outer) or did_you_mean(outer, own)
            raise ValueError(f"{type(estimator).__name__} has no parameter {outer!r}; {hint}")
        value = params.get(outer, own[outer])
        if inner and not hasattr(value, "set_params"):
            remedy = _kernel_instead(name, value) if outer == "kernel" else f"Set {outer} itself."
            raise ValueError(f"{name} cannot be set, because {outer} is {value!r}, which has no parameters. {remedy}")


def _kernel_instead(name: str, value: Any) -> str:
    """The kernel object to set instead of a name."""
    kernel = NAMED[value if isinstance(value, str) and value in NAMED else "auto"](1)
    made = f"{type(kernel).__name__}({f'nu={kernel.nu}' if hasattr(kernel, 'nu') else ''})"
    return (
        f"Set kernel={made} of bayesvm.kernels, then {name}. With kernel='auto' or another name and tune='auto', "
        "the fit learns the kernel's parameters, and no search is needed."
    )
