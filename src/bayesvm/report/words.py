"""Report: numbers, values and columns as people read them."""

from __future__ import annotations

from typing import Any

from bayesvm.preparation.encoding import CategoryColumn, Column


def probability(value: float) -> str:
    """Three decimals; what is not certain does not look so.

    >>> probability(0.5), probability(0.99996), probability(1e-9), probability(1.0)
    ('0.500', '> 0.999', '< 0.001', '1.000')
    """
    if 0 < value < 0.0005:
        return "< 0.001"
    return "> 0.999" if 0.9995 <= value < 1 else f"{value:.3f}"


def share(value: float) -> str:
    """In percent, with a decimal where that matters.

    >>> share(0.314), share(0.012), share(0.0)
    ('31 %', '1.2 %', '0 %')
    """
    return f"{100 * value:.1f} %" if 0 < value < 0.1 else f"{100 * value:.0f} %"


def counted(n: int, what: str) -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "class")
    ('1 row', '1,200 rows', '2 classes')
    """
    return f"{n:,} {what}" + ("" if n == 1 else "es" if what.endswith("s") else "s")


def duration(seconds: float) -> str:
    """Of a fit.

    >>> duration(4.72), duration(754), duration(9000)
    ('4.7 s', '12 min 34 s', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def value(content: Any) -> str:
    """A cell of a table.

    >>> value(None), value(0.1 + 0.2), value(28700.0), value("red"), value(1e9)
    ('missing', '0.3', '28700', 'red', '1000000000')
    """
    if content is None:
        return "missing"
    if isinstance(content, float):
        return f"{content:.0f}" if content.is_integer() and abs(content) < 1e15 else f"{content:.6g}"
    return str(content)


def short(text: Any, most: int = 28) -> str:
    """For places that are narrow.

    >>> short("a" * 30, 5)
    'aaaa…'
    """
    text = str(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def some(names: list[str], most: int) -> str:
    """A list that may be long.

    >>> some(["a", "b", "c"], 2), some(["a"], 2)
    ('a, b and 1 more', 'a')
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def column(one: Column) -> str:
    """What a column holds."""
    if isinstance(one, CategoryColumn):
        return f"{counted(len(one.categories), 'category')}: {some(list(one.categories), 8)}" + (
            "; rare ones count as one" if one.rare else ""
        )
    return "number" + (f", missing values are filled with {value(one.fill)} and marked" if one.indicator else "")
