"""What reports are written with."""


def markdown(header, rows):
    """A table; cells are text."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
