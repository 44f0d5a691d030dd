"""Serve an exported model over HTTP, without bayesvm: NumPy, onnxruntime and Python's own server are enough.

    bayesvm export income.bayesvm --out income.onnx
    python examples/serve_onnx.py income.onnx --port 8000
    curl localhost:8000                                              # what goes in, what comes out
    curl localhost:8000 -d '{"rows": [{"age": 39, "workclass": "Private"}]}'

A row is an object of columns, where null or nothing means missing; or, for a model of an array, a list of numbers.
Python's server is for trying things out; in the place of it, a real one can keep `Model`.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import onnxruntime

MOST_ROWS = 10_000  # in one request: a session takes memory for rows × inducing points


class Model:
    """An ONNX file that bayesvm wrote."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path)
        self.inputs = {put.name: put for put in self.session.get_inputs()}
        self.outputs = [put.name for put in self.session.get_outputs()]
        self.classes = json.loads(self.session.get_modelmeta().custom_metadata_map["classes"])

    def about(self):
        """What goes in, what comes out."""
        inputs = {name: put.type[len("tensor(") : -1] for name, put in self.inputs.items()}
        return {"inputs": inputs, "outputs": self.outputs, "classes": self.classes}

    def predict(self, rows):
        """All outputs for some rows."""
        if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ROWS:
            raise ValueError(f"rows must be a list of 1 to {MOST_ROWS} rows")
        found = self.session.run(self.outputs, self.tensors(rows))
        return {name: values.tolist() for name, values in zip(self.outputs, found, strict=True)}

    def tensors(self, rows):
        """The inputs of the session: one array of numbers, or a column of each name."""
        if list(self.inputs) == ["X"]:
            X, width = np.array(rows, self.kind("X")), self.inputs["X"].shape[1]
            if X.shape != (len(rows), width) or not np.isfinite(X).all():
                raise ValueError(f"each row must be a list of {width} numbers")
            return {"X": X}
        if unknown := {name for row in rows for name in row} - set(self.inputs):
            raise ValueError(f"there is no column {unknown.pop()!r}; there are {', '.join(self.inputs)}")
        return {
            name: np.array([[self.value(name, row.get(name))] for row in rows], self.kind(name)) for name in self.inputs
        }

    def kind(self, name):
        """NumPy's name of an input's type."""
        return {"tensor(string)": object, "tensor(double)": np.float64, "tensor(float)": np.float32}[
            self.inputs[name].type
        ]

    def value(self, name, given):
        """What stands for a value, or for a missing one."""
        if self.kind(name) is object:
            return "(missing)" if given is None else str(given)
        return np.nan if given is None else float(given)


class Handler(BaseHTTPRequestHandler):
    """GET tells about the model, POST predicts."""

    model: Model

    def do_GET(self):
        self.answer(200, self.model.about())

    def do_POST(self):
        try:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(200, self.model.predict(json.loads(content)["rows"]))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self.answer(400, {"error": f"{type(error).__name__}: {error}"})

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    arguments = argparse.ArgumentParser(description="Serve an ONNX file that bayesvm wrote.")
    arguments.add_argument("model")
    arguments.add_argument("--port", type=int, default=8000)
    options = arguments.parse_args()
    Handler.model = Model(options.model)
    server = ThreadingHTTPServer(("localhost", options.port), Handler)
    print(f"serving {options.model} at http://localhost:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
