"""Which features matter
=====================

Waveforms have 21 features; the first and the last are pure noise. With one length-scale for every feature, learned by the
gradient of the leave-one-out loss, the kernel finds out.
"""

import numpy as np

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.inspection import RelevanceDisplay
from bayesvm.kernels import RBF

train, test = waveform(1_500, random_state=0), waveform(5_000, random_state=1)
names = [f"t = {t}" for t in range(21)]

one = BayesianSVC(RBF(4.0, 4.0), tune="loo", n_inducing=60, random_state=0).fit(train.X, train.y)
each = BayesianSVC(RBF(np.full(21, 4.0), 4.0), tune="loo", n_inducing=60, random_state=0).fit(train.X, train.y)
for name, model in {"one length-scale": one, "one for every feature": each}.items():
    print(f"{name}: leave-one-out log loss {model.loo_log_loss_:.3f}, error {1 - model.score(test.X, test.y):.3f}")

# %%
# The bars are ``relevance_``: the share of a feature in the squared distances that the kernel sees.
display = RelevanceDisplay.from_estimator(each, feature_names=names, top=21)
print("t = 0 and t = 20:", each.relevance_[[0, 20]].round(3))
