"""Storage: the schemas of the states of column distributions. D is the number of features."""

from __future__ import annotations

import numpy as np

from bayesvm.schema import array, flag, positive, record

TINY = float(np.finfo(np.float64).smallest_subnormal)

# The imputation of missing values (D33).
COMPLETION = record(
    {"knots": array("f", None, "D"), "loadings": array("f", "D", None), "noise": array("f", "D", least=1e-9)},
    {"unneeded": flag},
)

# The background of a one-class model (D36).
BACKGROUND = record(
    {
        **dict.fromkeys(("centre", "mean", "values"), array("f", "D")),
        "scale": array("f", "D", least=TINY),
        "vectors": array("f", "D", "D"),
        **dict.fromkeys(("shrinkage", "total"), positive),
        "left_out": array("f", None),  # the estimator checks their number
    }
)
