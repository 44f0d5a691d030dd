"""Pages for readers: their blocks of code, and whether what a page shows is what was printed."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d*)?(?:e-?\d+)?")
BY_THE_MACHINE = re.compile(r"[\d.,]+ (s|kB|MB)\b")


@dataclass(frozen=True)
class Fence:
    """A block between fences, and the line of the page that it begins in."""

    language: str
    text: str
    line: int


def fences(text):
    """All fenced blocks of a page; a fence may be indented, as in lists."""
    opened, start, inside = None, 0, []
    for number, line in enumerate(text.splitlines(), start=1):
        mark = re.match(r"\s*(```+|~~~+)(.*)", line)
        if opened is None and mark:
            opened, start, inside = mark, number, []
        elif opened is not None and mark and mark[1] == opened[1] and not mark[2].strip():
            yield Fence(opened[2].strip(), "".join(inside), start)
            opened = None
        elif opened is not None:
            inside.append(line + "\n")
    assert opened is None, f"the fence of line {start} is not closed"


def without_fences(text):
    return re.sub(r"^(\s*)(```+|~~~+).*?^\1\2 *$", "", text, flags=re.MULTILINE | re.DOTALL)


def alike(shown, printed):
    """The same words, and numbers that other processors may round or tune to slightly different ones."""
    texts = [BY_THE_MACHINE.sub(r"some \1", text) for text in (shown, printed)]
    words, other_words = ("".join(NUMBER.sub("#", text).split()) for text in texts)
    numbers, others = (NUMBER.findall(text) for text in texts)
    return words == other_words and all(map(_near, numbers, others))


def _near(shown, printed):
    decimals = len(shown.partition(".")[2])
    a, b = (float(number.replace(",", "")) for number in (shown, printed))
    units = 3 * 10.0**-decimals if decimals else 1.0
    return abs(a - b) <= (max(units, 0.015) if decimals else units) + 0.05 * abs(a)
