"""
Where the model knows
=====================

Words.
"""

from sklearn.datasets import make_moons

from bayesvm import BayesianSVC
from bayesvm.inspection import DecisionBoundaryDisplay

X, y = make_moons(200, noise=0.25, random_state=0)
model = BayesianSVC(n_inducing=30, random_state=0).fit(X, y)
display = DecisionBoundaryDisplay.from_estimator(model, X, y, feature_names=["east", "north"])
