"""Files from the net: a real server on this machine that serves them whole, cut short or altered, or not at all."""

import gzip
import hashlib
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from bayesvm.datasets import (
    collisions,
    downloads,
    fetch_higgs,
    fetch_raetsch,
    fetch_susy,
    fetch_usps_3v5,
    load_rows,
    paper,
)
from bayesvm.datasets.downloads import RemoteFile

pooch = pytest.importorskip("pooch")
pytest.importorskip("tqdm")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

HEART = b"0.5,1,-1\n-2,3e-1,1\n"
DIGITS = b"3.0000;-1.0000;0.25\n5.0000;1.00;-0.5\n"


class Server(ThreadingHTTPServer):
    """Serves ``content``; what ``cut`` names stops in the middle; ``failures`` first answers are errors."""

    daemon_threads = True

    def __init__(self):
        self.content, self.cut, self.failures, self.asked = {}, set(), 0, []
        super().__init__(("127.0.0.1", 0), Handler)

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/")
        self.server.asked.append(name)
        if self.server.failures:
            self.server.failures -= 1
            self.send_error(503)
        elif name not in self.server.content:
            self.send_error(404)
        else:
            content = self.server.content[name]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if name in self.server.cut else content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("BAYESVM_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(downloads, "_RETRIES", 0)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def heart(server, monkeypatch):
    file = published(server, "Processed_Heart.data", HEART)
    monkeypatch.setitem(paper.RAETSCH, "heart", file)
    return file


@pytest.fixture
def susy(server, monkeypatch):
    """40 rows of 3 features; the tests of failures replace what is to be expected of it."""
    rng = np.random.default_rng(0)
    label, X = rng.integers(0, 2, 40), rng.standard_normal((40, 3)).astype(np.float32)
    lines = (f"{y:.18e},{','.join(f'{x:.18e}' for x in row)}\n" for y, row in zip(label, X, strict=True))
    file = published(server, "SUSY.csv.gz", gzip.compress("".join(lines).encode()))
    monkeypatch.setattr(collisions, "SUSY", collisions.Collisions(file, n_rows=40, n_features=3))
    monkeypatch.setattr(collisions, "_BLOCK_BYTES", 1000)
    return X, 2 * label - 1


def published(server, name, content):
    server.content[name] = content
    return RemoteFile(name, server.url(name), hashlib.sha256(content).hexdigest(), len(content))


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_file_is_downloaded_once_and_then_read_without_the_net(server, heart, tmp_path):
    for _ in range(2):
        X, y = fetch_raetsch("heart", data_home=tmp_path)
        np.testing.assert_array_equal(X, [[0.5, 1], [-2, 0.3]])
        np.testing.assert_array_equal(y, [-1, 1])
        assert (X.dtype, y.dtype) == (np.float64, np.int64)
    assert server.asked == [heart.name]
    assert files(tmp_path) == [heart.name]


def test_digit_three_is_positive(server, monkeypatch, tmp_path):
    monkeypatch.setattr(paper, "USPS", published(server, "USPS.csv", DIGITS))
    X, y = fetch_usps_3v5(data_home=tmp_path)
    np.testing.assert_array_equal(X, [[-1, 0.25], [1, -0.5]])
    np.testing.assert_array_equal(y, [1, -1])


def test_the_users_cache_is_the_default(heart, monkeypatch, tmp_path):
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / project)
    fetch_raetsch("heart")
    assert (tmp_path / "bayesvm" / heart.name).read_bytes() == HEART


@pytest.mark.parametrize("place", ["Processed_Heart.data", "raw/Processed_Heart.data", "heart_raetsch.parquet"])
def test_the_shared_folder_comes_before_the_cache(place, server, heart, monkeypatch, tmp_path):
    shared, home = tmp_path / "shared", tmp_path / "home"
    (shared / place).parent.mkdir(parents=True)
    if place.endswith("parquet"):
        parquet.write_table(pyarrow.table({"x0": [0.5, -2.0], "x1": [1.0, 0.3], "y": [-1, 1]}), shared / place)
    else:
        (shared / place).write_bytes(HEART)
    home.mkdir()
    (home / heart.name).write_bytes(b"this would be refused")
    monkeypatch.setenv("BAYESVM_DATA", str(shared))
    X, y = fetch_raetsch("heart", data_home=home)
    np.testing.assert_array_equal(X, [[0.5, 1], [-2, 0.3]])
    np.testing.assert_array_equal(y, [-1, 1])
    assert server.asked == []


