"""Datasets: the small sets of Wenzel et al. 2017, from their authors' repository, byte for byte.

Rows come in the file's order, which is sorted: shuffle before splitting. The authors removed repeated rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bayesvm.datasets.downloads import RemoteFile, download, find, folders
from bayesvm.datasets.tables import FeaturesAndLabels, read_table


def fetch_raetsch(
    name: str, *, data_home: str | Path | None = None, download_if_missing: bool = True
) -> FeaturesAndLabels:
    """Rows and labels ±1 of one of Rätsch's benchmark sets as the paper used it.

    The file is looked for in the folder that ``BAYESVM_DATA`` names, then in ``data_home``, then downloaded there.

    Parameters
    ----------
    name : {"breast_cancer", "diabetes", "flare", "german", "heart", "splice", "waveform"}
        Which set.
    data_home : path or None
        Folder for downloads; None for the user's cache.
    download_if_missing : bool
        If False, a missing file is an error instead of a download.

    Returns
    -------
    X : array of shape (n_rows, n_features)
        The rows, in the file's order, which is sorted: shuffle before splitting.
    y : array of shape (n_rows,)
        Labels, -1 and +1.

    Raises
    ------
    ValueError
        If there is no set of that name.

    See Also
    --------
    fetch_usps_3v5 : The digits of the same paper.
    load_table : Tables of your own by name.

    Examples
    --------
    >>> from bayesvm.datasets import fetch_raetsch
    >>> X, y = fetch_raetsch("heart")  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (270, 13)
    """
    if name not in RAETSCH:
        raise ValueError(f"there is no set {name!r}; there are {', '.join(RAETSCH)}")
    path = _locate(RAETSCH[name], f"{name}_raetsch", data_home, download_if_missing=download_if_missing)
    if path.suffix == ".parquet":
        return read_table(path)
    table = np.loadtxt(path, delimiter=",", ndmin=2)
    return table[:, :-1].copy(), table[:, -1].astype(np.int64)


def fetch_usps_3v5(*, data_home: str | Path | None = None, download_if_missing: bool = True) -> FeaturesAndLabels:
    """Handwritten digits of 16 × 16 grey values in [-1, 1]: 3 is +1, 5 is -1.

    The first 1214 rows are the official training part. The file is looked for and downloaded as by ``fetch_raetsch``.

    Parameters
    ----------
    data_home : path or None
        Folder for downloads; None for the user's cache.
    download_if_missing : bool
        If False, a missing file is an error instead of a download.

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
        # The authors' file before the Parquet form of it, because its checksum is known.
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
