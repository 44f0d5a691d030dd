"""Workflow: from a table in files to an evaluated model in one file, and to predictions for other tables."""

from bayesvm.workflow.evaluated_rows import EvaluatedRows
from bayesvm.workflow.fitting import fit_table
from bayesvm.workflow.model import TableModel, load

__all__ = ["EvaluatedRows", "TableModel", "fit_table", "load"]
