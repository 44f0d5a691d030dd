"""Data: convert chunks of a table, Arrow record batches or LIBSVM rows, to arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bayesvm.data.checks import Locate, require_in_range, require_targets, require_weights, require_whole_text
from bayesvm.extras import optional
from bayesvm.warn import warn_user

_PLAIN = {"double", "float", "halffloat", *(f"{prefix}int{bits}" for prefix in ("", "u") for bits in (8, 16, 32, 64))}
_TICKS = {"duration[s]": 1.0, "duration[ms]": 1e3, "duration[us]": 1e6, "duration[ns]": 1e9}  # ticks per second
LARGEST_EXACT = 2**53  # integers up to it are exact in double precision
_CACHED_BYTES = 2**18  # rows are filled column by column, so a strip of rows should fit the processor's cache


class Batch(NamedTuple):
    """Consecutive rows: features, raw targets (or None) and row weights (or None)."""

    X: Any  # an array, or a SciPy matrix in CSR format
    y: npt.NDArray[Any] | None
    weight: npt.NDArray[np.float64] | None


@dataclass(frozen=True)
class TableColumns(ABC):
    """The roles of the columns of a table (features, target, weight), and the conversion of chunks to arrays."""

    names: tuple[str, ...] | None  # of the features
    n_features: int
    dtype: np.dtype[Any]
    target: str | None = None
    weight: str | None = None
    sparse: ClassVar[bool] = False

    @property
    def prepared_by(self) -> Any:
        """The recipe that computes the features from the columns; None if the columns are the features."""
        return None

    @property
    def has_target(self) -> bool:
        """Whether rows have targets."""
        return self.target is not None

    @abstractmethod
    def needed(self, *, features: bool, targets: bool) -> list[str]:
        """The columns to read."""

    @abstractmethod
    def features(self, chunks: Sequence[Any], locate: Locate) -> Any:
        """The features of consecutive chunks as a new numeric array or CSR matrix."""

    @abstractmethod
    def targets(self, chunks: Sequence[Any], locate: Locate) -> npt.NDArray[Any]:
        """The targets of the chunks, none of them missing."""

    @abstractmethod
    def weights(self, chunks: Sequence[Any], locate: Locate) -> npt.NDArray[np.float64] | None:
        """The weights of the chunks, if there are any."""

    @abstractmethod
    def with_features(self, names: tuple[str, ...]) -> TableColumns:
        """The same columns with some of the features, in this order."""

    def batch(self, chunks: Sequence[Any], locate: Locate, *, targets: bool) -> Batch:
        """Concatenate chunks into new arrays."""
        X = self.features(chunks, locate)
        if not targets:
            return Batch(X, None, None)
        return Batch(X, self.targets(chunks, locate) if self.has_target else None, self.weights(chunks, locate))


@dataclass(frozen=True)
class ArrowColumns(TableColumns):
    """Numeric columns in record batches; the target may also be text."""

    target_dtype: np.dtype[Any] | None = None
    spelled: Callable[[str], str] | None = None  # the spelling of a target of text

    def needed(self, *, features: bool, targets: bool) -> list[str]:
        special = [name for name in (self.weight, self.target) if name is not None]
        return [*(self.names or () if features else ()), *(special if targets else ())]

    def with_features(self, names: tuple[str, ...]) -> Self:
        return replace(self, names=names, n_features=len(names))

    def features(self, chunks: Sequence[Any], locate: Locate) -> Any:
        X = np.empty((sum(batch.num_rows for batch in chunks), self.n_features), self.dtype)
        strip = max(512, _CACHED_BYTES // (self.n_features * X.itemsize))
        first = 0
        for batch in chunks:
            columns = [exact_numbers(batch.column(name), name) for name in self.names or ()]
            rows = X[first : first + batch.num_rows]
            for start in range(0, len(rows), strip):
                some = slice(start, start + strip)
                for number, column in enumerate(columns):
                    rows[some, number] = column[some]
            first += batch.num_rows
        require_in_range(X, self.names, locate)
        return X

    def without_target(self, chunk: Any) -> npt.NDArray[np.bool_]:
        """A mask of the rows of a chunk without a target."""
        column = _without_null_categories(chunk.column(self.target))
        missing: npt.NDArray[np.bool_] = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        return missing

    def targets(self, chunks: Sequence[Any], locate: Locate) -> npt.NDArray[Any]:
        columns = [_without_null_categories(batch.column(self.target)) for batch in chunks]
        if any(column.null_count for column in columns):
            missing = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
            require_targets(np.concatenate(missing), self.target, locate)
        y = np.concatenate([_targets(column, self.target_dtype, self.spelled) for column in columns])
        require_whole_text(y, self.target, locate)
        if y.dtype.kind == "f":
            require_targets(np.isnan(y), self.target, locate)
        return y

    def weights(self, chunks: Sequence[Any], locate: Locate) -> npt.NDArray[np.float64] | None:
        if self.weight is None:
            return None
        weight = np.concatenate([numbers_of(batch.column(self.weight)) for batch in chunks]).astype(np.float64)
        require_weights(weight, self.weight, locate)
        return weight


def numbers_of(column: Any) -> npt.NDArray[Any]:
    """A numeric column, with NaN for missing values; not copied if there are none. Durations are in seconds."""
    kind = str(column.type)
    if kind in _TICKS:
        return numbers_of(column.cast("int64").cast("float64", safe=False)) / _TICKS[kind]
    if kind not in _PLAIN:
        column = column.cast("float64")  # bools and decimals
    numbers: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def exact_numbers(column: Any, name: str) -> npt.NDArray[Any]:
    """A numeric column; warns if it has integers that a float cannot represent exactly."""
    warn_if_rounded(column, name)
    return numbers_of(column)


def warn_if_rounded(column: Any, name: str) -> None:
    """Warn if a column has integers that a float cannot represent exactly."""
    if str(column.type) in {"int64", "uint64"} and column.null_count < len(column):
        least, most = optional("pyarrow.compute", "tables").min_max(column).as_py().values()
        if max(most, -least) > LARGEST_EXACT:
            warn_of_rounding(name)


def warn_of_rounding(name: str) -> None:
    """Warn about rounded integers; the usual cause is identifiers made of digits."""
    warn_user(
        f"column {name!r} has integers above 2**53, which are rounded; if they are identifiers, "
        "leave the column out, or convert it to text"
    )


def _without_null_categories(column: Any) -> Any:
    """Turn rows whose category is null into nulls, because Arrow does not count them as missing."""
    categories = getattr(column, "dictionary", None)
    return column.dictionary_decode() if categories is not None and categories.null_count else column


def _targets(column: Any, dtype: np.dtype[Any] | None, spelled: Callable[[str], str] | None) -> npt.NDArray[Any]:
    """A column of targets without nulls."""
    if dtype is None or dtype.kind != "U":
        decoded = column.dictionary_decode() if hasattr(column, "dictionary") else column
        return numbers_of(decoded).astype(dtype)
    # Create Python strings once per distinct text, not once per row.
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    found = [str(text) for text in encoded.dictionary.to_pylist()]
    found = found if spelled is None else list(map(spelled, found))
    # Keep text that NumPy's text arrays cannot hold, so that it is rejected with its row.
    texts = np.array(found, dtype=object if any(text.endswith("\0") for text in found) else str)
    targets: npt.NDArray[Any] = texts[encoded.indices.to_numpy()]
    return targets


def cast_to(schema: Any, batch: Any) -> Any:
    """Cast the columns of a record batch to their common types in all files."""
    pyarrow = optional("pyarrow", "tables")
    columns = []
    for field in schema:
        column = batch.column(field.name)
        try:
            decoded = column.dictionary_decode() if hasattr(column, "dictionary") else column
            columns.append(decoded.cast(field.type))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
            raise TypeError(
                f"column {field.name!r} has different types in the files, and {column.type} cannot be converted to "
                f"{field.type} ({error}); write it with the same type in all files"
            ) from error
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)
