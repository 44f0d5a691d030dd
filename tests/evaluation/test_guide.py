"""docs/evaluation.md leaves nothing out. That its examples print what it shows is tested with all pages."""

import re
from pathlib import Path

from bayesvm import evaluation

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")


def test_every_public_name_has_an_example():
    code = "".join(re.findall(r"```python\n([^`]*)```", PAGE))
    results = {"IntervalCoverage", "Metric", "Reliability", "RiskCoverage", "Thresholds"}  # that functions return
    assert [name for name in evaluation.__all__ if name not in results and name not in code] == []
