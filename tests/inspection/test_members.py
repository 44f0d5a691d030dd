"""No display is forgotten: each is tested, shown in its docstring and in docs/plots.md, and drawn by the gallery."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bayesvm import BayesianSVC, inspection
from bayesvm.inspection import colours
from bayesvm.inspection._display import legend_on_top

ROOT = Path(__file__).parent.parent.parent
TESTS = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))


@pytest.mark.parametrize("name", inspection.__all__)
def test_no_display_is_missing(name):
    display = getattr(inspection, name)
    for text in (TESTS, (ROOT / "docs" / "plots.md").read_text(), (ROOT / "examples" / "gallery.py").read_text()):
        assert name in text
    assert f">>> from bayesvm.inspection import {name}" in inspect.getdoc(display)
    assert "ax" in inspect.signature(display.plot).parameters
    assert "ax" in inspect.signature(display.from_estimator).parameters
    for method in ("plot", "from_estimator"):
        assert inspect.getdoc(getattr(display, method))


@pytest.mark.slow
def test_without_matplotlib_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.pyplot'] = None\n"
        "from bayesvm.inspection import ElboTraceDisplay\n"
        "ElboTraceDisplay([-2.0, -1.0]).plot()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert 'pip install "bayesvm[plots]"' in done.stderr


@pytest.mark.slow
def test_importing_the_displays_loads_no_matplotlib():
    code = "import bayesvm.inspection, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "False"


def test_lines_that_explain_have_the_colour_of_the_text(plt):
    with plt.rc_context({"text.color": "#123456", "axes.prop_cycle": plt.cycler(color=["#abcdef", "#fedcba"])}):
        found = inspection.ReliabilityDisplay([0.5], [0.6], [0.4], [0.8], counts=[3, 4]).plot()
        diagonal, points = found.ax_.get_lines()[:2]
        assert (diagonal.get_color(), points.get_color()) == ("#123456", "#abcdef")
        assert inspection.ElboTraceDisplay([1.0]).plot().line_.get_color() == "#abcdef"


def test_many_classes_are_distinguished_by_colour_and_shape():
    assert len({(colours.of_class(k), colours.marker(k)) for k in range(40)}) == 40


def test_a_legend_on_top_takes_no_more_columns_than_have_room(plt):
    widths = {}
    for inches in (3.0, 16.0):
        figure, ax = plt.subplots(figsize=(inches, 3), layout="constrained")
        handles = [ax.plot([0, 1])[0] for _ in range(4)]
        legend_on_top(ax, handles, ["a class with a long name"] * 4, ["note"])
        figure.canvas.draw()
        widths[inches] = len({round(text.get_window_extent().x0) for text in ax.get_legend().get_texts()})
        assert ax.get_window_extent().width > 0.6 * figure.bbox.width
    assert widths == {3.0: 1, 16.0: 4}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_dollar_in_a_name_is_a_dollar(plt, n_classes):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = ["cost $ per $", "cost $_{ per $"]
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=names)
    y = np.array([f"{k} $_{{ $" for k in range(n_classes)])[np.arange(60) % n_classes]
    model = BayesianSVC(n_inducing=10, tune=None, random_state=0).fit(X, y)
    drawn = {
        "boundary": inspection.DecisionBoundaryDisplay.from_estimator(model, X, y),
        "dependence": inspection.PartialDependenceDisplay.from_estimator(model, X, names[0], target=y[0]),
        "relevance": inspection.RelevanceDisplay.from_estimator(model),
        "reliability": inspection.ReliabilityDisplay.from_estimator(model, X, y),
        "histogram": inspection.ProbabilityHistogramDisplay.from_estimator(model, X, y),
        "levels": inspection.PartialDependenceDisplay(
            np.arange(2), *np.full((3, 2), 0.5), feature_name=names[0], target=y[0], labels=names
        ).plot(),
    }
    for display in drawn.values():
        display.figure_.canvas.draw()  # matplotlib reads formulas only here
    assert drawn["dependence"].ax_.get_xlabel() == "cost $ per $"
    assert {label.get_text() for label in drawn["relevance"].ax_.get_yticklabels()} == set(names)
