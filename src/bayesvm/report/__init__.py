"""Report: one HTML file that says what a model is, how good it is and what it has learned: ``bayesvm[cli]``."""

from bayesvm.report.document import write_report

__all__ = ["write_report"]
