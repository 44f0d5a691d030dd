"""The result of an attack: the number of each outcome, and a line for each violation of a guarantee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """Counts by outcome; ``failures`` is empty if no guarantee was violated."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, found: Any, harmless: frozenset[str]) -> Outcome:
        """From what a module's ``attack`` returned: counts, or counts and lines; what is not harmless is a failure."""
        counts, lines = found if isinstance(found, tuple) else (found, [])
        counts = Counter({name: number for name, number in dict(counts).items() if number})
        broken = [f"{name} ({number}×)" for name, number in counts.items() if name not in harmless]
        return cls(counts, list(lines) or broken)

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.counts + other.counts, self.failures + other.failures)

    def as_json(self) -> dict[str, Any]:
        """The outcome as text, for another process."""
        return {"counts": dict(self.counts), "failures": self.failures}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Outcome:
        """The outcome from this text."""
        return cls(Counter(content["counts"]), list(content["failures"]))
