"""Estimators: what the states of models and checkpoints must look like.

Letters: C classes, K machines, D features, M weights, N rows left out, T updates, Q knots of a
quantile scaler.
"""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import Any

import numpy as np

from bayesvm.inference.inducing import HOW
from bayesvm.schema import (
    Schema,
    Sizes,
    anything,
    array,
    below,
    each,
    either,
    flag,
    items,
    nothing,
    number,
    one_of,
    positive,
    real,
    record,
    satisfying,
    size,
    text,
    value,
    whole,
)
from bayesvm.storage.kernels import KERNEL

TINY = float(np.finfo(np.float64).smallest_subnormal)
NUMBERS = either(number, array("fiub", None), array("fiub", None, None), each(number), each(each(number)))
MATRIX, VECTOR = array("f", "M", "M"), array("f", "M")

# Constructor parameters whose values ``check_parameters`` does not know; others are single values.
LABEL = value("a label", lambda found: isinstance(found, str | int | float | np.generic))
PARAMETERS: dict[str, Schema] = {
    "kernel": either(text, record({"kernel": KERNEL})),
    "inducing": either(one_of(*HOW), NUMBERS),
    "prior_variance": NUMBERS,
    "class_weight": either(nothing, one_of("balanced"), record({"mapping": each(items(LABEL, number))})),
    "n_jobs": either(nothing, value("a whole number but 0", lambda found: isinstance(found, Integral) and found != 0)),
    "random_state": either(nothing, whole),
}
ONE_VALUE = either(nothing, flag, text, number)


def plain(found: Any, path: str, sizes: Sizes) -> None:
    """Single values, and lists and dictionaries of them: no arrays."""
    if isinstance(found, list | tuple | dict):
        (record({}, others=plain) if isinstance(found, dict) else each(plain))(found, path, sizes)
    else:
        ONE_VALUE(found, path, sizes)


def _labels(found: Any, sizes: Sizes) -> bool:
    wanted = [1] if sizes["K"] == 1 else list(range(sizes["K"]))
    return [each_one["label"] for each_one in found] == wanted


ATTRIBUTES = {
    "classes_": satisfying(
        array("biufUO", "C"), "two labels or more, sorted", lambda found, _: len(np.unique(found)) == len(found) > 1
    ),
    "n_features_in_": size("D"),
    "elbo_": number,
    "n_iter_": size("T"),
    "elbo_trace_": array("f", "T"),
    "n_passes_": number,
    "converged_": flag,
    "loo_proba_": array("f", "N", "C", least=0.0),
    "loo_log_loss_": number,
    "loo_error_": number,
}
OPTIONAL_ATTRIBUTES = {
    "feature_names_in_": array("UO", "D"),
    "interrupted_": flag,
    "noise_": number,
    "loo_indices_": array("iu", "N", least=0),
    "calibration_scale_": either(number, array("f", 1), array("f", 2)),
    "calibration_bias_": either(array("f", 1), array("f", "C")),
    "calibration_share_": number,
}
OWN_ATTRIBUTES: dict[str, tuple[dict[str, Schema], dict[str, Schema]]] = {
    "BayesianSVC": ({"inducing_points_": array("f", "M", "D")}, {"relevance_": array("f", "D", least=0.0)}),
    "BayesianLinearSVC": (
        {
            "coef_": array("f", "K", "D"),
            "intercept_": array("f", "K"),
            # Infinite where columns are so small that squares of their scales vanish.
            "coef_covariance_": either(
                *(array("f", *shape, infinite=True) for shape in (("D", "D"), ("K", "D", "D"), ("D",), ("K", "D")))
            ),
        },
        {"prior_variance_": either(number, array("f", "D"))},
    ),
}


def attribute_names(kind: str) -> set[str]:
    """The fitted attributes of such an estimator that are kept in files."""
    required, optional = OWN_ATTRIBUTES[kind]
    return {*ATTRIBUTES, *OPTIONAL_ATTRIBUTES, *required, *optional}


