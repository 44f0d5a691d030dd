"""Datasets: SUSY and HIGGS, millions of simulated particle collisions from UCI, as Parquet files on disk.

The compressed CSV is read and written in blocks, so memory does not depend on the size of the file.
Baldi, Sadowski, Whiteson 2014, *Searching for exotic particles in high-energy physics with deep learning*.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayesvm.datasets.downloads import RemoteFile, download, find, folders, user_folder
from bayesvm.extras import optional


@dataclass(frozen=True)
class Collisions:
    """A file of UCI (no header, label 0 or 1 first) and its expected size."""

    file: RemoteFile
    n_rows: int
    n_features: int

    @property
    def table(self) -> str:
        """SUSY.csv.gz becomes susy.parquet."""
        return f"{self.file.name.split('.')[0].lower()}.parquet"

    @property
    def features(self) -> list[str]:
        return [f"x{number}" for number in range(self.n_features)]


def fetch_susy(*, data_home: str | Path | None = None, download_if_missing: bool = True) -> Path:
    """Fetch SUSY as a Parquet file: 5,000,000 rows of 18 features ``x0`` … (float32) and ``y`` (±1).

    By convention, the last 500,000 rows are the test set. The file is searched in the folder ``BAYESVM_DATA``, then in
    ``data_home``; otherwise, about 0.9 GB are downloaded to ``data_home`` once and converted.

    Parameters
    ----------
    data_home : path, optional
        Folder for downloads; by default the cache folder of the user.
    download_if_missing : bool, default=True
        Whether to download a missing file, instead of raising an error.

    Returns
    -------
    Path
        The file; ``open_table`` and ``load_rows`` read it.

    See Also
    --------
    fetch_higgs : A similar data set with twice as many rows.
    load_rows : Load some rows of such a file.
    bayesvm.open_table : Open a table that is larger than the memory.

    Examples
    --------
    >>> from bayesvm.datasets import fetch_susy
    >>> fetch_susy().name  # doctest: +SKIP
    'susy.parquet'
    """
    return _fetch(SUSY, data_home, download_if_missing=download_if_missing)


def fetch_higgs(*, data_home: str | Path | None = None, download_if_missing: bool = True) -> Path:
    """Fetch HIGGS as a Parquet file: 11,000,000 rows of 28 features ``x0`` … (float32) and ``y`` (±1).

    The file is searched as in ``fetch_susy``; the download has 2.8 GB.

    Parameters
    ----------
    data_home : path, optional
        Folder for downloads; by default the cache folder of the user.
    download_if_missing : bool, default=True
        Whether to download a missing file, instead of raising an error.

    Returns
    -------
    Path
        The file; ``open_table`` and ``load_rows`` read it.

    See Also
    --------
    fetch_susy : A similar, smaller data set.

    Examples
    --------
    >>> from bayesvm.datasets import fetch_higgs
    >>> fetch_higgs().name  # doctest: +SKIP
    'higgs.parquet'
    """
    return _fetch(HIGGS, data_home, download_if_missing=download_if_missing)


def _fetch(collisions: Collisions, data_home: str | Path | None, *, download_if_missing: bool) -> Path:
    optional("pyarrow", "datasets")  # fails now rather than after a long download
    for folder in folders(data_home):
        if (path := folder / collisions.table).is_file():
            _check(path, collisions)
            return path
    target = user_folder(data_home) / collisions.table
    for folder in folders(data_home):
        if found := find(collisions.file, folder):
            _convert(found, target, collisions)
            return target
    downloaded = download(collisions.file, data_home, allowed=download_if_missing)
    _convert(downloaded, target, collisions)
    downloaded.unlink()  # only the download of this call; other copies belong to the user
    return target


def _check(path: Path, collisions: Collisions) -> None:
    expected = (collisions.n_rows, {*collisions.features, "y"})
    try:
        with optional("pyarrow.parquet", "datasets").ParquetFile(path) as file:
            found = (file.metadata.num_rows, set(file.schema_arrow.names))
    except optional("pyarrow", "datasets").ArrowInvalid as error:
        raise ValueError(f"{path} is not a Parquet file ({error}); delete it, then call again to create it") from None
    if found != expected:
        raise ValueError(
            f"{path} has {found[0]} rows and {len(found[1])} columns, but must have {collisions.n_rows} rows and the "
            f"columns y and x0 to x{collisions.n_features - 1}; delete it, then call again to create it"
        )


def _convert(source: Path, target: Path, collisions: Collisions) -> None:
    """Convert compressed CSV to Parquet; the file gets its name when it is complete."""
    pyarrow, parquet = optional("pyarrow", "datasets"), optional("pyarrow.parquet", "datasets")
    tqdm = optional("tqdm", "datasets")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Another process that converts at the same time writes its own file.
    unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with (
            tqdm.tqdm(total=collisions.n_rows, unit=" rows", unit_scale=True, desc=target.name) as bar,
            parquet.ParquetWriter(unfinished, _schema(collisions), compression="zstd") as writer,
        ):
            for batch in _batches(source, collisions):
                writer.write_batch(batch)
                bar.update(batch.num_rows)
        unfinished.replace(target)
    except (ValueError, pyarrow.ArrowException) as error:
        # The file is not damaged: find and download verify it.
        raise ValueError(
            f"{source} cannot be converted: {error}; its checksum is the published one, so please report this"
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _batches(source: Path, collisions: Collisions) -> Iterator[Any]:
    pyarrow, csv = optional("pyarrow", "datasets"), optional("pyarrow.csv", "datasets")
    schema = _schema(collisions)
    columns = ["y", *collisions.features]
    reader = csv.open_csv(
        source,  # it is decompressed because its name ends in .gz
        read_options=csv.ReadOptions(column_names=columns, block_size=_BLOCK_BYTES),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(columns, pyarrow.float32()), null_values=[]),
    )
    row = 0
    with reader:
        for batch in reader:
            label = batch.column("y").to_numpy()
            wrong = np.flatnonzero((label != 0) & (label != 1))
            if wrong.size:
                raise ValueError(f"the label in row {row + wrong[0]} is {label[wrong[0]]}, not 0 or 1")
            y = pyarrow.array(np.where(label == 1, 1, -1).astype(np.int8))
            yield pyarrow.record_batch([*(batch.column(name) for name in collisions.features), y], schema=schema)
            row += batch.num_rows
    if row != collisions.n_rows:
        raise ValueError(f"it has {row} rows, not {collisions.n_rows}")


def _schema(collisions: Collisions) -> Any:
    pyarrow = optional("pyarrow", "datasets")
    return pyarrow.schema([*((name, pyarrow.float32()) for name in collisions.features), ("y", pyarrow.int8())])


_BLOCK_BYTES = 32 * 2**20

# UCI publishes no checksums. That of HIGGS is in TensorFlow Datasets and several other projects; that of SUSY only in
# the benchmark scikit-learn_bench, whose checksum of HIGGS agrees with the others.
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
SUSY = Collisions(
    RemoteFile(
        "SUSY.csv.gz",
        f"{_UCI}/00279/SUSY.csv.gz",
        "be56cb5598da8ece4b13912230ee713bab8b3431a7d118e0054ffdf3a2f25664",
    ),
    n_rows=5_000_000,
    n_features=18,
)
HIGGS = Collisions(
    RemoteFile(
        "HIGGS.csv.gz",
        f"{_UCI}/00280/HIGGS.csv.gz",
        "ea302c18164d4e3d916a1e2e83a9a8d07069fa6ebc7771e4c0540d54e593b698",
        2_816_407_858,
    ),
    n_rows=11_000_000,
    n_features=28,
)
