"""Scaling: rows of a measurement, kept as JSON, so that the page can be written again without measuring."""

import json
from pathlib import Path

FOLDER, QUICK_FOLDER = Path("out/scaling"), Path("out/scaling-quick")


def keep(name, about, rows, folder=FOLDER):
    """Replace what was kept of this measurement."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    new = path.with_suffix(".tmp")
    new.write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def kept(folder=FOLDER):
    """All measurements by name: ``{"machine": …, "rows": […]}``."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
