"""Datasets: files of other people on the net: where a copy is looked for, how it is checked, and its download.

Looked for in the folder that ``BAYESVM_DATA`` names, then in the user's folder, each with its sub-folder
``raw``; only then downloaded, into the user's folder. A file counts only with the SHA-256 written down here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bayesvm.extras import optional


@dataclass(frozen=True)
class RemoteFile:
    """A file by its authors' name, its address, and the checksum and size (where known) of every true copy."""

    name: str
    url: str
    sha256: str
    n_bytes: int | None = None


def folders(data_home: str | Path | None) -> Iterator[Path]:
    """Folders that may hold a copy, first the best; the second is not asked for (nor pooch) if the first will do."""
    if shared := os.environ.get("BAYESVM_DATA"):
        yield Path(shared)
    yield user_folder(data_home)


def user_folder(data_home: str | Path | None) -> Path:
    """Where downloads go: ``data_home``, or the operating system's place for caches."""
    return Path(optional("pooch", "datasets").os_cache("bayesvm") if data_home is None else data_home).expanduser()


def find(file: RemoteFile, folder: Path) -> Path | None:
    """A copy in the folder or in its ``raw``, proved to be unaltered; None if there is none."""
    for path in (folder / file.name, folder / "raw" / file.name):
        if path.is_file():
            with path.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            if sha256 != file.sha256:
                size = "" if file.n_bytes is None else f" ({path.stat().st_size} bytes, not {file.n_bytes})"
                raise ValueError(
                    f"{path} is not the file at {file.url}: "
                    f"its SHA-256 is {sha256[:12]}…, not {file.sha256[:12]}…{size}; "
                    "delete it, then call again to download it, or put an unaltered copy in its place"
                )
            return path
    return None


def download(file: RemoteFile, data_home: str | Path | None, *, allowed: bool) -> Path:
    """The file, downloaded into the user's folder; it gets its name there only after its checksum is right."""
    folder = user_folder(data_home)
    otherwise = (
        f"get it by other means and save it as {folder / file.name} "
        "(or in the folder that the environment variable BAYESVM_DATA names)"
    )
    if not allowed:
        raise FileNotFoundError(f"{file.name} ({file.url}) is not here; pass download_if_missing=True, or {otherwise}")
    pooch, requests = optional("pooch", "datasets"), optional("requests", "datasets")
    optional("tqdm", "datasets")  # pooch draws its bar with it
    keeper = pooch.create(
        path=folder,
        base_url="",
        urls={file.name: file.url},
        registry={file.name: f"sha256:{file.sha256}"},
        retry_if_failed=_RETRIES,
    )
    # Otherwise a server may send text compressed, and the bar would not know how long it is.
    downloader = pooch.HTTPDownloader(progressbar=True, headers={"Accept-Encoding": "identity"})
    try:
        return Path(keeper.fetch(file.name, downloader=downloader))
    except requests.RequestException as error:
        # The cause is in the message; the long chain of its own causes would bury it.
        raise ConnectionError(
            f"{file.name} could not be downloaded from {file.url} ({type(error).__name__}: {error}); "
            f"try again later, or {otherwise}"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"what came from {file.url} is not {file.name} as it was published, and was deleted ({error}); "
            f"try again later, or {otherwise}"
        ) from None


_RETRIES = 2
