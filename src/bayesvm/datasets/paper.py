"""Datasets: the small data sets of Wenzel et al. 2017, from the repository of the authors, unchanged.

Rows have the order of the file, which is sorted: shuffle before splitting. The authors removed repeated rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bayesvm.datasets.downloads import RemoteFile, download, find, folders
from bayesvm.datasets.tables import FeaturesAndLabels, read_table


def fetch_raetsch(
    name: str, *, data_home: str | Path | None = None, download_if_missing: bool = True
) -> FeaturesAndLabels:
    """Load one of the benchmark data sets of Rätsch, as used in the paper.

    The file is searched in the folder ``BAYESVM_DATA``, then in ``data_home``, and otherwise downloaded to it.

    Parameters
    ----------
    name : {"breast_cancer", "diabetes", "flare", "german", "heart", "splice", "waveform"}
        Name of the data set.
    data_home : path, optional
        Folder for downloads; by default the cache folder of the user.
    download_if_missing : bool, default=True
        Whether to download a missing file, instead of raising an error.

    Returns
    -------
    X : array of shape (n_rows, n_features)
        The rows, in the sorted order of the file: shuffle before splitting.
    y : array of shape (n_rows,)
        Labels, -1 and +1.

    Raises
    ------
    ValueError
        If there is no data set with this name.

    See Also
    --------
    fetch_usps_3v5 : The digits of the same paper.
    load_table : Load your own tables by name.

    Examples
    --------
    >>> from bayesvm.datasets import fetch_raetsch
    >>> X, y = fetch_raetsch("heart")  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (270, 13)
    """
    if name not in RAETSCH:
        raise ValueError(f"data set {name!r} does not exist; there are {', '.join(RAETSCH)}")
    path = _locate(RAETSCH[name], f"{name}_raetsch", data_home, download_if_missing=download_if_missing)
    if path.suffix == ".parquet":
        return read_table(path)
    table = np.loadtxt(path, delimiter=",", ndmin=2)
    return table[:, :-1].copy(), table[:, -1].astype(np.int64)


def fetch_usps_3v5(*, data_home: str | Path | None = None, download_if_missing: bool = True) -> FeaturesAndLabels:
    """Load the USPS digits 3 (+1) and 5 (-1), of 16 × 16 grey values in [-1, 1].

    The first 1214 rows are the official training set. The file is searched and downloaded as in ``fetch_raetsch``.

    Parameters
    ----------
    data_home : path, optional
        Folder for downloads; by default the cache folder of the user.
    download_if_missing : bool, default=True
        Whether to download a missing file, instead of raising an error.

    Returns
    -------
    X : array of shape (n_rows, 256)
        Grey values.
    y : array of shape (n_rows,)
        Labels, -1 and +1.

    See Also
    --------
    fetch_raetsch : The small tables of the same paper.

    Examples
    --------
    >>> from bayesvm.datasets import fetch_usps_3v5
    >>> X, y = fetch_usps_3v5()  # doctest: +SKIP
    >>> X.shape[1]  # doctest: +SKIP
    256
    """
    path = _locate(USPS, "usps_3v5", data_home, download_if_missing=download_if_missing)
    if path.suffix == ".parquet":
        return read_table(path)
    table = np.loadtxt(path, delimiter=";", ndmin=2)
    return table[:, 1:].copy(), np.where(table[:, 0] == 3, 1, -1).astype(np.int64)


def _locate(file: RemoteFile, table: str, data_home: str | Path | None, *, download_if_missing: bool) -> Path:
    for folder in folders(data_home):
        # The file of the authors takes precedence over its Parquet form, because its checksum is known.
        if path := find(file, folder):
            return path
        if (path := folder / f"{table}.parquet").is_file():
            return path
    return download(file, data_home, allowed=download_if_missing)


_AUTHORS = "https://raw.githubusercontent.com/theogf/BayesianSVM/d00cd735a2193f7ab5dde6d322d951a37a4225ae/data"
_FILES = {
    "breast_cancer": ("BreastCancer", "5bfffae8f7803df00e717f81860e71c2f871f38f960f66f14b2799751f6c9ef0", 27_597),
    "diabetes": ("Diabetis", "62682eef145f8fabb96aba5b6cd2594fc3259103c19b825effa20bae8911ace4", 72_969),
    "flare": ("Flare", "85235c5b4800b76a385776f0fdcf086665a68b0d06ada62cccdf8a676a10bb5f", 2_930),
    "german": ("German", "a9f0d55a41e2a27c6cb643f69ab04fb04d7fa2f020f64f56b6046bc75b1d8c62", 229_774),
    "heart": ("Heart", "606c5b7f9108aef5e0725010d8bd458250512ac0ddee70d875976f488ce64583", 41_264),
    "splice": ("Splice", "cdad70b85c742d6740a7f96e91b034592dcca4a0bb4db3b4595825bee8f0cdc3", 366_549),
    "waveform": ("Waveform", "08658b8b87b96345b8f1796b78da52ae0dd279da09e9184b4d7a0f4a433b70b2", 1_215_085),
}
RAETSCH = {
    name: RemoteFile(f"Processed_{theirs}.data", f"{_AUTHORS}/Processed_{theirs}.data", sha256, n_bytes)
    for name, (theirs, sha256, n_bytes) in _FILES.items()
}
USPS = RemoteFile(
    "USPS.csv",
    f"{_AUTHORS}/USPS.csv",
    "76d9ff03c0f8bacf2d41beeb1ef3121becebfd9a17c43a02673d85cd337def9e",
    2_908_381,
)