SCALER = either(
    record({"centre": nothing, "scale": nothing}, {"name": one_of("ColumnScaler")}),
    record({"centre": array("f", "D"), "scale": array("f", "D", least=TINY)}, {"name": one_of("ColumnScaler")}),
    satisfying(
        record(
            {
                "name": one_of("QuantileScaler"),
                "knots": array("f", "Q"),
                "scores": array("f", "Q"),
                "starts": array("iu", "D+1", least=0),
                "outer": array("f", "D", 2),
            }
        ),
        "knots for every column",
        lambda found, sizes: found["starts"][0] == 0 and found["starts"][-1] == sizes["Q"] and _rises(found["starts"]),
    ),
)


def _rises(starts: Any) -> bool:
    return bool((np.diff(starts.astype(np.int64)) > 0).all())


FEATURES: dict[str, Schema] = {
    "BayesianSVC": record(
        {"kernel": KERNEL, "inducing_points": array("f", "M", "D"), "whitening": MATRIX},
        {"jitter": number, "offset": number, "level": number},
    ),
    "BayesianLinearSVC": satisfying(
        record({"root": either(VECTOR, MATRIX), "intercept": flag}),
        "a weight for every column and the intercept",
        lambda found, sizes: sizes["M"] == sizes.setdefault("D", sizes["M"] - found["intercept"]) + found["intercept"],
    ),
}
PREPARED = {"BayesianSVC": either(MATRIX, array("f", "M+1", "M")), "BayesianLinearSVC": either(VECTOR, MATRIX)}

NATURAL = record({"linear": VECTOR, "precision": MATRIX})
MOMENTS = record({"mean": VECTOR, "variance": array("f", "M", least=0.0)})
LENS = record(
    {
        "label": whole,
        "offset": number,
        "mean": VECTOR,
        "rotation": either(nothing, MATRIX),
        "spread": either(array("f", "M", least=0.0), MATRIX),
    }
)
MACHINE = record({"label": whole, "offset": number, "posterior": either(NATURAL, MOMENTS)})
LABELS = "those of the classes, in their order"


def _one_link(name: str, parameters: dict[str, Schema]) -> Schema:
    return record({"name": one_of(name), "parameters": record(parameters)})


BINARY_LINK = either(
    _one_link("Probit", {"scale": number, "bias": number}),
    _one_link("TwoProbits", {"scale": items(number, number), "bias": items(number, number), "share": number}),
    _one_link("Paper", {}),
    _one_link("Hinge", {}),
)
MANY_LINK = either(
    _one_link("Softmax", {"scale": number, "bias": each(number, "C")}), record({"normalised": BINARY_LINK})
)


def link(found: Any, path: str, sizes: Sizes) -> None:
    """That of two classes, or that of more."""
    (BINARY_LINK if sizes["K"] == 1 else MANY_LINK)(found, path, sizes)


TRIAL = record(
    {
        "what": text,
        "scale": either(nothing, text),
        "kernel": text,
        "n_rows": whole,
        "n_inducing": whole,
        "loo": real,
        "seconds": number,
    }
)
REPORT = record({"trials": each(TRIAL), "chosen": each(text), "failed": whole}, {"climb": each(each(real))})
LEFT_OUT = items(
    array("f", "N", "K"),
    array("f", "N", "K", least=0.0),
    satisfying(array("iu", "N", least=0), "numbers of classes", lambda found, sizes: found.max(initial=0) < sizes["C"]),
    array("f", "N", least=0.0),
)


RANDOM_STATE = record(
    {
        "bit_generator": one_of("PCG64"),
        "state": record(dict.fromkeys(("state", "inc"), below(2**128))),
        "has_uint32": one_of(0, 1),
        "uinteger": below(2**32),
    }
)
TASK = record({"label": whole, "offset": number, "posterior": NATURAL, "prior": either(size("M"), NATURAL)})
TASKS = satisfying(each(TASK, "K"), LABELS, _labels)
ASCENT = record(
    {
        "task": TASK,
        "elbo": number,
        "target": NATURAL,
        "rho": number,
        "distance": real,
        "contraction": real,
        "rejected": flag,
    }
)
AVERAGES = record(
    {
        "gradient": satisfying(
            array("f", None), "M² + M numbers", lambda found, sizes: len(found) == sizes["M"] * (sizes["M"] + 1)
        ),
        "square": number,
        "window": positive,
        "seen": whole,
    }
)
REACHED = {"rows": number, "trace": array("f", None, infinite=True)}


