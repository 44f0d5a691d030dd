"""Which features matter
=====================

Three of ten features determine the class: one by a wave, two by their product. With one length-scale per feature,
learned by the gradient of the leave-one-out loss, the kernel identifies them.
"""

import numpy as np
from scipy.special import expit

from bayesvm import BayesianSVC
from bayesvm.inspection import RelevanceDisplay
from bayesvm.kernels import RBF

rng = np.random.default_rng(0)
X = rng.normal(size=(4_000, 10))
y = rng.random(4_000) < expit(3 * np.sin(2 * X[:, 0]) + 2 * X[:, 1] * X[:, 2])
train, test = slice(1_000), slice(1_000, None)
names = ["wave", "factor 1", "factor 2", *(f"noise {number}" for number in range(1, 8))]

one = BayesianSVC(RBF(3.0, 4.0), tune="loo", n_inducing=100, random_state=0).fit(X[train], y[train])
each = BayesianSVC(RBF(np.full(10, 3.0), 4.0), tune="loo", n_inducing=100, random_state=0).fit(X[train], y[train])
for name, model in {"one length-scale": one, "one per feature": each}.items():
    print(f"{name}: leave-one-out log loss {model.loo_log_loss_:.3f}, error {1 - model.score(X[test], y[test]):.3f}")

# %%
# The bars are ``relevance_``: the share of a feature in the variation of f.
RelevanceDisplay.from_estimator(each, feature_names=names)
