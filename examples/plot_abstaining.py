"""Abstain on uncertain rows
=========================

Choose an acceptable error rate. The model makes predictions for the rows with the smallest doubt, and abstains on the
others. This needs no labels, because the probabilities are calibrated.
"""

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.evaluation import DoubtHistogram
from bayesvm.inspection import RiskCoverageDisplay

train, test = waveform(3_000, random_state=0), waveform(10_000, random_state=1)
model = BayesianSVC(n_inducing=80, random_state=0).fit(train.X, train.y)

# %%
# The share of answered rows, and their error rate, for three acceptable error rates. The threshold is computed from
# predicted probabilities only.
doubt = 1 - model.predict_proba(test.X).max(axis=1)
wrong = model.predict(test.X) != test.y
histogram = DoubtHistogram()
histogram.add(doubt)
for rate in (0.01, 0.03, 0.05):
    kept = doubt <= histogram.threshold(rate)
    print(f"acceptable error {rate:.0%}: {kept.mean():.0%} answered, {wrong[kept].mean():.1%} of them wrong")

# %%
# The error at every coverage, observed and predicted. If the lines agree, the predicted error can be trusted.
RiskCoverageDisplay.from_estimator(model, test.X, test.y)
