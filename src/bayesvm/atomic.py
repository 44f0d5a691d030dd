"""Atomic writes: models, checkpoints, predictions, reports and ONNX graphs appear completely or not at all."""

from __future__ import annotations

import errno
import glob
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from secrets import token_hex

LONGEST_NAME = 100  # bytes of a file name in the name of its temporary file; some file systems allow 143 in total
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary file next to ``path``, which replaces ``path`` at the end of the ``with`` statement.

    Until then, and after any error, ``path`` is unchanged. A replaced file keeps its permissions; a new file has those
    of the umask. A device or a pipe cannot be replaced and is written to directly.
    """
    target = Path(os.path.realpath(path))  # follow symbolic links, like open()
    with naming(path):
        old = _replaced(target)
    if old is not None and not stat.S_ISREG(old.st_mode):
        yield target
        return
    temporary = target.with_name(_unfinished(target.name, token_hex(8)))
    try:
        with naming(path):
            # Other users must not read it before it has the permissions of the file that it replaces.
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if old is None else 0o600))
        yield temporary
        with naming(path):
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if old is not None:
                _keep_permissions(old, temporary)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write bytes so that ``path`` either contains all of them or is unchanged."""
    with replacing(path) as temporary, naming(path):
        temporary.write_bytes(content)


def try_to_write(path: str | PathLike[str], n_bytes: int = 0) -> None:
    """Raise the errors that writing this many bytes to ``path`` would raise; leaves no file."""
    target = Path(os.path.realpath(path))
    with naming(path):
        old = _replaced(target)
        if old is not None and not stat.S_ISREG(old.st_mode):
            return
        temporary = target.with_name(_unfinished(target.name, token_hex(8)))
        try:
            with temporary.open("xb") as file:
                _reserve(file.fileno(), n_bytes)
        finally:
            temporary.unlink(missing_ok=True)


def remove_unfinished(path: str | PathLike[str]) -> None:
    """Remove temporary files of processes that were killed while they wrote a file."""
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(_unfinished(target.name, "[0-9a-f]" * 16, glob.escape)):
        left.unlink(missing_ok=True)


@contextmanager
def naming(path: str | PathLike[str]) -> Iterator[None]:
    """Name ``path`` in system errors, not the temporary file."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        message = f"{os.fspath(path)} could not be written ({why}); the previous file is unchanged"
        raise (OSError(error.errno, message) if error.errno else OSError(message)) from error


def _replaced(target: Path) -> os.stat_result | None:
    """The existing file, which the user must be allowed to write, as for open()."""
    try:
        old = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return old


def _keep_permissions(old: os.stat_result, temporary: Path) -> None:
    for owner in (old.st_uid, -1):  # only root can change the owner, but others can keep the group
        with suppress(OSError, AttributeError):  # Windows has no owners
            os.chown(temporary, owner, old.st_gid)
            break
    new, mode = temporary.stat(), stat.S_IMODE(old.st_mode)
    if new.st_gid != old.st_gid:
        mode &= ~stat.S_IRWXG  # another group must not get the permissions of the old group
    if stat.S_IMODE(new.st_mode) != mode:  # some file systems have a fixed mode and refuse to change it
        temporary.chmod(mode)


def _unfinished(name: str, token: str, escaped: Callable[[str], str] = str) -> str:
    """The name of a temporary file; long names are cut between characters and get a checksum."""
    cut = name
    while len(os.fsencode(cut)) > LONGEST_NAME:
        cut = cut[:-1]
    if cut != name:
        cut += f"~{zlib.crc32(os.fsencode(name)):08x}"
    return f".{escaped(cut)}-{token}.bayesvm.tmp"


def _reserve(file: int, n_bytes: int) -> None:
    """Reserve space on the disk, on systems that support it."""
    if n_bytes and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, n_bytes)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
