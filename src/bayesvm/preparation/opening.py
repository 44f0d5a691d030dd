"""Preparation: open tables with columns of any kind, and encode them as numbers with a recipe."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self, Unpack

import numpy as np

from bayesvm.data.checks import Locate, require_in_range
from bayesvm.data.tables import Table
from bayesvm.data.tables import open_table as open_numbers
from bayesvm.data.tables.arrow_parts import arrow_parts
from bayesvm.data.tables.column_reading import ArrowColumns
from bayesvm.data.tables.csv_copy import copy_csv
from bayesvm.data.tables.csv_dialect import CsvOptions, options_given, require_csv
from bayesvm.data.tables.csv_files import look_at
from bayesvm.data.tables.files import Paths, SourceFile, find_files
from bayesvm.data.tables.rows import FileRows, copying
from bayesvm.data.tables.schemas import (
    TEXT_EXAMPLE,
    Schemas,
    is_text,
    no_column,
    require_distinct,
    require_numbers,
    require_same_names,
    some_names,
    target_dtype,
)
from bayesvm.extras import optional
from bayesvm.preparation.encoding import CategoryColumn, NumberColumn
from bayesvm.preparation.recipe import Recipe
from bayesvm.suggest import did_you_mean
from bayesvm.warn import warn_user


@dataclass(frozen=True)
class Opened:
    """Rows in files, and the columns of each file."""

    rows: FileRows
    schemas: Schemas

    def require_same_columns(self, used: Collection[str]) -> None:
        """Require that all files have the used columns."""
        file, schema = self.schemas[0]
        require_distinct(schema.names, f"{file} has several columns with the name")
        for other, other_schema in self.schemas[1:]:
            require_same_names(file, schema, other, other_schema, set(used))

    def require_columns(self, wanted: Sequence[str]) -> None:
        """Require columns in the first file."""
        file, schema = self.schemas[0]
        if unknown := [name for name in wanted if name not in schema.names]:
            raise ValueError(no_column(file, schema, unknown))

    def if_there(self, weight: str | None) -> str | None:
        """The name of the weights, or None with a warning if the file has none."""
        file, schema = self.schemas[0]
        if weight is None or weight in schema.names:
            return weight
        warn_user(f"{file} has no column {weight!r} of weights: all of its rows have equal weight")
        return None

    def table(
        self, recipe: Recipe, target: str | None = None, weight: str | None = None, *, text_labels: bool = False
    ) -> Table:
        """The rows as numbers; with ``text_labels``, numeric labels are read as text."""
        file, schema = self.schemas[0]
        special = [name for name in (target, weight) if name is not None]
        missing = [name for name in [*recipe.needed, *special] if name not in schema.names]
        if missing:
            expected = {*recipe.needed, *special, *recipe.left_out}
            extra = [name for name in schema.names if name not in expected]
            if missing == [target]:
                raise ValueError(
                    f"{file} has no column {target!r} with the true values, which an evaluation needs"
                    f"{nearest(missing[0], schema.names)}; name it with --target (target=), or use `bayesvm predict`"
                )
            raise ValueError(
                f"{file} lacks columns of the model: {some_names(missing)}"
                + nearest(missing[0], schema.names)
                + (f"; unknown to the model: {some_names(extra)}" if extra else "")
            )
        self.require_same_columns([*recipe.needed, *special])
        numbers = [column.name for column in recipe.columns if isinstance(column, NumberColumn)]
        for each, columns in self.schemas:
            for name in [*numbers, *([weight] if weight else [])]:
                require_no_text(each, columns.field(name), "weights" if name == weight else "the column")
                if name == weight or not _is_time_span(columns.field(name).type):
                    require_numbers(each, columns.field(name))
        dtype = None
        if target is not None:
            dtype = target_dtype((each, columns.field(target)) for each, columns in self.schemas)
            dtype = np.dtype(str) if text_labels else dtype
        names = recipe.names
        return Table(self.rows, EncodedColumns(names, len(names), recipe.dtype, target, weight, dtype, recipe=recipe))


def nearest(name: str, names: Sequence[str]) -> str:
    """A hint with the name that is most similar to a missing one.

    >>> nearest("hours", ["age", "Hours"])
    " (did you mean 'Hours'?)"
    """
    hint = did_you_mean(name, names)
    return f" ({hint})" if hint.endswith("?") else ""


def _is_time_span(kind: Any) -> bool:
    types = optional("pyarrow.types", "tables")
    return bool(types.is_duration(kind) or types.is_time(kind))


def open_files(
    source: Paths,
    *,
    exact: Collection[str] = (),
    texts: Collection[str] = (),
    verbatim: Collection[str] = (),
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    weight: str | None = None,
    copy_to: str | PathLike[str] | None = None,
    verbose: int = 0,
    **csv: Unpack[CsvOptions],
) -> Opened:
    """Open Parquet, Arrow or CSV files with columns of any kind.

    In CSV files, columns in ``exact`` (labels) keep their detected type, and columns in ``texts`` are read as text;
    those in ``verbatim`` are text for display and stay unchanged. Only ``columns`` without ``drop``, and always
    ``exact`` and ``weight``, can be read later; invalid values in other columns are ignored. ``csv`` are the options of
    ``open_table`` for CSV files.
    """
    kind, files = find_files(source)
    if kind == "LIBSVM":
        raise ValueError(f"{files[0]} is a LIBSVM file, which has no named columns; open it with open_table")
    if kind == "CSV":

        def wanted(name: str) -> bool:
            chosen = (columns is None or name in columns) and name not in drop
            return chosen or name in exact or name == weight

        with copying(kind, files, copy_to, verbose) as copy:
            remedy = "; or name it in categories (--categories) when you fit, which reads it as text"
            looked = [look_at(file, csv) for file in files]
            copied, schemas = copy_csv(looked, copy, wanted, exact, [*texts, *verbatim], remedy, verbatim)
            lines = tuple(csv_file.first_line for csv_file in looked)
            rows = FileRows(kind, files, copied, copy, reading=options_given(csv), copy_to=copy_to, lines=lines)
    else:
        require_csv(csv, f"{files[0]} is {kind}")
        parts = arrow_parts(kind, files)
        rows, schemas = FileRows(kind, files, parts, copy_to=copy_to), [(part.file, part.schema) for part in parts]
    rows.require_some()
    return Opened(rows, schemas)


def prepared(
    source: Paths,
    recipe: Recipe,
    target: str | None = None,
    weight: str | None = None,
    *,
    keep: Sequence[str] | None = None,
    text_labels: bool = False,
    copy_to: str | PathLike[str] | None = None,
    verbose: int = 0,
    **csv: Unpack[CsvOptions],
) -> Table:
    """A table in files as the numbers that a recipe makes of it; weights are used if it has them.

    ``keep`` names other columns that will be read, as text in CSV files; None means any of them. With
    ``text_labels``, numbers among the labels are names. ``csv`` are the options of ``open_table`` for CSV files.
    """
    kind, files = find_files(source)
    if (kind == "LIBSVM") != (recipe.numbered is not None):
        have = "numbered features, as LIBSVM files have them" if recipe.numbered is not None else "named columns"
        raise ValueError(f"the model was fitted to {have}; {files[0]} is {kind}")
    if recipe.numbered is not None:
        return open_numbers(
            source, n_features=recipe.numbered, zero_based=recipe.zero_based, copy_to=copy_to, verbose=verbose, **csv
        )
    if keep is None:
        keep = look_at(files[0], csv).names if kind == "CSV" else ()
    exact = [] if target is None else [target]
    texts = [column.name for column in recipe.columns if isinstance(column, CategoryColumn)]
    texts += exact if text_labels else []
    opened = open_files(
        source,
        exact=exact,
        texts=texts,
        verbatim=[name for name in keep if name not in {*recipe.needed, *exact, weight}],
        columns=[*recipe.needed, *keep],
        weight=weight,
        copy_to=copy_to,
        verbose=verbose,
        **csv,
    )
    opened.require_columns(keep)
    return opened.table(recipe, target, opened.if_there(weight), text_labels=text_labels)


def require_no_text(file: SourceFile, field: Any, what: str) -> None:
    """Require numbers in a column; ``what`` describes the column in the message."""
    if is_text(field.type):
        example = (field.metadata or {}).get(TEXT_EXAMPLE)
        such_as = f" ({example.decode()})" if example else ""
        raise TypeError(f"{what} {field.name!r} must hold numbers, but holds text in {file}{such_as}; correct it there")


@dataclass(frozen=True, kw_only=True)
class EncodedColumns(ArrowColumns):
    """Columns of any kind, encoded by a recipe when they are read; ``names`` are its features."""

    recipe: Recipe

    @property
    def prepared_by(self) -> Recipe:
        return self.recipe

    def needed(self, *, features: bool, targets: bool) -> list[str]:
        return [*(self.recipe.needed if features else ()), *super().needed(features=False, targets=targets)]

    def features(self, chunks: Sequence[Any], locate: Locate) -> Any:
        X = self.recipe.encoded(chunks, locate)
        require_in_range(X, self.names, locate)
        return X

    def with_features(self, names: tuple[str, ...]) -> Self:
        """Require all features of the recipe."""
        if names != self.names:
            raise ValueError("the table is prepared for another model: open it with the recipe of this model")
        return self
