"""bayesvm: the support vector machine that knows how sure it is."""

from bayesvm import kernels
from bayesvm.data.tables import open_table
from bayesvm.estimators import BayesianLinearSVC, BayesianSVC
from bayesvm.export import to_onnx
from bayesvm.workflow import TableModel, load

__version__ = "0.1.0"

__all__ = ["BayesianLinearSVC", "BayesianSVC", "TableModel", "__version__", "kernels", "load", "open_table", "to_onnx"]
