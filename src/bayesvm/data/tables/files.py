"""Data: find the files of a table, determine their format, and check that they have not changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from os import PathLike, fspath
from pathlib import Path
from typing import Self

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

FORMATS = {
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "Arrow"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".libsvm", ".svmlight", ".svm"), "LIBSVM"),
}
EXCEL = {".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"}
COMPRESSIONS = {"CSV": {".gz", ".bz2", ".zst", ".lz4"}, "LIBSVM": {".gz", ".bz2"}}


@dataclass(frozen=True)
class SourceFile:
    """A file, with its state when it was opened first."""

    path: Path
    size: int
    modified: int  # in nanoseconds

    @classmethod
    def at(cls, path: Path) -> Self:
        """The file in its current state."""
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns)

    def require_unchanged(self) -> None:
        """Raise an error if the file has changed, because row numbers refer to its earlier state."""
        try:
            now = self.at(self.path)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self.path} has disappeared since open_table read it; restore it, or call open_table again"
            ) from error
        if now != self:
            raise OSError(
                f"{self.path} has changed since open_table read it ({self.size:,} bytes then, {now.size:,} now); "
                "call open_table again when no other program writes to it"
            )

    def __str__(self) -> str:
        return str(self.path)


def find_files(source: Paths) -> tuple[str, list[SourceFile]]:
    """The files of a table and their common format."""
    paths = _paths(source)
    kind, first = _format(paths[0]), paths[0]
    for path in paths:
        if (other := _format(path)) != kind:
            raise ValueError(f"{first} is {kind}, but {path} is {other}; all files of a table must have one format")
    files = [_existing(path) for path in paths]
    _require_each_once(paths)
    return kind, files


def _require_each_once(paths: Sequence[Path]) -> None:
    """Reject duplicate files: their rows would count twice, and could be both held out and in training."""
    seen: dict[Path, Path] = {}
    for path in paths:
        before = seen.setdefault(path.resolve(), path)
        if before is not path:
            also = f", also as {path}" if path != before else ""
            raise ValueError(f"{before} is listed twice{also}: its rows would count twice; list it once")


def _paths(source: Paths) -> list[Path]:
    if hasattr(source, "columns") or hasattr(source, "shape"):
        raise TypeError(f"open_table takes files; pass the {type(source).__name__} directly to fit or predict")
    if isinstance(source, str) and "://" in source:
        raise ValueError(f"{source}: only local files can be read; copy it to this machine first, or read it with Dask")
    if not isinstance(source, str | PathLike | Sequence):
        raise TypeError(f"open_table takes a path, a pattern or a list of paths; got {source!r}")
    if not isinstance(source, str | PathLike):
        paths = [Path(path).expanduser() for path in source]
        if not paths:
            raise ValueError("the list of files is empty; give at least one")
        return paths
    path = Path(source).expanduser()
    if path.is_dir():
        paths = _sorted(path.iterdir())
        if not paths:
            raise FileNotFoundError(
                f"the folder {path} has no files (subfolders, and names that begin with . or _, are ignored); "
                f"for files in subfolders use a pattern such as '{path}/**/*.parquet'"
            )
        return paths
    if path.exists() or not any(wildcard in fspath(source) for wildcard in "*?["):
        return [path]
    paths = _sorted(map(Path, glob(str(path), recursive=True)))  # noqa: PTH207  (Path.glob takes no absolute patterns)
    if not paths:
        raise FileNotFoundError(
            f"no file matches {fspath(source)!r} (names that begin with . or _ are ignored); "
            f"the current folder is {Path.cwd()}"
        )
    return paths


def _sorted(paths: Iterable[Path]) -> list[Path]:
    """The files in order, without auxiliary files of other programs: _SUCCESS, _metadata and .crc files."""
    return sorted(path for path in paths if not path.name.startswith((".", "_")) and not path.is_dir())


def _format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]] or [""]
    if suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    inner = FORMATS.get(suffixes[0], "")
    if suffixes[-1] in COMPRESSIONS.get(inner, ()):
        return inner
    if suffixes[-1] in EXCEL:
        raise ValueError(f"{path} is an Excel workbook: save the sheet as CSV and open that file")
    compressed = "; ".join(f"{name} may also end in {', '.join(sorted(ends))}" for name, ends in COMPRESSIONS.items())
    raise ValueError(
        f"the format of {path} cannot be determined from its name: supported are {', '.join(FORMATS)} ({compressed}). "
        "Rename the file, convert it, or select the files to read with a pattern such as 'folder/*.parquet'"
    )


def _existing(path: Path) -> SourceFile:
    if not path.is_file():
        what = "is a folder; pass it alone, not in a list" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {what} (the current folder is {Path.cwd()})")
    return SourceFile.at(path)
