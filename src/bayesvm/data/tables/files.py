"""Data: which files a table is made of, what they hold, and whether they are still the same."""

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
    **dict.fromkeys((".csv", ".tsv"), "CSV"),
    **dict.fromkeys((".libsvm", ".svmlight", ".svm"), "LIBSVM"),
}
EXCEL = {".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"}
COMPRESSIONS = {"CSV": {".gz", ".bz2", ".zst", ".lz4"}, "LIBSVM": {".gz", ".bz2"}}


@dataclass(frozen=True)
class SourceFile:
    """A file as it was when it was first looked at."""

    path: Path
    size: int
    modified: int  # in nanoseconds

    @classmethod
    def at(cls, path: Path) -> Self:
        """The file as it is now."""
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns)

    def require_unchanged(self) -> None:
        """Rows that were counted in one state of a file must not be looked for in another."""
        try:
            now = self.at(self.path)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{self.path} is gone since open_table looked at it; put it back, or call open_table again"
            ) from error
        if now != self:
            raise OSError(
                f"{self.path} was changed since open_table looked at it ({self.size:,} bytes then, {now.size:,} now); "
                "call open_table again when nothing writes to it any more"
            )

    def __str__(self) -> str:
        return str(self.path)


def find_files(source: Paths) -> tuple[str, list[SourceFile]]:
    """The files of a table, and the format that they share."""
    paths = _paths(source)
    kind, first = _format(paths[0]), paths[0]
    for path in paths:
        if (other := _format(path)) != kind:
            raise ValueError(f"{first} is {kind}, but {path} is {other}; a table is made of files of one format")
    files = [_existing(path) for path in paths]
    _require_each_once(paths)
    return kind, files


def _require_each_once(paths: Sequence[Path]) -> None:
    """Rows that are read twice would count twice, and stand among those held out as well as in training."""
    seen: dict[Path, Path] = {}
    for path in paths:
        before = seen.setdefault(path.resolve(), path)
        if before is not path:
            also = f", also as {path}" if path != before else ""
            raise ValueError(f"{before} is given twice{also}: its rows would count twice; give it once")


def _paths(source: Paths) -> list[Path]:
    if hasattr(source, "columns") or hasattr(source, "shape"):
        raise TypeError(f"open_table takes files; give the {type(source).__name__} to fit or predict as it is")
    if isinstance(source, str) and "://" in source:
        raise ValueError(f"{source}: only files of this machine are read; copy it here first, or read it with Dask")
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
                f"there is no file in the folder {path} (folders inside it, and names that begin with . or _, are not "
                f"looked at); for files in inner folders give a pattern such as '{path}/**/*.parquet'"
            )
        return paths
    if path.exists() or not any(wildcard in fspath(source) for wildcard in "*?["):
        return [path]
    paths = _sorted(map(Path, glob(str(path), recursive=True)))  # noqa: PTH207  (Path.glob takes no absolute patterns)
    if not paths:
        raise FileNotFoundError(
            f"no file matches {fspath(source)!r} (names that begin with . or _ are left out); "
            f"the present folder is {Path.cwd()}"
        )
    return paths


def _sorted(paths: Iterable[Path]) -> list[Path]:
    """Files only, without what other programs leave beside their tables: _SUCCESS, _metadata, .crc files."""
    return sorted(path for path in paths if not path.name.startswith((".", "_")) and not path.is_dir())


def _format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]] or [""]
    if suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    inner = FORMATS.get(suffixes[0], "")
    if suffixes[-1] in COMPRESSIONS.get(inner, ()):
        return inner
    if suffixes[-1] in EXCEL:
        raise ValueError(f"{path} is an Excel workbook: save the sheet as CSV, and give that file")
    compressed = "; ".join(f"{name} may also end in {', '.join(sorted(ends))}" for name, ends in COMPRESSIONS.items())
    raise ValueError(
        f"the format of {path} cannot be told from its name: known are {', '.join(FORMATS)} ({compressed}). "
        "Rename the file, convert it, or name the files to read with a pattern such as 'folder/*.parquet'"
    )


def _existing(path: Path) -> SourceFile:
    if not path.is_file():
        what = "is a folder; give it alone, not in a list" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {what} (the present folder is {Path.cwd()})")
    return SourceFile.at(path)
