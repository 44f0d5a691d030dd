"""Persistence: versioned files of plain state (names, numbers, arrays), without pickle and independent of estimators.

A file has the safetensors format: arrays are tensors, named by their path in the state; the rest is one JSON text in
the metadata. Reading a file executes no code from it and takes memory in proportion to its size at most, so untrusted
models are safe to read. A SHA-256 digest detects accidental changes. It is not a signature, and an attacker can compute
a new one, so callers validate a state (``bayesvm.schema``) before they build anything from it.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bayesvm.atomic import write_whole

FORMAT = "bayesvm"
VERSION = 2

# Not longdouble, whose format depends on the machine.
_NUMBERS = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_NUMBERS |= {"float16", "float32", "float64"}

# Arrays of strings are padded to the longest one: all strings of a file may take this plus 4 times its size in memory.
ROOM_FOR_STRINGS = 2**24

# Errors that reading a malformed file may raise.
MALFORMED = (
    *(SafetensorError, struct.error, ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
    RecursionError,
)

Tensors = dict[str, npt.NDArray[Any]]


def write(path: str | os.PathLike[str], kind: str, state: Mapping[str, Any]) -> None:
    """Write ``state`` atomically: ``path`` either contains the complete new file or is unchanged.

    A state consists of dictionaries with string keys, lists, tuples, strings, numbers, None, NumPy scalars, and
    arrays of numbers or strings. Arrays are stored in C order and little endian.
    """
    tensors: Tensors = {}
    encoded = _encode(dict(state), "state", tensors)
    header = {"version": VERSION, "kind": kind, "tensors": sorted(tensors), "state": encoded}
    header["sha256"] = _digest(header, tensors)
    try:
        # One key only: safetensors writes several keys in random order, and equal states should give equal files.
        content = save(tensors, metadata={FORMAT: json.dumps(header, allow_nan=False)})
    except SafetensorError as error:
        raise ValueError(f"{os.fspath(path)}: safetensors cannot hold this state ({error})") from error
    _Decoder(tensors, len(content)).value(encoded)  # raises the errors that ``read`` would raise
    write_whole(path, content)


def read(path: str | os.PathLike[str]) -> tuple[str, int, dict[str, Any]]:
    """Read kind, version and state; a ValueError says what is wrong with the file."""
    name = os.fspath(path)
    # Python's open comes first because its OSErrors name the file, unlike some of safetensors.
    with Path(path).open("rb") as opened, _checked(name, "is not a bayesvm file, or it is truncated or damaged"):
        n_bytes = os.fstat(opened.fileno()).st_size
        with safe_open(name, framework="np") as file:
            header, found = _header(name, file.metadata() or {}), sorted(file.keys())
            if missing := set(header["tensors"]) - set(found):
                raise FileError(f"{name}: tensor {min(missing)} is missing; the file was altered")
            tensors: Tensors = {key: file.get_tensor(key) for key in found}
        if header.pop("sha256", None) != _digest(header, tensors) or found != header["tensors"]:
            raise FileError(f"{name} was altered after it was written (its SHA-256 digest differs); take another copy")
    with _checked(name, "has an unknown structure"):
        return str(header["kind"]), header["version"], _Decoder(tensors, n_bytes).value(header["state"])


def version_of(path: str | os.PathLike[str]) -> int:
    """The format version of a file."""
    with safe_open(os.fspath(path), framework="np") as file:
        return int(_header(os.fspath(path), file.metadata() or {})["version"])


class FileError(ValueError):
    """An invalid file; the message names it."""


@contextmanager
def _checked(name: str, what: str) -> Iterator[None]:
    """Convert all errors of malformed files to one type, which names the file."""
    try:
        yield
    except FileError:
        raise
    except MALFORMED as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise FileError(f"{name} {what} ({reason})") from error


@contextmanager
def building(path: str | os.PathLike[str], remedy: str = "take another copy") -> Iterator[None]:
    """Report errors in building something from a state as errors of the file."""
    with _checked(os.fspath(path), f"is not a valid bayesvm file; {remedy}"):
        yield


def _header(name: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The JSON header in the metadata, of a supported version."""
    if FORMAT not in metadata:
        raise FileError(f"{name} is a safetensors file, but not a {FORMAT} file")
    header: dict[str, Any] = json.loads(metadata[FORMAT], parse_constant=_no_constant)
    version = header["version"]
    if type(version) is not int or version < 1:
        raise ValueError(f"its version is {version!r:.40}")
    if version > VERSION:
        raise FileError(
            f"{name} has version {version} of the format, but this {FORMAT} reads up to version {VERSION}; "
            f"upgrade {FORMAT} to read it"
        )
    return header


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not valid JSON")


