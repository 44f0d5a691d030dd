"""Data: group the rows of a table that does not fit into memory into buckets, in one pass, in a working copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bayesvm.core.latent import Block
from bayesvm.core.linalg import Array
from bayesvm.core.workspace import Workspace
from bayesvm.data.blocks import HELD_ENTRIES, BucketRows, RowNumbers
from bayesvm.data.memory import stacked
from bayesvm.data.scaling import Scaler
from bayesvm.data.tables.working_copy import WorkingCopy
from bayesvm.data.workers import Workers

Result = TypeVar("Result")
PARTS = ("X", "y", "weight")


@dataclass(frozen=True)
class BucketFiles:
    """Three files, for X, y and weights. Each consists of *runs* of rows, and each run is sorted by bucket.

    ``starts`` has, for every run, the position where each bucket begins in the files, and where the run ends. A bucket
    is read from one position per run; runs are as long as memory allows.
    """

    copy: WorkingCopy
    starts: Sequence[RowNumbers]
    numbers: Sequence[RowNumbers]  # of the rows of every run, in the table
    kinds: Sequence[np.dtype[Any] | None]  # of X, y and weight; None where there is none
    n_features: int
    scaler: Scaler
    workers: Workers

    @classmethod
    def of(
        cls,
        blocks: Iterable[Block],
        bucket_of: Callable[[Array], RowNumbers],
        n_buckets: int,
        scaler: Scaler,
        workers: Workers,
        folder: str | PathLike[str] | None = None,
    ) -> BucketFiles:
        """Build the files from unscaled blocks in the order of the table, in a new folder inside ``folder``."""
        copy = WorkingCopy(folder)
        starts, numbers, kinds = list[RowNumbers](), list[RowNumbers](), list[np.dtype[Any] | None]()
        written = n_features = 0
        try:
            with ExitStack() as stack:
                files = [stack.enter_context((copy.folder / name).open("wb")) for name in PARTS]
                for rows in _runs(blocks):
                    bucket = np.concatenate(list(_buckets_of(rows.X, bucket_of, scaler, workers)))
                    order = np.argsort(bucket, kind="stable")
                    with copy.writing(f"{written:,} rows are sorted"):
                        for file, part in zip(files, rows, strict=True):
                            if part is not None:
                                part[order].tofile(file)
                    count = np.bincount(bucket, minlength=n_buckets)
                    starts.append(written + np.concatenate([[0], np.cumsum(count)]).astype(np.intp))
                    numbers.append((written + order).astype(np.intp))
                    kinds, n_features = [None if part is None else part.dtype for part in rows], rows.X.shape[1]
                    written += len(order)
        except BaseException:
            copy.remove()
            raise
        return cls(copy, starts, numbers, kinds, n_features, scaler, workers)

    def map(self, function: Callable[[list[BucketRows]], Result], groups: Sequence[Sequence[int]]) -> Iterator[Result]:
        def work(group: Sequence[int], _: Workspace) -> Result:
            self.workers.check()
            return function([self._rows(bucket) for bucket in group])

        return self.workers.map(work, groups)

    def _rows(self, bucket: int) -> BucketRows:
        positions = [(int(start[bucket]), int(start[bucket + 1])) for start in self.starts]
        numbers = [
            number[first - int(start[0]) : stop - int(start[0])]
            for number, start, (first, stop) in zip(self.numbers, self.starts, positions, strict=True)
        ]
        X, y, weight = (
            None if kind is None else self._read(name, kind, positions)
            for name, kind in zip(PARTS, self.kinds, strict=True)
        )
        rows = np.asarray(X).reshape(-1, self.n_features)
        return BucketRows(bucket, Block(np.array(self.scaler(rows)), np.asarray(y), weight), np.concatenate(numbers))

    def _read(self, name: str, kind: np.dtype[Any], positions: Sequence[tuple[int, int]]) -> npt.NDArray[Any]:
        width = self.n_features if name == "X" else 1
        with (self.copy.folder / name).open("rb") as file:
            parts = []
            for first, stop in positions:
                file.seek(first * width * kind.itemsize)
                parts.append(np.fromfile(file, kind, (stop - first) * width))
        return np.concatenate(parts)


def _runs(blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks concatenated to as many rows as memory can hold."""
    held, size = list[Block](), 0
    for block in blocks:
        held.append(block)
        size += block.X.shape[0] * block.X.shape[1]
        if size >= HELD_ENTRIES:
            yield stacked(held, sum(len(part.y) for part in held))
            held, size = [], 0
    if held:
        yield stacked(held, sum(len(part.y) for part in held))


def _buckets_of(
    X: Any, bucket_of: Callable[[Array], RowNumbers], scaler: Scaler, workers: Workers, at_once: int = 8_192
) -> Iterator[RowNumbers]:
    def work(first: int, _: Workspace) -> RowNumbers:
        workers.check()
        return bucket_of(scaler(X[first : first + at_once]))

    return workers.map(work, range(0, len(X), at_once))
