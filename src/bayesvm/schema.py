"""Schemas: validate a state from a file before anything is built from it.

A schema is a function ``check(value, path, sizes)`` that raises ``ValueError`` with the path of the invalid part.
Letters in shapes, such as ``M``, stand for the same number throughout a state; ``sizes`` holds the known ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from math import isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

Sizes = dict[str, int]
Schema = Callable[[Any, str, Sizes], None]


class MismatchError(ValueError):
    """A part of a state that does not match its schema."""

    def __init__(self, path: str, found: Any, expected: str) -> None:
        words = f"an array {found.dtype}{found.shape}" if isinstance(found, np.ndarray) else f"{found!r:.60}"
        super().__init__(f"{path} must be {expected}, got {words}")
        self.path = path


def value(expected: str, fits: Callable[[Any], bool]) -> Schema:
    """A single value; ``expected`` describes it in words."""

    def check(found: Any, path: str, _: Sizes) -> None:
        if not fits(found):
            raise MismatchError(path, found, expected)

    return check


def _is(kind: type, found: Any) -> bool:
    return isinstance(found, kind) and not isinstance(found, bool)


def _is_finite(found: Any) -> bool:
    try:
        return _is(Real, found) and isfinite(found)
    except OverflowError:  # an integer beyond all floats
        return False


anything = value("anything", lambda _: True)
nothing = value("None", lambda found: found is None)
text = value("text", lambda found: isinstance(found, str))
flag = value("true or false", lambda found: isinstance(found, bool | np.bool_))
real = value("a number", lambda found: _is(Real, found))
number = value("a finite number", _is_finite)
bound = value("a number above 0", lambda found: _is(Real, found) and found > 0)  # may be infinite
positive = value("a positive number", lambda found: _is_finite(found) and found > 0)


def below(limit: int) -> Schema:
    """An integer from 0 to below a limit."""
    return value(f"a whole number from 0 to below {limit}", lambda found: _is(Integral, found) and 0 <= found < limit)


whole = below(2**63)


def one_of(*choices: Any) -> Schema:
    """One of these values."""
    return value(
        f"one of {', '.join(map(repr, choices))}",
        lambda found: any(isinstance(found, type(choice)) and found == choice for choice in choices),
    )


def size(letter: str) -> Schema:
    """An integer that a letter stands for."""

    def check(found: Any, path: str, sizes: Sizes) -> None:
        whole(found, path, sizes)
        if sizes.setdefault(letter, int(found)) != found:
            raise MismatchError(path, found, f"{sizes[letter]}, as elsewhere")

    return check


def array(
    kinds: str, *shape: int | str | None, least: float = -np.inf, infinite: bool = False, missing: bool = False
) -> Schema:
    """An array of one of these kinds, as NumPy names them, without NaN unless values may be ``missing``.

    A shape consists of numbers, letters, letters plus a number (``"M+1"``) and None for any length.
    """

    def fits(found: Any, sizes: Sizes) -> bool:
        if not isinstance(found, np.ndarray) or found.dtype.kind not in kinds or found.ndim != len(shape):
            return False
        for length, wanted in zip(found.shape, shape, strict=True):
            letter, _, more = str(wanted).partition("+")
            expected = sizes.setdefault(letter, length - int(more or 0)) if isinstance(wanted, str) else wanted
            if expected is not None and length != expected + int(more or 0):
                return False
        if found.dtype.kind == "f":
            given = found[~np.isnan(found)] if missing else found
            if not (~np.isnan(given) if infinite else np.isfinite(given)).all():
                return False
        return bool(least == -np.inf or not found.size or found.min() >= least)

    def check(found: Any, path: str, sizes: Sizes) -> None:
        if not fits(found, sizes):
            letters = ", ".join(f"{letter} = {sizes[letter]}" for letter in sorted(sizes) if letter in str(shape))
            limit = "" if least == -np.inf else f" from {least:g}"
            words = ", ".join("any" if length is None else str(length) for length in shape)
            refused = [*(() if missing else ("NaN",)), *(() if infinite else ("infinity",))]
            without = f", without {' or '.join(refused)}" if refused else ""
            expected = f"an array ({words}) of kind {kinds!r}{without}{limit}"
            raise MismatchError(path, found, f"{expected} ({letters})" if letters else expected)

    return check


def each(item: Schema, letter: str | None = None) -> Schema:
    """A list or tuple of items with the same schema; their number is that of the letter."""

    def check(found: Any, path: str, sizes: Sizes) -> None:
        if not isinstance(found, list | tuple):
            raise MismatchError(path, found, "a list")
        if letter is not None:
            size(letter)(len(found), f"the number of {path}", sizes)
        for number_of, one in enumerate(found):
            item(one, f"{path}[{number_of}]", sizes)

    return check


def items(*schemas: Schema) -> Schema:
    """A list or tuple with one item for each schema."""

    def check(found: Any, path: str, sizes: Sizes) -> None:
        if not isinstance(found, list | tuple) or len(found) != len(schemas):
            raise MismatchError(path, found, f"a list of {len(schemas)}")
        for number_of, schema in enumerate(schemas):
            schema(found[number_of], f"{path}[{number_of}]", sizes)

    return check


def record(
    members: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, others: Schema | None = None
) -> Schema:
    """A dictionary with these members, optional ones, and no others unless ``others`` is their schema."""
    everything = {**members, **(optional or {})}

    def check(found: Any, path: str, sizes: Sizes) -> None:
        if not isinstance(found, dict):
            raise MismatchError(path, found, "a dictionary")
        if missing := members.keys() - found.keys():
            raise MismatchError(path, list(found), f"a dictionary with {min(missing)!r}")
        strange = found.keys() - everything.keys()
        if strange and others is None:
            raise MismatchError(path, min(strange), f"a dictionary of {', '.join(map(repr, everything))}")
        for name, schema in everything.items():  # in this order: earlier members define letters
            if name in found:
                schema(found[name], f"{path}.{name}", sizes)
        for name in strange:
            others(found[name], f"{path}[{name!r:.60}]", sizes)  # type: ignore[misc]

    return check


def either(*schemas: Schema) -> Schema:
    """A value that matches one of the schemas; the error is that of the schema that got furthest."""

    def check(found: Any, path: str, sizes: Sizes) -> None:
        errors = []
        for schema in schemas:
            trial = dict(sizes)
            try:
                schema(found, path, trial)
            except MismatchError as error:
                errors.append(error)
            else:
                sizes.update(trial)
                return
        raise max(reversed(errors), key=lambda error: error.path.count(".") + error.path.count("["))

    return check


def satisfying(schema: Schema, expected: str, fits: Callable[[Any, Sizes], bool]) -> Schema:
    """A schema with an additional condition."""

    def check(found: Any, path: str, sizes: Sizes) -> None:
        schema(found, path, sizes)
        if not fits(found, sizes):
            raise MismatchError(path, found, expected)

    return check


def fields_of(cls: type, letter: str | None = None) -> dict[str, Schema]:
    """Schemas of the fields of a dataclass of plain values; the letter is the length of variadic tuples."""
    hints = get_type_hints(cls)
    return {field.name: _plain(hints[field.name], letter) for field in fields(cls)}


def _plain(hint: Any, letter: str | None) -> Schema:
    single: dict[Any, Schema] = {float: number, int: whole, str: text, bool: flag, NoneType: nothing}
    if hint in single:
        return single[hint]
    parts = get_args(hint)
    if get_origin(hint) is UnionType:
        return either(*(_plain(part, letter) for part in parts))
    if get_origin(hint) is tuple:
        if parts[-1] is Ellipsis:
            return each(_plain(parts[0], letter), letter)
        return items(*(_plain(part, letter) for part in parts))
    raise TypeError(f"a field of the type {hint} has no schema")
