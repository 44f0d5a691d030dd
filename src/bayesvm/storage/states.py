"""Storage: convert the parts of fitted models to plain state (names, numbers, arrays) and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from bayesvm.core import heads, likelihoods
from bayesvm.core.cavities import Cavities
from bayesvm.core.features import Effect, InducingFeatures, LinearFeatures
from bayesvm.core.kernels import Kernel
from bayesvm.core.latent import LatentFunction
from bayesvm.core.leaves import Leaf, Leaves, Tree
from bayesvm.core.members import Member
from bayesvm.core.posterior import CompactGaussian, DiagonalGaussian, Gaussian, NaturalParameters
from bayesvm.data.quantiles import QuantileScaler
from bayesvm.data.scaling import ColumnScaler
from bayesvm.inference.fitted import Fitted, Training
from bayesvm.inference.local import local_features
from bayesvm.inference.tuning_report import Report, Trial
from bayesvm.storage.kernels import kernel_from, kernel_state

# The classes that files may name: those exported by the packages of core.
HEADS: dict[str, Any] = {name: cls for name, cls in vars(heads).items() if is_dataclass(cls)}
LIKELIHOODS: dict[str, Any] = {
    name: cls for name, cls in vars(likelihoods).items() if hasattr(cls, "full_steps_are_safe")
}
LINKS: dict[str, Any] = {cls.__name__: cls for head in HEADS.values() for cls in head.links}
SCALERS = {cls.__name__: cls for cls in (ColumnScaler, QuantileScaler)}
Trusted = Iterable[Any]


def plain(value: Any) -> Any:
    """A constructor parameter as plain state."""
    if isinstance(value, Kernel):
        return {"kernel": kernel_state(value)}
    if isinstance(value, dict):
        return {"mapping": [[key, item] for key, item in value.items()]}
    if isinstance(value, np.random.RandomState):
        return None  # the state of a generator is not part of a fitted model
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    return value


def from_plain(value: Any, trusted: Trusted = ()) -> Any:
    """A constructor parameter from plain state."""
    if isinstance(value, dict):
        if "mapping" in value:
            return dict(map(tuple, value["mapping"]))
        return kernel_from(value["kernel"], trusted, "the parameter kernel")
    return value


def fitted_state(fitted: Fitted) -> dict[str, Any]:
    """The state of a fitted model."""
    return {
        "head": named_state(fitted.head),
        "likelihood": named_state(fitted.likelihood),
        "scale": fitted.scale,
        "scaler": named_state(fitted.scaler),
        "members": [member_state(member) for member in fitted.members],
        "link": named_state(fitted.link),
        "training": vars(fitted.training) | {"trace": np.array(fitted.training.trace)},
        "left_out": [dict(zip(("mean", "variance", "y", "weight"), left[:4], strict=True)) for left in fitted.left_out],
        "left_out_rows": fitted.left_out_rows,
        "n_samples": fitted.n_samples,
        "report": None if fitted.report is None else report_state(fitted.report),
        **({} if fitted.left_out_groups is None else {"left_out_groups": fitted.left_out_groups}),
    }


def fitted_from(state: dict[str, Any], trusted: Trusted = ()) -> Fitted:
    """The model from a state that matches its schema."""
    training = state["training"]
    return Fitted(
        head=named_from(state["head"], HEADS),
        likelihood=named_from(state["likelihood"], LIKELIHOODS),
        scale=state["scale"],
        scaler=named_from(state["scaler"], SCALERS),
        members=tuple(member_from(member, trusted, f"members[{i}]") for i, member in enumerate(state["members"])),
        link=named_from(state["link"], LINKS),
        training=Training(**training | {"trace": tuple(training["trace"].tolist())}),
        left_out=tuple(Cavities(**left) for left in state["left_out"]),
        left_out_rows=state["left_out_rows"],
        n_samples=state["n_samples"],
        report=None if state["report"] is None else report_from(state["report"]),
        left_out_groups=state.get("left_out_groups"),
    )


def member_state(member: Member) -> dict[str, Any]:
    """The state of a member of a model."""
    return {
        "features": features_state(member.features),
        "functions": [function_state(function) for function in member.functions],
        "weight": member.weight,
        "link": None if member.link is None else named_state(member.link),
        **({} if member.scaler is None else {"scaler": named_state(member.scaler)}),
        **({} if member.leaves is None else {"leaves": leaves_state(member.leaves)}),
    }


def member_from(state: dict[str, Any], trusted: Trusted = (), where: str = "member") -> Member:
    """The member from a state that matches its schema."""
    return Member(
        features_from(state["features"], trusted, f"{where}.features.kernel"),
        tuple(map(function_from, state["functions"])),
        state["weight"],
        None if state["link"] is None else named_from(state["link"], LINKS),
        named_from(state["scaler"], SCALERS) if "scaler" in state else None,
        leaves_from(state["leaves"], trusted, f"{where}.leaves.kernel") if "leaves" in state else None,
    )


def leaves_state(leaves: Leaves) -> dict[str, Any]:
    """The state of local models, without the whitening, which kernel and points determine."""
    return {
        "tree": {field.name: getattr(leaves.tree, field.name) for field in fields(leaves.tree)},
        "kernel": kernel_state(leaves.kernel),
        "leaves": [leaf_state(leaf) for leaf in leaves.leaves],
    }


def leaves_from(state: dict[str, Any], trusted: Trusted = (), where: str = "kernel") -> Leaves:
    """The local models from their state."""
    kernel = kernel_from(state["kernel"], trusted, where)
    leaves = tuple(leaf_from(leaf, kernel) for leaf in state["leaves"])
    return Leaves(Tree(**state["tree"]), kernel, leaves)


def leaf_state(leaf: Leaf) -> dict[str, Any]:
    """The state of one local model."""
    return {
        "points": leaf.features.inducing_points,
        "functions": [
            {"mean": function.posterior.mean, "root": function.posterior.root[np.triu_indices(leaf.features.n_weights)]}
            for function in leaf.functions
            if isinstance(function.posterior, CompactGaussian)
        ],
    }


def leaf_from(state: dict[str, Any], kernel: Kernel) -> Leaf:
    """The local model from its state, bit-identical to the stored one."""
    features = local_features(kernel, state["points"])
    functions = []
    for number, found in enumerate(state["functions"]):
        root = np.zeros((features.n_weights, features.n_weights), np.float32)
        root[np.triu_indices(features.n_weights)] = found["root"]
        functions.append(LatentFunction(number, 0.0, CompactGaussian(found["mean"], root)))
    return Leaf(features, tuple(functions))


def features_state(features: Any) -> dict[str, Any]:
    """The state of a feature map."""
    if isinstance(features, InducingFeatures):
        own = {name: value for name, value in vars(features).items() if name not in {"effects", "learns_points"}}
        effects = [
            {"columns": np.array(effect.columns), "features": features_state(effect.features)}
            for effect in features.effects
        ]
        return own | {"kernel": kernel_state(features.kernel)} | ({"effects": effects} if effects else {})
    return {"root": features.root, "intercept": features.intercept}


def features_from(state: dict[str, Any], trusted: Trusted = (), where: str = "kernel") -> Any:
    """The feature map from its state; its kernel must be part of bayesvm or trusted."""
    if "kernel" in state:
        effects = tuple(
            Effect(tuple(effect["columns"].tolist()), features_from(effect["features"], trusted, f"{where}[{i}]"))
            for i, effect in enumerate(state.get("effects", []))
        )
        kernel = kernel_from(state["kernel"], trusted, where)
        return InducingFeatures(**state | {"kernel": kernel, "effects": effects})
    return LinearFeatures(**state)


def function_state(function: LatentFunction) -> dict[str, Any]:
    """The state of a latent function; includes the prior only if it is not N(0, I)."""
    state = {"target": function.target, "offset": function.offset, "posterior": _posterior_state(function.posterior)}
    if function.prior is not None:
        prior = function.prior.natural
        standard = not prior.linear.any() and np.array_equal(prior.precision, np.eye(len(prior.linear)))
        state["prior"] = len(prior.linear) if standard else dict(vars(prior))
    return state


def function_from(state: dict[str, Any]) -> LatentFunction:
    """The latent function from its state."""
    prior = state.get("prior")
    given = Gaussian.prior(prior) if isinstance(prior, int) else None if prior is None else _full(prior)
    return LatentFunction(state["target"], state["offset"], _posterior_from(state["posterior"]), given)


def _posterior_state(q: Any) -> dict[str, Any]:
    return dict(vars(q.natural)) if isinstance(q, Gaussian) else {"mean": q.mean, "variance": q.variance}


def _posterior_from(state: dict[str, Any]) -> Gaussian | DiagonalGaussian:
    return _full(state) if "precision" in state else DiagonalGaussian(**state)


def _full(natural: dict[str, Any]) -> Gaussian:
    return Gaussian.from_natural(NaturalParameters(**natural))


def named_state(value: Any) -> dict[str, Any]:
    """The state of a dataclass of plain values, or of nested ones, with its class name."""
    state = {name: named_state(field) if is_dataclass(field) else field for name, field in vars(value).items()}
    return {"name": type(value).__name__} | state


def named_from(state: dict[str, Any], possible: dict[str, Any]) -> Any:
    """The dataclass of this name; lists become tuples, as in the original."""
    values = {
        name: named_from(value, possible)
        if isinstance(value, dict)
        else tuple(value)
        if isinstance(value, list)
        else value
        for name, value in state.items()
        if name != "name"
    }
    return possible[state["name"]](**values)


def report_state(report: Report) -> dict[str, Any]:
    """The state of a tuning report."""
    return dict(vars(report)) | {"trials": [dict(vars(trial)) for trial in report.trials]}


def report_from(state: dict[str, Any]) -> Report:
    """The tuning report from its state."""
    climb = tuple(map(tuple, state["climb"]))
    trials = tuple(Trial(**trial) for trial in state["trials"])
    return Report(trials, tuple(state["chosen"]), state["failed"], climb, state["kept"])
