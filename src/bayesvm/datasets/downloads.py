"""Datasets: find, verify and download published files.

Files are searched in the folder ``BAYESVM_DATA``, then in the folder of the user, including their sub-folders ``raw``,
and otherwise downloaded to the folder of the user. A file must have the expected SHA-256.
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
    """A published file: name, URL, SHA-256 and, if known, size."""

    name: str
    url: str
    sha256: str
    n_bytes: int | None = None


def folders(data_home: str | Path | None) -> Iterator[Path]:
    """Folders that may hold a copy, in order; the second needs pooch, and is only computed if used."""
    if shared := os.environ.get("BAYESVM_DATA"):
        yield Path(shared)
    yield user_folder(data_home)


def user_folder(data_home: str | Path | None) -> Path:
    """The folder for downloads: ``data_home``, or the cache folder of the operating system."""
    return Path(optional("pooch", "datasets").os_cache("bayesvm") if data_home is None else data_home).expanduser()


def find(file: RemoteFile, folder: Path) -> Path | None:
    """A verified copy in the folder or in its sub-folder ``raw``; None if there is none."""
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
    """Download a file to the folder of the user; it gets its name only after its checksum is verified."""
    folder = user_folder(data_home)
    otherwise = (
        f"download it yourself and save it as {folder / file.name} "
        "(or in the folder that the environment variable BAYESVM_DATA names)"
    )
    if not allowed:
        raise FileNotFoundError(
            f"{file.name} ({file.url}) was not found; pass download_if_missing=True, or {otherwise}"
        )
    pooch, requests = optional("pooch", "datasets"), optional("requests", "datasets")
    optional("tqdm", "datasets")  # pooch uses it for its progress bar
    keeper = pooch.create(
        path=folder,
        base_url="",
        urls={file.name: file.url},
        registry={file.name: f"sha256:{file.sha256}"},
        retry_if_failed=_RETRIES,
    )
    # Otherwise a server may compress text, and the progress bar would not know the length.
    downloader = pooch.HTTPDownloader(progressbar=True, headers={"Accept-Encoding": "identity"})
    try:
        return Path(keeper.fetch(file.name, downloader=downloader))
    except requests.RequestException as error:
        # The message contains the cause; its long chain of causes would hide it.
        raise ConnectionError(
            f"{file.name} could not be downloaded from {file.url} ({type(error).__name__}: {error}); "
            f"try again later, or {otherwise}"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"the download from {file.url} is not the published {file.name} and was deleted ({error}); "
            f"try again later, or {otherwise}"
        ) from None


_RETRIES = 2
