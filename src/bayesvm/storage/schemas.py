"""Storage: the schemas of the states of models and checkpoints.

Letters: C classes, K latent functions, D features, M weights of a member, P inducing points of a kernel or leaf,
N left-out rows, Q knots of a quantile scaler, S splits of a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

from bayesvm.core.kernels import NAMED
from bayesvm.core.links import BinaryLink, Normalised
from bayesvm.inference.fitted import Training
from bayesvm.inference.inducing import HOW
from bayesvm.inference.learning_rates import AdaptiveRate, LearningRate, RobbinsMonro
from bayesvm.inference.tuning_report import Trial
from bayesvm.preparation.recipe import RECIPE
from bayesvm.schema import (
    Schema,
    Sizes,
    anything,
    array,
    below,
    each,
    either,
    fields_of,
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
from bayesvm.storage.column_schemas import BACKGROUND, COMPLETION, TINY
from bayesvm.storage.kernels import KERNEL
from bayesvm.storage.states import HEADS, LIKELIHOODS, LINKS

NUMBERS = either(number, array("fiub", None), array("fiub", None, None), each(number), each(each(number)))
MATRIX, VECTOR = array("f", "M", "M"), array("f", "M")

# Constructor parameters whose values ``check_parameters`` does not validate; others are single values.
LABEL = value("a label", lambda found: isinstance(found, str | int | float | np.generic))
PARAMETERS: dict[str, Schema] = {
    "kernel": either(record({"kernel": KERNEL}), one_of(*NAMED)),
    "inducing": either(one_of(*HOW), NUMBERS),
    "prior_variance": NUMBERS,
    "class_weight": either(nothing, one_of("balanced"), record({"mapping": each(items(LABEL, number))})),
    "n_jobs": either(nothing, value("a whole number but 0", lambda found: isinstance(found, Integral) and found != 0)),
    "random_state": either(nothing, whole),
}
ONE_VALUE = either(nothing, flag, text, number)


def plain(found: Any, path: str, sizes: Sizes) -> None:
    """Single values, and lists and dictionaries of them, but no arrays."""
    if isinstance(found, list | tuple | dict):
        (record({}, others=plain) if isinstance(found, dict) else each(plain))(found, path, sizes)
    else:
        ONE_VALUE(found, path, sizes)


def _targets(found: Any, sizes: Sizes) -> bool:
    return [function["target"] for function in found] == list(range(sizes["K"]))


CLASSES = satisfying(
    array("biufUO", "C"),
    "two labels or more, sorted",
    lambda found, _: len(found) > 1 and np.array_equal(np.unique(found), found),
)

SCALER = either(
    record({"name": one_of("ColumnScaler"), "centre": nothing, "scale": nothing}),
    record({"name": one_of("ColumnScaler"), "centre": array("f", "D"), "scale": array("f", "D", least=TINY)}),
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


INDUCING = {
    "kernel": KERNEL,
    "inducing_points": array("f", "P", "D"),
    "whitening": array("f", "P", "P"),
    "jitter": number,
    "offset": number,
}
EFFECT = record(
    {
        "columns": satisfying(
            array("iu", "D", least=0),
            "distinct numbers of one or more columns",
            lambda found, _: len(found) == len(np.unique(found)) > 0,
        ),
        "features": record(INDUCING),
    }
)


def _effect(found: Any, path: str, sizes: Sizes) -> None:
    """The schema of an effect, which uses some of the columns and has its own points."""
    EFFECT(found, path, {})
    if found["columns"].max() >= sizes["D"]:
        raise ValueError(f"{path}.columns contains {found['columns'].max()}, but there are only {sizes['D']} columns")


def _weights_of_all_points(found: Any, sizes: Sizes) -> bool:
    effects = found.get("effects", [])
    total = len(found["inducing_points"]) + sum(len(effect["features"]["inducing_points"]) for effect in effects)
    return bool(sizes.setdefault("M", total) == total)


FEATURES = either(
    satisfying(record(INDUCING, {"effects": each(_effect)}), "a weight for every point", _weights_of_all_points),
    satisfying(
        record({"root": either(VECTOR, MATRIX), "intercept": flag}),
        "a weight for every column and the intercept",
        lambda found, sizes: sizes["M"] == sizes.setdefault("D", sizes["M"] - found["intercept"]) + found["intercept"],
    ),
)
NATURAL = record({"linear": VECTOR, "precision": MATRIX})
MOMENTS = record({"mean": VECTOR, "variance": array("f", "M", least=0.0)})
FUNCTION = {"target": whole, "offset": number}
FITTED_FUNCTIONS = satisfying(
    each(record(FUNCTION | {"posterior": either(NATURAL, MOMENTS)}), "K"), "one for every target", _targets
)


def own_sizes(member: Schema) -> Schema:
    """The schema of a member, which has its own numbers of weights, points, splits and knots."""
    return lambda found, path, sizes: member(
        found, path, {letter: length for letter, length in sizes.items() if letter not in "MPSQ"}
    )


TREE = satisfying(
    record(
        {
            "directions": array("f", "S", "D"),
            "thresholds": array("f", "S"),
            "below": array("i", "S"),
            "beyond": array("i", "S"),
        }
    ),
    "a tree that contains every split and every leaf exactly once",
    lambda found, _: _is_tree(found["below"], found["beyond"]),
)


def _is_tree(below: Any, beyond: Any) -> bool:
    """Whether children have higher numbers than their parents, so that every path ends."""
    children = np.concatenate([below, beyond]).astype(np.int64)
    splits, leaves = np.sort(children[children >= 0]), np.sort(~children[children < 0])
    parents = np.tile(np.arange(len(below)), 2)
    return bool(
        np.array_equal(splits, np.arange(1, len(below)))
        and np.array_equal(leaves, np.arange(len(below) + 1 if len(below) else 0))
        and (children > parents)[children >= 0].all()
    )


LEAF = record(
    {
        "points": array("f", "P", "D"),
        "functions": each(
            record(
                {
                    "mean": array("f", "P"),
                    "root": satisfying(
                        array("f", None),
                        "the upper triangle of a matrix over all points",
                        lambda found, sizes: len(found) == sizes["P"] * (sizes["P"] + 1) // 2,
                    ),
                }
            ),
            "K",
        ),
    }
)
LEAVES = satisfying(
    record({"tree": TREE, "kernel": KERNEL, "leaves": each(own_sizes(LEAF))}),
    "one leaf for every end of the tree",
    lambda found, sizes: len(found["leaves"]) == sizes["S"] + 1,
)


def named(possible: Mapping[str, type], letter: str | None = None) -> Schema:
    """The schema of one of these dataclasses of plain values."""
    return either(*(record({"name": one_of(name)} | fields_of(cls, letter)) for name, cls in possible.items()))


BINARY_LINK = named({name: cls for name, cls in LINKS.items() if issubclass(cls, BinaryLink)})
PLAIN_LINK = named({name: cls for name, cls in LINKS.items() if cls is not Normalised}, "K")
LINK = either(PLAIN_LINK, record({"name": one_of("Normalised"), "binary": BINARY_LINK}))


MEMBER = record(
    {
        "features": FEATURES,
        "functions": FITTED_FUNCTIONS,
        "weight": positive,
        "link": either(nothing, LINK),
    },
    {"scaler": SCALER, "leaves": LEAVES, "region": nothing, "parent": nothing},  # the last two in old files
)
MEMBERS = satisfying(
    each(own_sizes(MEMBER)),
    "one or more members",
    lambda found, _: 0 < sum(member["weight"] for member in found) < np.inf,
)

TRIAL = record(fields_of(Trial) | {"loo": real})
REPORT = satisfying(
    record(
        {
            "trials": each(TRIAL),
            "chosen": each(text),
            "failed": whole,
            "climb": each(each(real)),
            "kept": either(nothing, whole),
        }
    ),
    "a report that contains the kept trial",
    lambda found, _: found["kept"] is None or 0 <= found["kept"] < len(found["trials"]),
)
LEFT_OUT_ROWS: dict[str, Schema] = {
    "mean": array("f", "N", "K"),
    "variance": array("f", "N", "K", least=0.0),
    "y": array("iuf", "N"),
    "weight": array("f", "N", least=0.0),
}
LEFT_OUT = satisfying(record(LEFT_OUT_ROWS), "rows of positive weight", lambda found, _: found["weight"].sum() > 0)
LIKELIHOOD = satisfying(
    named(LIKELIHOODS),
    "a likelihood with nonnegative noise and epsilon, and positive scale",
    lambda found, _: found["noise"] >= 0 and found.get("epsilon", 0.0) >= 0 and found.get("scale", 1.0) > 0,
)
FITTED = record(
    {
        "head": named(HEADS, "K"),
        "likelihood": LIKELIHOOD,
        "scale": either(nothing, text),
        "scaler": SCALER,
        "members": MEMBERS,
        "link": LINK,
        "training": record(fields_of(Training) | {"trace": array("f", None)}),
        "left_out": satisfying(each(LEFT_OUT), "one for every member", lambda found, _: len(found) > 0),
        "left_out_rows": either(nothing, array("iu", "N", least=0)),
        "n_samples": either(nothing, whole),
        "report": either(nothing, REPORT),
    }, {"left_out_groups": array("iu", "N", least=0)},
)  # fmt: skip


RANDOM_STATE = record(
    {
        "bit_generator": one_of("PCG64"),
        "state": record(dict.fromkeys(("state", "inc"), below(2**128))),
        "has_uint32": one_of(0, 1),
        "uinteger": below(2**32),
    }
)
TRAINED = record(FUNCTION | {"posterior": NATURAL, "prior": either(size("M"), NATURAL)})
FUNCTIONS = satisfying(each(TRAINED, "K"), "one for every target", _targets)
ASCENT = record(
    {
        "function": TRAINED,
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


def training_state(learning_rate: LearningRate) -> Schema:
    """The state of training M weights for each of K functions on R rows; the learning rate has its own state."""
    memories: dict[type, Schema] = {AdaptiveRate: either(nothing, AVERAGES), RobbinsMonro: whole}
    memory = memories.get(type(learning_rate), nothing)
    walk = record({"function": TRAINED, "memory": memory, "rho": number, "elbo": real})
    epoch = record(
        {"states": each(walk, "K"), "done": whole, "mean": real, "squares": real, "best": real, "flat": whole}
    )
    return record(
        {
            "phase": one_of("auto", "stochastic", "batch"),
            "functions": FUNCTIONS,
            "contraction": each(real, "K"),
            "rng": RANDOM_STATE,
            "subset_rows": satisfying(whole, "at most the number of rows", lambda found, sizes: found <= sizes["R"]),
            "states": either(items(), each(ASCENT, "K")),
            "epoch": either(nothing, satisfying(epoch, "nonnegative squares", lambda found, _: found["squares"] >= 0)),
            "passes": items(),
            **REACHED,
        }
    )


SUMS = record({"bound": number, "curvature": VECTOR, "linear": VECTOR, "weight": number})
MEAN_FIELD = record(
    {
        "phase": one_of("mean field"),
        "passes": satisfying(
            each(each(SUMS)), "at most one list per function", lambda found, sizes: len(found) <= sizes["K"]
        ),
        **dict.fromkeys(("functions", "contraction", "states"), items()),
        **dict.fromkeys(("rng", "epoch"), nothing),
        "subset_rows": whole,
        **REACHED,
    }
)


# The state before training; a mean field has no functions yet.
PREPARED_MEMBER = {
    "scale": either(nothing, text),
    "scaler": SCALER,
    "features": FEATURES,
    "functions": either(items(), FUNCTIONS),
    "chosen": either(nothing, TRIAL),
    "gained": number,
    "likelihood": either(nothing, LIKELIHOOD),
}
PREPARED = record(
    PREPARED_MEMBER
    | {"report": either(nothing, REPORT), "others": each(own_sizes(record(PREPARED_MEMBER))), "rng": RANDOM_STATE}
)
FINISHED_LEAVES = each(
    lambda found, path, sizes: record(
        {
            "leaves": each(own_sizes(LEAF)),
            "left_out": record(LEFT_OUT_ROWS),
            "numbers": array("iu", "N", least=0),
            "converged": flag,
        }
    )(found, path, dict(sizes))
)
CHECKPOINT = record({}, {"seed": whole, "identity": record({}, others=plain)}, others=anything)


def check_model(parameters: Iterable[str], state: Any, beside: Schema) -> None:
    """Raise ``ValueError`` unless this is the state of a model with these parameters."""
    whole_state = record(
        {
            "parameters": record({}, {name: PARAMETERS.get(name, ONE_VALUE) for name in parameters}),
            "classes": either(nothing, CLASSES),  # the head determines whether they are required
            "n_features": size("D"),
            "feature_names": either(nothing, array("UO", "D")),
            "fitted": satisfying(FITTED, "a model with left-out rows for every member", _left_out_fit),
        },
        {
            "beside": either(nothing, beside),
            "completion": either(nothing, COMPLETION),
            "background": BACKGROUND,
            "recipe": either(nothing, RECIPE),
        },
    )
    whole_state(state, "state", {})


def _left_out_fit(found: Any, _: Sizes) -> bool:
    return len(found["left_out"]) == len(found["members"])
