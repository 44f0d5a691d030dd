"""Reproduction: lines of the page that were measured earlier, read from its CSV files; parts can be measured again."""

import csv


def read_csv(path):
    """The lines of a CSV file of the page, without empty fields; an empty list for a missing file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{field: value_of(text) for field, text in line.items() if text} for line in csv.DictReader(file)]


def value_of(text):
    """The value of a field: true or false, a number, or text."""
    if text in {"True", "False"}:
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def merged(earlier, lines, key):
    """Earlier lines, where a new line replaces all with the same key."""

    def place(line):
        return tuple(line.get(field) for field in key)

    measured = {place(line) for line in lines}
    order = {}
    for line in [*earlier, *lines]:
        order.setdefault(place(line), len(order))
    kept = [line for line in earlier if place(line) not in measured]
    return sorted([*kept, *lines], key=lambda line: order[place(line)])
