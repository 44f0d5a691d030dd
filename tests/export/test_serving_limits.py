"""The example server with requests that are too large, too slow or too many, and without requests."""

import importlib.util
import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC, to_onnx
from tests.export.test_serving import SERVER

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

ASKED = b'{"rows": [[1.0, 2.0, 3.0]]}'


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    X = np.random.default_rng(0).standard_normal((200, 3))
    path = tmp_path_factory.mktemp("graph") / "n.onnx"
    path.write_bytes(to_onnx(BayesianLinearSVC(tune=None).fit(X, X[:, 0] > 0)).SerializeToString())
    return path


@pytest.fixture
def start(graph):
    """A function that runs the example in a thread, with other limits; the port and the server."""
    with ExitStack() as after:

        def started(**limits):
            spec = importlib.util.spec_from_file_location("serve_onnx", SERVER)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            for name, value in limits.items():
                setattr(module, name, value)
            module.Handler.timeout = module.IDLE_SECONDS
            module.Handler.model = module.Model(str(graph))
            module.Handler.log_message = lambda *_: None
            server = after.enter_context(module.Server(("localhost", 0)))
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            after.callback(thread.join)
            after.callback(server.shutdown)
            return server

        yield started


@contextmanager
def connected(server, sent=b""):
    with socket.create_connection(server.server_address[:2], timeout=30) as connection:
        connection.sendall(sent)
        yield connection


def received(connection):
    """All of it, until the server closes."""
    found = b""
    while chunk := connection.recv(65536):
        found += chunk
    return found


def posted(server, body=ASKED, *, half=False, **headers):
    """Status and content of the answer to a POST with these headers and no others."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    with connected(server, f"POST / HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode() + body) as connection:
        if half:
            connection.shutdown(socket.SHUT_WR)
        head, _, content = received(connection).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(content)


def is_well(server):
    status, content = posted(server, Content_Length=len(ASKED))
    return status == 200 and len(content["probabilities"]) == 1


@pytest.mark.parametrize(
    ("size", "status", "words"),
    [
        ("-1", 400, "whole number"),
        ("+5", 400, "whole number"),
        ("0x10", 400, "whole number"),
        ("many", 400, "whole number"),
        ("27, 27", 400, "whole number"),
        ("", 400, "whole number"),
        ("²", 400, "whole number"),
        ("10000001", 413, "at most 10000000 bytes"),
        ("9" * 5000, 413, "at most 10000000 bytes"),
    ],
)
def test_a_length_that_is_none_gets_an_answer(start, size, status, words):
    server = start()
    answer = posted(server, b"", Content_Length=size)
    assert answer[0] == status
    assert words in answer[1]["error"]
    assert is_well(server)


def test_a_request_without_a_length_gets_an_answer(start):
    server = start()
    assert posted(server, b"")[0] == 411
    assert posted(server, b"", Transfer_Encoding="chunked")[0] == 411
    assert is_well(server)


def test_a_body_that_ends_early_is_reported(start):
    status, content = posted(start(), half=True, Content_Length=1000)
    assert (status, content["error"]) == (400, f"the request ended after {len(ASKED)} of 1000 bytes")


def test_a_body_that_does_not_come_is_reported(start):
    server = start(IDLE_SECONDS=0.2)
    status, content = posted(server, Content_Length=1000)
    assert status == 408
    assert "no data received for 0.2 seconds" in content["error"]
    assert is_well(server)


def test_an_error_does_not_send_back_all_that_came(start):
    body = json.dumps({"rows": [["x" * 1_000_000, 1, 2]]}).encode()
    status, content = posted(start(), body, Content_Length=len(body))
    assert status == 400
    assert len(content["error"]) == 1000


def test_those_that_are_too_many_are_sent_away_without_a_thread(start):
    server = start(MOST_REQUESTS=3)
    with ExitStack() as others:
        waiting = [others.enter_context(connected(server, b"POST / HTTP/1.1\r\n")) for _ in range(3)]
        while len(server.deadlines) < 3:
            time.sleep(0.01)
        before = threading.active_count()
        with connected(server) as connection:
            assert received(connection).startswith(b"HTTP/1.0 503 ")
        assert threading.active_count() == before
        assert len(server.deadlines) == 3
        for each in waiting:
            each.shutdown(socket.SHUT_RDWR)
    while server.deadlines:
        time.sleep(0.01)
    assert is_well(server)


@pytest.mark.parametrize("begun", [b"POST / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"])
def test_a_request_that_drips_is_ended(start, begun):
    """Never idle for long enough to be noticed, and never done."""
    server = start(MOST_SECONDS=0.3)
    with connected(server, begun) as connection:
        connection.settimeout(0.05)
        while True:
            try:
                connection.sendall(b"x")
                if not connection.recv(65536):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    while server.deadlines:
        time.sleep(0.01)
    server.verify_request.__globals__["MOST_SECONDS"] = 60
    assert is_well(server)
