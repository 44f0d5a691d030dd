"""Data: a temporary folder for copies of files that are slow to read, removed with the table."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path


class WorkingCopy:
    """A new temporary folder. It is removed by ``remove``, with its owner, or at the end of the program."""

    def __init__(self, inside: str | PathLike[str] | None) -> None:
        if inside is not None and not Path(inside).is_dir():
            raise NotADirectoryError(f"copy_to={str(inside)!r} is not a folder; create it first, or use another")
        self.folder = Path(tempfile.mkdtemp(prefix="bayesvm-", dir=inside))
        self.remove = weakref.finalize(self, _remove, self.folder, os.getpid())

    @property
    def n_bytes(self) -> int:
        """The number of bytes written so far."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def require_present(self) -> None:
        """Raise an error if the table was closed."""
        if not self.remove.alive:
            raise ValueError("this table was closed and its working copy removed; call open_table again")

    @contextmanager
    def writing(self, progress: str) -> Iterator[None]:
        """Turn a full disk into an error with a remedy."""
        try:
            yield
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            raise OSError(
                error.errno,
                f"no space is left for the working copy in {self.folder.parent}: {self.n_bytes / 1e6:,.1f} MB were "
                f"written, {progress}. Free space there, or choose another folder with copy_to=",
            ) from error


def _remove(folder: Path, owner: int) -> None:
    """Remove the folder, except in a forked child, which ends before the process that reads the copy."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
