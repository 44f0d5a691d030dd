"""Report: matplotlib plots as small inline SVG, in the colours of the page, for light and dark mode."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from bayesvm.extras import optional
from bayesvm.inspection.colours import CLASSES

TAG = re.compile(r"<[^>]+>")
INK = "#010203"  # placeholder for the text colour of the page
SIZE = (5.0, 3.6)  # inches of 72 units: on a phone a unit is a pixel
STYLE = {
    "svg.fonttype": "none",  # keep text as text: small files, and the font of the page
    "svg.hashsalt": "bayesvm",  # reproducible names
    "text.parse_math": False,  # names of columns may contain $
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.5,
    "axes.labelsize": 10.5,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.7,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.7,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"), INK
    ),
}


def drawn(name: str, label: str, draw: Callable[[Any], Any], size: tuple[float, float] = SIZE) -> str:
    """The plot that ``draw`` draws on given axes, as ``<svg>``; ``label`` describes it to screen readers."""
    matplotlib, figure_module = optional("matplotlib", "cli"), optional("matplotlib.figure", "cli")
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # warnings about characters that its fonts lack; browsers have them
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE | {"axes.prop_cycle": matplotlib.cycler(color=list(CLASSES))})
        figure = figure_module.Figure(size, layout="constrained")
        draw(figure.subplots())
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return inlined(file.getvalue(), name, label)


def small_bars(counts: Sequence[float]) -> str:
    """A histogram for a row of a table, without axes."""
    if not len(counts) or not max(counts):
        return ""
    width, height, most = 100 / len(counts), 24, max(counts)
    bars = "".join(
        f"M{i * width:.1f} {height}v{-max(height * count / most, 0.8 if count else 0):.1f}h{0.86 * width:.1f}V{height}z"
        for i, count in enumerate(counts)
    )
    shape = f'viewBox="0 0 100 {height}" preserveAspectRatio="none" aria-hidden="true"'
    return f'<svg class="small" {shape}><path d="{bars}"/></svg>'


def inlined(svg: str, name: str, label: str) -> str:
    """Prepare a stand-alone SVG for a page with other plots: names must be distinct."""
    box = re.search(r'viewBox="([^"]*)"', svg)
    content = svg[svg.index(">", svg.index("<svg")) + 1 :]
    content = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", content, flags=re.DOTALL)
    tags = re.findall(TAG, content)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', "".join(tags)))
    content = re.sub(TAG, lambda match: _tag(match[0], name, used), content)  # not the text between tags
    content = re.sub(r">\s+<", "><", content)
    opening = f'<svg viewBox="{box[1] if box else ""}" role="img" aria-label="{escape(label)}">'
    return opening + content.strip()


def _tag(text: str, plot: str, used: set[str]) -> str:
    """Keep only used names, distinct for each plot; use the font and colours of the page; round coordinates."""
    text = re.sub(r' id="([^"]*)"', lambda m: f' id="{plot}-{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{plot}-", text).replace("xlink:href", "href")
    text = re.sub(r"font: (?:[\w.]+ )*?([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    text = re.sub(r"(?<![\w.#-])-?\d+\.\d{2,}(?![\w.])", _rounded, text)
    text = text.replace(INK, "currentColor")
    for number, colour in enumerate(CLASSES):
        text = text.replace(colour.lower(), f"var(--c{number})")
    return re.sub(r"\s+", " ", text).replace(' "', '"')


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
