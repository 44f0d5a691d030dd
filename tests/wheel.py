"""What is in the wheel and the source distribution: ``make wheel`` runs it on the files in dist/."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ["CITATION.cff", "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "tests/lowest.txt", "docs/conf.py"]


def tracked(folder):
    """Files of the repository below the folder, as paths from it."""
    words = ["git", "-C", ROOT / folder, "ls-files"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines())  # noqa: S603


def check_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        text = wheel.read(metadata).decode()
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed == tracked("src"), packed ^ tracked("src")
    assert {"bayesvm/py.typed", "bayesvm/report/templates/report.html"} <= packed
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "Description-Content-Type: text/markdown" in text


def check_sdist(path):
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert set(NEEDED) <= names, set(NEEDED) - names
    assert {f"src/{name}" for name in tracked("src")} <= names


if __name__ == "__main__":
    wheels, sdists = list(Path(sys.argv[1]).glob("*.whl")), list(Path(sys.argv[1]).glob("*.tar.gz"))
    assert (len(wheels), len(sdists)) == (1, 1)
    check_wheel(wheels[0])
    check_sdist(sdists[0])
    print("checked", wheels[0].name, sdists[0].name)  # noqa: T201
