"""Damaged tables, read in another process: a table may be refused, but nothing may end the process that reads it."""

import io
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from select import select

import numpy as np
import pyarrow as pa
from pyarrow import feather, ipc, parquet

N_ROWS = 300
READ, REFUSED, NO_FILE = "read", "rejected", "rejected without the name of the file"
MOST_SECONDS = 60.0  # for one table
NUMBERS = np.array([-1, 1, 2**7, 2**15, 2**31 - 1, -(2**31)], "<i4")  # what a damaged offset may well be


def content():
    """Numbers, text, categories, text in lists, and gaps in all of them."""
    texts = ["a", "été", None, "a text that is longer than a view of it holds inline"]
    chosen = [texts[row * row % 4] for row in range(N_ROWS)]
    return pa.table(
        {
            "x": [None if row % 17 == 3 else row / 7 for row in range(N_ROWS)],
            "text": chosen,
            "category": pa.array(chosen).dictionary_encode(),
            "list": [None if row % 11 == 5 else [text] * (row % 3) for row, text in enumerate(chosen)],
            "y": [f"class {row % 3}" for row in range(N_ROWS)],
        }
    )


def whole_files():
    """Names and bytes of undamaged files, from several writers."""
    table = content()
    written = {}

    def add(name, write):
        sink = io.BytesIO()
        write(sink)
        written[name] = sink.getvalue()

    def arrow(given):
        def write(sink):
            with ipc.new_file(sink, given.schema) as writer:
                writer.write_table(given, max_chunksize=200)

        return write

    add("plain.arrow", arrow(table))
    add("views.arrow", arrow(with_views(table)))
    add("lz4.feather", lambda sink: feather.write_feather(table, sink, compression="lz4", chunksize=200))
    add("zstd.feather", lambda sink: feather.write_feather(table, sink, compression="zstd", chunksize=200))
    add("plain.parquet", lambda sink: parquet.write_table(table, sink, compression="none", use_dictionary=False))
    add("snappy.parquet", lambda sink: parquet.write_table(table, sink, compression="snappy", row_group_size=200))
    return written


def with_views(table):
    """Text as polars writes it; a pyarrow without views leaves it as it is."""
    if not hasattr(pa, "string_view"):
        return table
    indices = table["category"].combine_chunks()
    categories = pa.DictionaryArray.from_arrays(indices.indices, indices.dictionary.cast(pa.string_view()))
    views = table.set_column(2, "category", categories)
    return views.set_column(1, "text", table["text"].cast(pa.string_view()))


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes with some of them changed, exchanged, overwritten by a number, or cut off."""
    changed = bytearray(data)
    kind = rng.integers(8)
    if kind == 0:
        del changed[int(rng.integers(len(changed))) :]
    elif kind == 1:
        start, length = int(rng.integers(len(changed))), int(rng.integers(1, 64))
        changed[start : start + length] = rng.bytes(len(changed[start : start + length]))
    elif kind <= 4:
        place = 4 * int(rng.integers(len(changed) // 4 - 1))
        changed[place : place + 4] = rng.choice(NUMBERS).tobytes()
    else:
        for place in rng.integers(len(changed), size=int(rng.integers(1, 9))):
            changed[place] ^= int(rng.integers(1, 256))
    return bytes(changed)


def read_in_all_ways(path):
    """Read a table as ``fit``, ``predict`` with kept columns and ``open_table`` do."""
    from bayesvm import open_table  # noqa: PLC0415  (only the process that is attacked needs it)
    from bayesvm.preparation import learn, open_files  # noqa: PLC0415

    with open_table(path, "y", columns=["x"]) as table:
        for batch in table.columns(["list", "text", "category", "x", "y"]):
            batch.to_pylist()
    opened = open_files(path)
    with opened.table(learn(opened, ["y"], drop=["list"]), "y") as table:
        for _ in table.targets():
            pass
        for _ in table.batches(77):
            pass
        table.rows(np.arange(0, table.n_rows, 3))


def outcome(path):
    """The outcome for one file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read_in_all_ways(path)
        except Exception as error:  # noqa: BLE001  (all of them are counted)
            named = isinstance(error, (OSError, ValueError, TypeError, MemoryError)) and Path(path).name in str(error)
            return REFUSED if named else f"{NO_FILE} ({type(error).__name__})"
    return READ


class Reader:
    """Another process that reads tables, and may die of it."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.tables"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=Path(__file__).parents[2],
        )

    def outcome(self, path):
        """The outcome for one file; the reader survived unless it is ``died`` or ``hung``."""
        print(path, file=self._process.stdin, flush=True)
        ready, _, _ = select([self._process.stdout], [], [], MOST_SECONDS)
        line = self._process.stdout.readline().strip() if ready else ""
        if line:
            return line
        if ready:
            return f"died with {self._process.wait()}"
        return f"hung for {MOST_SECONDS:g} seconds"

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def attack(n_tables: int, seed: int, folder: Path | None = None) -> Counter:
    """How often each outcome came up; tables that ended the reader or gave no name are left in ``folder``, if given."""
    rng = np.random.default_rng(seed)
    files = list(whole_files().items())
    counts: Counter = Counter()
    reader = Reader()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for number in range(n_tables):
                name, whole = files[number % len(files)]
                path = Path(scratch) / f"{number}-{name}"
                path.write_bytes(damaged(whole, rng))
                found = reader.outcome(path)
                counts[found] += 1
                if found not in {READ, REFUSED} and folder is not None:
                    shutil.copy(path, folder)
                if found.startswith(("died", "hung")):
                    reader.close()
                    reader = Reader()
                path.unlink()
    finally:
        reader.close()
    return counts


if __name__ == "__main__":
    for line in sys.stdin:
        print(outcome(line.strip()), flush=True)  # noqa: T201  (the answer to the process that asks)
