"""``bayesvm export``: a model for places where there is no bayesvm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bayesvm.atomic import write_whole
from bayesvm.cli import console
from bayesvm.cli.options import Json, ModelFile
from bayesvm.export import to_onnx
from bayesvm.workflow import load


def export(
    model: ModelFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The ONNX file; default: the model's name with .onnx.", show_default=False),
    ] = None,
    single: Annotated[bool, typer.Option("--single", help="Single precision: smaller, faster, less exact.")] = False,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="Let it also tell why a prediction is uncertain.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a model as an ONNX file, which onnxruntime and others run without bayesvm.

    It takes the columns of the table, one input each: numbers (NaN if missing) and text ("(missing)" if missing). A
    model of numbers alone, which `model.save` wrote, takes them as one table X. It gives labels and probabilities.

    Examples:
        bayesvm export income.bayesvm --out income.onnx

        bayesvm export income.bayesvm --uncertainty --json
    """
    path = out or model.with_suffix(".onnx")
    target = path.resolve()  # through a symbolic link, as open() would write
    if target == model.resolve():
        raise ValueError(f"{path} is the model itself; write the ONNX file to another one")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; make it first, or write somewhere else")
    graph = to_onnx(load(model), dtype="single" if single else "double", uncertainty=uncertainty)
    content = graph.SerializeToString()
    write_whole(path, content)
    said: dict[str, Any] = {
        "out": str(path),
        "bytes": len(content),
        "inputs": [put.name for put in graph.graph.input],
        "outputs": [put.name for put in graph.graph.output],
    }
    if json:
        console.as_json(said)
        return
    console.say(f"inputs: {_some(said['inputs'])}")
    console.say(f"outputs: {_some(said['outputs'])}")
    console.say(f"written: {path} ({len(content) / 1e6:.1f} MB)")


def _some(names: list[str]) -> str:
    return ", ".join(names[:12]) + (f", … ({len(names)})" if len(names) > 12 else "")
