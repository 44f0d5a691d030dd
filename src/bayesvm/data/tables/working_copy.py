"""Data: a folder for copies of files that are slow to read, gone when the table is."""

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
    """A fresh temporary folder. It is removed by ``remove``, with its owner, or at the end of the program."""

    def __init__(self, inside: str | PathLike[str] | None) -> None:
        if inside is not None and not Path(inside).is_dir():
            raise NotADirectoryError(f"copy_to={str(inside)!r} is no folder; make it first, or give another")
        self.folder = Path(tempfile.mkdtemp(prefix="bayesvm-", dir=inside))
        self.remove = weakref.finalize(self, _remove, self.folder, os.getpid())

    @property
    def n_bytes(self) -> int:
        """Bytes written so far."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def require_present(self) -> None:
        """A table that was closed has nothing to read any more."""
        if not self.remove.alive:
            raise ValueError("this table was closed, and its working copy is gone; call open_table again")

    @contextmanager
    def writing(self, progress: str) -> Iterator[None]:
        """Say what to do when the disk is full."""
        try:
            yield
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            raise OSError(
                error.errno,
                f"no space is left for the working copy in {self.folder.parent}: {self.n_bytes / 1e6:,.1f} MB were "
                f"written, {progress}. Make room there, or choose another place with copy_to=",
            ) from error


def _remove(folder: Path, owner: int) -> None:
    """Not in a forked child, which ends before the process that reads the copy."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
