"""Runs: a file of JSON lines that only grows. Of two lines with the same key the later one counts."""

import json
from pathlib import Path

PATH = Path("out/experiments/runs.jsonl")


class Store:
    """Records by (method, version, set, seed)."""

    def __init__(self, path=PATH):
        self.path = Path(path)
        self.records = {}
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except json.JSONDecodeError:  # a run was stopped while writing
                print(f"{self.path}, line {number} is no JSON and is ignored")
                continue
            self.records[_key(record)] = record

    def __contains__(self, key):
        return key in self.records

    def add(self, record):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(("\n" if torn else "") + json.dumps(record) + "\n")
        self.records[_key(record)] = record

    def newest_version(self, method):
        """The version of that method that was run last, None if it never was."""
        runs = [record for record in self.records.values() if record["method"] == method]
        return max(runs, key=lambda record: record["when"])["version"] if runs else None


def _key(record):
    return record["method"], record["version"], record["set"], record["seed"]
