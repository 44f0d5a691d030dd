"""A model from the command line, exported, and served by a process that cannot import bayesvm."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

from bayesvm import BayesianLinearSVC
from bayesvm.workflow import fit_table
from tests.export.test_recipes import FRAME

SERVER = Path(__file__).parent.parent.parent / "examples" / "serve_onnx.py"
# The example in a process where `import bayesvm` fails.
ALONE = f"""
import runpy, sys
sys.modules["bayesvm"] = None
sys.argv = ["serve_onnx.py", sys.argv[1], "--port", "0"]
runpy.run_path({str(SERVER)!r}, run_name="__main__")
"""

pytestmark = pytest.mark.filterwarnings("ignore:an ONNX graph cannot complete")


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
    data = content if content is None or isinstance(content, bytes) else json.dumps(content).encode()
    with urlopen(Request(url, data)) as answer:  # noqa: S310  (our own server)
        return json.load(answer)


def refused(url, content, status=400):
    with pytest.raises(HTTPError, match=str(status)) as error:
        ask(url, content)
    return json.load(error.value)["error"]


@pytest.fixture
def saved(tmp_path):
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    model = fit_table(tmp_path / "people.csv", "income", estimator=BayesianLinearSVC(tune=None))
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
    asked = FRAME.drop(columns="income").dropna(subset=["age", "hours"])[:8]
    rows = json.loads(asked.to_json(orient="records", double_precision=15))
    answer = ask(url, {"rows": rows})
    np.testing.assert_allclose(answer["probabilities"], model.predict_proba(asked), atol=1e-9)
    np.testing.assert_allclose(answer["epistemic"], model.predict_uncertainty(asked)["epistemic"], atol=2e-6)
    assert answer["label"] == model.predict(asked).tolist()
    fewer = asked.assign(work=None)  # an absent column is a missing value
    answer = ask(url, {"rows": [{name: row[name] for name in ("age", "town", "sex", "hours")} for row in rows]})
    np.testing.assert_allclose(answer["probabilities"], model.predict_proba(fewer), atol=1e-9)
    for wrong, words in (
        (b'{"rows": [', "Expecting value"),
        (b"[" * 100_000, "recursion"),
        ([1], 'ask for {"rows": [...]} with 1 to 10000 rows'),
        ({"row": []}, "ask for"),
        ({"rows": []}, "ask for"),
        ({"rows": [[39, "self"]]}, "each row must be an object with the columns age, hours, sex, work, town"),
        ({"rows": [{"agee": 3}]}, "unknown column 'agee'; the columns are age, hours"),
        ({"rows": [{"age": "old"}]}, "column 'age': 'old' is not a number"),
        ({"rows": [{"age": [39]}]}, "column 'age': [39] is not a number"),
        ({"rows": [{"age": 10**400}]}, "is not a number that a model can use"),
        ({"rows": [{"age": float("inf")}]}, "column 'age': inf is not a number"),
        ({"rows": [{"work": {}}]}, "column 'work': {} is not text"),
    ):
        assert words in refused(url, wrong)
    assert "no such path: /predict; POST / predicts" in refused(url + "/predict", {"rows": rows}, 404)
    assert "no such path: /model; GET / describes the model" in refused(url + "/model", None, 404)
    assert ask(url, {"rows": rows[:1]})["label"] == model.predict(asked[:1]).tolist()  # it is still there


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
    for wrong in ([[1.0, 2.0]], [[1.0], [2.0, 3.0]], [{"X": 1.0}], [1.0]):
        assert "each row must be a list of 3 numbers" in refused(url, {"rows": wrong})
    for wrong in (None, "1", float("nan")):
        assert f"row 1: {wrong!r} is not a number" in refused(url, {"rows": [[1.0, 2.0, 3.0], [1.0, 2.0, wrong]]})


def test_the_command_says_what_is_wrong(saved, run, capsys, monkeypatch):
    _, path = saved
    assert run(["export", str(path), "--out", str(path.parent / "nowhere" / "x.onnx")]) == 1
    assert "nowhere does not exist; create it first" in capsys.readouterr().err
    before = path.read_bytes()
    assert run(["export", str(path), "--out", str(path.parent / ".." / path.parent.name / path.name)]) == 1
    assert "is the model itself; set another --out" in capsys.readouterr().err
    assert path.read_bytes() == before
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert run(["export", str(path)]) == 1
    assert 'pip install "bayesvm[onnx]"' in capsys.readouterr().err
    assert [each.name for each in path.parent.iterdir() if "onnx" in each.name] == []
