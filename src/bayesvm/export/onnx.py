"""Export: ``to_onnx`` converts a fitted model to a graph of standard operators, which runs without bayesvm."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from bayesvm.core.features import InducingFeatures
from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.members import Member, MemberViews
from bayesvm.core.workspace import Workspace
from bayesvm.data.scaling import Scaler
from bayesvm.estimators import BayesianLinearSVC, BayesianSVC, BayesianSVR
from bayesvm.estimators.columns import n_features, recipe_of
from bayesvm.estimators.number_checks import number_head
from bayesvm.estimators.validation import column_name
from bayesvm.export.graph import Graph, Value, exp
from bayesvm.export.mixtures import Parts, mixed_logs, mixed_moments, mixed_uncertainty
from bayesvm.export.numbers import mean_and_deviation
from bayesvm.export.recipes import features_of, features_of_array
from bayesvm.export.scalers import scaled
from bayesvm.inference.fitted import Fitted
from bayesvm.warn import warn_user

DTYPES: dict[str, np.dtype[Any]] = {"double": np.dtype(np.float64), "single": np.dtype(np.float32)}
MOST_MOVED = 0.01  # largest change of a probability by rounding to single precision
LABEL_TYPES = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": np.object_, "O": np.object_}


def to_onnx(
    model: BayesianSVC | BayesianLinearSVC | BayesianSVR,
    *,
    dtype: Literal["double", "single"] = "double",
    uncertainty: bool = False,
) -> Any:
    """Convert a fitted model to ONNX (opset 17), for onnxruntime and other runtimes. Needs ``bayesvm[onnx]``.

    The input is ``X``, N×D. A model with a recipe (``recipe_``) of named columns has one N×1 input per column, with
    the name of the column: numbers, NaN if missing; text, ``"(missing)"`` if missing; for dates, their parts. The
    outputs of a classifier are ``label`` and ``probabilities``, with columns in the order of ``classes_``, which are
    also in the metadata. The outputs of a BayesianSVR are ``mean`` and ``std``, in double precision. One graph contains
    all members of a committee.

    Parameters
    ----------
    model : BayesianSVC, BayesianLinearSVC or BayesianSVR
        A fitted model. With local models, the graph contains all leaves and routes every row to its own.
    dtype : {"double", "single"}, default="double"
        Type of the inputs and outputs, and of the large matrix products.
    uncertainty : bool, default=False
        Whether to add the outputs of ``predict_uncertainty``, ``latent_mean`` and ``latent_variance``.

    Returns
    -------
    onnx.ModelProto
        The graph; ``onnx.save`` writes it to a file.

    See Also
    --------
    BayesianSVC.save : Write a model in the format of bayesvm.

    Examples
    --------
    >>> from bayesvm import BayesianLinearSVC, to_onnx
    >>> from bayesvm.datasets import twonorm
    >>> data = twonorm(500, random_state=0)
    >>> graph = to_onnx(BayesianLinearSVC().fit(data.X, data.y))
    >>> [output.name for output in graph.graph.output]
    ['label', 'probabilities']
    """
    estimator: Any = model
    _require_exportable(estimator, dtype)
    completion = getattr(estimator, "completion_", None)
    if completion is not None and not completion.unneeded:
        warn_user(
            "an ONNX graph cannot complete missing values from the other columns: for rows with missing values it "
            "returns NaN. Serve such rows from the model's file with bayesvm.load"
        )
    if isinstance(estimator, BayesianSVR):
        return _number_graph(model, estimator, dtype, uncertainty=uncertainty)
    graph, kind, n_classes = Graph(_prefix(model)), DTYPES[dtype], len(estimator.classes_)
    rows = _rows(graph, model, kind).cast(np.float64)
    fitted = estimator.fitted_
    views = fitted.views
    if kind != np.float64:
        views = fitted.views_in(kind)
        _require_resolved(estimator, views)
    parts = Parts.of(fitted, views, scaled(fitted.scaler, rows), kind)
    logs = mixed_logs(parts)
    classes = graph.constant(estimator.classes_, LABEL_TYPES[estimator.classes_.dtype.kind])
    likeliest = logs.apply("ArgMax", dtype=np.int64, axis=1, keepdims=1).flat()
    graph.output("label", classes.at(likeliest))
    graph.output("probabilities", exp(logs).cast(kind), n_classes)
    if uncertainty:
        for name, value in mixed_uncertainty(parts, logs, n_classes).items():
            graph.output(name, value.flat().cast(kind))
        m, v = mixed_moments(parts)
        for name, value in (("latent_mean", m), ("latent_variance", v)):
            if n_classes == 2:
                graph.output(name, value.flat().cast(kind))
            else:
                graph.output(name, value.cast(kind), n_classes)
    _require_distinct(graph)
    return graph.model({"classes": json.dumps(estimator.classes_.tolist()), "bayesvm": version("bayesvm")})


def _number_graph(model: Any, estimator: BayesianSVR, dtype: str, *, uncertainty: bool) -> Any:
    if dtype != "double" or uncertainty:
        raise ValueError(
            "the graph of a BayesianSVR has the mean and the standard deviation in double precision only; "
            "dtype='single' and uncertainty=True are for classifiers"
        )
    graph, kind, fitted = Graph(_prefix(model)), DTYPES[dtype], estimator.fitted_
    rows = _rows(graph, model, kind).cast(np.float64)
    parts = Parts.of(fitted, fitted.views, scaled(fitted.scaler, rows), kind)
    for name, value in zip(("mean", "std"), mean_and_deviation(parts, number_head(fitted)), strict=True):
        graph.output(name, value.flat().cast(kind))
    _require_distinct(graph)
    return graph.model({"bayesvm": version("bayesvm")})


def _require_exportable(estimator: Any, dtype: str) -> None:
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be 'double' or 'single'; got {dtype!r}")
    if type(estimator) not in (BayesianSVC, BayesianLinearSVC, BayesianSVR):
        raise TypeError(
            f"to_onnx takes a BayesianSVC, BayesianLinearSVC or BayesianSVR, not a {type(estimator).__name__}; for a "
            "pipeline, pass the last step and apply the others to the rows yourself"
        )
    if not hasattr(estimator, "fitted_"):
        raise ValueError(f"this {type(estimator).__name__} is not fitted; call fit before to_onnx")
    if isinstance(estimator, BayesianSVR):
        return
    classes = estimator.classes_
    if classes.dtype.kind not in LABEL_TYPES or (
        classes.dtype.kind == "O" and not all(isinstance(label, str) for label in classes)
    ):
        raise TypeError(
            f"labels of the type {classes.dtype}, such as {classes[0]!r}, have no ONNX form; fit with labels that are "
            "text, whole numbers, floats or bools"
        )


def _require_resolved(estimator: Any, views: MemberViews) -> None:
    """Require that single precision does not change probabilities, at typical rows of each member."""
    fitted: Fitted = estimator.fitted_
    corners = np.random.default_rng(0).choice([-1.0, 1.0], (64, n_features(estimator)))
    scalers = [member.scaler or fitted.scaler for member in fitted.members]
    points = np.vstack(
        [_usual_rows(member, scaler, corners) for member, scaler in zip(fitted.members, scalers, strict=True)]
    )
    with np.errstate(over="ignore"):
        rounded = points.astype(np.float32).astype(np.float64)
    finite = np.isfinite(rounded)
    moves = np.max([np.abs(scaler(rounded) - scaler(points)) for scaler in scalers], axis=0)
    lost = np.where(finite, moves, np.inf)
    moved = np.abs(estimator.predict_proba(rounded) - estimator.predict_proba(points)).max() if finite.all() else 1.0
    if moved > MOST_MOVED:
        name = column_name(estimator, int(np.argmax(lost.max(axis=0))))
        raise ValueError(
            f"dtype='single' rounds the values of column {name} so coarsely that probabilities change by {moved:.1g}; "
            "use dtype='double', or subtract a constant from the column before the fit"
        )
    block = Block(fitted.scaler(rounded), np.zeros(len(rounded)), None)
    single = estimator.fitted_.head.probabilities(views.moments([block], Workspace()))
    moved = np.abs(single - estimator.predict_proba(rounded)).max()
    if moved > MOST_MOVED:
        raise ValueError(
            f"dtype='single' loses so many digits in the matrix products of this model that probabilities change by "
            f"{moved:.1g}; use dtype='double'"
        )


def _usual_rows(member: Member, scaler: Scaler, corners: Array) -> Array:
    """Rows about one standard deviation from the mean, and the inducing points of the member, in the units of X."""
    some = [corners, member.features.inducing_points] if isinstance(member.features, InducingFeatures) else [corners]
    return np.vstack([scaler.inverse(rows) for rows in some])


def _prefix(model: Any) -> str:
    """A prefix for the names of nodes that is not the start of the name of a column."""
    recipe = recipe_of(model)
    names = [] if recipe is None else recipe.needed
    if "" in names:
        raise ValueError(
            f"column {names.index('') + 1} of the model has no name, but inputs of an ONNX graph need one; name it in "
            "the table and fit again"
        )
    return "/" * (1 + max((len(name) - len(name.lstrip("/")) for name in names), default=0))


def _rows(graph: Graph, model: Any, dtype: np.dtype[Any]) -> Value:
    """The features, from the inputs."""
    recipe = recipe_of(model)
    if recipe is None:
        return graph.input("X", dtype, model.n_features_in_)
    if recipe.of_arrays:
        return features_of_array(recipe, graph, dtype)
    return features_of(recipe, graph, dtype)


def _require_distinct(graph: Graph) -> None:
    clash = {put.name for put in graph.inputs} & {put.name for put in graph.outputs}
    if clash:
        raise ValueError(f"a column has the name {clash.pop()!r} of an output of the graph; rename it and fit again")
