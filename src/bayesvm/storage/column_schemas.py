"""Storage: what the states of distributions of columns must look like. D features."""

from __future__ import annotations

import numpy as np

from bayesvm.schema import array, positive, record

TINY = float(np.finfo(np.float64).smallest_subnormal)

# Of missing values (D33).
COMPLETION = record(
    {"knots": array("f", None, "D"), "loadings": array("f", "D", None), "noise": array("f", "D", least=1e-9)}
)

# Of one class (D36).
BACKGROUND = record(
    {
        **dict.fromkeys(("centre", "mean", "values"), array("f", "D")),
        "scale": array("f", "D", least=TINY),
        "vectors": array("f", "D", "D"),
        **dict.fromkeys(("shrinkage", "total"), positive),
        "left_out": array("f", None),  # the estimator compares their number
    }
)
