"""Export: local models (D30): a tree that routes every row to a leaf, and a loop over the leaves that rows fall into.

Everything is in double precision. The matrices of all leaves are constants in single precision, as the model has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.core.kernels import Kernel, Laplacian, Stationary
from bayesvm.core.leaves import Leaf, Leaves, Tree
from bayesvm.core.posterior import CompactGaussian
from bayesvm.core.stacks import padded
from bayesvm.export.graph import Graph, Value, absolute, concatenated, exp, maximum


def with_leaves(leaves: Leaves, rows: Value, mean: Value, explained: Value) -> tuple[Value, Value]:
    """Mean and variance of f, given the mean of the member and its explained variance."""
    graph, n_columns = rows.graph, leaves.leaves[0].features.inducing_points.shape[1]
    constants, n_functions = _constants(graph, leaves), len(leaves.leaves[0].functions)
    number = _leaf_of(leaves.tree, rows)
    prior_variance = leaves.kernel.diagonal(np.zeros((1, n_columns)))

    def body(inside: Graph, leaf: Value, states: Sequence[Value]) -> list[Value]:
        points, whitening, means, roots = (inside.outer(each).at(leaf) for each in constants)
        which = inside.outer(number).apply("Equal", leaf, dtype=np.bool_).apply("NonZero", dtype=np.int64).flat()
        here = inside.outer(rows).at(which)
        phi = _kernel_matrix(leaves.kernel, here, points, n_columns).apply("Gemm", whitening.cast(np.float64))
        m = phi.apply("Gemm", means)
        residual = maximum(prior_variance - (phi * phi).sum(1), 0.0)
        spreads = [phi.apply("Gemm", root.cast(np.float64)) for root in map(roots.item, range(n_functions))]
        v = concatenated([(spread * spread).sum(1) for spread in spreads]) + residual
        return [
            state.apply("ScatterND", which.expanded(1), state.at(which) + own)
            for state, own in zip(states, (m, v), strict=True)
        ]

    present = number.apply("Unique", dtype=np.int64)
    mean, variance = graph.loop(present, [mean, explained], body)
    return mean, variance


def _constants(graph: Graph, leaves: Leaves) -> list[Value]:
    """By leaf: the points (D×M), the whitening (M×M), the means (M×F) and the roots (F×M×M), padded with zeros."""
    most, n_functions = max(leaf.features.n_weights for leaf in leaves.leaves), len(leaves.leaves[0].functions)
    points = padded([leaf.features.inducing_points for leaf in leaves.leaves], most)
    whitening = np.zeros((len(leaves.leaves), most, most), np.float32)
    means = np.zeros((len(leaves.leaves), most, n_functions))
    roots = np.zeros((len(leaves.leaves), n_functions, most, most), np.float32)
    for k, leaf in enumerate(leaves.leaves):
        own = slice(0, leaf.features.n_weights)
        whitening[k, own, own] = leaf.features.whitening
        for f, q in enumerate(_posteriors(leaf)):
            means[k, own, f] = q.mean
            roots[k, f, own, own] = q.root
    by_column = np.swapaxes(points, 1, 2)
    return [graph.constant(array, array.dtype) for array in (by_column, whitening, means, roots)]


def _posteriors(leaf: Leaf) -> list[CompactGaussian]:
    found = [function.posterior for function in leaf.functions]
    return [q for q in found if isinstance(q, CompactGaussian)]


def _leaf_of(tree: Tree, rows: Value) -> Value:
    """The number of the leaf of every row. A decision tree routes by the products with the directions of all splits."""
    if not len(tree.thresholds):
        return (rows.columns([0]) * 0.0).flat().cast(np.int64)
    n_splits, numbers = len(tree.thresholds), range(tree.n_leaves)
    onnx = rows.graph.onnx

    def node(child: int) -> int:
        return child if child >= 0 else n_splits + ~child

    def doubles(values: npt.ArrayLike) -> Any:
        return onnx.numpy_helper.from_array(np.ascontiguousarray(values, np.float64))

    nothing = [0] * tree.n_leaves
    found = (rows @ np.ascontiguousarray(tree.directions.T)).apply(
        "TreeEnsembleRegressor",
        dtype=np.float32,
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * (n_splits + tree.n_leaves),
        nodes_nodeids=list(range(n_splits + tree.n_leaves)),
        nodes_featureids=[*range(n_splits), *nothing],
        nodes_modes=["BRANCH_LEQ"] * n_splits + ["LEAF"] * tree.n_leaves,
        nodes_values_as_tensor=doubles(np.concatenate([tree.thresholds, np.zeros(tree.n_leaves)])),
        nodes_truenodeids=[*(node(int(child)) for child in tree.below), *nothing],
        nodes_falsenodeids=[*(node(int(child)) for child in tree.beyond), *nothing],
        target_treeids=nothing,
        target_nodeids=[n_splits + leaf for leaf in numbers],
        target_ids=nothing,
        target_weights_as_tensor=doubles(np.arange(tree.n_leaves)),
    )
    return found.flat().cast(np.int64)


def _kernel_matrix(kernel: Kernel, rows: Value, points: Value, n_columns: int) -> Value:
    """``k(x, Z)``, from differences by column; ``points`` has one row per column."""
    if not isinstance(kernel, Laplacian | Stationary):
        raise TypeError(f"local models with a kernel of type {type(kernel).__name__} have no ONNX form; fit with RBF")
    points, along = points.cast(np.float64), []
    for j, inverse in enumerate(kernel.inverse_scale(n_columns)):
        difference = (rows.columns([j]) - points.item(j).expanded(0)) * inverse
        along.append(absolute(difference) if isinstance(kernel, Laplacian) else difference * difference)
    distance = sum(along[1:], along[0])
    if isinstance(kernel, Laplacian):
        return exp(distance * -1.0) * kernel.checked_variance
    against: Any = kernel.against(np.zeros((1, n_columns)))
    value: Value = against.formula.of(distance * against.distances.slope + against.distances.intercept)
    return value
