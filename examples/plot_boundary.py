"""Epistemic and aleatoric uncertainty
===================================

Two half moons, with a gap in the data. The colour is the predicted probability. It fades where there are too few data,
which is not the same as where the classes overlap.
"""

import numpy as np
from sklearn.datasets import make_moons

from bayesvm import BayesianSVC
from bayesvm.inspection import DecisionBoundaryDisplay

X, y = make_moons(300, noise=0.2, random_state=0)
seen = abs(X[:, 0] - 1.1) > 0.45  # the gap
model = BayesianSVC(n_inducing=40, random_state=0).fit(X[seen], y[seen])

DecisionBoundaryDisplay.from_estimator(model, X[seen], y[seen], feature_names=["east", "north"])

# %%
# The numbers behind the colours: the epistemic part is large in the gap and far from the data.
places = {"in the gap": [1.1, 0.0], "within a class": [-0.9, 0.3], "far from the data": [2.5, 1.5]}
parts = model.predict_uncertainty(np.array(list(places.values())))
for place, aleatoric, epistemic in zip(places, parts["aleatoric"], parts["epistemic"], strict=True):
    print(f"{place}: aleatoric {aleatoric:.2f}, epistemic {epistemic:.2f}")
