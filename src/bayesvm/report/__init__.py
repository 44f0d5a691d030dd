"""Report: one HTML file about a model, its metrics and what it has learned: ``bayesvm[cli]``."""

from bayesvm.report.document import write_report
from bayesvm.report.sections import n_rows_shown

__all__ = ["n_rows_shown", "write_report"]