def _digest(header: Mapping[str, Any], tensors: Tensors) -> str:
    """SHA-256 over the header and over name, dtype, shape and bytes of each tensor."""
    arrays = sorted(tensors.items())
    digest = sha256(json.dumps([header, [(name, a.dtype.name, a.shape) for name, a in arrays]]).encode())
    for _, array in arrays:
        digest.update(_little_endian(array).tobytes())
    return digest.hexdigest()


def _little_endian(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same values in C order; ``ascontiguousarray`` would add an axis to a scalar."""
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _encode(value: Any, path: str, tensors: Tensors) -> Any:
    """JSON for one value; dictionaries and types that JSON lacks are objects whose only key is the type.

    Types are compared exactly, because a subclass would be read back as its base class.
    """
    kind = type(value)
    encoded: Any = value
    if kind is float and not isfinite(value):
        encoded = {"float": struct.pack("<d", value).hex()}
    elif kind in {list, tuple}:
        items = [_encode(item, f"{path}[{i}]", tensors) for i, item in enumerate(value)]
        encoded = items if kind is list else {"tuple": items}
    elif kind is dict:
        encoded = {"dict": {k: _encode(item, _member(path, k), tensors) for k, item in value.items()}}
    elif kind is np.str_:
        encoded = {"str_": str(value)}
    elif isinstance(value, np.generic):
        encoded = {"scalar": _encode_array(np.asarray(value), path, tensors)}
    elif kind in {np.ndarray, np.memmap}:
        encoded = {"array": _encode_array(value, path, tensors)}
    elif kind not in {type(None), bool, int, float, str}:
        raise TypeError(f"{path}: cannot save a value of type {kind.__name__}")
    return encoded


def _member(path: str, key: Any) -> str:
    """The path of a member of a dictionary, quoted if it would be ambiguous."""
    if type(key) not in {str, np.str_}:
        raise TypeError(f"{path}: cannot save the key {key!r} of type {type(key).__name__}; keys must be strings")
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{str(key)!r}]"


def _encode_array(array: npt.NDArray[Any], path: str, tensors: Tensors) -> Any:
    """The name of the tensor; for strings, which are stored as JSON text, also dtype and shape."""
    if array.dtype.name in _NUMBERS:
        tensors[path] = _little_endian(array)
        return path
    texts = array.ravel().tolist() if array.dtype.kind in "UO" else [None]
    if strange := {type(text) for text in texts} - {str, np.str_}:
        held = f" that holds {min(kind.__name__ for kind in strange)}" if array.dtype.kind == "O" else ""
        raise TypeError(f"{path}: cannot save NumPy data of type {array.dtype}{held}")
    tensors[path] = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    return [path, array.dtype.str.lstrip("<>|"), array.shape]


class _Decoder:
    """Inverts ``_encode``, with memory limited by the size of the file."""

    def __init__(self, tensors: Tensors, n_bytes: int) -> None:
        self.tensors, self.room = tensors, ROOM_FOR_STRINGS + 4 * n_bytes

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((tag, content),) = value.items()
        decode: dict[str, Callable[[], Any]] = {
            "float": lambda: struct.unpack("<d", bytes.fromhex(content))[0],
            "tuple": lambda: tuple(self.value(content)),
            "dict": lambda: {key: self.value(item) for key, item in content.items()},
            "str_": lambda: np.str_(content),
            "scalar": lambda: self.tensors[content].reshape(())[()],
            "array": lambda: self.tensors[content] if isinstance(content, str) else self.strings(*content),
        }
        return decode[tag]()

    def strings(self, name: str, dtype: str, shape: list[int]) -> npt.NDArray[Any]:
        """Decode strings; their number and lengths are checked before memory is allocated."""
        texts = json.loads(self.tensors[name].tobytes())
        wide = re.fullmatch(r"O|U(\d{1,9})", dtype)
        width = int(wide[1]) if wide and wide[1] else None
        fits = wide and prod(shape) == len(texts) and all(type(text) is str for text in texts)
        if not fits or (width is not None and any(len(text) > width for text in texts)):
            raise ValueError(f"{name}: the content is not {shape} strings of type {dtype:.40}")
        self.room -= len(texts) * (8 if width is None else 4 * width)
        if self.room < 0:
            raise ValueError(
                f"{name}: {len(texts):,} strings of type {dtype} take more memory than a file of this size may use; "
                "shorten the longest, or use an array of objects"
            )
        strings = np.empty(len(texts), dtype)
        strings[:] = texts
        return strings.reshape(shape)
