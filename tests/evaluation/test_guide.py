"""What docs/evaluation.md says its examples print is what they print."""

import re
from pathlib import Path

import pytest

from bayesvm import evaluation

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```python\n([^`]*)```\n\n```text\n([^`]*)```", PAGE)


@pytest.mark.parametrize(("code", "output"), SHOWN, ids=range(len(SHOWN)))
def test_examples_print_what_is_shown(code, output, capsys):
    exec(compile(code, "<example>", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == output


def test_every_public_name_has_an_example():
    code = "".join(re.findall(r"```python\n([^`]*)```", PAGE))
    results = {"Figure", "Reliability", "RiskCoverage"}  # that functions return
    assert [name for name in evaluation.__all__ if name not in results and name not in code] == []
    assert len(SHOWN) == 5
