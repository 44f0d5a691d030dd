"""Partial dependence on a feature
===============================

The mean probability over rows in which one column is changed, with a 95% credible band. For a pipeline, the columns
are those of its input, including text.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bayesvm import BayesianSVC
from bayesvm.datasets import people
from bayesvm.inspection import PartialDependenceDisplay

synthetic = people(2_000, random_state=0)  # who has a high income?
X, y = pd.DataFrame(synthetic.columns)[["age", "hours", "commute", "education"]], synthetic.income.astype(str)

encode = make_column_transformer(
    (OneHotEncoder(sparse_output=False), ["education"]), (SimpleImputer(), ["age", "hours", "commute"])
)
model = make_pipeline(encode, BayesianSVC(n_inducing=80, random_state=0)).fit(X, y)

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, feature in zip(axes, ["age", "hours", "education"], strict=True):
    PartialDependenceDisplay.from_estimator(model, X, feature, target="high", max_rows=100, ax=ax)