def place(learning_rate: Any) -> Schema:
    """Where a training of M weights for each of K machines is, on R rows; the learning rate has a memory of its own."""
    memory = {"adaptive": either(nothing, AVERAGES), "robbins_monro": whole}.get(learning_rate, nothing)
    walk = record({"task": TASK, "memory": memory, "rho": number, "elbo": real})
    epoch = record(
        {"states": each(walk, "K"), "done": whole, "mean": real, "squares": real, "best": real, "flat": whole}
    )
    return record(
        {
            "phase": one_of("auto", "stochastic", "batch"),
            "tasks": TASKS,
            "contraction": each(real, "K"),
            "rng": RANDOM_STATE,
            "subset_rows": satisfying(whole, "at most all rows", lambda found, sizes: found <= sizes["R"]),
            "states": either(items(), each(ASCENT, "K")),
            "epoch": either(nothing, satisfying(epoch, "squares from 0", lambda found, _: found["squares"] >= 0)),
            "passes": items(),
            **REACHED,
        }
    )


SUMS = record({"bound": number, "curvature": VECTOR, "linear": VECTOR, "weight": number})
MEAN_FIELD = record(
    {
        "phase": one_of("mean field"),
        "passes": satisfying(each(each(SUMS)), "lists for the classes", lambda found, sizes: len(found) <= sizes["K"]),
        **dict.fromkeys(("tasks", "contraction", "states"), items()),
        **dict.fromkeys(("rng", "epoch"), nothing),
        "subset_rows": whole,
        **REACHED,
    }
)


def _with_one_weight(found: Any, path: str, sizes: Sizes) -> None:
    """The tasks of a mean field, which stand for their labels alone."""
    TASKS(found, path, {"K": sizes["K"], "M": 1})


# What comes before training.
READY = record(
    {
        "features": either(*FEATURES.values()),
        "scaler": SCALER,
        "rng": RANDOM_STATE,
        "tasks": either(TASKS, _with_one_weight),
    },
    {"report": REPORT, "chosen": TRIAL, "grows": flag},
)
CHECKPOINT = record({}, {"seed": whole, "identity": record({}, others=plain)}, others=anything)


def check_model(kind: str, parameters: Collection[str], state: Any, beside: Schema) -> None:
    """Raise ``ValueError`` unless this is the state of such a model with such parameters."""
    sizes: Sizes = {}
    record({"attributes": record({"classes_": ATTRIBUTES["classes_"]}, others=anything)}, others=anything)(
        state, "state", sizes
    )
    sizes["K"] = 1 if sizes["C"] == 2 else sizes["C"]
    required, optional = OWN_ATTRIBUTES[kind]
    whole_state = record(
        {
            "attributes": record(ATTRIBUTES | required, OPTIONAL_ATTRIBUTES | optional),
            "features": FEATURES[kind],
            "scaler": SCALER,
            "prepared": PREPARED[kind],
            "machines": satisfying(each(MACHINE, "K"), LABELS, _labels),
            "lenses": satisfying(each(LENS, "K"), LABELS, _labels),
            "link": link,
            "rates": array("f", "K", least=0.0),
            "leave_one_out": LEFT_OUT,
            "parameters": record({}, {name: PARAMETERS.get(name, ONE_VALUE) for name in parameters}),
        },
        {"tuning": either(nothing, REPORT), "beside": either(nothing, beside)},
    )
    satisfying(whole_state, "a model whose lenses fit its machines", _turned)(state, "state", sizes)


def _turned(found: Any, sizes: Sizes) -> bool:
    """A full covariance, one of several, is seen along its own axes or by its root; a single one is turned before."""
    full = [sizes["K"] > 1 and "precision" in machine["posterior"] for machine in found["machines"]]
    axes = [of_many and lens["spread"].ndim == 1 for of_many, lens in zip(full, found["lenses"], strict=True)]
    return [lens["rotation"] is not None for lens in found["lenses"]] == axes
