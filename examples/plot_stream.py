"""A stream of rows
================

Rows arrive in parts and are not stored. ``partial_fit`` uses the current posterior as the prior of the next part. The
first part determines scaling, kernel and inducing points.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from bayesvm import BayesianSVC
from bayesvm.datasets import waveform

test = waveform(5_000, random_state=1)
stream = BayesianSVC(n_inducing=60, random_state=0)
seen, losses, doubts = [], [], []
for number in range(12):
    part = waveform(250, random_state=100 + number)
    stream.partial_fit(part.X, part.y, classes=[-1, 1])
    seen.append(250 * (number + 1))
    losses.append(log_loss(test.y, stream.predict_proba(test.X)))
    doubts.append(stream.predict_uncertainty(test.X)["epistemic"].mean())

# %%
# For comparison: one fit to all rows, and the true probabilities, the best possible predictions.
parts = [waveform(250, random_state=100 + number) for number in range(12)]
X, y = np.concatenate([part.X for part in parts]), np.concatenate([part.y for part in parts])
whole = log_loss(test.y, BayesianSVC(n_inducing=60, random_state=0).fit(X, y).predict_proba(test.X))
best = log_loss(test.y, np.column_stack([1 - test.probability, test.probability]))
print(f"stream {losses[-1]:.3f}, one fit {whole:.3f}, true probabilities {best:.3f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].plot(seen, losses, marker="o", label="stream")
axes[0].axhline(whole, color="tab:orange", label="one fit to all rows")
axes[0].axhline(best, color="gray", linestyle=":", label="true probabilities")
axes[0].set(xlabel="rows seen", ylabel="log loss of new rows")
axes[0].legend()
axes[1].plot(seen, doubts, marker="o")
axes[1].set(xlabel="rows seen", ylabel="mean epistemic uncertainty, nats", ylim=(0, None))
