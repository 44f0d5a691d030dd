"""Preparation: tables in files with columns of any kind, for which a fit learns a recipe from some rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Unpack

import numpy as np

from bayesvm.data.checks import Locate
from bayesvm.data.tables import Table
from bayesvm.data.tables import open_table as open_numbers
from bayesvm.data.tables.arrow_parts import arrow_parts
from bayesvm.data.tables.column_reading import ArrowColumns
from bayesvm.data.tables.csv_dialect import CsvOptions
from bayesvm.data.tables.csv_files import look_at
from bayesvm.data.tables.files import Paths, SourceFile, find_files
from bayesvm.data.tables.schemas import PANDAS_INDEX, Schemas, choose_columns, is_number, target_dtype
from bayesvm.preparation.learning import learn, require_one_kind
from bayesvm.preparation.opening import Opened, open_files, require_no_text
from bayesvm.preparation.recipe import Recipe


class MixedTable(Table):
    """A table with columns that are not numbers; a fit learns a recipe from some of its rows.

    ``names`` and ``n_features`` describe the columns. ``encoded_table`` reads the features.
    """

    _columns: MixedColumns

    @property
    def opened(self) -> Opened:
        """The rows and columns."""
        return Opened(*self.source)

    @property
    def quiet(self) -> bool:
        """Whether to suppress the warning about columns that a recipe leaves out."""
        return self._columns.quiet

    @property
    def has_text_labels(self) -> bool:
        """Whether numeric labels are read as text."""
        return self.target in self._columns.choice["categories"]

    def learned(self) -> Recipe:
        """Learn a recipe from a sample of the rows."""
        choice = self._columns.choice
        used: dict[str, Any] = {
            name: [column for column in choice[name] if column in (self.names or ())] for name in ("categories", "keep")
        }
        recipe = learn(self.opened, (), columns=self.names, target=self.target, **used)
        return replace(recipe, left_out=dict.fromkeys(choice["drop"], "as requested") | recipe.left_out)


def open_table(
    source: Paths,
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    keep: Collection[str] = (),
    n_features: int | None = None,
    zero_based: bool | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: Collection[str] = (),
    header: bool = True,
    copy_to: str | PathLike[str] | None = None,
    verbose: int = 0,
) -> Table:
    """Open a table in one or more files: Parquet, Arrow (Feather), CSV or LIBSVM, according to the file names.

    Columns may hold numbers, booleans, text, categories, dates and missing values. If all of them hold numbers or
    booleans, they are the features. Otherwise ``fit`` learns from a sample of the rows how each column becomes
    features, as for a data frame: ``recipe_``.

    Parameters
    ----------
    source : path, or list of paths
        A file, a folder, a pattern such as ``"part-*.parquet"``, or a list of files. The files of a folder or pattern
        are sorted by name.
    target : str, optional
        Name of the target column. None for rows to predict, and for LIBSVM files, which contain the label.
    columns : sequence of str, optional
        Names of the columns to learn from; by default all columns of the first file except target, weight and an
        unnamed index saved by pandas.
    weight : str, optional
        Name of a column of sample weights.
    drop : collection of str, optional
        Names of columns to leave out.
    categories : collection of str, optional
        Names of columns whose numbers are categories, such as postal codes; may include the target.
    keep : collection of str, optional
        Names of columns to use although they look like an index or an identifier.
    n_features : int, optional
        Number of features of LIBSVM files; by default the largest index. Set it for rows to predict, which may lack the
        last features.
    zero_based : bool, optional
        Whether indices of LIBSVM files count from 0; by default they count from 1 unless there is an index 0. Set it
        for rows to predict, which may lack the first feature.
    sep : str, optional
        Separator of CSV files: a character such as ``";"``, or ``" "`` for runs of spaces. By default, ``sep``,
        ``decimal`` and ``encoding`` are detected in each file, and unusual ones are reported.
    decimal : str, optional
        Decimal mark of CSV files, ``"."`` or ``","``.
    encoding : str, optional
        Encoding of CSV files, such as ``"cp1252"``.
    missing : collection of str, optional
        Texts in CSV files that mean missing values, in addition to empty cells, ``?``, ``NA``, ``-`` and similar ones.
    header : bool, default=True
        Whether the first row of CSV files contains the names of the columns; if not, they are c1, c2, ….
    copy_to : path, optional
        Folder for the working copy; by default the temporary folder of the system. CSV and LIBSVM files are parsed once
        into a temporary copy that is fast to read. It takes about 8 bytes per value, and is removed when the table is
        closed or the program ends.
    verbose : int, default=0
        1 reports on stderr when a copy of 10 MB or more is made.

    Returns
    -------
    Table
        The table, to pass to ``fit`` and the predict methods.

    See Also
    --------
    BayesianSVC.fit : Fit a model to a table.

    Examples
    --------
    >>> from bayesvm import BayesianSVC, open_table
    >>> table = open_table("flights/*.parquet", target="late")  # doctest: +SKIP
    >>> model = BayesianSVC().fit(table)  # doctest: +SKIP
    >>> model.predict_to(open_table("new.parquet"), "predictions.parquet")  # doctest: +SKIP
    """
    csv: CsvOptions = {"sep": sep, "decimal": decimal, "encoding": encoding, "missing": missing, "header": header}
    opening: dict[str, Any] = {"copy_to": copy_to, "verbose": verbose, **csv}
    chosen = bool(drop or categories or keep)
    kind, files = find_files(source)
    if kind == "LIBSVM" and chosen:
        raise ValueError(f"{files[0]} is a LIBSVM file, whose features have no names: remove drop, categories and keep")
    special = {target, weight}
    if (
        kind == "LIBSVM"
        or n_features is not None
        or zero_based is not None
        or not (chosen or _is_mixed(_schemas(kind, files, csv), columns, special))
    ):
        return open_numbers(
            source, target, columns=columns, weight=weight, n_features=n_features, zero_based=zero_based, **opening
        )
    return mixed_table(source, target, weight, columns=columns, drop=drop, categories=categories, keep=keep, **opening)


def mixed_table(
    source: Paths,
    target: str | None = None,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    drop: Collection[str] = (),
    categories: Collection[str] = (),
    keep: Collection[str] = (),
    beside: Collection[str] = (),
    quiet: bool = False,
    copy_to: str | PathLike[str] | None = None,
    verbose: int = 0,
    **csv: Unpack[CsvOptions],
) -> MixedTable:
    """Open a table in files other than LIBSVM, for which a fit learns a recipe.

    Columns in ``beside`` can be read like the target, but are not features. ``quiet`` suppresses the warning about
    columns that are left out. The other parameters are those of ``open_table``.
    """
    exact = [*([] if target is None else [target]), *beside]
    opened = open_files(
        source,
        exact=exact,
        texts=categories,
        columns=columns,
        drop=drop,
        weight=weight,
        copy_to=copy_to,
        verbose=verbose,
        **csv,
    )
    special = [*exact, *([] if weight is None else [weight])]
    opened.require_columns([*special, *(columns or ()), *drop, *categories, *keep])
    opened.require_same_columns(special)
    schema = opened.schemas[0][1]
    names = tuple(
        name
        for name in dict.fromkeys(columns or schema.names)
        if name not in {*special, *drop} and not PANDAS_INDEX.fullmatch(name)
    )
    if not names:
        reasons = "; ".join(f"{name}: as requested" for name in drop)
        raise ValueError(f"no column of {opened.schemas[0][0]} is left to learn from ({reasons})")
    if weight is not None:
        for each, fields in opened.schemas:
            require_no_text(each, fields.field(weight), "weights")
    dtype = None
    if target is not None:
        for name in names:
            require_one_kind(opened, name)
        dtype = target_dtype((each, fields.field(target)) for each, fields in opened.schemas)
        dtype = np.dtype(str) if target in categories else dtype
    choice = {"drop": drop, "categories": categories, "keep": keep}
    made = MixedColumns(names, len(names), np.dtype(np.float64), target, weight, dtype, choice=choice, quiet=quiet)
    return MixedTable(opened.rows, made)


def encoded_table(table: Table, recipe: Recipe) -> Table:
    """A table encoded with a recipe."""
    if table.prepared_by == recipe:
        return table
    text_labels = isinstance(table, MixedTable) and table.has_text_labels
    encoded = Opened(*table.source).table(recipe, table.target, table.weight, text_labels=text_labels)
    return encoded.with_spelling(table.spelled)


def numbers_of_table(table: MixedTable, names: Sequence[str]) -> Table:
    """A table with some numeric columns as its features."""
    rows, schemas = table.source
    return Table(rows, choose_columns(schemas, table.target, names, table.weight)).with_spelling(table.spelled)


def _schemas(kind: str, files: list[SourceFile], csv: CsvOptions) -> Schemas:
    if kind == "CSV":
        return [(file, look_at(file, csv).schema) for file in files]
    return [(part.file, part.schema) for part in arrow_parts(kind, files)]


def _is_mixed(schemas: Schemas, columns: Sequence[str] | None, special: Collection[str | None]) -> bool:
    """Whether a possible feature column holds anything other than numbers."""
    return any(
        not is_number(field.type)
        for _, schema in schemas
        for field in schema
        if field.name not in special
        and (columns is None or field.name in columns)
        and not PANDAS_INDEX.fullmatch(field.name)
    )


@dataclass(frozen=True, kw_only=True)
class MixedColumns(ArrowColumns):
    """Columns of any kind, before a recipe is learned: only targets and weights can be read."""

    choice: dict[str, Any]
    quiet: bool = False

    def features(self, chunks: Sequence[Any], locate: Locate) -> Any:
        raise TypeError(
            f"the columns {self.names} are not features yet; pass the table to fit, or to a model fitted to one like it"
        )
