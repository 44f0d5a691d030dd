"""Data: tables in files: Parquet, Arrow, CSV and LIBSVM."""

from bayesvm.data.tables.column_reading import Batch
from bayesvm.data.tables.opening import open_table
from bayesvm.data.tables.table import Table

__all__ = ["Batch", "Table", "open_table"]