def test_without_pooch_the_shared_folder_still_serves(heart, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pooch.*bayesvm\[datasets\]"):
        fetch_raetsch("heart")
    (tmp_path / heart.name).write_bytes(HEART)
    monkeypatch.setenv("BAYESVM_DATA", str(tmp_path))
    assert fetch_raetsch("heart")[0].shape == (2, 2)


def test_an_altered_copy_is_refused(server, heart, tmp_path):
    copy = tmp_path / heart.name
    copy.write_bytes(HEART.replace(b"3", b"4"))
    found = hashlib.sha256(copy.read_bytes()).hexdigest()
    with pytest.raises(ValueError, match=f"{heart.name} is not.*{found[:12]}….*{heart.sha256[:12]}….*delete it"):
        fetch_raetsch("heart", data_home=tmp_path)
    assert server.asked == []


@pytest.mark.parametrize("content", [HEART[:9], HEART.replace(b"3", b"4")], ids=["shorter", "altered"])
def test_a_wrong_download_is_refused_and_removed(content, server, heart, tmp_path):
    server.content[heart.name] = content
    with pytest.raises(ValueError, match=f"{heart.url} is not the published {heart.name}"):
        fetch_raetsch("heart", data_home=tmp_path)
    assert files(tmp_path) == []
    server.content[heart.name] = HEART
    assert fetch_raetsch("heart", data_home=tmp_path)[0].shape == (2, 2)


def test_a_download_that_stops_in_the_middle_leaves_nothing(server, heart, tmp_path):
    server.cut.add(heart.name)
    with pytest.raises(ConnectionError, match=f"{heart.name} could not be downloaded from {heart.url}"):
        fetch_raetsch("heart", data_home=tmp_path)
    assert files(tmp_path) == []


def test_a_server_in_trouble_is_asked_again(server, heart, monkeypatch, tmp_path):
    monkeypatch.setattr(downloads, "_RETRIES", 2)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    server.failures = 2
    assert fetch_raetsch("heart", data_home=tmp_path)[0].shape == (2, 2)
    assert len(server.asked) == 3


def test_offline_the_error_says_what_to_put_where(heart, monkeypatch, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setitem(paper.RAETSCH, "heart", replace(heart, url=f"http://127.0.0.1:{port}/heart"))
    with pytest.raises(ConnectionError) as caught:
        fetch_raetsch("heart", data_home=tmp_path)
    for part in (heart.name, f"http://127.0.0.1:{port}/heart", str(tmp_path / heart.name), "BAYESVM_DATA"):
        assert part in str(caught.value)
    assert files(tmp_path) == []


def test_without_leave_nothing_is_downloaded(server, heart, tmp_path):
    with pytest.raises(FileNotFoundError, match="download_if_missing=True"):
        fetch_raetsch("heart", data_home=tmp_path, download_if_missing=False)
    assert server.asked == []


def test_an_unknown_name_gets_the_known_ones():
    with pytest.raises(ValueError, match="data set 'hart' does not exist; there are breast_cancer, .*heart"):
        fetch_raetsch("hart")


def test_collisions_become_a_table_in_several_batches(server, susy, tmp_path):
    for _ in range(2):
        path = fetch_susy(data_home=tmp_path)
    assert server.asked == ["SUSY.csv.gz"]
    assert files(tmp_path) == ["susy.parquet"]
    file = parquet.ParquetFile(path)
    assert file.num_row_groups > 1  # so that memory is bounded by a block, not by the file
    assert file.schema_arrow.names == ["x0", "x1", "x2", "y"]
    assert file.schema_arrow.types == [*[pyarrow.float32()] * 3, pyarrow.int8()]
    X, y = susy
    for start, stop in [(0, 40), (0, 1), (39, 40), (7, 7), (13, 31), (40, 40)]:
        found = load_rows(path, start, stop)
        np.testing.assert_array_equal(found[0], X[start:stop])
        np.testing.assert_array_equal(found[1], y[start:stop])
        assert (found[0].dtype, found[1].dtype) == (np.float32, np.int8)
    with pytest.raises(IndexError, match="rows 39 to 41 .*susy.parquet has the rows 0 to 40"):
        load_rows(path, 39, 41)


def test_rows_of_one_large_row_group_are_read_in_batches(susy, monkeypatch, tmp_path):
    monkeypatch.setattr("bayesvm.datasets.tables._BATCH_ROWS", 4)
    columns = {f"x{number}": column for number, column in enumerate(susy[0].T)}
    parquet.write_table(pyarrow.table({**columns, "y": susy[1].astype(np.int8)}), tmp_path / "one.parquet")
    for start in range(0, 40, 3):
        for stop in range(start, 41, 5):
            X, y = load_rows(tmp_path / "one.parquet", start, stop)
            np.testing.assert_array_equal(X, susy[0][start:stop])
            np.testing.assert_array_equal(y, susy[1][start:stop])


def test_a_copy_in_the_shared_folder_is_converted_and_kept(server, susy, monkeypatch, tmp_path):
    shared, home = tmp_path / "shared", tmp_path / "home"
    (shared / "raw").mkdir(parents=True)
    (shared / "raw" / "SUSY.csv.gz").write_bytes(server.content["SUSY.csv.gz"])
    monkeypatch.setenv("BAYESVM_DATA", str(shared))
    assert fetch_susy(data_home=home, download_if_missing=False) == home / "susy.parquet"
    assert files(shared) == ["SUSY.csv.gz"]
    (home / "susy.parquet").rename(shared / "susy.parquet")
    assert fetch_susy(data_home=home, download_if_missing=False) == shared / "susy.parquet"
    assert server.asked == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1,0.5\n" * 200 + "2,0.5\n", "label in row 200 is 2.0"),
        ("1,0.5\n" * 200 + "0\n", "1: 0"),
        ("1,0.5\n" * 200 + "0,\n", "invalid value ''"),
        ("1,0.5\n" * 200, "200 rows, not 201"),
    ],
    ids=["label", "columns", "missing", "rows"],
)
def test_a_conversion_that_fails_midway_leaves_no_table(text, complaint, server, monkeypatch, tmp_path):
    file = published(server, "HIGGS.csv.gz", gzip.compress(text.encode()))
    monkeypatch.setattr(collisions, "HIGGS", collisions.Collisions(file, n_rows=201, n_features=1))
    monkeypatch.setattr(collisions, "_BLOCK_BYTES", 120)
    with pytest.raises(ValueError, match=f"HIGGS.csv.gz cannot be converted: .*{complaint}.*report"):
        fetch_higgs(data_home=tmp_path)
    assert files(tmp_path) == ["HIGGS.csv.gz"]


