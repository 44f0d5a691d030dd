"""``bayesvm export``: write a model for use without bayesvm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bayesvm.atomic import write_whole
from bayesvm.cli import console, options
from bayesvm.evaluation.formatting import listed
from bayesvm.export import to_onnx
from bayesvm.workflow import load

MOST_NAMES = 12  # inputs or outputs to show


def export(
    model: options.ModelFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The ONNX file; default: the model's name with .onnx.", show_default=False),
    ] = None,
    single: Annotated[bool, typer.Option("--single", help="Single precision: smaller, faster, less accurate.")] = False,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="Add outputs for epistemic and aleatoric uncertainty.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Write a model as an ONNX file, which onnxruntime and others run without bayesvm.

    The file has one input per column of the table: numbers (NaN if missing) and text ("(missing)" if missing). A model
    of numbers only, written by `model.save`, has one input X. The outputs are labels and probabilities.

    Examples:
        bayesvm export income.bayesvm --out income.onnx

        bayesvm export income.bayesvm --uncertainty --json
    """
    path = out or model.with_suffix(".onnx")
    options.require_writable(path, model=model)
    graph = to_onnx(load(model), dtype="single" if single else "double", uncertainty=uncertainty)
    content = graph.SerializeToString()
    write_whole(path, content)
    summary: dict[str, Any] = {
        "out": str(path),
        "bytes": len(content),
        "inputs": [put.name for put in graph.graph.input],
        "outputs": [put.name for put in graph.graph.output],
    }
    if json:
        console.as_json(summary)
        return
    for what in ("inputs", "outputs"):
        console.say(f"{what}: {listed(summary[what], MOST_NAMES)}")
    console.say(f"written: {path} ({len(content) / 1e6:.1f} MB)")
