"""Serve an exported model over HTTP without bayesvm, with NumPy, onnxruntime and Python's HTTP server only.

    bayesvm export income.bayesvm --out income.onnx
    python examples/serve_onnx.py income.onnx --port 8000
    curl localhost:8000                                              # inputs and outputs
    curl localhost:8000 -d '{"rows": [{"age": 39, "workclass": "Private"}]}'

A row is an object of columns, where null or an absent column means missing; for a model of an array, it is a list of
numbers. The limits below bound time and memory for any request. Python's server has no encryption and no passwords, so
it is for experiments only; a production server can reuse `Model`.
"""

import argparse
import contextlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import onnxruntime

MOST_ROWS = 10_000  # in one request: a session takes memory for rows × inducing points
MOST_BYTES = 10_000_000  # of a request; parsed, it may take forty times as much
MOST_REQUESTS = 16  # at a time, each with a thread; others get status 503
IDLE_SECONDS, MOST_SECONDS = 10, 60  # limits for the next bytes of a request, and for a whole request with its response
LARGEST = 1e30  # accepted number; single precision could not represent much more


class Model:
    """An ONNX file that bayesvm wrote."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path)
        self.inputs = {put.name: put for put in self.session.get_inputs()}
        self.outputs = [put.name for put in self.session.get_outputs()]
        self.classes = json.loads(self.session.get_modelmeta().custom_metadata_map["classes"])

    def about(self):
        """Inputs, outputs and classes."""
        inputs = {name: put.type[len("tensor(") : -1] for name, put in self.inputs.items()}
        return {"inputs": inputs, "outputs": self.outputs, "classes": self.classes}

    def predict(self, asked):
        """All outputs for some rows."""
        rows = asked.get("rows") if isinstance(asked, dict) else None
        if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ROWS:
            raise ValueError(f'ask for {{"rows": [...]}} with 1 to {MOST_ROWS} rows')
        found = self.session.run(self.outputs, self.tensors(rows))
        return {name: values.tolist() for name, values in zip(self.outputs, found, strict=True)}

    def tensors(self, rows):
        """The inputs of the session: one array of numbers, or a column of each name."""
        width = self.inputs["X"].shape[1] if list(self.inputs) == ["X"] else 0
        if width > 1 or (width == 1 and isinstance(rows[0], list)):  # else it may be a table's only column
            if any(not isinstance(row, list) or len(row) != width for row in rows):
                raise ValueError(f"each row must be a list of {width} numbers")
            return {"X": np.array([[number(f"row {i}", x) for x in row] for i, row in enumerate(rows)], self.kind("X"))}
        if any(not isinstance(row, dict) for row in rows):
            raise ValueError(f"each row must be an object with the columns {', '.join(self.inputs)}")
        if unknown := {name for row in rows for name in row} - set(self.inputs):
            raise ValueError(f"unknown column {min(unknown)!r}; the columns are {', '.join(self.inputs)}")
        return {
            name: np.array([[self.value(name, row.get(name))] for row in rows], self.kind(name)) for name in self.inputs
        }

    def kind(self, name):
        """NumPy's name of an input's type."""
        return {"tensor(string)": object, "tensor(double)": np.float64, "tensor(float)": np.float32}[
            self.inputs[name].type
        ]

    def value(self, name, given):
        """The value for the session; missing values have a code."""
        if self.kind(name) is not object:
            return np.nan if given is None else number(f"column {name!r}", given)
        if isinstance(given, dict | list):
            raise TypeError(f"column {name!r}: {given!r} is not text")
        return "(missing)" if given is None else str(given)


def number(where, given):
    """Return a number that a model can use; the error names its place."""
    if not isinstance(given, int | float) or not abs(given) <= LARGEST:
        raise ValueError(f"{where}: {given!r} is not a number that a model can use")
    return float(given)


class Handler(BaseHTTPRequestHandler):
    """GET describes the model, POST predicts."""

    model: Model
    timeout = IDLE_SECONDS

    def do_GET(self):
        if self.path != "/":
            self.answer(404, {"error": f"no such path: {self.path}; GET / describes the model"})
        else:
            self.answer(200, self.model.about())

    def do_POST(self):
        size = self.headers.get("Content-Length")
        if self.path != "/":
            self.answer(404, {"error": f"no such path: {self.path}; POST / predicts"})
        elif size is None:
            self.answer(411, {"error": "a request needs a Content-Length"})
        elif not (size.isascii() and size.isdecimal()):
            self.answer(400, {"error": "Content-Length must be a whole number of bytes"})
        elif len(size) > 12 or int(size) > MOST_BYTES:
            self.answer(413, {"error": f"a request may have at most {MOST_BYTES} bytes"})
        else:
            self.answer(*self.predicted(int(size)))

    def predicted(self, size):
        """Status and content of the response."""
        try:
            body = self.rfile.read(size)
        except TimeoutError:
            return 408, {"error": f"no data received for {IDLE_SECONDS} seconds"}
        if len(body) < size:
            return 400, {"error": f"the request ended after {len(body)} of {size} bytes"}
        with self.server.one_at_a_time:  # also while an error keeps the parsed data in memory
            try:
                return 200, self.model.predict(json.loads(body))
            except (ValueError, TypeError, RecursionError) as error:  # also for invalid JSON
                return 400, {"error": str(error)[:1000]}

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A bounded number of requests at a time, each for a bounded time; one of them is parsed and predicted."""

    def __init__(self, address):
        super().__init__(address, Handler)
        self.deadlines, self.one_at_a_time = {}, threading.Lock()

    def verify_request(self, request, client_address):
        """Whether to accept the request; called before a thread is started."""
        if len(self.deadlines) >= MOST_REQUESTS:
            with contextlib.suppress(OSError):
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
            return False
        self.deadlines[request] = time.monotonic() + MOST_SECONDS
        return True

    def service_actions(self):
        """Close overdue requests; called twice a second."""
        for request, deadline in list(self.deadlines.items()):
            if deadline < time.monotonic():
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)  # ends the thread, which waits for data

    def shutdown_request(self, request):
        self.deadlines.pop(request, None)
        super().shutdown_request(request)


def main():
    arguments = argparse.ArgumentParser(description="Serve an ONNX file that bayesvm wrote.")
    arguments.add_argument("model")
    arguments.add_argument("--port", type=int, default=8000)
    options = arguments.parse_args()
    Handler.model = Model(options.model)
    server = Server(("localhost", options.port))
    print(f"serving {options.model} at http://localhost:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
