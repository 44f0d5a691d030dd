"""Abstaining where it is not sure
===============================

Say which rate of errors is bearable; the model answers the rows of which it is sure enough, and leaves the others open.
It needs no labels for that, because its probabilities are calibrated.
"""

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform
from bayesvm.evaluation import DoubtHistogram
from bayesvm.inspection import RiskCoverageDisplay

train, test = waveform(3_000, random_state=0), waveform(10_000, random_state=1)
model = BayesianSVC(n_inducing=80, random_state=0).fit(train.X, train.y)

# %%
# How many rows are answered, and how many of these wrongly, for some rates asked for. The threshold comes from stated
# probabilities alone.
doubt = 1 - model.predict_proba(test.X).max(axis=1)
wrong = model.predict(test.X) != test.y
histogram = DoubtHistogram()
histogram.add(doubt)
for rate in (0.01, 0.03, 0.05):
    kept = doubt <= histogram.threshold(rate)
    print(f"{rate:.0%} may be wrong: {kept.mean():.0%} answered, {wrong[kept].mean():.1%} of them wrong")

# %%
# The whole curve, with what the model itself says about its errors. Where the lines agree, the doubts can be trusted.
RiskCoverageDisplay.from_estimator(model, test.X, test.y)
