"""Estimators: names of parameters in ``set_params`` and grid searches, with errors that say what to set instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayesvm.core.kernels import NAMED
from bayesvm.suggest import did_you_mean

# Names that other support vector machines and Gaussian processes have.
ELSEWHERE = {
    "C": "the kernel's variance takes its place, and tune='auto' learns it",
    "gamma": "the kernel's length_scale takes its place (1 / sqrt(2 * gamma)), and tune='auto' learns it",
    "probability": "predict_proba is always there",
    "length_scale": "it belongs to the kernel: set kernel=RBF() of bayesvm.kernels, and then kernel__length_scale",
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
    """Which kernel to give instead of its name."""
    kernel = NAMED[value if isinstance(value, str) and value in NAMED else "auto"](1)
    made = f"{type(kernel).__name__}({f'nu={kernel.nu}' if hasattr(kernel, 'nu') else ''})"
    return (
        f"Set kernel={made} of bayesvm.kernels, and then {name}. With kernel='auto' or another name and tune='auto', "
        "the fit learns the kernel's parameters, and no search is needed."
    )
