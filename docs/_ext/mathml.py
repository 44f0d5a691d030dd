"""Formulas become MathML when the site is built: nothing is fetched, and no script runs, when a page is looked at.

latex2mathml knows nearly all of our LaTeX, but writes MathML as it once was; browsers follow MathML Core, so what they
would set wrongly is put right here. They set it well only in a font that is made for it: STIX Two Math, which ziamath
brings along, comes with the site, cut to the signs in use.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont
from latex2mathml.converter import convert_to_element
from sphinx.application import Sphinx

SIGNS = [  # letters, accents, Greek, operators, arrows, brackets, alphabets of mathematics
    *range(0x20, 0x180),
    *range(0x2B0, 0x400),
    *range(0x2000, 0x2400),
    *range(0x27E6, 0x27F0),
    *range(0x1D400, 0x1D504),
    *range(0x1D6A4, 0x1D71C),
]
TAG = re.compile(r"\\tag\{([^}]*)\}")
OTHER_WORDS = {r"\Big\vert": r"\Big|", r"\Bigm\vert": r"\Big|"}
# A bar opens, closes or stands between. LaTeX says which; MathML must be told, so it travels as a sign of private use.
BARS = {r"\lvert": "\ue000", r"\rvert": "\ue001", r"\lVert": "\ue002", r"\rVert": "\ue003", r"\Vert": "\ue004"}
SPACE_OF_A_RELATION = {"lspace": "0.2778em", "rspace": "0.2778em"}
BAR_SIGNS = {
    "\ue000": ("|", {"form": "prefix", "stretchy": "false"}),
    "\ue001": ("|", {"form": "postfix", "stretchy": "false"}),
    "\ue002": ("‖", {"form": "prefix", "stretchy": "false"}),
    "\ue003": ("‖", {"form": "postfix", "stretchy": "false"}),
    "\ue004": ("‖", {"form": "infix", "stretchy": "false"} | SPACE_OF_A_RELATION),
}
ALPHABETS = {"script": "SCRIPT", "bold": "BOLD"}  # of mathvariant, which MathML Core no longer knows
SIGNS_OF_NUMBERS = {"+", "−", "-", "±", "∓"}  # unless there is something before them to add to
GREEK_CAPITALS = {chr(code) for code in range(0x391, 0x3AA)}
OPENING, CLOSING = {"(", "[", "{", "\ue000", "\ue002"}, {")", "]", "}", "|", "‖", "\ue001", "\ue003"}
LONG, VERY_LONG = 16, 40  # signs
WORD_JOINER = "\u2060"
BRACKETS = {"(": ")", "[": "]", "{": "}", "⟨": "⟩"}
BREAKS = {"=", "<", ">", "≤", "≥", "≈", "∼", "∈", "→", "←", "∝", "≫", "+", "−"}
FUNCTIONS = {"log", "exp", "max", "min"}
ACCENTS = set("¯~^˙")


def formula(latex: str, display: str) -> ET.Element:
    """As browsers want it."""
    for ours, theirs in (OTHER_WORDS | BARS).items():
        latex = re.sub(re.escape(ours) + r"(?![A-Za-z])", lambda _, theirs=theirs: theirs, latex)
    root = convert_to_element(latex, display=display)
    for parent in list(root.iter()):
        for number, child in reversed(list(enumerate(parent))):
            _mend(parent, number, child)
    return root


def html(root: ET.Element) -> str:
    """For a page."""
    return ET.tostring(root, encoding="unicode", short_empty_elements=False)


def _mend(parent: ET.Element, number: int, child: ET.Element) -> None:
    text = _text(child)
    if text in BAR_SIGNS:
        child.tag, (child.text, attributes) = "mo", BAR_SIGNS[text]
        child.attrib.update(attributes)
    elif text == "~" and parent.tag != "mover":
        child.tag, child.text = "mo", "∼"
        child.attrib.update(SPACE_OF_A_RELATION)
    elif text in FUNCTIONS and parent.tag == "mrow":
        _set_apart(parent, number, child)
    elif child.tag == "mover" and _text(child[1]) in ACCENTS:
        child.set("accent", "true")
        child[1].set("stretchy", "false")
    elif child.tag == "mo":
        _mend_sign(parent, number, child, text)
    elif child.tag == "mi":
        _mend_letter(child, text)


def _mend_sign(parent: ET.Element, number: int, child: ET.Element, text: str) -> None:
    if text == "⊤" or (text in {"∗", "*"} and parent.tag == "msup"):
        child.tag = "mi"  # a mark of the letter, not an operation
    elif text == "/":
        child.attrib.update(lspace="0.05em", rspace="0.05em")
    elif text in SIGNS_OF_NUMBERS and _nothing_before(parent, number):
        child.set("form", "prefix")


def _mend_letter(child: ET.Element, text: str) -> None:
    if child.get("mathvariant") in ALPHABETS:
        variant = child.attrib.pop("mathvariant")
        child.text = "".join(_letter(sign, variant) for sign in text)
    elif text in GREEK_CAPITALS:
        child.set("mathvariant", "normal")  # upright, as LaTeX has it


def _set_apart(parent: ET.Element, number: int, child: ET.Element) -> None:
    """The name of a function, by a little space."""
    child.tag = "mi"
    if number + 1 < len(parent) and _text(parent[number + 1]) not in OPENING:
        parent.insert(number + 1, ET.Element("mspace", width="0.1667em"))
    if number and (parent[number - 1].tag != "mo" or _text(parent[number - 1]) in CLOSING):
        parent.insert(number, ET.Element("mspace", width="0.1667em"))


def _nothing_before(parent: ET.Element, number: int) -> bool:
    if not number:
        return True
    before = parent[number - 1]
    return _text(before) in OPENING or (before.tag == "mo" and _text(before) not in CLOSING)


def _text(element: ET.Element) -> str:
    """latex2mathml writes entities where it means signs."""
    text = re.sub(r"&#x([0-9A-Fa-f]+);", lambda found: chr(int(found[1], 16)), element.text or "")
    element.text = text or None
    return text


def _length(root: ET.Element) -> int:
    return len("".join(root.itertext()))


def _letter(sign: str, variant: str) -> str:
    case = "CAPITAL" if sign.isupper() else "SMALL"
    for name in (f"MATHEMATICAL {ALPHABETS[variant]} {case} {sign.upper()}", f"SCRIPT {case} {sign.upper()}"):
        try:
            return unicodedata.lookup(name)
        except KeyError:
            continue
    return sign


def pieces(root: ET.Element) -> Iterator[str]:
    """A long formula within a line as several short ones, since browsers break lines between formulas only.

    As in TeX a line may end after a relation, a plus or a minus that is in no brackets, or in those of a very long one.
    """
    row, depth, begin = list(root[0]), 0, 0
    deepest = int(_length(root) > VERY_LONG)
    for number, child in enumerate(row, start=1):
        text = _text(child)
        depth += (text in BRACKETS) - (text in BRACKETS.values())
        may_end = depth <= deepest and child.tag == "mo" and text in BREAKS and child.get("form") is None
        if may_end or number == len(row):
            if may_end:
                child.set("form", "infix")
            root[0][:] = row[begin:number]
            begin = number
            yield html(root)


def inline(writer: Any, node: nodes.math) -> None:
    """Within a line, which does not break between a formula and the full stop after it."""
    root = formula(node.astext(), "inline")
    writer.body.append("<wbr>".join(pieces(root)) if _length(root) > LONG else html(root))
    after = node.next_node(siblings=True, descend=False)
    if isinstance(after, nodes.Text) and after[:1] in set(".,;:)-"):
        writer.body.append(WORD_JOINER)
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """On lines of its own, with its number at the end; a phone scrolls what is too wide for it."""
    latex = node.astext()
    number = "".join(f'<span class="math-number">({tag})</span>' for tag in TAG.findall(latex))
    shown = html(formula(TAG.sub("", latex), "block"))
    writer.body.append(f'<div class="math-block"><div class="math-scroll">{shown}</div>{number}</div>\n')
    raise nodes.SkipNode


def write_font(app: Sphinx, error: Exception | None) -> None:
    """STIX Two Math as we want it."""
    if error is not None or app.builder.format != "html":
        return
    options = subset.Options(flavor="woff", layout_features=["*"])
    with as_file(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf") as path:
        font = subset.load_font(path, options)
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=SIGNS)
        cutter.subset(font)
        _narrow_the_roots(font)
        constants = font["MATH"].table.MathConstants
        constants.FractionNumeratorShiftUp.Value = 394  # as in TeX: one half fits into a line of text
        constants.FractionDenominatorShiftDown.Value = 345
        subset.save_font(font, Path(app.outdir) / "_static" / "math.woff", options)


def _narrow_the_roots(font: TTFont) -> None:
    """Chromium leaves as much room for any root as for the widest of the font; so all become as narrow as one."""
    variants = font["MATH"].table.MathVariants
    root = font.getBestCmap()[ord("√")]
    found = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(root)]
    names = {record.VariantGlyph for record in found.MathGlyphVariantRecord}
    names |= {part.glyph for part in found.GlyphAssembly.PartRecords}
    width, _ = font["hmtx"][root]
    for name in names - {root}:
        glyph, (wide, left) = font["glyf"][name], font["hmtx"][name]
        glyph.coordinates.scale((width / wide, 1))
        glyph.coordinates.toInt()
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, round(left * width / wide))


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
