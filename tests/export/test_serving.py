"""A model from the command line, exported, and served by a process that cannot import bayesvm."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC, TableModel
from tests.export.test_recipes import FRAME

SERVER = Path(__file__).parent.parent.parent / "examples" / "serve_onnx.py"
pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="examples do not come with the source distribution")
# The example in a process where `import bayesvm` fails.
ALONE = f"""
import runpy, sys
sys.modules["bayesvm"] = None
sys.argv = ["serve_onnx.py", sys.argv[1], "--port", "0"]
runpy.run_path({str(SERVER)!r}, run_name="__main__")
"""


@pytest.fixture
def run():
    pytest.importorskip("typer")
    from bayesvm.cli.app import run  # noqa: PLC0415  (an extra)

    return run


@pytest.fixture
def serve():
    processes = []

    def started(path):
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", ALONE, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        processes.append(process)
        return process.stdout.readline().split()[-1]

    yield started
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def ask(url, content=None):
    data = None if content is None else json.dumps(content).encode()
    with urlopen(Request(url, data)) as answer:  # noqa: S310  (our own server)
        return json.load(answer)


@pytest.fixture
def saved(tmp_path):
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    model = TableModel.fit(tmp_path / "people.csv", "income", estimator=BayesianLinearSVC(tune=None))
    model.save(tmp_path / "income.bayesvm")
    return model, tmp_path / "income.bayesvm"


def test_a_table_model_is_exported_and_served(saved, run, serve, capsys):
    model, path = saved
    assert run(["export", str(path), "--uncertainty", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["inputs"] == ["age", "hours", "sex", "work", "town"]
    assert told["out"] == str(path.with_suffix(".onnx"))
    url = serve(told["out"])
    about = ask(url)
    assert about["inputs"] == {"age": "double", "hours": "double", "sex": "string", "work": "string", "town": "string"}
    assert about["classes"] == ["high", "low"]
    asked = FRAME.drop(columns="income")[:8]
    rows = json.loads(asked.to_json(orient="records", double_precision=15))
    answer = ask(url, {"rows": rows})
    np.testing.assert_allclose(answer["probabilities"], model.predict_proba(asked), atol=1e-9)
    np.testing.assert_allclose(answer["epistemic"], model.predict_uncertainty(asked)["epistemic"], atol=2e-6)
    assert answer["label"] == model.predict(asked).tolist()
    for wrong in ({"rows": []}, {"rows": [{"agee": 3}]}, {"rows": [{"age": "old"}]}, {"row": []}, [1]):
        with pytest.raises(HTTPError, match="400"):
            ask(url, wrong)


def test_a_model_of_numbers_is_exported_and_served(tmp_path, run, serve, capsys):
    X = np.random.default_rng(0).standard_normal((200, 3))
    model = BayesianLinearSVC(tune=None).fit(X, X[:, 0] > 0)
    model.save(tmp_path / "numbers.bayesvm")
    assert run(["export", str(tmp_path / "numbers.bayesvm"), "--out", str(tmp_path / "n.onnx"), "--single"]) == 0
    assert "inputs: X\noutputs: label, probabilities\nwritten:" in capsys.readouterr().out
    url = serve(tmp_path / "n.onnx")
    answer = ask(url, {"rows": X[:5].tolist()})
    np.testing.assert_allclose(answer["probabilities"], model.predict_proba(X[:5]), atol=1e-6)
    assert answer["label"] == model.predict(X[:5]).tolist()
    for wrong in ([[1.0, 2.0]], [[1.0, 2.0, None]], [[1.0], [2.0, 3.0]]):
        with pytest.raises(HTTPError, match="400"):
            ask(url, {"rows": wrong})


def test_the_command_says_what_is_wrong(saved, run, capsys):
    _, path = saved
    assert run(["export", str(path), "--out", str(path.parent / "nowhere" / "x.onnx")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
