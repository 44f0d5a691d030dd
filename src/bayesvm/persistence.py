"""Persistence: versioned files of plain state (names, numbers, arrays); no pickle, and no estimator is known.

A file is in safetensors format: arrays are tensors named by their place in the state, and all the rest is one
JSON text in the metadata. Reading runs no code of the file, so that a model from a stranger does no harm. A
SHA-256 digest finds accidents; it is no signature, and a forger can make a new one.
"""

from __future__ import annotations

import glob
import json
import os
import struct
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import isfinite, prod
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

FORMAT = "bayesvm"
VERSION = 1
# UPGRADES[v] turns the state of a file of version v into one of version v + 1.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}

# Not longdouble: its bits mean different numbers on different machines.
_NUMBERS = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_NUMBERS |= {"float16", "float32", "float64"}

Tensors = dict[str, npt.NDArray[Any]]


def write(path: str | os.PathLike[str], kind: str, state: Mapping[str, Any]) -> None:
    """Write ``state`` so that ``path`` holds the whole new file or what it held before, whatever happens.

    A state is made of dictionaries with string keys, lists, tuples, strings, numbers, None, NumPy scalars, and
    arrays of numbers or strings. Arrays are stored in C order and little endian.
    """
    tensors: Tensors = {}
    encoded = _encode(dict(state), "state", tensors)
    header = {"version": VERSION, "kind": kind, "tensors": sorted(tensors), "state": encoded}
    header["sha256"] = _digest(header, tensors)
    try:
        # One key only: safetensors writes several in random order, and equal states should give equal files.
        content = save(tensors, metadata={FORMAT: json.dumps(header, allow_nan=False)})
    except SafetensorError as error:
        raise ValueError(f"{os.fspath(path)}: safetensors cannot hold this state ({error})") from error
    write_whole(path, content)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes so that ``path`` holds all of them or what it held before, whatever happens."""
    target = Path(os.path.realpath(path))  # through a symbolic link, as open() would write
    temporary = target.with_name(_unfinished(target, token_hex(8)))
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """What processes left beside a file that were killed while they wrote it."""
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(_unfinished(Path(glob.escape(target.name)), "[0-9a-f]" * 16)):
        left.unlink(missing_ok=True)


def _unfinished(target: Path, token: str) -> str:
    return f".{target.name[:200]}-{token}.{FORMAT}.tmp"


def read(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Kind and state as they were written, or a ValueError that says what is wrong with the file."""
    name = os.fspath(path)
    # Python's open comes first because its OSErrors name the file; those of safetensors do not always.
    with Path(path).open("rb"):
        try:
            with safe_open(name, framework="np") as file:
                header = _header(name, file.metadata() or {})
                found = set(file.keys())
                if missing := set(header["tensors"]) - found:
                    raise ValueError(f"{name}: tensor {min(missing)} is missing; the file was altered")
                tensors: Tensors = {key: file.get_tensor(key) for key in header["tensors"]}
        except (SafetensorError, json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"{name} is not a {FORMAT} file, or it is cut short or damaged ({error})") from error
    if header.pop("sha256", None) != _digest(header, tensors) or found != set(tensors):
        raise ValueError(f"{name} was altered after it was written (its SHA-256 digest differs); take another copy")
    try:
        kind, state = header["kind"], _decode(header["state"], tensors)
    except (AttributeError, KeyError, TypeError, ValueError, struct.error) as error:
        raise ValueError(f"{name}: the state in this file has no form that {FORMAT} knows ({error})") from error
    for version in range(header["version"], VERSION):
        if version not in UPGRADES:
            raise ValueError(f"{name} has version {version} of the format, which this {FORMAT} no longer reads")
        state = UPGRADES[version](state)
    return kind, state


def version_of(path: str | os.PathLike[str]) -> int:
    """The version of the format in which a file was written."""
    with safe_open(os.fspath(path), framework="np") as file:
        return int(_header(os.fspath(path), file.metadata() or {})["version"])


def _header(name: str, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Our JSON in the metadata, of a version that we can read."""
    if FORMAT not in metadata:
        raise ValueError(f"{name} is a safetensors file, but not one of {FORMAT}")
    header: dict[str, Any] = json.loads(metadata[FORMAT])
    if header["version"] > VERSION:
        raise ValueError(
            f"{name} has version {header['version']} of the format, but this {FORMAT} reads up to version {VERSION}; "
            f"upgrade {FORMAT} to read it"
        )
    return header


def _digest(header: Mapping[str, Any], tensors: Tensors) -> str:
    """SHA-256 over the header and over name, dtype, shape and bytes of each tensor."""
    arrays = sorted(tensors.items())
    digest = sha256(json.dumps([header, [(name, a.dtype.name, a.shape) for name, a in arrays]]).encode())
    for _, array in arrays:
        digest.update(_little_endian(array).tobytes())
    return digest.hexdigest()


def _little_endian(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same values in C order; not by ``ascontiguousarray``, which gives a scalar an axis."""
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _encode(value: Any, path: str, tensors: Tensors) -> Any:
    """JSON for one value; what JSON lacks, and a dictionary, is an object whose only key says what it is.

    Types are compared exactly: a subclass would come back as something else.
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
    """The path of a dictionary's member, quoted where it could be taken for another one."""
    if type(key) not in {str, np.str_}:
        raise TypeError(f"{path}: cannot save the key {key!r} of type {type(key).__name__}; keys must be strings")
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{str(key)!r}]"


def _encode_array(array: npt.NDArray[Any], path: str, tensors: Tensors) -> Any:
    """The tensor's name; for strings, whose tensor is a JSON text, also their dtype and shape."""
    if array.dtype.name in _NUMBERS:
        tensors[path] = _little_endian(array)
        return path
    texts = array.ravel().tolist() if array.dtype.kind in "UO" else [None]
    if strange := {type(text) for text in texts} - {str, np.str_}:
        held = f" that holds {min(kind.__name__ for kind in strange)}" if array.dtype.kind == "O" else ""
        raise TypeError(f"{path}: cannot save NumPy data of type {array.dtype}{held}")
    tensors[path] = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    return [path, array.dtype.str.lstrip("<>|"), array.shape]


def _decode(value: Any, tensors: Tensors) -> Any:
    """The value that ``_encode`` was given."""
    if isinstance(value, list):
        return [_decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    decode: dict[str, Callable[[], Any]] = {
        "float": lambda: struct.unpack("<d", bytes.fromhex(content))[0],
        "tuple": lambda: tuple(_decode(content, tensors)),
        "dict": lambda: {key: _decode(item, tensors) for key, item in content.items()},
        "str_": lambda: np.str_(content),
        "scalar": lambda: tensors[content][()],
        "array": lambda: tensors[content] if isinstance(content, str) else _decode_strings(tensors, *content),
    }
    return decode[tag]()


def _decode_strings(tensors: Tensors, name: str, dtype: str, shape: list[int]) -> npt.NDArray[Any]:
    strings = np.empty(prod(shape), dtype)
    strings[:] = json.loads(tensors[name].tobytes())
    return strings.reshape(shape)
