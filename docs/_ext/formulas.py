"""Writes the table of docs/formulas.md from docs/derivation.md and the code: ``python docs/_ext/formulas.py``.

A test fails if the table is not what this would write.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DERIVATION = ROOT / "docs" / "derivation.md"
PAGE = ROOT / "docs" / "formulas.md"
PACKAGE = ROOT / "src" / "bayesvm"
SECTION = re.compile(r"^### (D(\d+)) ([^\n]+)\n(.*?)(?=^##|\Z)", flags=re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`((?:\w+/)*\w+\.py)`")
TABLE = re.compile(r"^\| formula .*?\n\n", flags=re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The anchor that GitHub and the site give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def cited(text: str) -> set[int]:
    """Numbers of the formulas that a comment names; "D4-D6" names three."""
    found = {int(number) for number in re.findall(r"\bD(\d+)\b", text)}
    for first, last in re.findall(r"\bD(\d+)-D(\d+)\b", text):
        found |= set(range(int(first), int(last) + 1))
    return found


def table() -> str:
    """Of every formula: what it is, where it is computed, which other files of the library name it."""
    naming = {path.relative_to(PACKAGE).as_posix(): cited(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
    lines = ["| formula | computed in | also named in |", "|---|---|---|"]
    for label, number, title, text in SECTION.findall(DERIVATION.read_text()):
        told = re.search(r"\*Computed\b(.*?)\*Checked\b", text, flags=re.DOTALL)
        if told is None:
            raise ValueError(f"the section on {label} must end with *Computed in* … and *Checked by* …")
        computed = list(dict.fromkeys(FILE.findall(told[1])))
        others = [name for name, numbers in naming.items() if int(number) in numbers and name not in computed]
        shown, more = (", ".join(f"`{name}`" for name in names) for names in (computed, others))
        where = shown or "nowhere by itself: it is the model"
        lines.append(f"| [{label}](derivation.md#{slug(f'{label} {title}')}) {title} | {where} | {more} |")
    return "\n".join(lines) + "\n\n"


def written(page: str) -> str:
    """The page with the table as it should be."""
    return TABLE.sub(lambda _: table(), page, count=1)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
