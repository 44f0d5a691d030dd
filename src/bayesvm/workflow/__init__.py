"""Workflow: from a table in files to an evaluated model in one file, and to predictions for other tables."""

from bayesvm.workflow.fitting import fit_table
from bayesvm.workflow.judging import Judged
from bayesvm.workflow.model import TableModel, load

__all__ = ["Judged", "TableModel", "fit_table", "load"]