def test_an_interrupted_conversion_is_taken_up_again_without_the_net(server, susy, monkeypatch, tmp_path):
    write_batch = parquet.ParquetWriter.write_batch

    def interrupted(writer, batch):
        write_batch(writer, batch)
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet.ParquetWriter, "write_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_susy(data_home=tmp_path)
    assert files(tmp_path) == ["SUSY.csv.gz"]
    monkeypatch.setattr(parquet.ParquetWriter, "write_batch", write_batch)
    np.testing.assert_array_equal(load_rows(fetch_susy(data_home=tmp_path), 0, 40)[0], susy[0])
    assert server.asked == ["SUSY.csv.gz"]


@pytest.mark.parametrize("content", [b"", None], ids=["no Parquet", "other rows"])
def test_a_table_of_the_wrong_shape_is_refused(content, susy, tmp_path):
    path = tmp_path / "susy.parquet"
    if content is None:
        parquet.write_table(pyarrow.table({"x0": [1.0], "y": [1]}), path)
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="susy.parquet .*delete it"):
        fetch_susy(data_home=tmp_path)


def test_without_pyarrow_nothing_large_is_downloaded(server, susy, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pyarrow.*bayesvm\[datasets\]"):
        fetch_susy(data_home=tmp_path)
    assert server.asked == []


def test_every_published_file_has_a_checksum_and_a_safe_address():
    known = [*paper.RAETSCH.values(), paper.USPS, collisions.SUSY.file, collisions.HIGGS.file]
    assert all(len(bytes.fromhex(file.sha256)) == 32 for file in known)
    assert all(file.url.startswith("https://") and file.url.endswith(f"/{file.name}") for file in known)


def test_importing_the_datasets_loads_nothing_of_the_extra():
    # Plain pyarrow is not in the list, because scikit-learn loads pandas, and pandas pyarrow, where it is installed.
    extra = {"pooch", "pyarrow.csv", "pyarrow.parquet", "requests", "tqdm"}
    code = f"import bayesvm.datasets, sys; print(*{extra} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert out.stdout.split() == []
