"""Core: a function of one array as a list of ufunc calls, for in-place evaluation on large blocks.

The profile of a kernel is called once with a ``Symbol`` instead of an array. Calls that contribute to its value are
kept, calls needed only for its slope are dropped, and each call gets an output buffer. The same list is converted to
an ONNX graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from bayesvm.core.linalg import Array

POWERS = {0.5: np.sqrt, 2.0: np.square}  # several times faster than np.power, as products are than quotients


class Call(NamedTuple):
    """A ufunc, its inputs (numbers of results, 0 being the argument, or constants) and the number of its result."""

    function: Callable[..., Any]
    inputs: tuple[int | float, ...]
    result: int


class Symbol(NDArrayOperatorsMixin):
    """Placeholder for an array that records the ufuncs applied to it. Anything else raises TypeError."""

    def __init__(self, calls: list[Call]) -> None:
        self.calls, self.number = calls, len(calls)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature is not None:
            return NotImplemented
        given = tuple(x.number if isinstance(x, Symbol) else float(x) for x in inputs)
        if ufunc is np.power and isinstance(given[1], float) and given[1] in POWERS:
            ufunc, given = POWERS[given[1]], given[:1]
        elif ufunc is np.divide and isinstance(given[1], float) and given[1]:
            ufunc, given = np.multiply, (given[0], 1 / given[1])
        self.calls.append(Call(ufunc, given, len(self.calls) + 1))
        return Symbol(self.calls)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a symbol is not an array")

    def __bool__(self) -> bool:
        raise TypeError("the truth value of a symbol is unknown")


class Formula(NamedTuple):
    """Calls in execution order. Buffer 0 holds the argument and then the result; other buffers are scratch space."""

    calls: tuple[Call, ...]  # inputs and results are buffer numbers
    n_scratch: int

    def in_place(self, argument: Array, scratch: Array) -> None:
        """Overwrite the argument with the value."""
        buffers = (argument, *scratch)
        for function, inputs, result in self.calls:
            function(*[buffers[x] if isinstance(x, int) else x for x in inputs], out=buffers[result])

    def of(self, argument: Any) -> Any:
        """The value for any argument that supports NumPy ufuncs."""
        buffers = {0: argument}
        for function, inputs, result in self.calls:
            buffers[result] = function(*[buffers[x] if isinstance(x, int) else x for x in inputs])
        return buffers[0]


def traced(function: Callable[[Any], Any]) -> list[Call] | None:
    """The calls that compute the value, which is the last result; None if any call is not a ufunc."""
    calls: list[Call] = []
    try:
        value = function(Symbol(calls))
    except (TypeError, AttributeError):  # evaluating an array will show whether it is an error
        return None
    if not isinstance(value, Symbol) or not value.number:
        return None
    needed, kept = {value.number}, []
    for call in reversed(calls[: value.number]):
        if call.result in needed:
            needed |= references(call)
            kept.append(call)
    return kept[::-1]


def without_factor(calls: Sequence[Call]) -> tuple[float, list[Call]]:
    """The constant factor of the argument, and the calls that remain once the argument includes it."""
    factor, left = 1.0, list(calls)
    while len(left) > 1:
        first, *others = left
        if any(0 in references(call) for call in others):
            break
        constants = [x for x in first.inputs if isinstance(x, float)]
        if first.function is np.negative:
            factor = -factor
        elif first.function is np.multiply and constants:
            factor *= constants[0]
        else:
            break
        left = [
            call._replace(inputs=tuple(0 if isinstance(x, int) and x == first.result else x for x in call.inputs))
            for call in others
        ]
    return factor, left


def references(call: Call) -> set[int]:
    """The numbers of the results that a call uses; floats are constants."""
    return {x for x in call.inputs if isinstance(x, int)}


def formula(calls: Sequence[Call]) -> Formula:
    """Assign buffers to the calls; a result reuses the buffer of an input that is no longer needed."""
    last = {x: i for i, call in enumerate(calls) for x in references(call)}
    place, free, n_buffers, placed = {0: 0}, list[int](), 1, []
    for i, call in enumerate(calls):
        given = tuple(place[x] if isinstance(x, int) else x for x in call.inputs)
        free += sorted({place[x] for x in references(call) if last[x] == i}, reverse=True)
        if not free:
            free, n_buffers = [n_buffers], n_buffers + 1
        place[call.result] = free.pop() if i < len(calls) - 1 else 0
        placed.append(Call(call.function, given, place[call.result]))
    return Formula(tuple(placed), n_buffers - 1)
