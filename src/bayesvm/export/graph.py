"""Export: an ONNX graph under construction, whose values behave like arrays.

It uses only operators that onnxruntime has in double precision, which excludes Erf, Softplus, Acos and OneHot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesvm.extras import optional

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # of 2022, for compatibility with older runtimes
LARGEST = 2**31 - 2**20  # bytes of constants; protobuf messages are limited to 2 GB

Number = float | npt.NDArray[Any]


@dataclass(frozen=True)
class Value:
    """The result of a node; NumPy numbers and arrays in expressions with it become constants of its type."""

    graph: Graph
    name: str
    dtype: np.dtype[Any]
    rank: int  # number of axes

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value | Number, **options: Any) -> Value:
        """The nodes for a ufunc."""
        if ufunc not in UFUNCS or method != "__call__" or options:
            raise TypeError(f"{ufunc.__name__} has no ONNX form; use {', '.join(f.__name__ for f in UFUNCS)}")
        first, *others = [x if isinstance(x, Value) else self.graph.constant(x, self.dtype) for x in inputs]
        return UFUNCS[ufunc](first, *others)

    def apply(self, op: str, *others: Value | Number, dtype: npt.DTypeLike | None = None, **attributes: Any) -> Value:
        """The result of an operator, of the same type unless another is given."""
        inputs = [other if isinstance(other, Value) else self.graph.constant(other, self.dtype) for other in others]
        return self.graph.node(op, [self, *inputs], self.dtype if dtype is None else np.dtype(dtype), **attributes)

    def cast(self, dtype: npt.DTypeLike) -> Value:
        """Convert to another type."""
        kind = np.dtype(dtype)
        return self if kind == self.dtype else self.apply("Cast", dtype=kind, to=self.graph.code(kind))

    def sum(self, axis: int) -> Value:
        """Sum over one axis, which remains with length one."""
        return self.graph.node("ReduceSum", [self, self.graph.constant([axis], np.int64)], self.dtype, keepdims=1)

    def dot(self, vector: npt.NDArray[Any]) -> Value:
        """``Σ_k x_k c_k`` over the last axis, which is removed."""
        # Not axis -1: without rows, ReduceSum of onnxruntime ignores it.
        terms, last = self * vector, self.graph.constant([self.rank - 1], np.int64)
        return self.graph.node("ReduceSum", [terms, last], self.dtype, rank=self.rank - 1, keepdims=0)

    def expanded(self, axis: int) -> Value:
        """Add an axis of length one."""
        place = self.graph.constant([axis], np.int64)
        return self.graph.node("Unsqueeze", [self, place], self.dtype, rank=self.rank + 1)

    def flat(self) -> Value:
        """Flatten to a vector."""
        return self.graph.node("Reshape", [self, self.graph.constant([-1], np.int64)], self.dtype, rank=1)

    def at(self, numbers: Value) -> Value:
        """Entries or rows by index."""
        return self.graph.node("Gather", [self, numbers], self.dtype, rank=self.rank + numbers.rank - 1, axis=0)

    def item(self, number: int) -> Value:
        """One entry or row; the first axis is removed."""
        return self.at(self.graph.constant(number, np.int64))

    def columns(self, numbers: Sequence[int] | npt.NDArray[np.integer]) -> Value:
        """Columns of a table by index, in this order."""
        return self.graph.node("Gather", [self, self.graph.constant(numbers, np.int64)], self.dtype, axis=1)

    def __add__(self, other: Value | Number) -> Value:
        return self.apply("Add", other)

    def __mul__(self, other: Value | Number) -> Value:
        return self.apply("Mul", other)

    def __sub__(self, other: Value | Number) -> Value:
        return self.apply("Sub", other)

    def __truediv__(self, other: Value | Number) -> Value:
        return self.apply("Div", other)

    def __matmul__(self, other: npt.NDArray[Any]) -> Value:
        """A table times a matrix.

        With MatMul, onnxruntime would move a scalar factor of either side into an attribute and round it to single
        precision. With Gemm, it does not.
        """
        return self.apply("Gemm", other)

    def __neg__(self) -> Value:
        return self.apply("Neg")

    def __rsub__(self, other: Number) -> Value:
        return self.graph.constant(other, self.dtype) - self

    def __rtruediv__(self, other: Number) -> Value:
        return self.graph.constant(other, self.dtype) / self

    __radd__, __rmul__ = __add__, __mul__


@dataclass
class Graph:
    """Nodes, constants, inputs and outputs in the order of their creation. Internal names start with ``prefix``."""

    prefix: str = "/"
    onnx: Any = field(default_factory=lambda: optional("onnx", "onnx"))
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    n_bytes: int = 0

    def code(self, dtype: np.dtype[Any]) -> int:
        """The ONNX code of a type; text has the type object."""
        if dtype.kind in "OU":
            return int(self.onnx.TensorProto.STRING)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def input(self, name: str, dtype: npt.DTypeLike, width: int) -> Value:
        """Add an input with any number of rows."""
        kind = np.dtype(dtype)
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, self.code(kind), ["N", width]))
        return Value(self, name, kind, 2)

    def output(self, name: str, value: Value, *shape: int) -> None:
        """Add an output with this shape for each row."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value.name], [name]))
        info = self.onnx.helper.make_tensor_value_info(name, self.code(value.dtype), ["N", *shape])
        self.outputs.append(info)

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike) -> Value:
        """Add a constant array."""
        array = np.ascontiguousarray(value, dtype) if np.ndim(value) else np.asarray(value, dtype)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.n_bytes += array.nbytes
        if self.n_bytes > LARGEST:
            raise ValueError(
                "the model is larger than 2 GB, the limit of ONNX files: fit it with fewer inducing points (it has a "
                "square matrix of them per class and leaf) or with local=False, or pass dtype='single'"
            )
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return Value(self, name, array.dtype, array.ndim)

    def node(
        self, op: str, inputs: Sequence[Value], dtype: np.dtype[Any], rank: int | None = None, **attributes: Any
    ) -> Value:
        """Add an operator; by default its result has the largest rank of the inputs."""
        name = f"{self.prefix}{op}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, [value.name for value in inputs], [name], **attributes))
        return Value(self, name, dtype, max(value.rank for value in inputs) if rank is None else rank)

    def outer(self, value: Value) -> Value:
        """A value of the graph around this one, which is the body of a loop."""
        return replace(value, graph=self)

    def loop(
        self, items: Value, states: Sequence[Value], body: Callable[[Graph, Value, Sequence[Value]], Sequence[Value]]
    ) -> list[Value]:
        """The states after ``states = body(graph, item, states)`` for every item of a vector, in a separate graph."""
        helper = self.onnx.helper
        inside = Graph(f"{self.prefix}loop_{len(self.nodes)}/", self.onnx, n_bytes=self.n_bytes)

        def info(name: str, dtype: npt.DTypeLike, rank: int) -> Any:
            return helper.make_tensor_value_info(name, self.code(np.dtype(dtype)), [None] * rank)

        number, going_on = (
            Value(inside, f"{inside.prefix}{name}", np.dtype(kind), 0)
            for name, kind in (("number", np.int64), ("going_on", np.bool_))
        )
        before = [Value(inside, f"{inside.prefix}state_{i}", state.dtype, state.rank) for i, state in enumerate(states)]
        after = body(inside, inside.outer(items).at(number), before)
        still = going_on.apply("Identity")
        nested = helper.make_graph(
            inside.nodes,
            inside.prefix,
            [info(value.name, value.dtype, value.rank) for value in (number, going_on, *before)],
            [info(value.name, value.dtype, value.rank) for value in (still, *after)],
            inside.constants,
        )
        self.n_bytes = inside.n_bytes
        names = [f"{inside.prefix}final_{i}" for i in range(len(states))]
        n_items = items.apply("Size", dtype=np.int64)
        begin = self.constant(True, np.bool_)
        given = [n_items.name, begin.name, *(state.name for state in states)]
        self.nodes.append(helper.make_node("Loop", given, names, body=nested))
        return [Value(self, name, state.dtype, state.rank) for name, state in zip(names, states, strict=True)]

    def model(self, metadata: Mapping[str, str]) -> Any:
        """The graph as a checked ``onnx.ModelProto``."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "bayesvm", self.inputs, self.outputs, self.constants)
        domains = {node.domain for node in self.nodes}
        versions = [helper.make_opsetid("", OPSET)]
        versions += [helper.make_opsetid("ai.onnx.ml", ML_OPSET)] if "ai.onnx.ml" in domains else []
        model = helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="bayesvm")
        helper.set_model_props(model, dict(metadata))
        self.onnx.checker.check_model(model, full_check=True)
        return model


def _node(op: str) -> Callable[..., Value]:
    return lambda first, *others: first.apply(op, *others)


exp, log, sqrt, absolute, maximum, minimum = map(_node, ("Exp", "Log", "Sqrt", "Abs", "Max", "Min"))

# Functions that formulas may use.
UFUNCS: dict[Callable[..., Any], Callable[..., Value]] = {
    np.add: _node("Add"),
    np.subtract: _node("Sub"),
    np.multiply: _node("Mul"),
    np.divide: _node("Div"),
    np.power: _node("Pow"),
    np.negative: _node("Neg"),
    np.square: lambda x: x * x,
    np.sqrt: sqrt,
    np.exp: exp,
    np.expm1: lambda x: exp(x) - 1.0,
    np.log: log,
    np.log1p: lambda x: log(x + 1.0),
    np.sin: _node("Sin"),
    np.cos: _node("Cos"),
    np.tanh: _node("Tanh"),
    np.absolute: absolute,
    np.maximum: maximum,
    np.minimum: minimum,
}


def clip(x: Value, low: float, high: float) -> Value:
    """Clip to a range."""
    return x.apply("Clip", low, high)


def where(condition: Value, x: Value, y: Value) -> Value:
    """``x`` where the condition is true, ``y`` elsewhere."""
    return x.graph.node("Where", [condition, x, y], x.dtype)


def concatenated(values: Sequence[Value], axis: int = 1) -> Value:
    """Concatenate along an axis."""
    first = values[0]
    return first if len(values) == 1 else first.graph.node("Concat", values, first.dtype, axis=axis)
